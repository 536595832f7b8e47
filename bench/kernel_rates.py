#!/usr/bin/env python3
"""Rates of single kernels: products beside oneDNN's own, regions beside torch.

    bench/kernel_rates.py [--only=products|regions] [--threads=1] [--copies=1]
                          [--seconds=2] [--priority] [--check]

Products are those of the MLP and the GPT of training_steps.py, with one and with
several microbatches per update, as their programs have them: transposed, by
heads, adding. product_rate computes each as the runtime does, and by whatever
implementation of oneDNN is fastest, with these strides and with plain matrices
of the same sizes; with --copies=8 the operands come from memory.

Regions stand between two small products, so that nothing else joins them: bias
and GELU, softmax, layer norm, AdamW. Linux perf says which share of an update
their kernels take (user time of one thread, over three trainings), trainings
without perf how long an update takes, the least of three. region_rate computes
the same in C++ by hand, by least means as well, torch eager in this process, the
best of its rounds, and a copy shows what memory allows. The goals are the ratios
to torch that were reached by hand on a Zen 5; how fast torch is differs from
machine to machine, which is what the other two are for. With --priority our programs, the C++ and
torch run at real-time priority (chrt), in bursts of seconds, for a machine that
others use. Needs perf, torch and onnx.
"""

import collections
import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from torch import nn

import measure
import training_steps

ROUNDS = 15
TRAININGS = 3
RATE = 2000  # samples per second
NARROW = 16  # columns of the products around a region
PRODUCT_GOAL = 0.85
PARTS = ("forward", "backward")
PRIORITY = []  # by which the programs that are measured run


@contextlib.contextmanager
def priority():
    """The same for this process."""
    if PRIORITY:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    yield
    if PRIORITY:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def products_of(program):
    """The distinct products of training, as lines for product_rate."""
    found, function = {}, ""
    for line in program.splitlines():
        if match := re.match(r'\s*(?:func\.func|module)(?: private)? @"?([^("]*)', line):
            function = match.group(1)
        if function == "replay":
            break
        match = re.search(r"kernel\.gemm .* sizes \[(.*?)\] strides \[(.*?)\] \[(.*?)\] "
                          r"\[(.*?)\]( accumulate)?", line)
        if match and not function.endswith("evaluate"):
            numbers = [part.replace(",", "") for part in match.groups()[:4]]
            found[" | ".join([*numbers, "1" if match.group(5) else "0"])] = None
    return list(found)


def compile_text(folder, name, build, batch, sample, *flags):
    model, text = folder / f"{name}.onnx", folder / f"{name}.mlir"
    training_steps.export(build().train(), sample, model)
    measure.compile_model(model, text, "--emit=program", "--stages=1",
                          f"--microbatch-size={batch}", "--loss=softmax-cross-entropy", *flags)
    return text.read_text()


def measure_products(folder, threads, copies):
    missed = 0
    print(f"\n| model | sizes | strides | adds | GF/s | oneDNN | oneDNN, plain | of plain |"
          f"\n|{'---|' * 8}")
    for name, build, batch, make_input, _ in training_steps.MODELS:
        if name not in ("mlp", "gpt"):
            continue
        sample = torch.stack([make_input() for _ in range(batch)])
        lines = dict.fromkeys(line for count in (1, 2) for line in products_of(
            compile_text(folder, name, build, batch, sample, f"--threads={threads}",
                         f"--microbatches={count}")))
        output = subprocess.run([measure.build_folder() / "bench" / "product_rate", str(threads),
                                 str(copies)], input="\n".join(lines) + "\n", check=True,
                                capture_output=True, text=True).stdout
        for line, result in zip(lines, output.splitlines()):
            sizes, *strides, adds = line.split(" | ")
            result = json.loads(result)
            ratio = result["gflops"] / result["plain"]
            missed += ratio < PRODUCT_GOAL
            print(f"| {name} | {sizes.replace(' ', ' x ')} | {', '.join(strides)} | "
                  f"{'yes' if adds == '1' else ''} | "
                  f"{result['gflops']:.0f} | {result['best']:.0f} | {result['plain']:.0f} | "
                  f"{100 * ratio:.0f} %{'' if ratio >= PRODUCT_GOAL else ', goal 85 %'} |")
    return missed


def symbols(program, data, steps):
    """Samples of user time by symbol."""
    with tempfile.TemporaryDirectory() as folder:
        record = folder + "/samples"
        subprocess.run([*PRIORITY, "perf", "record", "-q", "-e", "cpu-clock:u", "-F", str(RATE),
                        "-o", record, program, *data, "--steps", str(steps)],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = subprocess.run(["perf", "script", "-i", record, "-F", "ip,sym"], check=True,
                              capture_output=True, text=True).stdout
    return collections.Counter(line.split(None, 1)[-1].strip() for line in text.splitlines())


def user_seconds(program, data, steps):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([*PRIORITY, program, *data, "--steps", str(steps)], check=True,
                   stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def kernel_times(program, data, seconds):
    """Milliseconds per update by symbol: samples tell shares of an update only,
    since taking them takes time, in virtual machines a third of all."""
    once = (user_seconds(program, data, 21) - user_seconds(program, data, 1)) / 20
    steps = int(seconds / min(max(once, 1e-4), seconds / 20))
    update, samples = float("inf"), collections.Counter()
    for _ in range(TRAININGS):
        update = min(update, (user_seconds(program, data, 1 + steps) -
                              user_seconds(program, data, 1)) / steps)
        samples.update(symbols(program, data, 1 + steps))
        samples.subtract(symbols(program, data, 1))
    total = sum(samples.values())
    return {key: 1e3 * update * count / total for key, count in samples.items()}


def best_ms(call, before=lambda: None):
    before()
    call()
    best = float("inf")
    with priority():
        for _ in range(ROUNDS):
            before()
            begin = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - begin)
    return 1e3 * best


class Framed(nn.Module):
    """A region between two products."""

    def __init__(self, width, bias, region):
        super().__init__()
        self.first = nn.Linear(NARROW, width, bias=bias)
        self.region, self.last = region, nn.Linear(width, NARROW, bias=False)

    def forward(self, x):
        return self.last(self.region(self.first(x)))


def torch_region(width, bias, region, rows):
    """Forward and backward of the region alone, milliseconds."""
    x = torch.randn(rows, width, requires_grad=True)
    shift = torch.randn(width, requires_grad=True) if bias else None
    inputs = [x, *([shift] if bias else []), *region.parameters()]

    def forward():
        return region(x + shift) if bias else region(x)

    y, dy = forward(), torch.randn(rows, width)
    return best_ms(forward), best_ms(lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True))


def torch_adamw(rows, columns):
    """The update of one weight within a step, as ours: after its gradient was made."""
    module = adamw_module(rows, columns)
    weight, x = module[0].weight, torch.randn(NARROW, rows)
    optimizer = torch.optim.AdamW([weight], fused=True)

    def backward():
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x), torch.arange(NARROW)).backward()

    return best_ms(optimizer.step, backward)


def adamw_module(rows, columns):
    return nn.Sequential(nn.Linear(rows, columns, bias=False),
                         nn.Linear(columns, NARROW, bias=False))


def copy_ms(count):
    source, target = torch.ones(count), torch.empty(count)
    return best_ms(lambda: target.copy_(source))


def hand_ms(kind, rows, columns):
    """The same in plain C++: one number, or forward and backward."""
    output = subprocess.run([*PRIORITY, measure.build_folder() / "bench" / "region_rate", kind,
                             str(rows), str(columns)],
                            check=True, capture_output=True, text=True).stdout
    return [time / 1e3 for time in json.loads(output)]


#   name, kernel of region_rate, rows, width, bias, region, goals of forward and
#   backward over torch
REGIONS = [
    ("bias + GELU", "gelu", 512, 3072, True, nn.GELU, 1.49, 1.0),
    ("softmax", "softmax", 512, 128, False, lambda: nn.Softmax(-1), 1.70, 1.0),
    ("softmax", "softmax", 512, 1024, False, lambda: nn.Softmax(-1), 1.73, 1.0),
    ("layer norm", "layer-norm", 512, 768, False, lambda: nn.LayerNorm(768), 2.13, 1.35),
]
#   rows, columns, goal over torch's fused AdamW: in the third cache, in memory
WEIGHTS = [(1024, 1024, 2.5), (4096, 2048, 1.05)]


def report(name, size, ours, theirs, hand, copy, goal):
    ratio = theirs / ours
    print(f"| {name} | {size} | {1e3 * ours:.0f} | {1e3 * theirs:.0f} | {ratio:.2f} | {goal:.2f} | "
          f"{'met' if ratio >= goal else 'missed'} | {hand / ours:.2f} | {copy / ours:.2f} |",
          flush=True)
    return ratio < goal


def train(folder, module, rows, columns, seconds, *flags):
    numpy.save(folder / "x.npy", numpy.random.default_rng(7).standard_normal(
        (rows, columns), dtype=numpy.float32))
    numpy.save(folder / "labels.npy", numpy.arange(rows) % NARROW)
    training_steps.export(module.train(), torch.randn(rows, columns), folder / "region.onnx")
    program = folder / "region"
    measure.compile_model(folder / "region.onnx", program, "--stages=1", "--threads=1",
                          f"--microbatch-size={rows}", "--loss=softmax-cross-entropy", *flags)
    data = ["--data", f"x={folder / 'x.npy'}", "--labels", str(folder / "labels.npy")]
    return kernel_times(program, data, seconds)


def part_times(times):
    return [sum(value for key, value in times.items() if key.startswith(f"s0.{part}."))
            for part in PARTS]


def measure_regions(folder, seconds):
    missed = 0
    print(f"\n| region | size | ours, µs | torch, µs | ratio | goal | | C++ over ours | "
          f"copy over ours |\n|{'---|' * 9}")
    # PyTorch first: what exporting leaves behind slows its allocations down.
    peers = [torch_region(width, bias, build(), rows)
             for _, _, rows, width, bias, build, *_ in REGIONS]
    weights = [torch_adamw(rows, columns) for rows, columns, _ in WEIGHTS]
    # The loss behind the frame is none of the region's business.
    frame = part_times(train(folder, Framed(NARROW, False, nn.Identity()), REGIONS[0][2], NARROW,
                             seconds))
    for (name, kind, rows, width, bias, build, *goals), theirs in zip(REGIONS, peers):
        times = train(folder, Framed(width, bias, build()), rows, NARROW, seconds)
        # Reading one tensor and writing another; the backward reads two.
        copies = copy_ms(rows * width), copy_ms(rows * width * 3 // 2)
        ours = [time - base for time, base in zip(part_times(times), frame)]
        hands = hand_ms(kind, rows, width)
        for part, own, peer, hand, copy, goal in zip(PARTS, ours, theirs, hands, copies, goals):
            if own <= 0:
                sys.exit(f"perf saw no kernel of the {part} of {name}")
            missed += report(f"{name}, {part}", f"{rows} x {width}", own, peer, hand, copy,
                             goal)
    for (rows, columns, goal), theirs in zip(WEIGHTS, weights):
        times = train(folder, adamw_module(rows, columns), NARROW, rows, seconds, "--optimizer=adamw")
        ours = sum(value for key, value in times.items()
                   if re.match(rf"adamw\.{columns}x{rows}", key))
        # Four tensors are read, three written.
        missed += report("AdamW", f"{rows} x {columns}", ours, theirs,
                         *hand_ms("adamw", rows, columns), copy_ms(rows * columns * 7 // 2), goal)
    return missed


def main():
    options = measure.read_options(__doc__, only=("products", "regions"), threads=1, copies=1,
                                   seconds=2.0, priority=False, check=False)
    if options.priority:
        PRIORITY.extend(["chrt", "-f", "1"])
    torch.set_num_threads(1)
    torch.manual_seed(7)
    print(f"{measure.machine()}; PyTorch {torch.__version__}; {options.threads} thread(s)")
    folder = measure.work_folder() / "kernel_rates"
    folder.mkdir(parents=True, exist_ok=True)
    missed = 0
    if "regions" in options.only:
        missed += measure_regions(folder, options.seconds)
    if "products" in options.only:
        missed += measure_products(folder, options.threads, options.copies)
    print(f"\n{missed} goals missed")
    if options.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
