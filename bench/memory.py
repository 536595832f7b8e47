#!/usr/bin/env python3
"""Bytes that a plan states, that the program allocates, and that must be alive.

    bench/memory.py [--only=REGEX] [--check] [--plan-only] [--plans] [--arguments for penstockc]

Six models, four schedules, two policies of recomputation. For each: the arenas
that the report states, those that the program says it has allocated (it trains
two updates), and how far the arena of every device is above the most bytes that
are alive at once. --check fails where a statement is not met to the byte, or an
arena is more than 5 % above.

--plans has the planner choose cuts, and what to recompute, for two and three
devices with less and less memory. What it promises must be kept: no device has
more than the limit, the program allocates what the plan states, and losses are
those of the first plan to the last bit.

Needs torch, torchvision, transformers and onnx.
"""

import sys

import measure
import memory_models
import plan_reports

SCHEDULES = (("gpipe", ["--stages=4", "--schedule=gpipe"]),
             ("1f1b", ["--stages=4", "--schedule=1f1b"]),
             ("zb-h1", ["--stages=4", "--schedule=zb-h1"]),
             ("interleaved", ["--stages=4", "--schedule=interleaved:chunks=2"]))
UPDATE = ("--microbatches=8", "--optimizer=adam:lr=0.001")
MOST_ABOVE = 0.05
LIMITS = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6)


def command(model):
    return [measure.build_folder() / "bin" / "penstockc", model.path, *model.flags, *UPDATE]


def plans(folder, only, more):
    """A line per model, number of devices, policy and limit; returns the failures."""
    print(f"{'model':10}{'devices':8}{'recompute':10}{'limit':>12}{'needs':>12}{'residuals':>12}"
          f"  allocated  losses")
    failed = []
    for model in memory_models.export_all(folder, only):
        program = model.path.with_name("plan")
        reference = None
        for devices in (2, 3):
            most = None
            for policy, limits in (("none", (None, *LIMITS)), ("auto", LIMITS)):
                for share in limits:
                    limit = int(most * share) if share else None
                    flags = [f"--recompute={policy}"] if limit else []
                    if limit:
                        flags.append(f"--device-memory={limit}")
                    status, stages = plan_reports.compile_plan(
                        command(model), program, "--stages=auto", f"--devices={devices}", *flags,
                        *more)
                    line = f"{model.name:10}{devices:<8}{policy:10}{limit or '-':>12}"
                    if limit and status == plan_reports.DOES_NOT_FIT:
                        print(f"{line}{'refused':>12}", flush=True)
                        continue
                    if status:
                        sys.exit(stages)
                    need = max(plan_reports.arenas(stages).values())
                    most = most or need
                    losses, allocated, _ = plan_reports.train(program, *model.data, "--steps", "2")
                    verdict = plan_reports.compare(allocated, stages)
                    reference = reference or losses
                    same = "equal" if losses == reference else "differ"
                    residuals = sum(stage["bytes"]["residuals"] for stage in stages)
                    print(f"{line}{need:12}{residuals:12}  {verdict:9}  {same}", flush=True)
                    if verdict != "equal" or same != "equal" or need > (limit or need):
                        failed.append(f"{model.name} {devices} {policy} {limit}")
    return failed


def main(arguments):
    only, check, plan_only, more = "", False, False, []
    searches = False
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key == "--only":
            only = value
        elif key == "--check":
            check = True
        elif key == "--plan-only":
            plan_only = True
        elif key == "--plans":
            searches = True
        else:
            more.append(argument)
    folder = measure.work_folder() / "memory"
    if searches:
        failed = plans(folder, only, more)
        sys.exit(f"not kept: {', '.join(failed)}" if failed else 0)
    print(f"{'model':10}{'schedule':13}{'recompute':11}{'arenas':>12}{'bound':>12}{'above':>8}"
          f"{'worst':>8}  allocated")
    failed = []
    sums = [0, 0]
    for model in memory_models.export_all(folder, only):
        program = model.path.with_name("program")
        for schedule, flags in SCHEDULES:
            for policy in ("none", "full"):
                emit = ["--emit=program"] if plan_only else []
                stages = plan_reports.compiled(command(model), program, *flags, *emit, *more,
                                               f"--recompute={policy}")
                plan = plan_reports.arenas(stages)
                bounds = {device: parts[0]["lower_bound"]
                          for device, parts in plan_reports.by_device(stages).items()}
                above = max(plan[device] / bounds[device] - 1 for device in plan)
                total, bound = sum(plan.values()), sum(bounds.values())
                sums = [sums[0] + total, sums[1] + bound]
                verdict = "not run"
                if not plan_only:
                    allocated = plan_reports.train(program, *model.data, "--steps", "2")[1]
                    verdict = plan_reports.compare(allocated, stages)
                if (verdict != "equal" and not plan_only) or above > MOST_ABOVE:
                    failed.append(f"{model.name} {schedule} {policy}")
                print(f"{model.name:10}{schedule:13}{policy:11}{total:12}{bound:12}"
                      f"{100 * (total / bound - 1):7.2f}%{100 * above:7.2f}%  {verdict}", flush=True)
    print(f"all: {100 * (sums[0] / sums[1] - 1):.2f} % above")
    if check and failed:
        sys.exit(f"not within bounds: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
