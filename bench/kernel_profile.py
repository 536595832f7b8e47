#!/usr/bin/env python3
"""Where the time of a training step goes, by class of kernel.

    bench/kernel_profile.py [--only=REGEX] [--seconds=6]

The models of training_steps.py, one stage, one thread. Linux perf samples the
user time of a short and a long run; the difference is the updates alone.
Kernels have their class in their names, and oneDNN names the code that it
generates. What a class computes or touches is counted in the program, and
stands beside what the same core does at best in the same run: one large product
by oneDNN, and a copy that does not fit the caches. Needs perf, and what
training_steps.py needs.
"""

import collections
import math
import re
import shutil
import subprocess
import sys
import tempfile
import time

import torch

import measure
import training_steps

#        class, how the symbols of its kernels look; the first that matches
CLASSES = [
    ("start-up", r"Sha256|compressWith|Npy|WireFormat"),
    ("convolution", r"conv_(fwd|bwd)|wino|transform(Inputs|Outputs|Cotangents|Windows)|addWindows"),
    ("product", r"gemm|matmul"),
    ("packing", r"^turnAvx|memmove|memcpy"),
    ("reorder", r"reorder|single_blk|jit_trans|transpose"),
    ("optimizer", r"^(sgd|adam|adamw)\."),
    ("elementwise", r"\.elementwise"),
    ("reduction", r"\.reduction"),
    ("rows (softmax, norms)", r"\.rows"),
    ("gather, window", r"\.indexed"),
    ("wait, transfer", r"futex|clock_gettime|steady_clock|Channel|SinkValues|sched_yield|^pause"),
]


def class_of(library, symbol):
    for name, pattern in CLASSES:
        if re.search(pattern, symbol):
            return name
    return "rest of oneDNN" if re.search("dnnl|JIT|perf-", library) else "rest"


def samples(program, data, steps):
    """Samples of user time by class, 1 ms each."""
    with tempfile.TemporaryDirectory() as folder:
        record = folder + "/samples"
        # oneDNN tells perf which code it generated.
        subprocess.run(["env", "DNNL_JIT_PROFILE=6", "JITDUMPDIR=" + folder, "perf", "record",
                        "-q", "-e", "cpu-clock:u", "-F", "1000", "-o", record, program,
                        *data, "--steps", str(steps)],
                       check=True, stdout=subprocess.DEVNULL)
        text = subprocess.run(["perf", "script", "-i", record, "-F", "ip,sym,dso"],
                              check=True, capture_output=True, text=True).stdout
    counts = collections.Counter()
    for line in text.splitlines():
        match = re.match(r"\s*[0-9a-f]+ (.*) \((.*)\)$", line)
        if match:
            counts[class_of(match.group(2), match.group(1))] += 1
    return counts


def bytes_of(types):
    total = 0
    for shape, bits in re.findall(r"memref<((?:\d+x)*)[a-z]+(\d+)", types):
        total += math.prod(map(int, shape.split("x")[:-1])) * ((int(bits) + 7) // 8)
    return total


def count_work(program):
    """Floating-point operations and bytes of an update by class: of products and
    convolutions the former, of the other kernels the sizes of their buffers."""
    passes = "builtin.module(func.func(pipeline-fuse-rows),pipeline-parallelize," \
             "pipeline-outline-kernels)"
    text = subprocess.run([measure.build_folder() / "bin" / "penstock-opt", program,
                           f"--pass-pipeline={passes}"],
                          check=True, capture_output=True, text=True).stdout
    flops, touched, function = collections.Counter(), collections.Counter(), ""
    for line in text.splitlines():
        if match := re.match(r'\s*(?:func\.func|module)(?: private)? @"?([^("]*)', line):
            function = match.group(1)
        if function.endswith("evaluate") or function == "evaluate.0":
            continue
        if match := re.search(r"kernel\.gemm .* sizes \[([\d, ]*)\]", line):
            flops["product"] += 2 * math.prod(map(int, match.group(1).split(",")))
        elif match := re.search(r"kernel\.conv .* : memref<\S+>, memref<(\S+)xf32>, "
                                r"memref<(\S+)xf32>", line):
            weights, output = ([int(size) for size in match.group(i).split("x")] for i in (1, 2))
            flops["convolution"] += \
                2 * math.prod(output) * math.prod(weights) // weights[0]
        elif match := re.search(r'call @"?([^("]*)"?\(.*\) : \((.*)\) -> ', line):
            name = class_of("", match.group(1))
            if name not in ("rest", "start-up"):
                touched[name] += bytes_of(match.group(2))
        if function == "replay":
            break
    return flops, touched


def limits():
    """GF/s of a large product, and GB/s of a copy in memory."""
    product = measure.gemm_gflops(1, 1024, 1024, 1, 1)
    source, target = torch.ones(64 << 20 >> 2), torch.empty(64 << 20 >> 2)
    best = float("inf")
    for _ in range(10):
        begin = time.perf_counter()
        target.copy_(source)
        best = min(best, time.perf_counter() - begin)
    return product, 2 * (64 << 20) / best * 1e-9


def profile(name, build, batch, make_input, make_label, seconds):
    folder = measure.work_folder() / "kernel_profile" / name
    *_, data = training_steps.prepare(folder, build, batch, make_input, make_label)
    flags = ["--stages=1", "--threads=1", f"--microbatch-size={batch}",
             "--loss=softmax-cross-entropy", "--optimizer=sgd:lr=0.01,momentum=0.9"]
    program, printed = folder / "program", folder / "program.mlir"
    measure.compile_model(folder / "model.onnx", program, *flags)
    measure.compile_model(folder / "model.onnx", printed, "--emit=program", *flags)
    flops, touched = count_work(printed)

    steps = max(2, int(seconds / max(measure.seconds_per_update(program, data, 1, 6, 2), 1e-3)))
    long, short = samples(program, data, 1 + steps), samples(program, data, 1)
    times = {key: (long[key] - short[key]) / steps for key in long if key != "start-up"}
    # Tiles of convolutions are multiplied by the kernels of products.
    if flops["convolution"]:
        both = "convolution and product"
        times[both] = times.pop("convolution", 0) + times.pop("product", 0)
        flops[both] = flops["convolution"] + flops["product"]
    total = sum(times.values())
    product, copy = limits()
    print(f"\n{name}: {total:.1f} ms of user time per update, {steps} updates; a product of "
          f"1024 reaches {product:.0f} GF/s, a copy {copy:.0f} GB/s\n")
    print("| class | ms | share | rate | of the limit |\n|---|---|---|---|---|")
    for key, value in sorted(times.items(), key=lambda item: -item[1]):
        if value < 0.002 * total:
            continue
        rate = limit = ""
        if flops[key]:
            rate, limit = f"{flops[key] / value * 1e-6:.0f} GF/s", flops[key] / value * 1e-6 / product
        elif touched[key]:
            rate, limit = f"{touched[key] / value * 1e-6:.0f} GB/s", touched[key] / value * 1e-6 / copy
        limit = f"{100 * limit:.0f} %" if rate else ""
        print(f"| {key} | {value:.2f} | {100 * value / total:.1f} % | {rate} | {limit} |")


def main():
    options = measure.read_options(__doc__, only="", seconds=6.0)
    if not shutil.which("perf"):
        sys.exit("kernel_profile.py needs perf; on Debian: apt-get install linux-perf")
    torch.set_num_threads(1)
    print(measure.machine())
    for model in training_steps.MODELS:
        if re.search(options.only, model[0]):
            profile(*model, options.seconds)


if __name__ == "__main__":
    main()
