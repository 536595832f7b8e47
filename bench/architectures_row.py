"""Our half of a row of architectures.py: compile, train, compare.

    architectures_row.py STAGES UPDATES FOLDER

FOLDER is what architectures_export.py left. Adds row.json to it, and the results
of each number of stages, which later calls use again where nothing has changed.
"""

import hashlib
import json
import pathlib
import re
import resource
import subprocess
import sys

import measure

MICROBATCHES, MOMENTUM = 2, 0.9


class Failed(Exception):
    """A row without numbers."""


def digest(*parts):
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def once(folder, name, key, make):
    """The JSON of FOLDER/NAME, made again where its key is another."""
    path = folder / name
    if path.exists():
        found = json.loads(path.read_text())
        if found["key"] == key:
            return found["value"]
    value = make()
    # Renamed when whole: a row may be stopped at any time.
    partial = path.with_suffix(".tmp")
    partial.write_text(json.dumps({"key": key, "value": value}))
    partial.rename(path)
    return value


def compiler_key():
    """Changes with the compiler and with what it links into programs."""
    build = measure.build_folder()
    files = [build / "bin" / "penstockc", *sorted(build.glob("runtime/**/*.a")),
             *sorted(build.glob("lib/*.a"))]
    return [(str(path.relative_to(build)), path.stat().st_mtime_ns, path.stat().st_size)
            for path in files]


def compiler_version():
    """What penstockc says of itself, and the commit that it was built from."""
    said = subprocess.run([measure.build_folder() / "bin" / "penstockc", "--version"],
                          capture_output=True, text=True, check=True).stdout.splitlines()[0]
    commit = subprocess.run(["git", "-C", measure.ROOT, "describe", "--always", "--exclude=*"],
                            capture_output=True, text=True, check=False).stdout.strip()
    return f"{said}, commit {commit}" if commit else said


def cpu_seconds():
    """Of all processes that were run and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compile_and_train(folder, reference, stages, updates):
    """Losses, the bytes to compare, CPU seconds of penstockc."""
    program = folder / "program"
    begin = cpu_seconds()
    compiler = subprocess.run(
        [measure.build_folder() / "bin" / "penstockc", folder / "model.onnx", "-o", program,
         f"--stages={stages}", f"--microbatch-size={reference['batch']}",
         f"--microbatches={MICROBATCHES}", f"--loss={reference['loss']}",
         f"--optimizer=sgd:lr={reference['rate']},momentum={MOMENTUM}", *reference["freeze"]],
        capture_output=True, text=True, check=False)
    seconds = cpu_seconds() - begin
    if compiler.returncode:
        said = [line for line in compiler.stderr.splitlines() if ": note: " not in line and
                ": warning: " not in line]
        problem = (said or ["(nothing said)"])[0].replace(str(folder) + "/", "")
        raise Failed(f"exit {compiler.returncode}: {problem[:250]}")
    log, saved = folder / "log.jsonl", folder / "saved.onnx"
    data = [argument for name in reference["inputs"]
            for argument in ("--data", f"{name}={folder / name}.npy")]
    run = subprocess.run(
        [program, *data, "--labels", folder / "labels.npy", "--steps", str(updates),
         "--log", log, "--save", saved], capture_output=True, text=True, check=False)
    program.unlink()
    if run.returncode:
        raise Failed(f"the program ends with {run.returncode}: "
                     f"{run.stderr.strip()[-300:]}")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    # A log has times, too: what is compared is its losses, as printed.
    losses = re.findall(r'"loss": ([^,]*)', log.read_text())
    identity = digest(losses, hashlib.sha256(saved.read_bytes()).hexdigest())
    saved.unlink()
    return [row["loss"] for row in rows], identity, seconds


def worst(losses, expected):
    return max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(losses, expected))


def measure_row(reference, stages, updates, folder):
    """Numbers of the first number of stages that works; which do, and which not."""
    if "problem" in reference:
        raise Failed(reference["problem"])
    key = digest(reference["key"], reference["freeze"], compiler_key(), updates)
    results, problems = {}, {}
    for number in stages:
        try:
            results[number] = once(folder, f"stages-{number}.json", key, lambda number=number:
                                   compile_and_train(folder, reference, number, updates))
        except Failed as failed:
            problems[number] = str(failed)
    if not results:
        raise Failed(next(iter(problems.values())))
    first = next(iter(results.values()))
    ours, expected, exact = first[0], reference["expected"], reference["exact"]
    if None in ours:
        at = ours.index(None)
        raise Failed(f"the loss of update {at + 1} is not finite; PyTorch's: {expected[at]}")
    return {"ours": worst(ours, expected), "ours_exact": worst(ours, exact),
            "pytorch_exact": worst(expected, exact), "stages": list(results),
            "equal": all(result[1] == first[1] for result in results.values()),
            "problems": problems, "seconds": max(result[2] for result in results.values()),
            "first": expected[0], "last": expected[-1]}


def main(stages, updates, folder):
    folder = pathlib.Path(folder)
    reference = json.loads((folder / "reference.json").read_text())
    try:
        row = measure_row(reference, stages.split(","), int(updates), folder)
    except Failed as failed:
        row = {"failed": str(failed)}
    row["versions"], row["compiler"] = reference["versions"], compiler_version()
    (folder / "row.json").write_text(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
