#!/usr/bin/env python3
"""What the report says a stage needs is what the program allocates.

    memory_report.py LOSSES.json DIR

For several models, schedules and policies: the parts of every stage sum up to
the arena of its device, no arena is smaller than what is alive at once, nor
half as large again, and the program has allocated as many bytes for the arena
and for the variables of every stage.
Prints a line per plan; the last says how far arenas are above the bound.
"""

import json
import pathlib
import subprocess
import sys

PARTS = ("weights", "versions", "gradients", "optimizer", "residuals",
         "temporaries", "channels", "padding")


def main(losses, folder):
    losses, folder = pathlib.Path(losses).resolve(), pathlib.Path(folder).resolve()
    root = losses.parents[2]
    fixtures = {f["name"]: f for f in json.loads(losses.read_text())["fixtures"]}
    folder.mkdir(parents=True, exist_ok=True)
    arenas = bounds = 0
    for name, stages in (("digits-adam", 3), ("attention-sgd", 2),
                         ("operators-sgd", 3), ("regression-adamw", 2)):
        fixture = fixtures[name]
        for schedule in ("1f1b", "gpipe"):
            for policy in ("none", "full"):
                program, report = folder / "run", folder / "report.json"
                subprocess.run(
                    ["penstockc", fixture["model"], "-o", str(program),
                     *fixture["compile_flags"], f"--stages={stages}",
                     f"--schedule={schedule}", f"--recompute={policy}",
                     f"--report-json={report}"], cwd=root, check=True)
                memory = folder / "memory.json"
                subprocess.run(
                    [str(program), *fixture["run_flags"][:-1], "2",
                     "--memory", str(memory)], cwd=root,
                    check=True, stdout=subprocess.DEVNULL)
                allocated = json.loads(memory.read_text())["devices"]
                plan = [stage["bytes"] for stage in
                        json.loads(report.read_text())["stages"]]
                print(name, schedule, policy,
                      [(b["arena"], b["lower_bound"]) for b in plan],
                      flush=True)
                if len(allocated) != stages:
                    sys.exit(f"arenas of {len(allocated)} devices")
                for index, b in enumerate(plan):
                    if sum(b[part] for part in PARTS) != b["arena"]:
                        sys.exit(f"stage {index} does not add up: {b}")
                    if any(b[part] < 0 for part in PARTS):
                        sys.exit(f"stage {index} has less than nothing: {b}")
                    if not b["lower_bound"] <= b["arena"] <= 1.5 * b["lower_bound"]:
                        sys.exit(f"stage {index} is out of bounds: {b}")
                    device = allocated[index]
                    if device["arena"] != b["arena"]:
                        sys.exit(f"stage {index} allocates {device['arena']}, "
                                 f"not {b['arena']}")
                    (real,) = device["stages"]
                    for part in ("weights", "versions", "gradients",
                                 "optimizer"):
                        if real[part] != b[part]:
                            sys.exit(f"stage {index} has {real[part]} bytes of "
                                     f"{part}, not {b[part]}")
                    arenas += b["arena"]
                    bounds += b["lower_bound"]
    above = 100 * (arenas / bounds - 1)
    print(f"arenas are {above:.1f} % above the bound")
    if above > 5:
        sys.exit("more than 5 %")


if __name__ == "__main__":
    main(*sys.argv[1:])
