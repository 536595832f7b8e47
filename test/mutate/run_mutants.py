"""Changes programs at random, one change each, and finds out what becomes of them.

usage: run_mutants.py BINARIES FOLDER [--count N] [--seed S] [--batches N] [--jobs N] [--table]

A mutant is rejected, by a rule, or it trains as the original does: the same losses
and the same saved model, to the bit, which are those of the original's replay. Half of
the programs have no replay in them that a mutant could differ from. A change of the
mathematics (the body of a kernel, a constant, a number of the optimizer) is another
program: it has to agree with its own replay. Anything else is a hole in the proof:
it is printed, and the exit code is 1; so it is where a kind of change was never
rejected. --table prints mutants by kind and by the rule that rejected them.

With --batches, that many seeds get COUNT mutants each, none of them made before.
What each seed found is a line of FOLDER/results.jsonl; seeds that have one are not
run again, so that the same command goes on where it ended.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ("examples/digits/mlp.onnx", "x=examples/digits/test-images.npy",
          "examples/digits/test-labels.npy")
CNN = ("test/fixtures/cnn.onnx", "x=test/fixtures/cnn-x.npy", "test/fixtures/cnn-labels.npy")
TIED = ("test/fixtures/tied.onnx", "x=test/fixtures/versions-x.npy",
        "test/fixtures/versions-labels.npy")
# What each program has that others have not, and how it is compiled.
PROGRAMS = {
    "1f1b": (DIGITS, "--stages=3 --microbatch-size=5 --microbatches=4 "
                     "--optimizer=sgd:lr=0.05,momentum=0.9"),
    "clipped": (DIGITS, "--stages=2 --microbatch-size=5 --microbatches=2 --optimizer=adamw "
                        "--clip-grad-norm=0.5 --lr-schedule=cosine:total-steps=9"),
    "replicas": (CNN, "--stages=2 --replicas=2,1 --microbatch-size=2 --microbatches=2"),
    "tied": (TIED, "--stages=2 --microbatch-size=3 --microbatches=2"),
    "pipedream": (DIGITS, "--stages=3 --microbatch-size=5 --method=pipedream "
                          "--optimizer=sgd:lr=0.05,momentum=0.9"),
    "2bw": (DIGITS, "--stages=2 --microbatch-size=5 --microbatches=2 --method=2bw "
                    "--optimizer=adamw"),
    "pipemare": (DIGITS, "--stages=2 --microbatch-size=5 --method=pipemare"),
    "xpipe": (DIGITS, "--stages=2 --microbatch-size=5 --microbatches=2 --method=xpipe "
                      "--optimizer=adamw"),
    "bf16": (DIGITS, "--stages=2 --microbatch-size=5 --microbatches=2 --precision=bf16 "
                     "--optimizer=adamw"),
    "timeprest": (DIGITS, "--stages=2 --microbatch-size=5 --microbatches=2 "
                          "--method=i-timeprest --optimizer=sgd:lr=0.05,momentum=0.9"),
    "hetpipe": (DIGITS, "--stages=2 --microbatch-size=5 --method=hetpipe:workers=2,distance=1 "
                        "--optimizer=sgd:lr=0.05,momentum=0.9"),
    "workers": (TIED, "--stages=2 --microbatch-size=3 --method=hetpipe:workers=3,distance=0"),
    "spectrain": (DIGITS, "--stages=3 --microbatch-size=5 --method=spectrain "
                          "--optimizer=sgd:lr=0.05,momentum=0.9 "
                          "--lr-schedule=linear:total-steps=9"),
    "annealed": (DIGITS, "--stages=3 --microbatch-size=5 --method=pipemare:anneal-steps=6 "
                         "--optimizer=adamw --lr-scale=.*bias:0.5 --no-decay=.*bias "
                         "--lr-schedule=cosine:total-steps=9"),
    "groups": (DIGITS, "--stages=2 --microbatch-size=5 --microbatches=2 --method=2bw "
                       "--optimizer=nadam --lr-scale=.*bias:0.5 --no-decay=fc3.* --ema=0.9 "
                       "--lr-schedule=linear:total-steps=9"),
    "recomputed": (CNN, "--stages=3 --microbatch-size=2 --microbatches=3 --schedule=gpipe "
                        "--recompute=full --optimizer=adamw --ema=0.9"),
    "zero-bubble": (DIGITS, "--stages=2 --microbatch-size=5 --microbatches=4 --schedule=zb-h1"),
}
LEVELS = ["schedule", "program"]
STEPS = 9


def run(*command, seconds=300):
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=seconds)
    except subprocess.TimeoutExpired:
        return 124, "", "hangs"
    return done.returncode, done.stdout, done.stderr


class Program:
    """What is compiled from one model, at all levels: they train alike."""

    def __init__(self, options, name):
        (self.model, self.data, self.labels), self.flags = PROGRAMS[name]
        self.options, self.name = options, name
        self.folder = options.folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.texts = {level: self.compile(level) for level in options.levels.split(",")}
        self.codes = {}
        self.expected, problem = self.train(next(iter(self.texts.values())), verifies=True)
        if problem:
            sys.exit(f"{name}: {problem}")

    def compile(self, level):
        text = self.folder / f"{level}.mlir"
        code, _, errors = run(self.options.binaries / "penstockc", self.model, f"--emit={level}",
                              "-o", text, "--loss=softmax-cross-entropy", *self.flags.split())
        if code:
            sys.exit(f"{self.name}: {errors}")
        return text

    def mutate(self, seed, count, level, replay):
        """Yields the lines of penstock-mutate, and the folder of those accepted."""
        folder = self.folder / f"{level}.{replay}"
        folder.mkdir(exist_ok=True)
        code, output, errors = run(
            self.options.binaries / "penstock-mutate", self.texts[level], f"--seed={seed}",
            f"--count={count}", f"--out={folder}", f"--known={folder / 'known'}",
            *(["--without-replay"] if replay == "alone" else []), seconds=1800)
        problem = f"{folder.name} of {self.name}: penstock-mutate, exit {code}: {errors[-2000:]}"
        return folder, output.splitlines(), problem if code else None

    def train(self, text, verifies, original=None):
        """What is left of a training, and what went wrong. What has the code of the
        original, a name, trains as it does."""
        # The code says what it was compiled from.
        stem = self.folder / "current"
        source, code_file = stem.with_suffix(".mlir"), stem.with_suffix(".code.mlir")
        shutil.copy(text, source)
        code, _, errors = run(self.options.binaries / "penstockc", source, "--emit=llvm",
                              "-o", code_file)
        if code:
            return None, f"compiler, exit {code}: {errors.strip()}"
        digest = hashlib.sha256(code_file.read_bytes()).digest()
        if original is not None and digest == self.codes.get(original):
            return self.expected, None
        code, _, errors = run(self.options.binaries / "penstockc", code_file, "-o", stem)
        if code:
            return None, f"compiler, exit {code}: {errors.strip()}"
        # Not what took how long.
        saved, log = f"{stem}.onnx", f"{stem}.jsonl"
        command = [stem, "--data", self.data, "--labels", self.labels, "--steps", str(STEPS),
                   "--eval-data", self.data, "--eval-labels", self.labels, "--save", saved,
                   "--log", log, "--watchdog", "120", "--on-nan", "warn"]
        code, output, errors = run(*command, *(["--verify"] if verifies else []))
        if code:
            return None, f"run, exit {code}: {errors.strip()}"
        result = hashlib.sha256(pathlib.Path(saved).read_bytes())
        for line in pathlib.Path(log).read_text().splitlines():
            result.update(line.split('"seconds"')[0].encode())
        result.update("".join(line for line in output.splitlines(True)
                              if line.startswith("eval")).encode())
        for file in (stem, saved, log):
            os.remove(file)
        # Of mutants that train alike, most have the same code.
        if original is not None and result.hexdigest() == self.expected:
            self.codes.setdefault(original, digest)
        return result.hexdigest(), None

    def judge(self, folder, seed, line):
        """Returns (kind, outcome, rule, what it was)."""
        number, kind, group, verdict, rule, change, message = line.split("\t")
        if verdict == "rejected":
            return kind, "rejected", rule, f"{change}: {message}"
        text = folder / f"{number}.mlir"
        # Without a replay, or at another level, the code is another.
        found, problem = self.train(text, verifies=group == "math",
                                    original=folder.name if group == "text" else None)
        if problem and problem.startswith("compiler, exit 1"):
            outcome, rule = "rejected", "compiler"
        elif problem:
            outcome = "verify" if "verify:" in problem else "run time"
        elif group == "math":
            outcome = "own replay"
        else:
            outcome = "neutral" if found == self.expected else "silent"
        if outcome in ("neutral", "own replay", "rejected"):
            text.unlink()
        else:
            text = text.rename(folder / f"{seed}.{number}.mlir")
        return kind, outcome, rule, f"{text}: {change}: {problem or outcome}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("folder", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--levels", default=",".join(LEVELS))
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()

    results_file = options.folder / "results.jsonl"
    if not options.batches:
        shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True, exist_ok=True)
    # [seed, [kind, outcome, rule, what it was]...]
    known = [json.loads(line) for line in results_file.read_text().splitlines()] \
        if results_file.exists() else []
    seeds = [seed for seed in range(options.seed, options.seed + (options.batches or 1))
             if seed not in [entry[0] for entry in known]]

    # Half of the programs have a replay, half are alone.
    names = options.programs.split(",")
    parts = [(level, replay) for level in options.levels.split(",")
             for replay in ("alone", "replay")]
    each = -(-options.count // (len(names) * len(parts)))

    def mutate(index, program, seed):
        results = []
        for part, (level, replay) in enumerate(parts):
            own = seed + index * len(parts) + part
            folder, lines, problem = program.mutate(own, each, level, replay)
            results += [program.judge(folder, own, line) for line in lines]
            if problem:
                results.append(("any", "crash", "", problem))
        return results

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        programs = list(pool.map(lambda name: Program(options, name), names)) if seeds else []
        for seed in seeds:
            found = [result for results in pool.map(
                lambda item, seed=seed: mutate(*item, seed), enumerate(programs))
                for result in results]
            known.append([seed, *found])
            with results_file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[-1]) + "\n")
            if options.batches:
                summarize(found, f"seed {seed}")
    found = [result for entry in known for result in entry[1:]]
    if options.table:
        print_table(found)
    sys.exit(summarize(found, f"seed {options.seed}" if len(known) == 1 else
                       f"{len(known)} seeds"))


def print_table(found):
    outcomes = collections.defaultdict(collections.Counter)
    rules = collections.defaultdict(collections.Counter)
    for kind, outcome, rule, text in found:
        outcomes[kind][outcome] += 1
        if outcome == "rejected":
            rules[kind][rule] += 1
            if rule in ("op", "compiler"):
                print(f"{rule}: {kind}: {text}", file=sys.stderr)
    print("| kind | tried | rejected | neutral | by rule |\n|---|---|---|---|---|")
    for kind, count in sorted(outcomes.items()):
        by = ", ".join(f"{rule} {number}" for rule, number in rules[kind].most_common())
        print(f"| {kind} | {count.total()} | {count['rejected']} | "
              f"{count['neutral'] + count['own replay']} | {by} |")


def summarize(found, of):
    """Prints a line, and one for every hole; returns whether there are any."""
    total = collections.Counter(result[1] for result in found)
    print(f"{len(found)} mutants, {of}: {total['rejected']} rejected, "
          f"{total['neutral']} neutral, {total['own replay']} agree with their own replay, "
          f"{total['silent']} silent, {total['verify']} found by the replay, "
          f"{total['run time']} at run time")
    holes = [f"{outcome}: {kind}: {text}" for kind, outcome, _, text in found
             if outcome not in ("rejected", "neutral", "own replay")]
    for kind in {result[0] for result in found}:
        of_kind = [result for result in found if result[0] == kind]
        if not kind.startswith("math") and len(of_kind) >= 30 and \
                all(result[1] != "rejected" for result in of_kind):
            holes.append(f"no rule sees: {kind}, {len(of_kind)} mutants")
    for hole in holes:
        print(hole)
    sys.stdout.flush()
    return bool(holes)


main()
