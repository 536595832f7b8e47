#!/usr/bin/env python3
"""Writes a model that is a matrix product and a chain of elementwise nodes, and
data for it: chain_model.py LENGTH MODEL.onnxtext. The data goes beside it, into
x.npy and y.npy."""

import pathlib
import struct
import sys

NODES = ["Sin", "Neg", "Cos"]


def write_npy(path, shape, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack(f"<{len(values)}f", *values))


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
    write_npy(model.parent / "x.npy", (20, 3), [(7 * i % 11) / 11 - 0.4 for i in range(60)])
    write_npy(model.parent / "y.npy", (20, 3), [(5 * i % 13) / 13 - 0.6 for i in range(60)])


main(*sys.argv[1:])
