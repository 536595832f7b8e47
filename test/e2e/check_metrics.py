#!/usr/bin/env python3
"""Metrics of an evaluation against what outputs and labels say.

    check_metrics.py one-hot LABELS CLASSES OUT
    check_metrics.py LOG OUTPUTS LABELS

The first writes int64 labels as float32 rows. The second takes the outputs that
--mode=infer wrote, computes each metric of the last evaluation in LOG by its
definition, and compares.
"""

import json
import math
import pathlib
import struct
import sys

import npy


def read(path):
    """Shape and numbers of an .npy file."""
    description, shape, data = npy.read(path)
    letter = {"<f4": "f", "<i8": "q"}[description]
    return shape, struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data)


def write_one_hot(labels, classes, path):
    _, numbers = read(labels)
    rows = [float(label == j) for label in numbers for j in range(classes)]
    pathlib.Path(path).write_bytes(
        npy.encode("<f4", (len(numbers), classes), struct.pack(f"<{len(rows)}f", *rows)))


def expect(name, rows, labels):
    if name == "mae":
        flat = [x for row in rows for x in row]
        return sum(abs(x - y) for x, y in zip(flat, labels)) / len(flat)
    classes = int(name.removeprefix("top-"))
    hits = sum(sorted(range(len(row)), key=lambda j: -row[j]).index(label) < classes
               for row, label in zip(rows, labels))
    return hits / len(rows)


def main(log, outputs, labels):
    (samples, width), flat = read(outputs)
    rows = [flat[i * width:(i + 1) * width] for i in range(samples)]
    _, numbers = read(labels)
    records = [json.loads(line) for line in pathlib.Path(log).read_text().splitlines()]
    metrics = [record["eval"] for record in records if "eval" in record][-1]
    names = [name for name in metrics if name == "mae" or name.startswith("top-")]
    assert names, f"{log}: no metric in {metrics}"
    for name in names:
        expected = expect(name, rows, numbers)
        assert math.isclose(metrics[name], expected, rel_tol=1e-5), (name, metrics, expected)
    if "top-1" in metrics:
        assert metrics["top-1"] == metrics["accuracy"], metrics


if __name__ == "__main__":
    if sys.argv[1] == "one-hot":
        write_one_hot(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main(*sys.argv[1:])
