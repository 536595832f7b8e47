"""Compiles and runs one model under many methods, depths, M and optimizers, each
with --verify, and prints a table of what came out.

usage: verify_methods.py PENSTOCKC MODEL DATA LABELS FOLDER
           [--methods A,B] [--depths 1,2] [--microbatches 1,2] [--optimizers A B]
           [--steps N] [--size N] [--eval-every N]

A cell is `=` where the replay gave the same bits, `-` where the combination has
no meaning and the compiler said so. Anything else ends the script with what was
said, and exit code 1.
"""

import argparse
import os
import subprocess
import sys

METHODS = ["naive", "pipedream", "pipedream:vertical-sync", "2bw"]
OPTIMIZERS = ["sgd:lr=0.05,momentum=0.9", "adamw:lr=0.001"]


def isLegal(method, depth, microbatches, optimizer):
    if method == "2bw":
        return microbatches >= depth
    if method == "spectrain":
        return microbatches == 1 and "momentum" in optimizer
    if method == "xpipe":
        return optimizer.startswith("adam")
    if method == "pipeoptim":
        return optimizer.startswith("adam") or "momentum" in optimizer
    return True


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def check(options, method, depth, microbatches, optimizer):
    program = os.path.join(options.folder, "run")
    compile = [options.penstockc, options.model, "-o", program,
               f"--stages={depth}", f"--microbatch-size={options.size}",
               f"--microbatches={microbatches}", f"--method={method}",
               f"--optimizer={optimizer}", "--loss=softmax-cross-entropy"]
    code, _, errors = run(compile)
    if not isLegal(method, depth, microbatches, optimizer):
        if code == 1 and len(errors.splitlines()) == 1:
            return "-"
        sys.exit(f"{' '.join(compile)}: exit code {code}, not one line that "
                 f"says what would work: {errors}")
    if code:
        sys.exit(f"{' '.join(compile)}: exit code {code}: {errors}")
    train = [program, "--data", f"x={options.data}", "--labels",
             options.labels, "--steps", str(options.steps), "--verify"]
    if options.eval_every:
        # Evaluation drains: the versions begin anew, the rings go on.
        train += ["--eval-data", f"x={options.data}", "--eval-labels",
                  options.labels, "--eval-every", str(options.eval_every)]
    code, output, errors = run(train)
    losses = options.steps * microbatches
    if code or f"{losses} losses: bitwise equal" not in output:
        sys.exit(f"{' '.join(compile)}; {' '.join(train)}: exit code {code}: "
                 f"{errors}")
    return "="


def main():
    parser = argparse.ArgumentParser()
    for name in ["penstockc", "model", "data", "labels", "folder"]:
        parser.add_argument(name)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--depths", default="1,2,3,4,5,6")
    parser.add_argument("--microbatches", default="1,2,4,8")
    parser.add_argument("--optimizers", nargs="*", default=OPTIMIZERS)
    parser.add_argument("--steps", type=int, default=13)
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--eval-every", type=int, default=0)
    options = parser.parse_args()
    depths = options.depths.split(",")
    os.makedirs(options.folder, exist_ok=True)
    count = 0
    for optimizer in options.optimizers:
        print(f"{optimizer}\n\n| method | M |" +
              "".join(f" p = {p} |" for p in depths))
        print("|---" * (2 + len(depths)) + "|")
        for method in options.methods.split(","):
            for microbatches in options.microbatches.split(","):
                cells = []
                for depth in depths:
                    cells.append(check(options, method, int(depth),
                                       int(microbatches), optimizer))
                count += cells.count("=")
                print(f"| {method} | {microbatches} |" +
                      "".join(f" {cell} |" for cell in cells), flush=True)
        print()
    print(f"{count} runs bitwise equal to their replay")


main()
