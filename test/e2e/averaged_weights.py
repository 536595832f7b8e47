#!/usr/bin/env python3
"""Computes moving averages of the weights that checkpoints hold.

    averaged_weights.py DECAY FOLDER LOG.jsonl NAME=V,V,...

FOLDER has a checkpoint of every update, and the names say where the initializers
start. The averages in each checkpoint must be those of the weights so far, and
the loss of the evaluation in the log that of z = x.w + b with the last averages.
"""

import json
import pathlib
import struct
import sys

from optimizers import make_data


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in entry["data_offsets"])
        assert entry["dtype"] == "F32", entry
        tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return tensors


def check_averages(decay, folder, averages):
    checkpoints = sorted(pathlib.Path(folder).glob("step-*"))
    worst = 0
    for number, checkpoint in enumerate(checkpoints, 1):
        if int(checkpoint.name.split("-")[1]) != number:
            sys.exit(f"{checkpoint}: checkpoint {number} is missing")
        weights = read_safetensors(checkpoint / "weights-00000.safetensors")
        state = read_safetensors(checkpoint / "state-00000.safetensors")
        if sorted(weights) != sorted(averages):
            sys.exit(f"{checkpoint}: weights {sorted(weights)}")
        for name, values in weights.items():
            averages[name] = [decay * old + (1 - decay) * new
                              for old, new in zip(averages[name], values)]
            for found, expected in zip(state["ema:" + name], averages[name], strict=True):
                worst = max(worst, abs(found - expected))
                if not abs(found - expected) < 1e-6:
                    sys.exit(f"{checkpoint}: average {found} of {name}, expected {expected}")
    return len(checkpoints), worst


def get_loss(averages):
    x, y = make_data()
    w, b = averages["w"], averages["b"]
    errors = [sum(row[k] * w[2 * k + j] for k in range(3)) + b[j] - right[j]
              for row, right in zip(x, y) for j in range(2)]
    return sum(error ** 2 for error in errors) / len(errors)


def main(decay, folder, log, *starts):
    averages = {}
    for start in starts:
        name, _, values = start.partition("=")
        averages[name] = [float(value) for value in values.split(",")]
    count, worst = check_averages(float(decay), folder, averages)
    with open(log, encoding="utf-8") as file:
        record = json.loads(file.readlines()[-1])
    loss, expected = record["eval"]["loss"], get_loss(averages)
    if not abs(loss - expected) < 1e-5 * expected:
        sys.exit(f"{log}: evaluated loss {loss}, expected {expected}")
    print(f"{count} checkpoints, largest difference {worst:.1e}, loss {loss}")


if __name__ == "__main__":
    main(*sys.argv[1:])
