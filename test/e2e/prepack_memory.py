#!/usr/bin/env python3
"""Prepacked weights count as memory of the device, and yield to a limit.

    prepack_memory.py MODEL DIR FLAGS...

Under a limit of what a plan with them takes they stay; under one byte less the
plan is that without them, to the byte, and nothing is computed twice.
"""

import json
import pathlib
import subprocess
import sys


def main(model, folder, flags):
    folder = pathlib.Path(folder)

    def arena(*more):
        report = folder / "prepack.json"
        subprocess.run(["penstockc", model, "-o", str(folder / "prepack-run"),
                        f"--report-json={report}", *flags, *more], check=True)
        stages = json.loads(report.read_text())["stages"]
        return max(stage["bytes"]["arena"] for stage in stages)

    without, having = arena("--prepack=none"), arena()
    if having <= without:
        sys.exit(f"{having} bytes with prepacked weights, {without} without")
    for limit, expected in ((having, having), (having - 1, without), (without, without)):
        for policy in ("none", "auto"):
            found = arena(f"--device-memory={limit}", f"--recompute={policy}")
            # What the search decides must fit without them.
            if found != expected:
                sys.exit(f"{found} bytes under a limit of {limit}, not {expected}")
    refused = subprocess.run(["penstockc", model, "-o", str(folder / "prepack-run"), *flags,
                              f"--device-memory={having - 1}", "--prepack=all"],
                             check=False, stderr=subprocess.DEVNULL)
    if refused.returncode != 3:
        sys.exit(f"exit code {refused.returncode} where all have to be prepacked")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
