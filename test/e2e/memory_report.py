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
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import plan_reports


def main(losses, folder):
    losses, folder = pathlib.Path(losses).resolve(), pathlib.Path(folder).resolve()
    fixtures = {f["name"]: f for f in json.loads(losses.read_text())["fixtures"]}
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(losses.parents[2])  # Paths of fixtures begin there.
    arenas = bounds = 0
    for name, stages in (("digits-adam", 3), ("attention-sgd", 2),
                         ("operators-sgd", 3), ("regression-adamw", 2)):
        fixture = fixtures[name]
        for schedule in ("1f1b", "gpipe"):
            for policy in ("none", "full"):
                program = folder / "run"
                plan = plan_reports.compiled(
                    ["penstockc", fixture["model"]], program, *fixture["compile_flags"],
                    f"--stages={stages}", f"--schedule={schedule}", f"--recompute={policy}")
                allocated = plan_reports.train(program, *fixture["run_flags"][:-1], "2")[1]
                print(name, schedule, policy,
                      [(stage["bytes"]["arena"], stage["bytes"]["lower_bound"]) for stage in plan],
                      flush=True)
                compared = plan_reports.compare(allocated, plan)
                if compared != "equal":
                    sys.exit(f"the program differs: {compared}")
                for index, stage in enumerate(plan):
                    b = stage["bytes"]
                    if sum(b[part] for part in plan_reports.PARTS) != b["arena"]:
                        sys.exit(f"stage {index} does not add up: {b}")
                    if any(b[part] < 0 for part in plan_reports.PARTS):
                        sys.exit(f"stage {index} has less than nothing: {b}")
                    if not b["lower_bound"] <= b["arena"] <= 1.5 * b["lower_bound"]:
                        sys.exit(f"stage {index} is out of bounds: {b}")
                    arenas += b["arena"]
                    bounds += b["lower_bound"]
    above = 100 * (arenas / bounds - 1)
    print(f"arenas are {above:.1f} % above the bound")
    if above > 5:
        sys.exit("more than 5 %")


if __name__ == "__main__":
    main(*sys.argv[1:])
