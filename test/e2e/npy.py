"""Reads and writes .npy files with nothing but the standard library."""

import ast
import pathlib
import struct


def read(path):
    """Returns the type, such as <f4, the shape, and the bytes of the elements."""
    whole = pathlib.Path(path).read_bytes()
    begin = 10 + struct.unpack("<H", whole[8:10])[0]
    fields = ast.literal_eval(whole[10:begin].decode())
    return fields["descr"], fields["shape"], whole[begin:]


def encode(description, shape, data, fortran_order=False):
    """Returns the bytes of a file of this type and shape."""
    text = (f"{{'descr': '{description}', 'fortran_order': {fortran_order}, "
            f"'shape': {tuple(shape)}, }}")
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data
