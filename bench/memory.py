#!/usr/bin/env python3
"""Bytes that a plan states, that the program allocates, and that must be alive.

    bench/memory.py [--only=REGEX] [--check] [--plan-only] [--plans] [--recompute]
                    [-- flags of penstockc]

Six models, four schedules, two policies of recomputation. For each: the arenas
that the report states, those that the program says it has allocated (it trains
two updates), and how far the arena of every device is above the most bytes that
are alive at once. --check fails where a statement is not met to the byte, or an
arena is more than 5 % above.

--plans has the planner choose cuts, and what to recompute, for two and three
devices with less and less memory. What it promises must be kept: no device has
more than the limit, the program allocates what the plan states, and losses are
those of the first plan to the last bit.

--recompute lowers the limit from what a plan of four stages needs to what it
needs with full recomputation, and shows what --recompute=auto runs again for it:
ops, their analytic microseconds per microbatch, and how many operations then are
between the begin and the end of an update, by simulation.

Needs torch, torchvision, transformers and onnx.
"""

import argparse
import json
import os
import re
import subprocess
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


def makespan(command, program, *flags):
    """Of an update, in millions of arithmetic operations."""
    schedule = program.with_suffix(".mlir")
    subprocess.run([*command, "-o", schedule, "--emit=schedule", *flags], check=True)
    said = subprocess.run(
        [measure.build_folder() / "bin" / "penstock-opt", schedule, "-o", os.devnull,
         "--pipeline-simulate=costs=analytic timeline=true"], check=True, capture_output=True, text=True)
    return 1e-6 * float(re.search(r"makespan ([0-9.e+-]+)", said.stdout)[1])


def recomputation(folder, only, more):
    """A line per model and limit."""
    print(f"{'model':10}{'limit':>12}{'needs':>12}{'residuals':>12}{'ops again':>11}{'us':>9}"
          f"{'update Mop':>12}  longer")
    for model in memory_models.export_all(folder, only):
        program = model.path.with_name("recomputed")
        plan = ["--stages=4", "--schedule=1f1b", *more]

        def compile(*flags):
            result = subprocess.run(
                [*command(model), "-o", program, "--emit=program", "--explain", *plan, *flags,
                 f"--report-json={program.with_suffix('.report.json')}"],
                capture_output=True, text=True)
            if result.returncode:
                sys.exit(result.stderr)
            stages = json.loads(program.with_suffix(".report.json").read_text())["stages"]
            # Of several plans that were tried the last one counts.
            again = re.findall(r"stage @(\S+) keeps .* and runs (\d+) ops of the forward again "
                               r"\(([0-9.]+) us", result.stderr)
            return stages, {stage: (int(ops), float(us)) for stage, ops, us in again}

        need = {policy: max(plan_reports.arenas(compile(f"--recompute={policy}")[0]).values())
                for policy in ("none", "full")}
        shortest = None
        for share in (0, 0.25, 0.5, 0.75, 1):
            limit = int(need["none"] + share * (need["full"] - need["none"]))
            flags = ["--recompute=auto", f"--device-memory={limit}"]
            stages, again = compile(*flags)
            time = makespan(command(model), program, *plan, *flags)
            shortest = shortest or time
            print(f"{model.name:10}{limit:12}{max(plan_reports.arenas(stages).values()):12}"
                  f"{sum(stage['bytes']['residuals'] for stage in stages):12}"
                  f"{sum(ops for ops, _ in again.values()):11}"
                  f"{sum(us for _, us in again.values()):9.0f}{time:12.0f}"
                  f"{100 * (time / shortest - 1):7.1f}%", flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="of the names of models")
    parser.add_argument("--check", action="store_true", help="fail where a statement is not met")
    parser.add_argument("--plan-only", action="store_true", help="train nothing")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--plans", action="store_true", help="of cuts that are planned")
    modes.add_argument("--recompute", action="store_true", help="of what runs again")
    parser.add_argument("more", nargs="*", metavar="FLAG", help="of penstockc, after --")
    return parser.parse_args()


def main():
    options = parse()
    only, more = options.only, options.more
    folder = measure.work_folder() / "memory"
    if options.recompute:
        recomputation(folder, only, more)
        return
    if options.plans:
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
                emit = ["--emit=program"] if options.plan_only else []
                stages = plan_reports.compiled(command(model), program, *flags, *emit, *more,
                                               f"--recompute={policy}")
                plan = plan_reports.arenas(stages)
                bounds = {device: parts[0]["lower_bound"]
                          for device, parts in plan_reports.by_device(stages).items()}
                above = max(plan[device] / bounds[device] - 1 for device in plan)
                total, bound = sum(plan.values()), sum(bounds.values())
                sums = [sums[0] + total, sums[1] + bound]
                verdict = "not run"
                if not options.plan_only:
                    allocated = plan_reports.train(program, *model.data, "--steps", "2")[1]
                    verdict = plan_reports.compare(allocated, stages)
                if (verdict != "equal" and not options.plan_only) or above > MOST_ABOVE:
                    failed.append(f"{model.name} {schedule} {policy}")
                print(f"{model.name:10}{schedule:13}{policy:11}{total:12}{bound:12}"
                      f"{100 * (total / bound - 1):7.2f}%{100 * above:7.2f}%  {verdict}", flush=True)
    print(f"all: {100 * (sums[0] / sums[1] - 1):.2f} % above")
    if options.check and failed:
        sys.exit(f"not within bounds: {', '.join(failed)}")


if __name__ == "__main__":
    main()
