"""Kills a training at each system call with which it writes its second
checkpoint: there is always a whole one, and it goes on from that.

usage: checkpoint_syscalls.py FOLDER PROGRAM [ARGUMENT]...
"""

import collections
import json
import pathlib
import shutil
import subprocess
import sys

FILES = ("weights-00000.safetensors", "state-00000.safetensors",
         "weights.safetensors.index.json", "manifest.json.part",
         "manifest.json")


def train(program, run, updates, *prefix):
    return subprocess.run(
        [*prefix, *program, f"--steps={updates}", f"--checkpoint-dir={run}",
         "--checkpoint-every=2", "--checkpoint-keep=1", "--resume-if-any",
         f"--save={run}.onnx"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def main():
    folder, *program = sys.argv[1:]
    folder = pathlib.Path(folder).resolve()
    run, first = folder / "run", folder / "first"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for updates in (2, 4):
        result = train(program, run, updates)
        assert result.returncode == 0, result.stderr
        if updates == 2:
            shutil.copytree(run, first)
    model = (folder / "run.onnx").read_bytes()

    # The paths that belong to the second checkpoint.
    paths = [run / f"step-00000000{step}{end}"
             for step in (2, 4) for end in ("", ".part")]
    paths += [paths[-1] / name for name in FILES] + [run]
    filters = [word for path in paths for word in ("-P", str(path))]

    def begin(*inject):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(first, run)
        return train(program, run, 4, "strace", "-f", "-qq", "-o",
                     str(folder / "trace"), *filters, *inject)

    # Every call of the thread that writes, by name and number.
    assert begin().returncode == 0
    lines = (folder / "trace").read_text().splitlines()
    writer = next(line.split()[0] for line in lines if " mkdir(" in line)
    counts, calls = collections.Counter(), []
    for line in lines:
        thread, call = line.split(maxsplit=1)
        if thread == writer:
            name = call.split("(")[0]
            counts[name] += 1
            calls.append((name, counts[name]))
    # Of writes in a row, the first and the last.
    calls = [call for i, call in enumerate(calls)
             if not (0 < i < len(calls) - 1 and call[0] == "write"
                     == calls[i - 1][0] == calls[i + 1][0])]

    left = []
    for number, (name, count) in enumerate(calls):
        result = begin("-e", f"inject={name}:signal=KILL:when={count}")
        assert result.returncode == -9, (name, count, result.returncode)
        names = sorted(path.name for path in run.glob("step-*"))
        listed = subprocess.run(
            ["penstock-checkpoint", run, "--verify", "--json"],
            stdout=subprocess.PIPE, text=True)
        assert listed.returncode == 0, (name, count, names, listed.stdout)
        whole = json.loads(listed.stdout)
        assert whole and all(each["whole"] for each in whole)
        if names in left and number % 8:
            continue
        left.append(names)
        result = train(program, run, 4)
        assert result.returncode == 0, (name, count, result.stderr)
        assert (folder / "run.onnx").read_bytes() == model, (name, count)
        assert (run / "step-000000004").exists(), (name, count)
        assert not list(run.glob("*.part")), (name, count)
    for names in sorted(set(map(tuple, left))):
        print(*names)
    print(f"killed at {len(calls)} system calls")


main()
