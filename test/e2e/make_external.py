#!/usr/bin/env python3
"""Moves the raw values of a model's initializers into a file of external data.

    make_external.py MODEL.onnx RESULT.onnx LOCATION

LOCATION is relative to the folder of RESULT.
"""

import pathlib
import sys

GRAPH, INITIALIZER, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION = 7, 5, 9, 13, 14


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        shift += 7
        at += 1
        if not byte & 0x80:
            return value, at


def varint(value):
    result = b""
    while value >= 0x80:
        result += bytes([value & 0x7f | 0x80])
        value >>= 7
    return result + bytes([value])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def read_fields(data):
    """Yields number, payload (None unless delimited) and the whole field."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = read_varint(data, at)
        payload = None
        if tag & 7 == 0:
            _, at = read_varint(data, at)
        elif tag & 7 == 2:
            length, at = read_varint(data, at)
            payload = data[at:at + length]
            at += length
        else:
            at += {1: 8, 5: 4}[tag & 7]
        yield tag >> 3, payload, data[begin:at]


def main(source, target, location):
    values = b""

    def move(tensor):
        nonlocal values
        result = b""
        for number, payload, whole in read_fields(tensor):
            if number != RAW_DATA or len(payload) < 64:
                result += whole
                continue
            for key, value in (("location", location), ("offset", len(values)),
                               ("length", len(payload))):
                result += field(EXTERNAL_DATA, field(1, key.encode())
                                + field(2, str(value).encode()))
            result += varint(DATA_LOCATION << 3) + varint(1)
            values += payload
        return result

    def rewrite(data, wanted, change):
        return b"".join(field(number, change(payload)) if number == wanted else whole
                        for number, payload, whole in read_fields(data))

    model = rewrite(pathlib.Path(source).read_bytes(), GRAPH,
                    lambda graph: rewrite(graph, INITIALIZER, move))
    pathlib.Path(target).write_bytes(model)
    (pathlib.Path(target).parent / location).write_bytes(values)


if __name__ == "__main__":
    main(*sys.argv[1:])
