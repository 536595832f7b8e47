#!/usr/bin/env python3
"""Flips a bit in the middle of what FILE holds of PART: flip_byte.py FILE PART"""

import pathlib
import sys


def main(file, part):
    part = pathlib.Path(part).read_bytes()
    data = bytearray(pathlib.Path(file).read_bytes())
    data[data.index(part) + len(part) // 2] ^= 1
    pathlib.Path(file).write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
