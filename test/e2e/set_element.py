#!/usr/bin/env python3
"""Copies an .npy file of integers with one element changed.

    set_element.py FROM TO INDEX VALUE [TYPE]

INDEX counts elements; TYPE, such as <i4, is what all are written as.
"""

import pathlib
import struct
import sys

import npy

FORMATS = {"<i8": "q", "<i4": "i", "<i2": "h", "|u1": "B"}


def main(source, target, index, value, description=None):
    old, shape, data = npy.read(source)
    values = [number for number, in struct.iter_unpack(f"<{FORMATS[old]}", data)]
    values[int(index)] = int(value)
    description = description or old
    pathlib.Path(target).write_bytes(npy.encode(
        description, shape, struct.pack(f"<{len(values)}{FORMATS[description]}", *values)))


if __name__ == "__main__":
    main(*sys.argv[1:])
