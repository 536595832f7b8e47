#!/usr/bin/env python3
"""Writes samples of an .npy file in another order.

    select_samples.py IN OUT FIRST:END|=NUMBER...

FIRST:END are samples of IN; =NUMBER is one more sample, all of whose elements
are that number (of int64 arrays).
"""

import ast
import pathlib
import struct
import sys


def main(source, target, *ranges):
    whole = pathlib.Path(source).read_bytes()
    length = struct.unpack("<H", whole[8:10])[0]
    fields = ast.literal_eval(whole[10:10 + length].decode())
    data, (samples, *rest) = whole[10 + length:], fields["shape"]
    one = len(data) // samples
    result = b""
    for text in ranges:
        if text.startswith("="):
            assert fields["descr"] == "<i8"
            result += struct.pack("<q", int(text[1:])) * (one // 8)
            continue
        first, end = map(int, text.split(":"))
        assert 0 <= first <= end <= samples
        result += data[first * one:end * one]
    fields["shape"] = (len(result) // one, *rest)
    text = str(fields)
    text += " " * (-(len(text) + 11) % 64) + "\n"
    pathlib.Path(target).write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + result)


if __name__ == "__main__":
    main(*sys.argv[1:])
