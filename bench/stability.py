#!/usr/bin/env python3
"""Finds the largest stable learning rates of asynchronous methods, by training.

    stability.py PENSTOCKC FOLDER [--table [--tau N]] [--check]

One weight w at the first of p stages; the others pass on what they get. The loss
is (1 + 2 D) (x w)^2 / 2 - D (x w) w, at x = 1, so that an update subtracts
lr * ((1 + D) w_f - D w_b): w_f is the weight that the forward read, w_b the one
that the backward reads, tau = p - 1 updates later. Without discrepancy (D = 0, or
w_b = w_f) the method is stable below 2 sin(pi / (4 tau + 2)). --check tries 0.3 %
above and below what theory gives, for a few of them; --table finds the rates by
bisection and prints them beside those of theory: where a root of the recursion's
characteristic polynomial leaves the unit circle.

Only the standard library is needed.
"""

import argparse
import array
import cmath
import json
import math
import os
import subprocess
import sys

import mlp_model

SHAPE = "float[n, 1]"


def model(depth, discrepancy):
    text = [f"y = Mul (x, w)", "s = Mul (y, y)", "a = Mul (s, c)", "z = Mul (y, w)",
            "b = Mul (z, d)", "h0 = Sub (a, b)"]
    for stage in range(1, depth):
        text += [f"n{stage} = Neg (h{stage - 1})", f"h{stage} = Neg (n{stage})"]
    text.append(f"loss = ReduceSum <keepdims = 0> (h{depth - 1})")
    constants = f"float[1] w = {{1}}, float[1] c = {{{0.5 + discrepancy}}}, " \
                f"float[1] d = {{{discrepancy}}}"
    return ('<ir_version: 8, opset_import: ["" : 17]>\n'
            f"stability ({SHAPE} x) => (float loss) <{constants}> {{\n  " +
            "\n  ".join(text) + "\n}\n")


class Program:
    def __init__(self, options, depth, discrepancy, method):
        self.folder = options.folder
        source, self.path = (os.path.join(options.folder, f"p{depth}-d{discrepancy}" + end)
                             for end in (".onnxtext", "-" + method.split(":")[0]))
        with open(source, "w", encoding="utf-8") as file:
            file.write(model(depth, discrepancy))
        cuts = ",".join(f"h{stage}" for stage in range(depth - 1))
        self.run([options.penstockc, source, "-o", self.path, "--microbatch-size=1",
                  "--train=^w$", "--loss=output", f"--method={method}",
                  "--optimizer=sgd:lr=0.1"] + ([f"--split-at={cuts}"] if cuts else []))

    @staticmethod
    def run(command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr}")

    def is_stable(self, rate, steps):
        log = self.path + ".jsonl"
        self.run([self.path, "--data", "x=" + os.path.join(self.folder, "ones.npy"),
                  "--steps", str(steps), "--lr", repr(rate), "--log", log])
        losses = []
        with open(log, encoding="utf-8") as file:
            for line in file:
                loss = json.loads(line)["loss"]
                if loss is None:
                    return False
                losses.append(abs(loss))
        end = max(losses[-steps // 4:])
        return end == 0 or end < max(losses[steps // 4:steps // 2])


def threshold(tau, discrepancy, method):
    """The smallest rate at which some w = z^t with |z| = 1 solves the recursion. It
    is linear in the rate, so every z has one rate, which counts where it is real."""
    gamma = math.exp(-2 / tau) if tau else 0

    def rate(angle):
        z = cmath.exp(1j * angle)
        seen = {"naive": 1, "pipedream": z ** -tau,
                "pipemare": 1 - tau * (1 - gamma) * (z - 1) / (z - gamma)}[method]
        return (1 - z) / ((1 + discrepancy) * z ** -tau - discrepancy * seen)

    angles = [math.pi * (i + 0.5) / 5000 for i in range(5001)]
    rates = []
    for low, high in zip(angles, angles[1:]):
        sign = rate(low).imag > 0
        if sign != (rate(high).imag > 0):
            crossing = rate(bisect(lambda angle: (rate(angle).imag > 0) == sign,
                                   low, high, 1e-12))
            # At a pole, the rate changes sign through infinity.
            if abs(crossing.imag) < 1e-6 < crossing.real:
                rates.append(crossing.real)
    return min(rates)


def bisect(is_stable, low, high, precision):
    while high - low > precision * low:
        middle = (low + high) / 2
        if is_stable(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


CASES = [(tau, 0, "naive") for tau in (0, 1, 2, 3, 4, 5, 8, 10)] + [
    (tau, discrepancy, method) for tau, discrepancy in ((4, 1), (4, 5), (10, 1), (10, 5), (20, 5))
    for method in ("naive", "pipemare", "pipedream")]
CHECKED = [(tau, 0, "naive") for tau in (0, 1, 2, 4)] + [
    (4, 1, "naive"), (4, 1, "pipemare"), (4, 1, "pipedream"), (4, 5, "pipemare")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("penstockc")
    parser.add_argument("folder")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--tau", type=int, help="only the rows of this delay")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    mlp_model.write_npy(os.path.join(options.folder, "ones.npy"), "<f4", (1, 1),
                        array.array("f", [1]))
    # exp(-2): the D for which gamma matches to second order.
    spelled = {"pipemare": "pipemare:decay=0.1353352832366127"}
    if options.table:
        print("| tau | D | method | compiled program | characteristic polynomial |\n" + "|---" * 5 + "|")
    for tau, discrepancy, method in CHECKED if options.check else CASES:
        if options.tau not in (None, tau):
            continue
        limit = threshold(tau, discrepancy, method)
        program = Program(options, tau + 1, discrepancy, spelled.get(method, method))
        if options.check:
            steps = 1600
            for factor, expected in ((0.997, True), (1.003, False)):
                if program.is_stable(limit * factor, steps) != expected:
                    sys.exit(f"tau {tau}, D {discrepancy}, {method}: at {factor} times "
                             f"{limit:.4f} it is {'not ' if expected else ''}stable")
            print(f"tau {tau}, D {discrepancy}, {method}: {limit:.3f}")
            continue
        found = bisect(lambda rate: program.is_stable(rate, 20000), limit * 0.99, limit * 1.01,
                       1e-4)
        print(f"| {tau} | {discrepancy} | {method} | {found:#.4g} | {limit:#.4g} |", flush=True)


if __name__ == "__main__":
    main()
