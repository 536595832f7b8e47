#!/usr/bin/env python3
"""Compares the running statistics in a saved model with a recorded fixture.

    compare_statistics.py FIXTURE.json NAME SAVED.onnx [TOLERANCE]
"""

import json
import struct
import sys

from same_but_weights import float_initializers


def main(fixture_path, name, saved_path, tolerance="1e-5"):
    with open(fixture_path, encoding="utf-8") as file:
        fixtures = {f["name"]: f for f in json.load(file)["fixtures"]}
    with open(saved_path, "rb") as file:
        saved = file.read()
    where = float_initializers(saved)
    worst = 0.0
    for statistic, expected in fixtures[name]["statistics"].items():
        begin, end = where[statistic]
        found = struct.unpack(f"<{(end - begin) // 4}f", saved[begin:end])
        if len(found) != len(expected):
            sys.exit(f"compare_statistics: {statistic} has {len(found)} values")
        # Recorded as decimals, which stand for the nearest f32.
        expected = struct.unpack(f"<{len(expected)}f", struct.pack(f"<{len(expected)}f", *expected))
        worst = max([worst] + [abs(a - b) / (1 + abs(b)) for a, b in zip(found, expected)])
    print(f"{name}: {len(fixtures[name]['statistics'])} statistics, "
          f"largest difference {worst:.1e}")
    if worst > float(tolerance):
        sys.exit("compare_statistics: too large")


if __name__ == "__main__":
    main(*sys.argv[1:])
