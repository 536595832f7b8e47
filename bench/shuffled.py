#!/usr/bin/env python3
"""Samples per second in the order of the file and shuffled, warm and cold.

    bench/shuffled.py FOLDER [--width=768] [--gigabytes=3] [--rounds=3]

Trains one linear layer, which hides little of the reading, on a file of float32
rows in FOLDER. Warm: the file has just been read, and fits into memory. Cold:
the kernel has dropped its pages. Rounds alternate, and the fastest of each
counts. Needs NumPy and onnx.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import measure  # noqa: E402

MICROBATCHES, CLASSES = 4, 10


def write_model(path, width):
    random = numpy.random.default_rng(1)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)], "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(
            (random.standard_normal((CLASSES, width)) / width).astype("f4"), "w"),
         numpy_helper.from_array(numpy.zeros(CLASSES, "f4"), "b")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=8), path)


def write_data(folder, width, samples):
    random = numpy.random.default_rng(2)
    rows = numpy.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype="f4",
                                        shape=(samples, width))
    step = max(1, (16 << 20) // (4 * width))
    for begin in range(0, samples, step):
        rows[begin:begin + step] = random.standard_normal(
            (len(rows[begin:begin + step]), width), dtype="f4")
    rows.flush()
    numpy.save(folder / "labels.npy", random.integers(0, CLASSES, samples))


def make_cold(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def make_warm(path):
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


def rate(folder, steps, *flags):
    subprocess.run([folder / "run", "--data", f"x={folder / 'x.npy'}", "--labels",
                    folder / "labels.npy", "--steps", str(steps), "--lr", "1e-6",
                    "--quiet", "--summary-json", folder / "summary.json", *flags], check=True)
    return json.loads((folder / "summary.json").read_text())["samples_per_second"]


def main():
    options = measure.read_options(__doc__, "folder", width=768, gigabytes=3.0, rounds=3,
                                   batch=64)
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    samples = int(options.gigabytes * 1e9 / (4 * options.width))
    write_model(folder / "model.onnx", options.width)
    write_data(folder, options.width, samples)
    measure.compile_model(folder / "model.onnx", folder / "run",
                          "--loss=softmax-cross-entropy", f"--microbatch-size={options.batch}",
                          f"--microbatches={MICROBATCHES}")
    steps = samples // (options.batch * MICROBATCHES)
    print(f"{measure.machine()}; samples of {4 * options.width} bytes, one pass")
    for name, prepare in (("warm", make_warm), ("cold", make_cold)):
        ordered = shuffled = 0
        for _ in range(options.rounds):
            prepare(folder / "x.npy")
            ordered = max(ordered, rate(folder, steps))
            prepare(folder / "x.npy")
            shuffled = max(shuffled, rate(folder, steps, "--shuffle"))
        print(f"{name}: in order {ordered:.0f} samples/s, shuffled {shuffled:.0f}, "
              f"{ordered / shuffled:.2f} times", flush=True)


if __name__ == "__main__":
    main()
