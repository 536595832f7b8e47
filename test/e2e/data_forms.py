#!/usr/bin/env python3
"""Writes the samples of two .npy files in other forms: data_forms.py X Y FOLDER

Into FOLDER: parts of X and Y as x-0.npy, x-1.npy, ..; both in xy.npz, compressed
in packed.npz; both in xy.safetensors, Y alone in y.safetensors; X as raw bytes in x.bin; bytes of it as bytes.npy, and as floats of
their 255th parts in fractions.npy.
"""

import io
import json
import pathlib
import struct
import sys
import zipfile

import npy


def safetensors(arrays):
    """Tensors by name, one behind the other."""
    entries, end = {}, 0
    for name, (description, shape, data) in arrays.items():
        entries[name] = {"dtype": {"<f4": "F32", "<i8": "I64"}[description],
                         "shape": list(shape), "data_offsets": [end, end + len(data)]}
        end += len(data)
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + b"".join(
        data for _, _, data in arrays.values())


def main(x_path, y_path, folder):
    folder = pathlib.Path(folder)
    for name, path in (("x", x_path), ("y", y_path)):
        description, (samples, *rest), data = npy.read(path)
        one = len(data) // samples
        # Odd places, so that microbatches span files.
        bounds = [0, samples // 3 + 1, samples // 2, samples]
        for i, (begin, end) in enumerate(zip(bounds, bounds[1:])):
            (folder / f"{name}-{i}.npy").write_bytes(
                npy.encode(description, (end - begin, *rest), data[begin * one:end * one]))
    for name, packing in (("xy", zipfile.ZIP_STORED), ("packed", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(folder / f"{name}.npz", "w", packing) as archive:
            for member, path in (("x", x_path), ("labels", y_path)):
                # As numpy.savez does: in the 64-bit form.
                with archive.open(f"{member}.npy", "w", force_zip64=True) as file:
                    file.write(pathlib.Path(path).read_bytes())
    x, y = npy.read(x_path), npy.read(y_path)
    (folder / "xy.safetensors").write_bytes(safetensors({"x": x, "labels": y}))
    (folder / "y.safetensors").write_bytes(safetensors({"y": y}))
    description, (samples, *rest), data = x
    (folder / "x.bin").write_bytes(data)
    count = len(data) // 4
    values = struct.unpack(f"<{count}f", data)
    bytes_ = [int(abs(value) * 97) % 256 for value in values]
    (folder / "bytes.npy").write_bytes(npy.encode("|u1", (samples, *rest), bytes(bytes_)))
    fractions = io.BytesIO()
    # A quotient that is rounded to 53 bits and then to 24 is that of f32.
    fractions.write(struct.pack(f"<{count}f", *(byte / 255 for byte in bytes_)))
    (folder / "fractions.npy").write_bytes(
        npy.encode("<f4", (samples, *rest), fractions.getvalue()))


if __name__ == "__main__":
    main(*sys.argv[1:])
