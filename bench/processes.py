#!/usr/bin/env python3
"""A run as processes beside the same run as threads, and how it begins and ends.

    bench/processes.py [--rounds N] [--only ROW ...] [--keep-going]

Both sides of a row are run in turn, and the least time of at least 12 rounds of
each is taken. Open MPI starts the processes. Needs an idle machine of two cores or
more, and about five minutes. A row that misses its aim is marked, and ends the
script with exit code 1.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import measure
import mlp_model

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "e2e"))
from kill import find_processes  # noqa: E402
from transports import ENVIRONMENT  # noqa: E402

LAUNCHER = "mpirun.openmpi"
MICROBATCH, WIDTH, CLASSES = 256, 512, 16
HELLO = """
#include <mpi.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Finalize();
  return 0;
}
"""


class Bench:
    def __init__(self, rounds):
        self.rounds = rounds
        self.folder = measure.work_folder()
        self.missed = False
        self.programs = {}

    def compile(self, stages, layers, *, width=WIDTH, batch=MICROBATCH,
                microbatches=4):
        """An MLP with as many layers in each stage; returns program and data."""
        key = (stages, layers, width, batch, microbatches)
        if key in self.programs:
            return self.programs[key]
        name = "-".join(map(str, ("processes", *key)))
        model, program = self.folder / f"{name}.onnx", self.folder / name
        mlp_model.write_mlp(model, layers, width, CLASSES if width > 1 else 1)
        data = self.folder / f"{name}-data"
        data.mkdir(exist_ok=True)
        flags = mlp_model.write_data(data, 2 * batch * microbatches, width,
                                     CLASSES if width > 1 else 1)
        each = layers // stages
        cuts = ",".join(f"relu{i * each}" for i in range(1, stages))
        measure.compile_model(
            model, program, f"--stages={stages}", f"--split-at={cuts}",
            f"--microbatch-size={batch}", f"--microbatches={microbatches}",
            "--loss=softmax-cross-entropy")
        self.programs[key] = (program, flags)
        return self.programs[key]

    def row(self, name, value, aim, text=None):
        missed = value > aim
        self.missed |= missed
        print(f"{name:62} {text or f'{value:.3f}':>22} {aim:>10g}"
              f"{'  missed' if missed else ''}", flush=True)

    def seconds(self, program, data, ranks, updates):
        """Per update, between the first two and the last one of a run."""
        log = self.folder / "processes.jsonl"
        launcher = [LAUNCHER, "-n", str(ranks)] if ranks else []
        subprocess.run([*launcher, program, *data, "--steps", str(updates),
                        "--log", log, "--quiet", "--flight-record",
                        str(self.folder / "flight")],
                       check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        times = [json.loads(line)["seconds"]
                 for line in log.read_text().splitlines()]
        return (times[-1] - times[1]) / (len(times) - 2)

    def compare(self, sides, updates):
        """The least seconds of each side, which run in turn."""
        least = [float("inf")] * len(sides)
        for _ in range(self.rounds):
            for i, (program, data, ranks) in enumerate(sides):
                least[i] = min(least[i],
                               self.seconds(program, data, ranks, updates))
        return least


def two_ranks(bench):
    program, data = bench.compile(2, 4)
    threads, mpi = bench.compare([(program, data, 0), (program, data, 2)], 24)
    bench.row("2 stages on 2 cores: time per update, mpi over threads",
              mpi / threads, 1.03)
    print(f"  {threads * 1e3:.2f} ms as threads, {mpi * 1e3:.2f} ms as 2 processes")


def four_ranks(bench):
    program, data = bench.compile(4, 4)
    threads, mpi = bench.compare([(program, data, 0), (program, data, 4)], 24)
    bench.row("the same with 4 processes on 2 cores", mpi / threads, 1.15)


def eight_ranks(bench):
    program, data = bench.compile(8, 8)
    two, eight = bench.compare([(program, data, 2), (program, data, 8)], 12)
    bench.row("8 processes on 2 cores over 2 with the same model", eight / two, 1.6)


def empty_action(bench):
    microbatches = 64
    program, data = bench.compile(2, 2, width=1, batch=1,
                                  microbatches=microbatches)
    threads, mpi = bench.compare([(program, data, 0), (program, data, 2)], 1000)
    fill = (microbatches + 1) / microbatches
    action = mpi / (2 * microbatches + 1) / fill
    bench.row("an empty stage action over two processes, us", action * 1e6, 5)
    print(f"  {threads / (2 * microbatches + 1) / fill * 1e6:.2f} us as threads")


def start(bench):
    compiler = shutil.which("mpicc.openmpi")
    if not compiler:
        print("start: mpicc.openmpi is not installed")
        return
    program, data = bench.compile(8, 8)
    hello = bench.folder / "processes-hello"
    subprocess.run([compiler, "-x", "c", "-", "-o", hello], input=HELLO,
                   text=True, check=True)
    least = [float("inf")] * 2
    commands = ([hello], [program, *data, "--steps", "0", "--quiet", "--memory",
                          bench.folder / "processes-memory.json"])
    for _ in range(bench.rounds):
        for i, command in enumerate(commands):
            begin = time.perf_counter()
            subprocess.run([LAUNCHER, "-n", "8", *command], check=True,
                           env=ENVIRONMENT, stdout=subprocess.DEVNULL)
            least[i] = min(least[i], time.perf_counter() - begin)
    bench.row("start and end of 8 processes beyond those of MPI, s",
              least[1] - least[0], 0.1)
    print(f"  MPI alone {least[0]:.3f} s")


def thread_seconds(pid):
    """Processor seconds of the threads of a process, the busiest first."""
    ticks = os.sysconf("SC_CLK_TCK")
    seconds = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        seconds.append((int(fields[11]) + int(fields[12])) / ticks)
    return sorted(seconds, reverse=True)


def helper_threads(bench):
    """What a process does beside its devices: the main thread, the engine, the
    control star."""
    program, data = bench.compile(2, 4)
    process = subprocess.Popen(
        [LAUNCHER, "-n", "2", program, *data, "--steps", "1000000", "--quiet"],
        env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(3)
        pids = find_processes(os.path.realpath(program)).values()
        before, begin = [thread_seconds(pid) for pid in pids], time.monotonic()
        time.sleep(8)
        after = [thread_seconds(pid) for pid in pids]
        passed = time.monotonic() - begin
    finally:
        process.terminate()
        process.wait()
    share = max((sum(late[1:]) - sum(early[1:])) / passed
                for early, late in zip(before, after))
    bench.row("all threads but that of the device, of a core, each process",
              share * 100, 2, f"{share * 100:.1f} %")


def ends(bench):
    program, data = bench.compile(4, 4)
    for name, aim in (("KILL", 1.0), ("STOP", 4.5)):
        rounds = bench.rounds if name == "KILL" else 6
        with tempfile.TemporaryDirectory() as folder:
            found = subprocess.run(
                [sys.executable, ROOT / "test/e2e/kill.py", program, folder,
                 *data, "--rounds", str(rounds), "--signals", name, "--show", "0"],
                capture_output=True, text=True, check=True).stdout
        line = next(line for line in found.splitlines()
                    if line.startswith(name + ":"))
        most = float(line.rpartition("most ")[2].split()[0])
        bench.row(f"kill -{name}: until the last other process has ended, s",
                  most, aim)
        print(f"  {line}")


def save(bench):
    """The second stage has nearly all of the weights."""
    layers, width = 6, 4096
    model, program = (bench.folder / f"processes-save{end}" for end in (".onnx", ""))
    mlp_model.write_mlp(model, layers, width, CLASSES)
    data = bench.folder / "processes-save-data"
    data.mkdir(exist_ok=True)
    flags = mlp_model.write_data(data, 4, width, CLASSES)
    measure.compile_model(model, program, "--stages=2", "--split-at=relu1",
                          "--microbatch-size=2", "--microbatches=1",
                          "--loss=softmax-cross-entropy")
    target = bench.folder / "processes-saved.onnx"
    results = {}
    for name, extra in (("without", []), ("with", ["--save", target])):
        best = float("inf")
        for _ in range(3):
            begin = time.perf_counter()
            subprocess.run(
                [LAUNCHER, "-n", "2", program, *flags, "--steps", "1", *extra],
                check=True, env=ENVIRONMENT, capture_output=True)
            best = min(best, time.perf_counter() - begin)
        results[name] = best
    size = target.stat().st_size
    rate = size / max(results["with"] - results["without"], 1e-3) / 1e9
    target.unlink()
    copy = bench.folder / "processes-copy"
    begin = time.perf_counter()
    shutil.copyfile(model, copy)
    disk = size / (time.perf_counter() - begin) / 1e9
    copy.unlink()
    aim = min(0.5, disk)
    bench.row(f"--save of {size / 1e6:.0f} MB from rank 1: s per GB", 1 / rate,
              1 / aim, f"{rate:.2f} GB/s")
    print(f"  a plain copy {disk:.2f} GB/s")


ROWS = {"two": two_ranks, "four": four_ranks, "eight": eight_ranks,
        "action": empty_action, "threads": helper_threads, "start": start,
        "ends": ends, "save": save}


def main():
    parser = argparse.ArgumentParser(
        usage=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--keep-going", action="store_true")
    options = parser.parse_args()
    if not shutil.which(LAUNCHER):
        sys.exit(f"{LAUNCHER} is not installed")
    bench = Bench(options.rounds)
    print(measure.machine())
    print(f"{'':62} {'measured':>22} {'at most':>10}")
    begin = time.monotonic()
    for name in options.only:
        ROWS[name](bench)
    print(f"{time.monotonic() - begin:.0f} s, {options.rounds} rounds")
    if bench.missed and not options.keep_going:
        sys.exit(1)


if __name__ == "__main__":
    main()
