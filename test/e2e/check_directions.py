#!/usr/bin/env python3
"""Under a schedule in two directions every device has what its row says.

    check_directions.py REPORT.json MEMORY.json
"""

import json
import sys

PARTS = ("weights", "versions", "gradients", "optimizer", "residuals",
         "temporaries", "channels", "padding")


def main(report, memory):
    with open(report, encoding="utf-8") as file:
        stages = json.load(file)["stages"]
    with open(memory, encoding="utf-8") as file:
        allocated = {d["device"]: d for d in json.load(file)["devices"]}
    count = len(stages)
    for index, stage in enumerate(stages):
        if stage["devices"] != [index, count - 1 - index]:
            sys.exit(f"stage {index} is on {stage['devices']}")
        row, device = stage["bytes"], allocated[index]
        if sum(row[part] for part in PARTS) != row["arena"]:
            sys.exit(f"stage {index} does not add up: {row}")
        if row["padding"] < 0:
            sys.exit(f"stage {index} has less than nothing: {row}")
        if device["arena"] != row["arena"]:
            sys.exit(f"device {index} allocates {device['arena']}")
        if row["arena"] > 1.05 * row["lower_bound"]:
            sys.exit(f"stage {index} is out of bounds: {row}")
        if len(device["stages"]) != 2:
            sys.exit(f"device {index} has {len(device['stages'])} stages")
        for part in ("weights", "gradients", "optimizer"):
            real = sum(other[part] for other in device["stages"])
            if real != row[part]:
                sys.exit(f"device {index} has {real} bytes of {part}")


if __name__ == "__main__":
    main(*sys.argv[1:])
