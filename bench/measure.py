"""What the benchmarks share: compile, time updates, name the machine."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def read_options(usage, *positional, **defaults):
    """Returns the options of the command line: --NAME=VALUE has the type of its default, a
    flag where that is False, and is one of these where that is a tuple. A wrong one, or
    --help, ends the script."""
    parser = argparse.ArgumentParser(description=usage, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in positional:
        parser.add_argument(name)
    for name, default in defaults.items():
        if default is False:
            kind = {"action": "store_true"}
        elif isinstance(default, tuple):
            kind = {"choices": default, "default": default}
        else:
            kind = {"type": type(default), "default": default}
        parser.add_argument(f"--{name.replace('_', '-')}", **kind)
    return parser.parse_args()


def build_folder():
    folder = pathlib.Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "default"))
    if not (folder / "bin" / "penstockc").exists():
        sys.exit(f"no penstockc in {folder}/bin: run scripts/build.sh, or set PENSTOCK_BUILD")
    return folder


def work_folder():
    folder = build_folder() / "bench" / "work"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def compile_model(model, program, *flags):
    subprocess.run([build_folder() / "bin" / "penstockc", model, "-o", program, *flags],
                   check=True)


def train(program, folder, steps, *more):
    """Trains on x.npy and labels.npy of a folder; returns the seconds, and what it said."""
    said = subprocess.run(
        [program, f"--data=x={folder}/x.npy", f"--labels={folder}/labels.npy",
         f"--steps={steps}", *map(str, more)], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"samples in ([\d.]+) s", said).group(1)), said


def wall(program, data, steps):
    begin = time.perf_counter()
    subprocess.run([program, *data, "--steps", str(steps)], check=True,
                   stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def seconds_per_update(program, data, few, many, rounds=5):
    """The difference of a long and a short run: start and end cancel out."""
    shortest = longest = float("inf")
    for _ in range(rounds):
        shortest = min(shortest, wall(program, data, few))
        longest = min(longest, wall(program, data, many))
    return (longest - shortest) / (many - few)


def gemm_gflops(layers, width, batch, threads, callers):
    output = subprocess.run(
        [build_folder() / "bench" / "gemm_rate", *map(str, (layers, width, batch, threads, callers))],
        check=True, capture_output=True, text=True).stdout
    return json.loads(output)["gflops"]


def machine():
    model = "unknown CPU"
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    load = os.getloadavg()[0]
    return f"{len(os.sched_getaffinity(0))} cores of {model}, load {load:.1f}"
