#!/usr/bin/env python3
"""The memory that penstock-plan states for a model, against programs compiled by hand.

    compiled_plan.py DIR penstock-plan penstockc MODEL [flags of penstock-plan]

Without a limit, and with limits that rule out what was planned before, until none fits: every
stage needs what penstockc reports of the command line that the plan states, and no more than the
limit. That command line has the plan's cuts and replicas.
"""

import json
import pathlib
import subprocess
import sys

DOES_NOT_FIT, MOST = 3, 24


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


def main(folder, planner, compiler, model, *flags):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    planned = 0
    limit = []
    while True:
        result = subprocess.run([planner, model, *flags, *limit, "--json"], capture_output=True,
                                text=True)
        if result.returncode == DOES_NOT_FIT:
            break
        check(result.returncode == 0, result.stderr)
        plan = json.loads(result.stdout)
        check(plan["memory"] == "compiled program", limit, plan["memory"])
        stated = dict(flag[2:].split("=", 1) for flag in plan["flags"][1:])
        widths = [str(stage["replicas"]) for stage in plan["stages"]]
        cuts = [stage["layers"][-1] for stage in plan["stages"][:-1]]
        check(stated["replicas"].split(",") == widths, stated, widths)
        check(",".join(cuts) == stated.get("split-at", ""), stated, cuts)
        report = folder / "report.json"
        subprocess.run([compiler, *plan["flags"], "-o", folder / "program.mlir", "--emit=program",
                        f"--report-json={report}"], check=True)
        needs = [max(stage["arenas"]) for stage in json.loads(report.read_text())["stages"]]
        said = [stage["memory_bytes"] for stage in plan["stages"]]
        check(said == needs, "it needs", needs, "and is said to need", said)
        check(not limit or max(needs) <= int(limit[0].split("=")[1]), limit, needs)
        planned += 1
        check(planned < MOST, "no limit is refused")
        limit = [f"--device-memory={max(needs) - 1}"]
    check("needs" in result.stderr, result.stderr)
    print(f"{planned} plans")


if __name__ == "__main__":
    main(*sys.argv[1:])
