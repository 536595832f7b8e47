"""Compiles and runs small models under many methods, depths, M and optimizers,
each with --verify, and prints a table of what came out.

usage: verify_methods.py PENSTOCKC FOLDER [--models mlp cnn]
           [--methods A B] [--depths 1,2] [--microbatches 1,2] [--optimizers A B]
           [--devices N] [--steps N] [--eval-every N] [--flags=FLAGS] [--jobs N]
           [--emulated TOLERANCE]

Without options it goes through all methods, 1 to 6 stages, 1, 2, 4 and 8
microbatches per update, two optimizers, and the first three models.
An evaluation in the middle drains the pipe, twice. With --devices, that many hold
the p stages. FLAGS are for the compiler. N jobs compile and run at once.
With --emulated, programs run on the emulated GPU, and the losses differ from the
CPU's by at most TOLERANCE, relative. They are the same bits without graphs, in
another order of streams.

A cell is `=` where the replay gave the same bits (with --emulated, followed by the
largest difference from the CPU), `-` where the combination has no meaning and the
compiler said so. Anything else ends the script with what was
said, and exit code 1.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import plans

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = "test/fixtures/"
CROSS_ENTROPY = "softmax-cross-entropy"
# Model, data, labels, size of a microbatch, loss.
MODELS = {
    "mlp": ("examples/digits/mlp.onnx", "x=examples/digits/test-images.npy",
            "examples/digits/test-labels.npy", 4, CROSS_ENTROPY),
    # With batch norm, whose statistics the forward moves.
    "cnn": (FIXTURES + "cnn.onnx", f"x={FIXTURES}cnn-x.npy", FIXTURES + "cnn-labels.npy", 2,
            CROSS_ENTROPY),
    "transformer": (FIXTURES + "attention.onnx", f"x={FIXTURES}attention-x.npy",
                    FIXTURES + "attention-labels.npy", 3, CROSS_ENTROPY),
    "digits-cnn": ("examples/digits/cnn.onnx", "x=examples/digits/test-images.npy",
                   "examples/digits/test-labels.npy", 4, CROSS_ENTROPY),
    "gpt": (FIXTURES + "gpt.onnx", f"idx={FIXTURES}gpt-idx.npy", FIXTURES + "gpt-labels.npy", 3,
            CROSS_ENTROPY),
    # The last stage reads the weights of the first.
    "tied": (FIXTURES + "tied.onnx", f"x={FIXTURES}versions-x.npy",
             FIXTURES + "versions-labels.npy", 3, CROSS_ENTROPY),
    "dropout": ("test/e2e/inputs/dropout.onnxtext", f"x={FIXTURES}versions-x.npy",
                FIXTURES + "versions-labels.npy", 3, CROSS_ENTROPY),
    # With batch norm, layer norm and dropout.
    "stochastic": ("test/e2e/inputs/stochastic.onnxtext", f"x={FIXTURES}regression-x.npy",
                   FIXTURES + "regression-y.npy", 3, "bce-with-logits"),
}
# Besides all of them together: each part of PipeMare alone, and any two.
PIPEMARE = ["pipemare:decay=0", "pipemare:anneal-steps=6,decay=0", "pipemare:decay=0,warmup-steps=3",
            "pipemare:anneal-steps=6", "pipemare:anneal-steps=6,decay=0,warmup-steps=3",
            "pipemare:warmup-steps=3"]
OPTIMIZERS = ["sgd:lr=0.05,momentum=0.9", "adamw:lr=0.001"]


def isLegal(method, depth, microbatches, optimizer):
    if method == "2bw":
        return microbatches >= depth
    if method == "spectrain":
        return microbatches == 1 and "momentum" in optimizer
    ahead = re.search("ahead=([0-9]+)", method)
    if ahead and int(ahead[1]) >= depth:
        return False
    if method in ("xpipe", "pipeoptim"):
        return optimizer.startswith("adam") or "momentum" in optimizer
    return True


class Difference(Exception):
    pass


def run(command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def readLosses(log):
    with open(log, encoding="utf-8") as file:
        return [record["loss"] for record in map(json.loads, file)
                if "loss" in record]


def compareWithCpu(options, compile, train, log):
    """Returns the largest relative difference of losses from the CPU's."""
    found = readLosses(log)
    for command in (compile, train):
        code, _, errors = run(command)
        if code:
            raise Difference(f"{' '.join(command)}: exit code {code}: {errors}")
    expected = readLosses(log)
    if len(found) != options.steps or len(expected) != options.steps:
        raise Difference(f"{' '.join(compile)}: {len(found)} and {len(expected)} losses")
    differences = [abs(a - b) / abs(b) for a, b in zip(found, expected)]
    # Not a number is beyond any tolerance.
    if not all(difference <= options.emulated for difference in differences):
        raise Difference(f"{' '.join(compile)}: losses {found}, the CPU's are {expected}")
    return max(differences)


def compareWithoutGraphs(options, train, log):
    found = readLosses(log)
    train = [flag for flag in train if flag != "--verify"] + ["--log", log]
    code, _, errors = run(train, PENSTOCK_GRAPHS="0", PENSTOCK_EMULATED_ORDER="3")
    if code or readLosses(log) != found:
        raise Difference(f"PENSTOCK_GRAPHS=0 {' '.join(train)}: exit code {code}, "
                         f"other losses, or none: {errors}")


def check(options, name, method, depth, microbatches, optimizer):
    model, data, labels, size, loss = MODELS[name]
    program = os.path.join(
        options.folder, f"run-{depth}-{microbatches}-{threading.get_ident()}")
    compile = [options.penstockc, model, "-o", program,
               f"--stages={depth}", f"--microbatch-size={size}",
               f"--microbatches={microbatches}", f"--method={method}",
               f"--optimizer={optimizer}", f"--loss={loss}",
               *options.flags.split()]
    if options.devices:
        compile.append(f"--devices={options.devices}")
    target = []
    if options.emulated is not None:
        target = ["--target=cuda", "--gpu-arch=emulated"]
        # Both are cut alike, by the costs of one device.
        compile.append("--device-model=h100")
    code, _, errors = run(compile + target)
    if not isLegal(method, options.devices or depth, microbatches, optimizer):
        if code == 1 and len(errors.splitlines()) == 1:
            return "-"
        raise Difference(f"{' '.join(compile)}: exit code {code}, not one line "
                         f"that says what would work: {errors}")
    if code:
        raise Difference(f"{' '.join(compile)}: exit code {code}: {errors}")
    train = [program, "--data", data, "--labels", labels,
             "--steps", str(options.steps), "--verify"]
    if options.eval_every:
        # Evaluation drains: the versions begin anew, the rings go on.
        train += ["--eval-data", data, "--eval-labels", labels,
                  "--eval-every", str(options.eval_every)]
    log = program + ".jsonl"
    code, output, errors = run(train + ["--log", log])
    losses = options.steps * microbatches
    if code or f"{losses} losses: bitwise equal" not in output:
        raise Difference(f"{' '.join(compile + target)}; {' '.join(train)}: "
                         f"exit code {code}: {errors}")
    cell = "="
    if options.emulated is not None:
        compareWithoutGraphs(options, train, log)
        cell += f" {compareWithCpu(options, compile, train + ['--log', log], log):.1e}"
    os.remove(log)
    os.remove(program)
    return cell


def split_numbers(text):
    return [int(number) for number in text.split(",")]


def parse(parser, depths):
    """Returns the options, with those that all tables have; makes the folder."""
    parser.add_argument("penstockc")
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--depths", type=split_numbers, default=depths)
    parser.add_argument("--flags", default="")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    return options


def print_head(title, columns):
    print(f"{title}\n\n|" + "".join(f" {column} |" for column in columns))
    print("|---" * len(columns) + "|")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=["mlp", "cnn", "transformer"])
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--microbatches", type=split_numbers, default=[1, 2, 4, 8])
    parser.add_argument("--optimizers", nargs="*", default=OPTIMIZERS)
    parser.add_argument("--devices", type=int)
    parser.add_argument("--steps", type=int, default=13)
    parser.add_argument("--eval-every", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--emulated", type=float, metavar="TOLERANCE")
    options = parse(parser, [1, 2, 3, 4, 5, 6])
    depths = options.depths
    options.methods = options.methods or plans.methods(options.penstockc) + PIPEMARE
    total = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for model, optimizer in itertools.product(options.models,
                                                  options.optimizers):
            print_head(f"{model}, {optimizer} {options.flags}",
                       ["method", "M"] + [f"p = {p}" for p in depths])
            rows = list(itertools.product(options.methods, options.microbatches))
            cells = pool.map(
                lambda cell: check(options, model, *cell, optimizer),
                [(method, p, m) for method, m in rows for p in depths])
            for method, microbatches in rows:
                row = list(itertools.islice(cells, len(depths)))
                total += sum(cell.startswith("=") for cell in row)
                print(f"| {method} | {microbatches} |" +
                      "".join(f" {cell} |" for cell in row), flush=True)
            print()
    print(f"{total} runs bitwise equal to their replay")


if __name__ == "__main__":
    try:
        main()
    except Difference as difference:
        # Without waiting for the other runs.
        print(difference, file=sys.stderr, flush=True)
        os._exit(1)
