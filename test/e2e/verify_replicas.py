"""Compiles and runs small models whose stages have replicas, under many schedules
and methods, each with --verify, and prints a table of what came out.

usage: verify_replicas.py PENSTOCKC FOLDER [--models mlp cnn] [--widths 2 3,1,2]
           [--schedules A B] [--methods A B] [--depths 1,2] [--steps N]
           [--flags=FLAGS]

--depths is for widths of one number, which is for all stages. Without options it
goes through all models, widths, schedules and methods.

A cell is `=` where the replay gave the same bits, and so did every other run of
the same model, method and widths, whatever its schedule and, where all stages
are equally wide, its number of stages. `-` is a refusal in one line. What differs
or fails is `X`, and listed at the end, with exit code 1.
"""

import argparse
import hashlib
import math
import os
import re
import sys

import plans
from verify_methods import MODELS, parse, print_head, run

WIDTHS = ["2", "3", "2,1", "1,2", "3,1", "1,3", "2,3", "3,1,2", "1,3,2", "2,1,1,3"]


def microbatchesOf(widths, method):
    """Per update: 12, or what all widths divide; spectrain has one per replica."""
    numbers = [int(width) for width in widths.split(",")]
    if method == "spectrain":
        return max(numbers)
    turn = math.lcm(*numbers)
    return 12 if 12 % turn == 0 else turn


class Sweep:
    def __init__(self, options):
        self.options = options
        self.known = {}  # Bits by what they may depend on.
        self.wrong = []
        self.refusals = {}
        self.equal = 0

    def compile(self, name, microbatches, plan):
        model, _, _, size, loss = MODELS[name]
        return [self.options.penstockc, model, "-o", self.options.program,
                f"--microbatch-size={size}", f"--microbatches={microbatches}",
                f"--loss={loss}", "--optimizer=sgd:lr=0.05,momentum=0.9",
                *plan, *self.options.flags.split()]

    def cell(self, name, widths, method, key, plan):
        microbatches = microbatchesOf(widths, method)
        command = self.compile(name, microbatches, plan)
        code, _, errors = run(command)
        if code == 1 and len(errors.splitlines()) == 1:
            reason = re.sub(r"\d+", "N", re.sub(r"=\S+", "=...", errors.strip()))
            self.refusals.setdefault(reason, " ".join(command[4:]))
            return "-"
        if code:
            return self.fail(command, f"exit code {code}: {errors}")
        _, data, labels, _, _ = MODELS[name]
        steps = self.options.steps
        saved = self.options.program + ".saved.onnx"
        train = [self.options.program, "--data", data, "--labels", labels, "--steps",
                 str(steps), "--verify", "--save", saved, "--eval-data", data,
                 "--eval-labels", labels, "--eval-every", "2"]
        code, output, errors = run(train)
        if code or f"{steps * microbatches} losses: bitwise equal" not in output:
            return self.fail(command, f"exit code {code}: {errors}")
        # Device, stages, busy, and two equal sizes.
        sizes = re.findall(r"^\d+ .* % +([\d.]+ \S+) +([\d.]+ \S+)$", output, re.M)
        if not sizes or any(size != planned for size, planned in sizes):
            return self.fail(command, f"an arena is not as planned: {output}")
        with open(saved, "rb") as file:
            bits = hashlib.sha256(file.read()).hexdigest()
        first, with_bits = self.known.setdefault((name, *key), (plan, bits))
        if bits != with_bits:
            return self.fail(command, f"other weights than with {first}")
        self.equal += 1
        return "="

    def fail(self, command, why):
        self.wrong.append(f"{' '.join(command)}: {why}")
        return "X"


def flagsOf(widths, chunks, depths):
    """Lists of flags, and what the bits depend on."""
    if "," in widths:
        if chunks == 1:
            yield (widths,), [f"--stages={widths.count(',') + 1}", f"--replicas={widths}"]
        return
    for depth in depths:
        yield (widths,), [f"--stages={depth * chunks}", f"--replicas={widths}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--widths", nargs="*", default=WIDTHS)
    parser.add_argument("--schedules", nargs="*")
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--steps", type=int, default=5)
    options = parse(parser, [1, 2, 3, 4])
    options.schedules = options.schedules or plans.schedules(options.penstockc)
    options.methods = options.methods or plans.methods(options.penstockc)
    depths = options.depths
    options.program = os.path.join(options.folder, "run")
    sweep = Sweep(options)
    for model in options.models:
        print_head(f"{model} {options.flags}", ["", *options.widths])
        for schedule in options.schedules:
            row = []
            for widths in options.widths:
                cells = ""
                chunks = plans.stages_per_device(schedule)
                for key, flags in flagsOf(widths, chunks, depths):
                    if schedule == plans.BIDIRECTIONAL:
                        if widths != "2":
                            continue
                        flags = flags[:1]
                    cells += sweep.cell(model, widths, None, key,
                                        [*flags, f"--schedule={schedule}"])
                row.append(cells)
            print(f"| {schedule} |" + "".join(f" {cells} |" for cells in row), flush=True)
        # How late a stage is depends on the number of stages.
        for method in options.methods:
            row = []
            for widths in options.widths:
                plain = flagsOf(widths, 1, [p for p in depths if p > 1])
                row.append("".join(
                    sweep.cell(model, widths, method, (method, *flags),
                               [*flags, f"--method={method}"])
                    for _, flags in plain))
            print(f"| {method} |" + "".join(f" {cells} |" for cells in row), flush=True)
        print()
    for reason, command in sweep.refusals.items():
        print(f"refused: {reason} ({command})")
    for text in sweep.wrong:
        print(text, file=sys.stderr)
    print(f"{sweep.equal} runs bitwise equal to their replay and to each other")
    return 1 if sweep.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
