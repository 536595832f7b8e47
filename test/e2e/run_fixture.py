#!/usr/bin/env python3
"""Trains one case of test/fixtures/losses.json and leaves its log.

    run_fixture.py LOSSES.json NAME LOG.jsonl [penstockc flags]

Compiles the model with the flags of the case and the further ones, runs it in
the root of the sources, and prints both command lines. Then compare_losses.py
says how far the log is from what PyTorch recorded.
"""

import json
import pathlib
import subprocess
import sys


def main(losses, name, log, *flags):
    losses, log = pathlib.Path(losses).resolve(), pathlib.Path(log).resolve()
    root = losses.parents[2]
    fixtures = {f["name"]: f for f in json.loads(losses.read_text())["fixtures"]}
    fixture = fixtures[name]
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    program = log.with_suffix("")
    for command in (
        ["penstockc", fixture["model"], "-o", str(program),
         *fixture["compile_flags"], *flags],
        [str(program), *fixture["run_flags"], "--log", str(log)],
    ):
        print("$", *command, flush=True)
        status = subprocess.run(command, cwd=root, check=False).returncode
        if status != 0:
            sys.exit(f"exit status {status}")


if __name__ == "__main__":
    main(*sys.argv[1:])
