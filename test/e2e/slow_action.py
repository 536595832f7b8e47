"""Runs a program as two processes, in which one action takes long after many that
took little: no watchdog ends it.

usage: slow_action.py OBJECT FOLDER BUILD --seconds S -- ARGUMENT...

The object is what penstockc makes with --emit=obj. The 40th forward of stage 1
waits for S seconds; the arguments are for the program, with default flags of
watchdogs. Prints how long actions took, and exits with 1 if the run did not end
well.
"""

import argparse
import pathlib
import subprocess
import sys
import time

from link_waiting import link_waiting
from transports import ENVIRONMENT, LAUNCHERS


def main():
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("object", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, required=True)
    options = parser.parse_args(sys.argv[1:split])
    program = options.folder / "slow"
    link_waiting(f"own->device != 1 ? 0 : n == 40 ? {options.seconds}000000000L : 5000000L",
                 options.object, program, options.build)
    begin = time.monotonic()
    done = subprocess.run(
        [LAUNCHERS["openmpi"], "-n", "2", program, *sys.argv[split + 1:]],
        capture_output=True, text=True, check=False, env={
            **ENVIRONMENT,
            "PENSTOCK_MPI": str(options.build / "runtime/penstock/libpenstock-mpi-openmpi.so")})
    seconds = time.monotonic() - begin
    if done.returncode or seconds < options.seconds:
        sys.exit(f"exit code {done.returncode} after {seconds:.1f} s\n{done.stdout}{done.stderr}")
    print(f"one action of {options.seconds} s after 40 of 5 ms: exit code 0", flush=True)


if __name__ == "__main__":
    main()
