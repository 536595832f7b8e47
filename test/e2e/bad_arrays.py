#!/usr/bin/env python3
"""Writes broken variants of an .npy file into a folder: bad_arrays.py FILE FOLDER."""

import ast
import pathlib
import struct
import sys


def header(description, order, shape):
    text = f"{{'descr': '{description}', 'fortran_order': {order}, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def main(source, folder):
    whole = pathlib.Path(source).read_bytes()
    length = struct.unpack("<H", whole[8:10])[0]
    fields = ast.literal_eval(whole[10:10 + length].decode())
    data, shape = whole[10 + length:], fields["shape"]
    samples, rest = shape[0], shape[1:]
    one = len(data) // samples
    label = struct.pack("<q", 57)
    nan = struct.pack("<f", float("nan"))
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {
        "dtype": header("<f8", False, (samples // 2, *rest)) + data[:samples // 2 * one * 2],
        "integers": header("<i4", False, shape) + data,
        "big-endian": header(">f4", False, shape) + data,
        "fortran": header("<f4", True, shape) + data,
        "rank": header("<f4", False, (samples, *rest, 1)) + data,
        "width": header("<f4", False, (samples * 2, *(extent // 2 for extent in rest))) + data,
        "truncated": whole[:-5],
        "header-cut": whole[:40],
        "short": header("<f4", False, (samples - 1, *rest)) + data[:-one],
        "few": header("<f4", False, (3, *rest)) + data[:3 * one],
        "none": header("<f4", False, (0, *rest)),
        "not-an-array": b"PK\x03\x04" + whole[4:],
        "nan": whole[:10 + length] + data[:3 * one] + nan + data[3 * one + 4:],
        "labels": whole[:10 + length] + data[:3 * one] + label + data[3 * one + 8:],
        "objects": header("|O", False, shape) + data,
        "empty": b"",
    }.items():
        (folder / f"{name}.npy").write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
