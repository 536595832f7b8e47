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
import pathlib
import subprocess
import sys


def run(command, root):
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stderr}"
                 f"exit status {result.returncode}")


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
    root = losses.parents[2]
    fixtures = {f["name"]: f for f in json.loads(losses.read_text())["fixtures"]}
    fixture = fixtures[name]
    run_flags = list(fixture["run_flags"])
    run_flags[run_flags.index("--steps") + 1] = options["steps"]
    folder.mkdir(parents=True, exist_ok=True)
    reference, stored = None, {}
    for schedule in options["schedules"].split(","):
        for policy in ["none", *options["policies"].split(",")]:
            files = {kind: folder / f"run.{kind}"
                     for kind in ("exe", "json", "jsonl", "onnx")}
            for path in files.values():
                path.unlink(missing_ok=True)
            run(["penstockc", fixture["model"], "-o", str(files["exe"]),
                 *fixture["compile_flags"], *flags,
                 f"--stages={options['stages']}", f"--schedule={schedule}",
                 f"--recompute={policy}",
                 f"--report-json={files['json']}"], root)
            run([str(files["exe"]), *run_flags, "--log", str(files["jsonl"]),
                 "--save", str(files["onnx"])], root)
            logged = [json.loads(line)["loss"]
                      for line in files["jsonl"].read_text().splitlines()]
            result = (logged, files["onnx"].read_bytes())
            reference = reference or result
            stages = json.loads(files["json"].read_text())["stages"]
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
