#!/usr/bin/env python3
"""Random convolutions of the kinds that real networks have, beside PyTorch.

  convolution_table.py [--count=N] [--seed=N] [--seconds=S] [--threads=N] [--priority]

Each shape is a model of one convolution behind a scale per channel, so that all
three kinds are computed: forward, and both gradients. Losses of three updates must
agree. Forward and backward passes are timed, ours by --trace, PyTorch's in the
faster of its two memory formats, in two turns. Prints a line per shape, and
quartiles of PyTorch's time over ours. --priority times both before all other
programs.
"""

import json
import math
import os
import random
import statistics
import subprocess
import time

import numpy
import torch
from torch import nn

from measure import compile_model, machine, read_options, work_folder

FAMILIES = {
    "2-D": 3, "pointwise": 2, "strided": 3, "stem": 2, "grouped": 3, "depthwise": 3,
    "dilated": 2, "transposed": 2, "1-D": 2, "1-D depthwise": 2, "3-D": 1, "3-D depthwise": 1}
RATE = 0.05  # of SGD: losses differ visibly where gradients do


def draw_layer(draw):
    """A family, a module and the shape of its input; about a millisecond or more."""
    family = draw.choices(list(FAMILIES), FAMILIES.values())[0]
    rank = 1 if "1-D" in family else 3 if "3-D" in family else 2
    size = draw.choice({1: (128, 200, 512, 1000), 2: (7, 14, 16, 28, 32, 56), 3: (8, 14, 16)}[rank])
    channels = draw.choice((16, 24, 32, 48, 64, 96, 128, 192, 256))
    after = draw.choice((16, 24, 32, 64, 96, 128, 160, 256))
    batch, window, groups = draw.choice((1, 2, 4, 8)), draw.choice((3, 3, 3, 5)), 1
    options = {}
    if "depthwise" in family:
        groups, after = channels, channels
        window = draw.choice({1: (3, 4, 7, 15, 31), 2: (3, 3, 5, 7), 3: (3,)}[rank])
        options["stride"] = draw.choice((1, 1, 2))
    elif family == "pointwise":
        window = 1
        options["stride"] = draw.choice((1, 1, 1, 2))
    elif family == "strided":
        options["stride"] = 2
    elif family == "dilated":
        options["dilation"] = draw.choice((2, 4))
    elif family == "grouped":
        width = draw.choice((2, 3, 4, 6, 8, 16, 24))
        groups = draw.choice((8, 16, 32))
        channels = after = width * groups
        options["stride"] = draw.choice((1, 1, 2))
    elif family == "stem":
        channels, size = draw.choice((1, 3, 3, 3)), draw.choice((64, 96, 112))
        window, stride = draw.choice(((3, 1), (3, 2), (5, 2), (7, 2), (4, 4), (8, 8)))
        options["stride"] = stride
    elif family == "transposed":
        window = draw.choice((2, 4))
        options["stride"] = 2
        size = min(size, 32)
    # Large ones in few samples.
    while batch > 1 and batch * max(channels, after) * size ** rank > 1 << 20:
        batch //= 2
    if family == "transposed":
        make = nn.ConvTranspose2d
        options["padding"] = (window - 2) // 2
    else:
        make = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[rank - 1]
        # Windows without overlap have no padding.
        is_patch = options.get("stride", 1) >= window
        options["padding"] = 0 if is_patch else (window - 1) * options.get("dilation", 1) // 2
    module = make(channels, after, window, groups=groups, **options)
    text = ", ".join([f"{batch} x {channels} to {after}", "x".join([str(size)] * rank),
                      f"window {window}"] + [f"{name} {value}" for name, value in options.items()
                                             if name != "padding" and value != 1])
    return family, text + (f", {groups} groups" if groups > 1 else ""), module, \
        (batch, channels) + (size,) * rank


class Scaled(nn.Module):
    """Somebody wants the gradient of the input."""

    def __init__(self, module, shape):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1, shape[1], *[1] * (len(shape) - 2)))
        self.module = module

    def forward(self, x):
        return self.module(x * self.scale)


def lower_quartile(times):
    return sorted(times)[len(times) // 4]


def ours(program, folder, x, y, updates, arguments):
    """Times of forward and backward, and losses."""
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", y)
    subprocess.run([*arguments, program, "--data", f"x={folder / 'x.npy'}", "--labels",
                    folder / "y.npy", "--steps", str(updates), "--trace", folder / "trace.json",
                    "--log", folder / "log.jsonl"], check=True, stdout=subprocess.DEVNULL)
    losses = [json.loads(line) for line in open(folder / "log.jsonl", encoding="utf-8")]
    times = {"F": [], "B": []}
    trace = json.load(open(folder / "trace.json", encoding="utf-8"))
    for event in trace if isinstance(trace, list) else trace["traceEvents"]:
        if event.get("ph") == "X" and event["name"][:1] in times:
            times[event["name"][:1]].append(event["dur"])
    return lower_quartile(times["F"]), lower_quartile(times["B"]), \
        [entry["loss"] for entry in losses if "loss" in entry]


def schedule(priority):
    """This process before all others, or as usual."""
    policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
    os.sched_setscheduler(0, policy, os.sched_param(1 if priority else 0))


def theirs(model, x, y, seconds):
    """Microseconds of forward and of both passes, in the faster memory format."""
    formats = [torch.contiguous_format] + [torch.channels_last] * (x.dim() == 4) \
        + [torch.channels_last_3d] * (x.dim() == 5)
    results = []
    for layout in formats:
        placed, data = model.to(memory_format=layout), x.to(memory_format=layout)
        labels = y.to(memory_format=layout)

        def forward():
            return nn.functional.mse_loss(placed(data), labels)

        def both():
            placed.zero_grad()
            forward().backward()
        found = []
        for run in (forward, both):
            run()
            times, end = [], time.perf_counter() + seconds
            while len(times) < 8 or time.perf_counter() < end and len(times) < 100:
                begin = time.perf_counter()
                run()
                times.append(1e6 * (time.perf_counter() - begin))
            found.append(lower_quartile(times))
        results.append(found)
    model.to(memory_format=torch.contiguous_format)
    return min(r[0] for r in results), min(r[1] for r in results)


def compare(module, shape, folder, options):
    torch.manual_seed(options.seed)
    model, x = Scaled(module, shape), torch.randn(*shape)
    y = torch.randn_like(model(x)).detach()
    torch.onnx.export(model, (x,), folder / "model.onnx", dynamo=True, optimize=False,
                      verbose=False, input_names=["x"], output_names=["y"])
    compile_model(folder / "model.onnx", folder / "program", "--loss=mse",
                  f"--microbatch-size={shape[0]}", f"--threads={options.threads}",
                  f"--optimizer=sgd:lr={RATE}")
    priority = ["chrt", "-f", "1"] if options.priority else []
    times = []
    for _ in range(2):
        forward, backward, losses = ours(folder / "program", folder, x.numpy(), y.numpy(), 40,
                                         priority)
        if options.priority:
            schedule(True)
        their_forward, their_both = theirs(model, x, y, options.seconds)
        if options.priority:
            schedule(False)
        times.append((forward, forward + backward, their_forward, their_both))
    optimizer, expected = torch.optim.SGD(model.parameters(), RATE), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    error = max(abs(a - b) / abs(b) for a, b in zip(losses, expected))
    if error > 1e-4 or len(losses) < 3:
        raise SystemExit(f"losses differ: {losses[:3]}, PyTorch {expected}")
    return [min(column) for column in zip(*times)], error


def summarize(name, ratios):
    first, median, third = (statistics.quantiles(ratios, n=4) if len(ratios) > 1
                            else ratios * 3)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"{name}: geometric mean {mean:.2f}, quartiles {first:.2f}, {median:.2f}, {third:.2f}, "
          f"slower than PyTorch {sum(r < 1 for r in ratios)} of {len(ratios)}, by more than half "
          f"{sum(r < 1 / 1.5 for r in ratios)}")


def main():
    options = read_options(__doc__, count=60, seed=1, seconds=0.15, threads=1, priority=False)
    torch.set_num_threads(options.threads)
    print(machine(), flush=True)
    folder, draw, rows = work_folder() / "convolutions", random.Random(options.seed), []
    folder.mkdir(exist_ok=True)
    for _ in range(options.count):
        family, text, module, shape = draw_layer(draw)
        (forward, both, their_forward, their_both), error = compare(module, shape, folder, options)
        rows.append((family, text, their_forward / forward, their_both / both))
        print(f"{family}: {text}: forward {forward:.0f} us, PyTorch {their_forward:.0f}, "
              f"{rows[-1][2]:.2f}; both {both:.0f} us, PyTorch {their_both:.0f}, "
              f"{rows[-1][3]:.2f}; {error:.0e}", flush=True)
    summarize("forward", [row[2] for row in rows])
    summarize("forward and backward", [row[3] for row in rows])
    for row in sorted(rows, key=lambda row: row[3])[:5]:
        print(f"slowest: {row[0]}, {row[1]}: {row[3]:.2f}, forward {row[2]:.2f}")


if __name__ == "__main__":
    main()
