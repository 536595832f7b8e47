#!/usr/bin/env python3
"""Recomputation changes memory, never a bit.

    compare_policies.py LOSSES.json NAME DIR --stages=N --schedules=A,B
                        --policies=P,Q [--steps=N] [penstockc flags]

Trains one case of test/fixtures/losses.json under every policy and schedule.
Losses and saved models must be those of `--recompute=none` under the first
schedule, byte for byte, and `full` must store less than `none`. Prints a line
per run.
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import plan_reports


def main(losses, name, folder, *arguments):
    options = {"stages": "2", "schedules": "1f1b", "policies": "full",
               "steps": "12"}
    flags = []
    for argument in arguments:
        key, _, value = argument.removeprefix("--").partition("=")
        if key in options:
            options[key] = value
        else:
            flags.append(argument)
    losses, folder = pathlib.Path(losses).resolve(), pathlib.Path(folder).resolve()
    fixtures = {f["name"]: f for f in json.loads(losses.read_text())["fixtures"]}
    fixture = fixtures[name]
    run_flags = list(fixture["run_flags"])
    run_flags[run_flags.index("--steps") + 1] = options["steps"]
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(losses.parents[2])  # Paths of fixtures begin there.
    program, saved = folder / "run", folder / "run.onnx"
    reference, stored = None, {}
    for schedule in options["schedules"].split(","):
        for policy in ["none", *options["policies"].split(",")]:
            saved.unlink(missing_ok=True)
            stages = plan_reports.compiled(
                ["penstockc", fixture["model"]], program, *fixture["compile_flags"], *flags,
                f"--stages={options['stages']}", f"--schedule={schedule}",
                f"--recompute={policy}")
            logged = plan_reports.train(program, *run_flags, "--save", saved)[0]
            result = (logged, saved.read_bytes())
            reference = reference or result
            kept = sum(s["bytes"]["residuals"] for s in stages)
            stored[schedule, policy] = kept
            print(f"{name} {schedule} {policy}: residuals {kept}, arenas "
                  f"{[s['bytes']['arena'] for s in stages]}, last loss "
                  f"{logged[-1]}", flush=True)
            if result[0] != reference[0]:
                sys.exit("the losses differ")
            if result[1] != reference[1]:
                sys.exit("the saved models differ")
        if stored.get((schedule, "full"), -1) >= stored[schedule, "none"]:
            sys.exit("full recomputation stores as much as none")


if __name__ == "__main__":
    main(*sys.argv[1:])
