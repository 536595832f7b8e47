#!/usr/bin/env python3
"""Computes what optimizers do to a linear model, by their definitions.

    optimizers.py --data X.npy Y.npy
    optimizers.py SPEC LOG.jsonl

The first writes 40 samples. The second trains z = x.w + b (optimizers.test has
the same w and b) on them, in f64, 4 microbatches of 5 samples per update, and
compares each loss with the log. The formulas are those of PyTorch's
documentation, Lion's those of its paper, written out per element.
"""

import json
import math
import pathlib
import random
import struct
import sys

import npy

INPUTS, OUTPUTS, SAMPLES, UPDATE = 3, 2, 40, 20


def make_data():
    generator = random.Random(11)
    x = [[generator.uniform(-1, 1) for _ in range(INPUTS)] for _ in range(SAMPLES)]
    y = [[math.sin(row[0]) + row[1] * 0.5, row[2] - row[0] * 0.25] for row in x]
    single = lambda rows: [[struct.unpack("f", struct.pack("f", v))[0] for v in row]
                           for row in rows]
    return single(x), single(y)


def write_npy(path, rows):
    data = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    pathlib.Path(path).write_bytes(npy.encode("<f4", (len(rows), len(rows[0])), data))


def parse(spec):
    name, _, rest = spec.partition(":")
    keys = {}
    for item in filter(None, rest.split(",")):
        key, _, value = item.partition("=")
        keys[key] = float(value or 1)
    return name, keys


class Element:
    """An optimizer's state of one weight."""

    def __init__(self, name, keys):
        self.update = getattr(self, name)
        self.keys = keys
        self.step = 0
        self.a = self.b = self.c = 0.0
        self.product = 1.0

    def key(self, name, fallback):
        return self.keys.get(name, fallback)

    def decayed(self, weight, gradient):
        return gradient + self.key("weight-decay", 0) * weight

    def rmsprop(self, weight, gradient):
        gradient = self.decayed(weight, gradient)
        alpha = self.key("alpha", 0.99)
        self.a = alpha * self.a + (1 - alpha) * gradient ** 2
        square = self.a
        if "centered" in self.keys:
            self.b = alpha * self.b + (1 - alpha) * gradient
            square -= self.b ** 2
        step = gradient / (math.sqrt(square) + self.key("eps", 1e-8))
        if "momentum" in self.keys:
            self.c = step = self.keys["momentum"] * self.c + step
        return weight - self.key("lr", 1e-2) * step

    def adagrad(self, weight, gradient):
        gradient = self.decayed(weight, gradient)
        rate = self.key("lr", 1e-2) / (1 + (self.step - 1) * self.key("lr-decay", 0))
        self.a += gradient ** 2
        return weight - rate * gradient / (math.sqrt(self.a) + self.key("eps", 1e-10))

    def lion(self, weight, gradient):
        rate = self.key("lr", 1e-4)
        beta1, beta2 = self.key("beta1", 0.9), self.key("beta2", 0.99)
        mean = beta1 * self.a + (1 - beta1) * gradient
        self.a = beta2 * self.a + (1 - beta2) * gradient
        weight *= 1 - rate * self.key("weight-decay", 0)
        return weight - rate * ((mean > 0) - (mean < 0))

    def nadam(self, weight, gradient):
        gradient = self.decayed(weight, gradient)
        beta1, beta2 = self.key("beta1", 0.9), self.key("beta2", 0.999)
        momentum = lambda t: beta1 * (1 - 0.5 * 0.96 ** (t * self.key("momentum-decay", 4e-3)))
        now, following = momentum(self.step), momentum(self.step + 1)
        self.product *= now
        self.a = beta1 * self.a + (1 - beta1) * gradient
        self.b = beta2 * self.b + (1 - beta2) * gradient ** 2
        root = math.sqrt(self.b / (1 - beta2 ** self.step)) + self.key("eps", 1e-8)
        return weight - self.key("lr", 2e-3) / root * (
            gradient * (1 - now) / (1 - self.product)
            + self.a * following / (1 - self.product * following))


class ByElement:
    """A weight, each element of which has an optimizer of its own."""

    def __init__(self, name, keys, rows, columns):
        self.elements = [[Element(name, keys) for _ in range(columns)] for _ in range(rows)]

    def update(self, weight, gradient):
        for row, line, slopes in zip(self.elements, weight, gradient):
            for j, element in enumerate(row):
                element.step += 1
                line[j] = element.update(line[j], slopes[j])


class Adafactor:
    """A matrix, or a vector as one row."""

    def __init__(self, keys, rows, columns, is_vector):
        self.keys, self.is_vector, self.step = keys, is_vector, 0
        self.rows, self.columns = [0.0] * rows, [0.0] * columns

    def update(self, weight, gradient):
        key = self.keys.get
        self.step += 1
        part = self.step ** key("beta2-decay", -0.8)
        rate, eps1 = key("lr", 1e-2), key("eps1", 2.0 ** -23)
        mean = lambda values: sum(values) / len(values)
        move = lambda old, new: [a + part * (b - a) for a, b in zip(old, new)]
        squares = [[g * g for g in line] for line in gradient]
        if self.is_vector:
            self.columns = move(self.columns, squares[0])
            variances = [self.columns]
        else:
            self.rows = move(self.rows, map(mean, squares))
            self.columns = move(self.columns, map(mean, zip(*squares)))
            common = max(mean(self.rows), eps1)
            variances = [[r * c / common for c in self.columns] for r in self.rows]
        steps = [[g / math.sqrt(max(v, eps1 ** 2)) for g, v in zip(*pair)]
                 for pair in zip(gradient, variances)]
        size = lambda lines: math.sqrt(mean([v * v for line in lines for v in line]))
        length = (max(key("eps2", 1e-3), size(weight)) * min(rate, self.step ** -0.5)
                  / max(1, size(steps) / key("d", 1)))
        for line, moves in zip(weight, steps):
            for j, move in enumerate(moves):
                line[j] = line[j] * (1 - rate * key("weight-decay", 0)) - length * move


def train(spec, updates):
    name, keys = parse(spec)
    x, y = make_data()
    w = [[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]]
    b = [0.25, -0.5]
    if name == "adafactor":
        optimizers = [Adafactor(keys, INPUTS, OUTPUTS, False), Adafactor(keys, 1, OUTPUTS, True)]
    else:
        optimizers = [ByElement(name, keys, rows, OUTPUTS) for rows in (INPUTS, 1)]
    for t in range(updates):
        rows = [(t * UPDATE + i) % SAMPLES for i in range(UPDATE)]
        errors = [[sum(x[i][k] * w[k][j] for k in range(INPUTS)) + b[j] - y[i][j]
                   for j in range(OUTPUTS)] for i in rows]
        count = UPDATE * OUTPUTS
        yield sum(e ** 2 for row in errors for e in row) / count
        slope = lambda j, of: sum(2 * row[j] * of(x[i]) for i, row in zip(rows, errors)) / count
        slopes = [[slope(j, lambda sample: sample[k]) for j in range(OUTPUTS)]
                  for k in range(INPUTS)]
        ends = [slope(j, lambda sample: 1) for j in range(OUTPUTS)]
        optimizers[0].update(w, slopes)
        optimizers[1].update([b], [ends])


def compare(spec, path):
    with open(path, encoding="utf-8") as file:
        losses = [json.loads(line)["loss"] for line in file]
    worst = 0
    for step, (loss, expected) in enumerate(zip(losses, train(spec, len(losses))), 1):
        difference = abs(loss - expected) / expected
        worst = max(worst, difference)
        if not difference < 2e-5:
            sys.exit(f"{spec}: loss {loss} at step {step}, expected {expected:.9g}")
    if losses[-1] > losses[0] * 0.97:
        sys.exit(f"{spec}: from {losses[0]} to {losses[-1]}: nothing was learned")
    print(f"{spec}: {len(losses)} losses, largest difference {worst:.1e}")


if __name__ == "__main__":
    if sys.argv[1] == "--data":
        for path, rows in zip(sys.argv[2:], make_data()):
            write_npy(path, rows)
    else:
        compare(*sys.argv[1:])
