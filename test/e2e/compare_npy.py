"""Compares .npy files with nothing but the standard library.

    compare_npy.py EXPECTED FOUND [--tolerance=1e-6]

Type and shape must be the same; so must the values, or, with a tolerance, differ
by no more than that times the larger of 1 and the expected value.
"""

import array
import ast
import sys

CODES = {"f4": "f", "f8": "d", "i8": "q", "i4": "i", "b1": "B", "u1": "B", "i1": "b"}


def read(path):
    with open(path, "rb") as file:
        magic = file.read(8)
        if magic[:6] != b"\x93NUMPY" or magic[6] != 1:
            sys.exit(f"{path}: not an .npy file of version 1")
        length = int.from_bytes(file.read(2), "little")
        header = ast.literal_eval(file.read(length).decode())
        if (10 + length) % 64:
            sys.exit(f"{path}: the data is not aligned")
        values = array.array(CODES[header["descr"][1:]])
        values.frombytes(file.read())
    return header, values


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    tolerance = 0.0
    for argument in sys.argv[1:]:
        if argument.startswith("--tolerance="):
            tolerance = float(argument.split("=")[1])
    (expected_header, expected), (header, found) = map(read, names)
    if header != expected_header:
        sys.exit(f"{names[1]}: {header}, expected {expected_header}")
    if len(found) != len(expected):
        sys.exit(f"{names[1]}: {len(found)} values, expected {len(expected)}")
    for i, (a, b) in enumerate(zip(expected, found)):
        if not abs(a - b) <= tolerance * max(1, abs(a)):
            sys.exit(f"{names[1]}: element {i} is {b}, expected {a}")


main()
