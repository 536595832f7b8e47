#!/usr/bin/env python3
"""Writes samples of an .npy file in another order.

    select_samples.py IN OUT FIRST:END|=NUMBER...

FIRST:END are samples of IN; =NUMBER is one more sample, all of whose elements
are that number (of int64 arrays).
"""

import pathlib
import struct
import sys

import npy


def main(source, target, *ranges):
    description, (samples, *rest), data = npy.read(source)
    one = len(data) // samples
    result = b""
    for text in ranges:
        if text.startswith("="):
            assert description == "<i8"
            result += struct.pack("<q", int(text[1:])) * (one // 8)
            continue
        first, end = map(int, text.split(":"))
        assert 0 <= first <= end <= samples
        result += data[first * one:end * one]
    pathlib.Path(target).write_bytes(
        npy.encode(description, (len(result) // one, *rest), result))


if __name__ == "__main__":
    main(*sys.argv[1:])
