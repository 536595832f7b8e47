#!/usr/bin/env python3
"""Computes what HetPipe's workers average, by definition, without a pipeline.

    hetpipe_average.py WORKERS WAVE DISTANCE DECAY UPDATES AVERAGES RAW NAME=V,V,...

Trains z = x.w + b by SGD with momentum in a segment of so many updates. Every
worker keeps all versions of its weights, and microbatch k of it reads the
version of WAVE - 1 microbatches ago. Behind each fold E = E + (1 - DECAY) (G -
E). The safetensors AVERAGES and RAW must hold E and G of the end.
"""

import pathlib
import sys

from averaged_weights import read_safetensors
from optimizers import make_data

SAMPLES, RATE, MOMENTUM = 5, 0.1, 0.9  # of a microbatch; as the test compiles


def add(a, b, scale=1.0):
    return {name: [x + scale * y for x, y in zip(a[name], b[name])] for name in a}


def get_gradient(weights, rows, labels):
    """Of the mean of squared errors."""
    gradient = {"w": [0.0] * 6, "b": [0.0] * 2}
    for row, right in zip(rows, labels):
        for j in range(2):
            error = sum(row[k] * weights["w"][2 * k + j] for k in range(3))
            error = 2 * (error + weights["b"][j] - right[j]) / (2 * len(rows))
            gradient["b"][j] += error
            for k in range(3):
                gradient["w"][2 * k + j] += error * row[k]
    return gradient


def train(workers, wave, distance, decay, updates, start):
    x, y = make_data()
    zero = {name: [0.0] * len(values) for name, values in start.items()}
    versions = [[start] for _ in range(workers)]
    momentum = [zero] * workers
    waves = [[] for _ in range(workers)]  # what each has changed
    glob, average = [start] * workers, start

    def fold(number, end):
        """Into the version `end`, the wave `number` of all workers."""
        for worker in range(workers):
            for own in waves:
                glob[worker] = add(glob[worker], own[number])
            weights = glob[worker]
            for own in waves[worker][number + 1:]:
                weights = add(weights, own)
            versions[worker][end] = weights

    for t in range(updates):
        for worker, own in enumerate(versions):
            for k in range(t * wave, (t + 1) * wave):
                begin = (k * workers + worker) * SAMPLES % len(x)
                gradient = get_gradient(own[max(0, k - (wave - 1))],
                                        x[begin:begin + SAMPLES], y[begin:begin + SAMPLES])
                momentum[worker] = add(gradient, momentum[worker], MOMENTUM)
                own.append(add(own[k], momentum[worker], -RATE))
            waves[worker].append(add(own[-1], own[t * wave], -1.0))
        folded = range(t - distance, t - distance + 1)
        if t == updates - 1:
            folded = range(t - distance, updates)
        for number in folded:
            if number >= 0:
                fold(number, (t + 1) * wave)
                average = add(average, add(glob[0], average, -1.0), 1 - decay)
    return average, glob[0]


def main(workers, wave, distance, decay, updates, averages, raw, *starts):
    start = {}
    for text in starts:
        name, _, values = text.partition("=")
        start[name] = [float(value) for value in values.split(",")]
    expected = train(int(workers), int(wave), int(distance), float(decay), int(updates), start)
    worst = 0
    for (path, prefix), values in zip(((averages, "ema:"), (raw, "")), expected):
        found = read_safetensors(pathlib.Path(path))
        for name, own in values.items():
            for a, b in zip(found[prefix + name], own, strict=True):
                worst = max(worst, abs(a - b))
                if not abs(a - b) < 1e-5 * max(1, abs(b)):
                    sys.exit(f"{path}: {a} in {name}, expected {b}")
    print(f"largest difference {worst:.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:])
