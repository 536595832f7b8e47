#!/usr/bin/env python3
"""Writes broken variants of an .npy file into a folder: bad_arrays.py FILE FOLDER."""

import pathlib
import struct
import sys

import npy


def main(source, folder):
    whole = pathlib.Path(source).read_bytes()
    _, shape, data = npy.read(source)
    header, (samples, *rest) = whole[:-len(data)], shape
    one = len(data) // samples
    label = struct.pack("<q", 57)
    nan = struct.pack("<f", float("nan"))
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {
        "dtype": npy.encode("<f8", (samples // 2, *rest), data[:samples // 2 * one * 2]),
        "integers": npy.encode("<i4", shape, data),
        "big-endian": npy.encode(">f4", shape, data),
        "fortran": npy.encode("<f4", shape, data, fortran_order=True),
        "rank": npy.encode("<f4", (samples, *rest, 1), data),
        "width": npy.encode("<f4", (samples * 2, *(extent // 2 for extent in rest)), data),
        "truncated": whole[:-5],
        "header-cut": whole[:40],
        "short": npy.encode("<f4", (samples - 1, *rest), data[:-one]),
        "few": npy.encode("<f4", (3, *rest), data[:3 * one]),
        "none": npy.encode("<f4", (0, *rest), b""),
        "not-an-array": b"PK\x03\x04" + whole[4:],
        "nan": header + data[:3 * one] + nan + data[3 * one + 4:],
        "labels": header + data[:3 * one] + label + data[3 * one + 8:],
        "objects": npy.encode("|O", shape, data),
        "empty": b"",
    }.items():
        (folder / f"{name}.npy").write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
