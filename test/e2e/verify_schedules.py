"""Trains small models on the emulated GPU under several schedules and numbers of
stages, and prints a table of what came out.

usage: verify_schedules.py PENSTOCKC FOLDER --models mlp --microbatches N
           [--schedules A B] [--precisions f32 bf16] [--depths 1,2,3,4]
           [--orders 0,1,7] [--steps N] [--flags=FLAGS]

A depth is a number of GPUs without replicas; under some schedules, each has
several stages. The streams of the GPUs run in each of the orders, which are
described with `Settings` of the emulated GPU; every second one issues calls one by
one and not as graphs.

A cell is `=` where --verify found the bits of a replay, and each order gave the
losses, the evaluations and the saved model of the first cell, bit for bit; `-`
is a refusal in one line. Anything else ends the script with exit code 1. Each
table ends with the differences between the GPU and the CPU, which are at most
1e-5, or 2e-2 in bf16: of losses, relative; of weights, relative to the largest of
a tensor.
"""

import argparse
import array
import hashlib
import itertools
import os
import re
import sys

import plans
from same_but_weights import float_initializers
from verify_methods import (MODELS, Difference, parse, print_head, readLosses,
                            split_numbers)
from verify_methods import run as run_with

TOLERANCES = {"f32": 1e-5, "bf16": 2e-2}


def run(command, order=0, graphs=True):
    return run_with(command, PENSTOCK_EMULATED_ORDER=str(order),
                    PENSTOCK_GRAPHS=str(int(graphs)))


def readWeights(path):
    with open(path, "rb") as file:
        data = file.read()
    for name, (begin, end) in float_initializers(data).items():
        yield name, array.array("f", data[begin:end])


def compareWeights(found, expected, tolerance):
    worst = 0
    for (name, a), (_, b) in zip(readWeights(found), readWeights(expected), strict=True):
        scale = max(abs(x) for x in b) or 1
        difference = max(abs(x - y) for x, y in zip(a, b, strict=True)) / scale
        if not difference <= tolerance:
            raise Difference(f"{found}: {name} differs from the CPU's by {difference:.1e}")
        worst = max(worst, difference)
    return worst


def compareLosses(found, expected, tolerance):
    differences = [abs(a - b) / abs(b) for a, b in zip(found, expected, strict=True)]
    if not differences or not all(d <= tolerance for d in differences):
        raise Difference(f"losses {found}, the CPU's are {expected}")
    return max(differences)


class Training:
    """One model with its number of microbatches, in one precision."""

    def __init__(self, options, name, precision):
        self.options, self.precision = options, precision
        self.model, self.data, self.labels, self.size, self.loss = MODELS[name]
        self.program = os.path.join(options.folder, "run")
        self.log = self.program + ".jsonl"
        self.saved = self.program + ".saved.onnx"
        self.first = None
        self.count = 0

    def compile(self, *flags):
        options = self.options
        return [options.penstockc, self.model, "-o", self.program,
                f"--microbatch-size={self.size}", f"--microbatches={options.microbatches}",
                f"--loss={self.loss}", "--optimizer=sgd:lr=0.05,momentum=0.9",
                f"--precision={self.precision}", *options.flags.split(), *flags]

    def train(self, order, *flags, graphs=True):
        """Returns the lines of the evaluations."""
        command = [self.program, "--data", self.data, "--labels", self.labels,
                   "--steps", str(self.options.steps), "--shuffle", "--seed", "5",
                   "--eval-data", self.data, "--eval-labels", self.labels,
                   "--eval-every", "3", "--log", self.log, "--save", self.saved, *flags]
        code, output, errors = run(command, order, graphs)
        losses = self.options.steps * self.options.microbatches
        if code or ("--verify" in flags and f"{losses} losses: bitwise equal" not in output):
            raise Difference(f"{' '.join(command)}: exit code {code}: {errors}")
        return re.findall(r"^eval: .*$", output, re.M)

    def check(self, schedule, depth):
        stages = depth * plans.stages_per_device(schedule)
        compile = self.compile("--target=cuda", "--gpu-arch=emulated",
                               f"--stages={stages}", f"--schedule={schedule}")
        code, _, errors = run(compile)
        if code == 1 and len(errors.splitlines()) == 1:
            return "-"
        if code:
            raise Difference(f"{' '.join(compile)}: exit code {code}: {errors}")
        for i, order in enumerate(self.options.orders):
            # The replay takes as long as the training: in one order.
            flags = ["--verify"] if i == 0 else []
            evaluations = self.train(order, *flags, graphs=i % 2 == 0)
            with open(self.saved, "rb") as file:
                bits = readLosses(self.log), evaluations, hashlib.sha256(file.read()).digest()
            if self.first is None:
                self.first = bits
                os.replace(self.saved, self.program + ".first.onnx")
            if bits != self.first:
                raise Difference(f"{' '.join(compile)}: order {order}: not the losses, "
                                 f"evaluations or weights of the first run: {bits[:2]}, "
                                 f"not {self.first[:2]}")
            self.count += 1
        return "="

    def compareWithCpu(self):
        command = self.compile()
        code, _, errors = run(command)
        if code:
            raise Difference(f"{' '.join(command)}: exit code {code}: {errors}")
        evaluations = self.train(0)
        def losses(lines):
            return [float(re.search(r" loss (\S+)", line)[1]) for line in lines]
        tolerance = TOLERANCES[self.precision]
        # Printed with fewer digits, which may round apart.
        compareLosses(losses(self.first[1]), losses(evaluations), tolerance)
        found, expected = self.first[0], readLosses(self.log)
        weights = compareWeights(self.program + ".first.onnx", self.saved, tolerance)
        return compareLosses(found, expected, tolerance), weights


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--microbatches", type=int, required=True)
    parser.add_argument("--schedules", nargs="+", required=True)
    parser.add_argument("--precisions", nargs="+", choices=TOLERANCES, default=["f32"])
    parser.add_argument("--orders", type=split_numbers, default=[0, 1, 7])
    parser.add_argument("--steps", type=int, default=6)
    options = parse(parser, [1, 2, 3, 4])
    depths = options.depths
    total = 0
    for name, precision in itertools.product(options.models, options.precisions):
        training = Training(options, name, precision)
        print_head(f"{name}, M = {options.microbatches}, {precision} {options.flags}",
                   ["schedule"] + [f"p = {depth}" for depth in depths])
        for schedule in options.schedules:
            row = [training.check(schedule, depth) for depth in depths]
            print(f"| {schedule} |" + "".join(f" {cell} |" for cell in row), flush=True)
        losses, weights = training.compareWithCpu()
        print(f"\nfrom the CPU: losses {losses:.1e}, weights {weights:.1e}\n", flush=True)
        total += training.count
    print(f"{total} runs with equal bits")


if __name__ == "__main__":
    try:
        main()
    except Difference as difference:
        sys.exit(str(difference))
