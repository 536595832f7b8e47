"""Ends runs of several processes early; what they leave is what a run of that
length leaves.

usage: stop.py EXECUTABLE FOLDER [--ranks N] [--mpi openmpi] CASE... -- ARGUMENT...

A case is SIGNAL:RANK, or SIGNAL:launcher. The arguments are for the executable,
without --steps, --log and --save. Prints a line for each case, and exits with 1 if
anything was otherwise.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from kill import find_processes
from transports import ENVIRONMENT, LAUNCHERS, read_log


def start(command, folder, name, steps):
    return subprocess.Popen(
        [*command, "--steps", str(steps), "--log", folder / f"{name}.jsonl",
         "--save", folder / f"{name}.onnx", "--verify"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=ENVIRONMENT)


def read(folder, name):
    return (read_log(folder / f"{name}.jsonl"),
            (folder / f"{name}.onnx").read_bytes())


def main():
    split = sys.argv.index("--")
    executable, folder, *cases = sys.argv[1:split]
    arguments = sys.argv[split + 1:]
    executable, folder = os.path.realpath(executable), pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ranks, mpi = 2, "openmpi"
    while cases and cases[0].startswith("--"):
        flag, value, *cases = cases
        ranks, mpi = (int(value), mpi) if flag == "--ranks" else (ranks, value)
    for case in cases:
        name, _, target = case.partition(":")
        for path in folder.glob("*.*"):
            path.unlink()
        process = start([LAUNCHERS[mpi], "-n", str(ranks), executable,
                         *arguments], folder, "stopped", 10**9)
        log, end = folder / "stopped.jsonl", time.monotonic() + 60
        while not (log.exists() and log.stat().st_size):
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{case}: the run did not start: "
                         + process.communicate()[1])
            time.sleep(0.01)
        number = getattr(signal, "SIG" + name)
        pid = (process.pid if target == "launcher"
               else find_processes(executable)[int(target)])
        os.kill(pid, number)
        out, problem = process.communicate(timeout=120)
        found = re.search(rf"^(interrupted|ended) by SIG{name} after update "
                          r"(\d+) of 1000000000$", problem, re.MULTILINE)
        code = 0 if name == "USR2" else 128 + number
        if not found or process.returncode != code:
            sys.exit(f"{case}: exit code {process.returncode}\n{out}{problem}")
        updates = int(found[2])
        if "bitwise equal" not in out:
            sys.exit(f"{case}: not verified\n{out}")
        process = start([executable, *arguments], folder, "short", updates)
        out, problem = process.communicate(timeout=120)
        if process.returncode:
            sys.exit(problem)
        short, stopped = read(folder, "short"), read(folder, "stopped")
        if len(stopped[0]) != updates or short != stopped:
            sys.exit(f"{case}: differs from a run of {updates} updates")
        print(f"{case}: exit code {code}, the files of a run of {updates} "
              "updates", flush=True)


if __name__ == "__main__":
    main()
