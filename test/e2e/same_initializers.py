#!/usr/bin/env python3
"""Fails unless initializers of ONNX files have the same bytes.

    same_initializers.py MODEL.onnx NAME... [MODEL.onnx NAME...]...
"""

import sys

from same_but_weights import float_initializers


def main(arguments):
    found, data, table = {}, b"", {}
    for argument in arguments:
        if argument.endswith(".onnx"):
            path = argument
            with open(path, "rb") as file:
                data = file.read()
            table = float_initializers(data)
        elif argument in table:
            found[f"{path}: {argument}"] = data[slice(*table[argument])]
        else:
            sys.exit(f"same_initializers: {path} has no '{argument}'")
    first, *others = found
    for other in others:
        if found[other] != found[first]:
            sys.exit(f"same_initializers: {first} and {other} differ")


main(sys.argv[1:])
