#!/usr/bin/env python3
"""Writes samples of one number each, x.f32, and labels, y.f32.

    one_large.py FOLDER COUNT INDEX VALUE

All are 0.5 but for that at INDEX, and all labels are 0.
"""

import pathlib
import struct
import sys

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
values = [0.5] * count
values[int(sys.argv[3])] = float(sys.argv[4])
(folder / "x.f32").write_bytes(struct.pack(f"<{count}f", *values))
(folder / "y.f32").write_bytes(bytes(4 * count))
