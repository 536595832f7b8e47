#!/usr/bin/env python3
"""Writes a model that is a matrix product and a chain of elementwise nodes, and
data for it: chain_model.py LENGTH MODEL.onnxtext. The data goes beside it, into
x.npy and y.npy."""

import pathlib
import struct
import sys

import npy

NODES = ["Sin", "Neg", "Cos"]


def main(length, model):
    length, model = int(length), pathlib.Path(model)
    lines = ['<ir_version: 8, opset_import: ["" : 13]>',
             "chain (float[N, 3] x) => (float[N, 3] y)",
             "<float[3, 3] w = {0.3, -0.2, 0.5, 0.7, 0.1, -0.6, -0.4, 0.2, 0.9}>", "{",
             "  v0 = MatMul (x, w)"]
    for i in range(length):
        name = "y" if i == length - 1 else f"v{i + 1}"
        lines.append(f"  {name} = {NODES[i % len(NODES)]} (v{i})")
    model.write_text("\n".join(lines + ["}", ""]))
    for name, values in (("x", [(7 * i % 11) / 11 - 0.4 for i in range(60)]),
                         ("y", [(5 * i % 13) / 13 - 0.6 for i in range(60)])):
        (model.parent / f"{name}.npy").write_bytes(
            npy.encode("<f4", (20, 3), struct.pack("<60f", *values)))


main(*sys.argv[1:])
