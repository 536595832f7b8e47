#!/usr/bin/env python3
"""Fails unless two ONNX files differ in the raw bytes of initializers only.

    same_but_weights.py MODEL.onnx SAVED.onnx

Every float initializer must differ: all of them were trained.
"""

import sys


def fields(data, begin, end):
    """(number, wire type, begin of the payload, end) of each protobuf field."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                return value, at

    at = begin
    while at < end:
        key, at = varint(at)
        if key & 7 == 0:
            start, (_, at) = at, varint(at)
        elif key & 7 == 1:
            start, at = at, at + 8
        elif key & 7 == 5:
            start, at = at, at + 4
        else:
            length, start = varint(at)
            at = start + length
        yield key >> 3, key & 7, start, at


def float_initializers(data):
    """Name -> (begin, end) of raw_data."""
    result = {}
    for number, _, begin, end in fields(data, 0, len(data)):
        if number != 7:  # ModelProto.graph
            continue
        for number, _, begin, end in fields(data, begin, end):
            if number != 5:  # GraphProto.initializer
                continue
            parts = {n: (b, e) for n, _, b, e in fields(data, begin, end)}
            if data[slice(*parts[2])] == b"\x01":  # data_type FLOAT
                result[data[slice(*parts[8])].decode()] = parts[9]
    return result


def main(before_path, after_path):
    with open(before_path, "rb") as file:
        before = file.read()
    with open(after_path, "rb") as file:
        after = bytearray(file.read())
    if len(before) != len(after):
        sys.exit(f"same_but_weights: {len(before)} and {len(after)} bytes")
    weights = float_initializers(before)
    for name, (begin, end) in weights.items():
        if before[begin:end] == after[begin:end]:
            sys.exit(f"same_but_weights: {name} did not change")
        after[begin:end] = before[begin:end]
    if before != bytes(after):
        at = next(i for i, (a, b) in enumerate(zip(before, after)) if a != b)
        sys.exit(f"same_but_weights: byte {at} differs, outside of the weights")
    print(f"{len(weights)} initializers changed, nothing else")


if __name__ == "__main__":
    main(*sys.argv[1:])
