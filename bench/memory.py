#!/usr/bin/env python3
"""Bytes that a plan states, that the program allocates, and that must be alive.

    bench/memory.py [--only=REGEX] [--check] [--plan-only] [--arguments for penstockc]

Six models, four schedules, two policies of recomputation. For each: the arenas
that the report states, those that the program says it has allocated (it trains
two updates), and how far the arena of every device is above the most bytes that
are alive at once. --check fails where a statement is not met to the byte, or an
arena is more than 5 % above. Needs torch, torchvision, transformers and onnx.
"""

import json
import subprocess
import sys

import measure
import memory_models

PARTS = ("weights", "versions", "gradients", "optimizer", "residuals", "temporaries",
         "channels", "padding")
SCHEDULES = (("gpipe", ["--stages=4", "--schedule=gpipe"]),
             ("1f1b", ["--stages=4", "--schedule=1f1b"]),
             ("zb-h1", ["--stages=4", "--schedule=zb-h1"]),
             ("interleaved", ["--stages=4", "--schedule=interleaved:chunks=2"]))
MOST_ABOVE = 0.05


def allocated(program, data):
    """Bytes by device, as the program counted them."""
    log = program.with_suffix(".memory.json")
    subprocess.run([program, *data, "--steps", "2", "--memory", log], check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads(log.read_text())


def compare(allocated_devices, stages, plan):
    """Arenas, and the variables of every stage, byte by byte."""
    for device in allocated_devices:
        if device["arena"] != plan[device["device"]]:
            return f"arena of device {device['device']}: {device['arena']}"
        for real in device["stages"]:
            stated = stages[real["stage"]]["bytes"]
            for part in ("weights", "versions", "gradients", "optimizer"):
                if real[part] != stated[part]:
                    return f"{part} of stage {real['stage']}: {real[part]}, not {stated[part]}"
    return "equal"


def main(arguments):
    only, check, plan_only, more = "", False, False, []
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key == "--only":
            only = value
        elif key == "--check":
            check = True
        elif key == "--plan-only":
            plan_only = True
        else:
            more.append(argument)
    folder = measure.work_folder() / "memory"
    print(f"{'model':10}{'schedule':13}{'recompute':11}{'arenas':>12}{'bound':>12}{'above':>8}"
          f"{'worst':>8}  allocated")
    failed = []
    sums = [0, 0]
    for model in memory_models.export_all(folder, only):
        for schedule, flags in SCHEDULES:
            for policy in ("none", "full"):
                program, report = model.path.with_name("program"), model.path.with_name("plan.json")
                emit = ["--emit=program"] if plan_only else []
                measure.compile_model(
                    model.path, program, *model.flags, *flags, *emit, *more, "--microbatches=8",
                    "--optimizer=adam:lr=0.001", f"--recompute={policy}",
                    f"--report-json={report}")
                stages = json.loads(report.read_text())["stages"]
                # What a device has stands at the first of its stages.
                devices = {}
                for stage in stages:
                    devices.setdefault(stage["device"], []).append(stage["bytes"])
                plan = {device: sum(b[part] for b in parts for part in PARTS)
                        for device, parts in devices.items()}
                bounds = {device: parts[0]["lower_bound"] for device, parts in devices.items()}
                above = max(plan[device] / bounds[device] - 1 for device in plan)
                total, bound = sum(plan.values()), sum(bounds.values())
                sums = [sums[0] + total, sums[1] + bound]
                verdict = "not run"
                if not plan_only:
                    verdict = compare(allocated(program, model.data)["devices"], stages, plan)
                if (verdict != "equal" and not plan_only) or above > MOST_ABOVE:
                    failed.append(f"{model.name} {schedule} {policy}")
                print(f"{model.name:10}{schedule:13}{policy:11}{total:12}{bound:12}"
                      f"{100 * (total / bound - 1):7.2f}%{100 * above:7.2f}%  {verdict}", flush=True)
    print(f"all: {100 * (sums[0] / sums[1] - 1):.2f} % above")
    if check and failed:
        sys.exit(f"not within bounds: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
