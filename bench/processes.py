#!/usr/bin/env python3
"""A run as processes beside the same run as threads, and how it begins and ends.

    bench/processes.py [--rounds N] [--ends N] [--only ROW ...] [--keep-going]

Both sides of a row are run in turn, and the least time of at least 12 rounds of
each is taken. Open MPI starts the processes. Needs an idle machine of two cores or
more, and about five minutes. --ends is the number of processes that are killed,
and of those that are stopped, which takes 5 seconds for each: 200 for a
distribution. A row that misses its aim is marked, and ends the script with exit
code 1.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
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
    def __init__(self, rounds, ends):
        self.rounds = rounds
        self.ends = ends
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
        cuts = [f"relu{i * each}" for i in range(1, stages)]
        measure.compile_model(
            model, program, f"--stages={stages}",
            *([f"--split-at={','.join(cuts)}"] if cuts else []),
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


def run_beside_mpi(bench, mode, *options):
    """Runs hand_over.cpp; returns what it measured."""
    compiler = shutil.which("mpicxx.openmpi")
    if not compiler:
        print(f"{mode}: mpicxx.openmpi is not installed")
        return []
    program = bench.folder / "processes-hand-over"
    runtime = measure.build_folder() / "runtime"
    if "hand-over" not in bench.programs:
        subprocess.run(
            [compiler, "-std=c++20", "-O2", "-I", ROOT / "runtime/include",
             ROOT / "bench/hand_over.cpp", "-o", program,
             runtime / "libpenstock_start.a", "-Wl,-u,penstock_cpu",
             runtime / "libpenstock_cpu.a", runtime / "libpenstock_runtime.a",
             "-ldl", "-lgomp", "-lpthread", "-lm"], check=True)
        bench.programs["hand-over"] = program
    output = subprocess.run(
        [LAUNCHER, "-n", "2", *options, program, "--steps", "1", "--quiet"],
        env={**ENVIRONMENT, "PENSTOCK_BENCH": mode,
             "PENSTOCK_LIBRARY_PATH": str(runtime / "penstock")},
        check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def hand_over(bench):
    for found in run_beside_mpi(bench, "hand-over"):
        size, raw, ours = (found[key] for key in ("bytes", "raw", "ours"))
        bench.row(f"hand-over of {size} bytes, us", ours * 1e6,
                  round(raw * 1.1e6 + 0.5, 2))
        print(f"  {raw * 1e6:.2f} us by MPI alone")


def overlap(bench):
    for found in run_beside_mpi(bench, "overlap", "--mca", "btl", "tcp,self"):
        bench.row("4 MiB over TCP beside 3 ms of work: waiting afterwards, ms",
                  found["wait"] * 1e3, 0.2)
        print(f"  {found['without'] * 1e3:.2f} ms by MPI alone")


def sums(bench):
    for found in run_beside_mpi(bench, "sum"):
        raw, ours, hidden = (found[key] for key in ("raw", "ours", "hidden"))
        bench.row("sum of 64 MiB over two processes, over MPI_Allreduce",
                  ours / raw, 1 / 0.6, f"{raw / ours:.2f} of its rate")
        print(f"  {ours * 1e3:.1f} ms, {raw * 1e3:.1f} ms by MPI_Allreduce; "
              f"beside 200 ms of work, {hidden * 1e3:.2f} ms are left")


def record(bench):
    """In processor time, of a program whose actions do next to nothing."""
    microbatches, updates = 64, (100, 5100)
    program, data = bench.compile(1, 1, width=1, batch=1,
                                  microbatches=microbatches)
    folder = bench.folder / "processes-flight"
    least = {}
    for _ in range(bench.rounds):
        for extra in ((), ("--flight-record", folder)):
            for steps in updates:
                process = subprocess.Popen(
                    [program, *data, "--steps", str(steps), "--quiet", *extra],
                    stdout=subprocess.DEVNULL)
                _, status, usage = os.wait4(process.pid, 0)
                if status:
                    sys.exit(f"{program}: status {status}")
                key = bool(extra), steps
                seconds = usage.ru_utime + usage.ru_stime
                least[key] = min(least.get(key, seconds), seconds)
    actions = (updates[1] - updates[0]) * (2 * microbatches + 1)
    without, recorded = ((least[on, updates[1]] - least[on, updates[0]]) / actions
                         for on in (False, True))
    bench.row("flight record, ns of an action", (recorded - without) * 1e9, 20)
    print(f"  {without * 1e9:.0f} ns without, {recorded * 1e9:.0f} ns with it")


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
    """Processor seconds of the threads of a process, by their names."""
    seconds = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        run = int((task / "schedstat").read_text().split()[0]) / 1e9
        seconds[name] = seconds.get(name, 0) + run
    return seconds


def helper_threads(bench):
    """What a process takes for being one of several: the thread that moves
    messages, and that of the control star."""
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
    shares = [{name: (late[name] - early[name]) / passed * 100 for name in early}
              for early, late in zip(before, after)]
    most = max(each["messages"] + each["control"] for each in shares)
    bench.row("threads of messages and control, of a core, each process", most, 2,
              f"{most:.1f} %")
    for rank, each in enumerate(shares):
        print(f"  rank {rank}: " + ", ".join(
            f"{name} {share:.1f} %" for name, share in sorted(each.items())))


def ends(bench):
    program, data = bench.compile(4, 4)
    for name, aim in (("KILL", 1.0), ("STOP", 4.5)):
        rounds = bench.ends or (bench.rounds if name == "KILL" else 6)
        with tempfile.TemporaryDirectory() as folder:
            found = subprocess.run(
                [sys.executable, ROOT / "test/e2e/kill.py", program, folder,
                 *data, "--rounds", str(rounds), "--signals", name, "--show", "0"],
                capture_output=True, text=True, check=True).stdout
        line = next(line for line in found.splitlines()
                    if line.startswith(name + ":"))
        usual, most = (float(line.rpartition(word)[2].split()[0])
                       for word in ("99 % ", "most "))
        bench.row(f"kill -{name}: until the last other process has ended, 99 %, s",
                  usual, aim)
        bench.row("  always", most, 5)
        print(f"  {line}")


class Peak:
    """The most memory of the process of rank 0, in bytes, while it runs."""

    def __init__(self, program):
        self.program, self.bytes, self.ends = os.path.realpath(program), 0, False
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.ends:
            pid = find_processes(self.program).get(0)
            while pid and not self.ends:
                try:
                    text = pathlib.Path(f"/proc/{pid}/status").read_text()
                    found = text.partition("VmHWM:")[2].split()
                    self.bytes = max(self.bytes, int(found[0]) * 1024)
                except (OSError, IndexError):
                    break
                time.sleep(0.002)
            time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()


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
    results, peaks = {}, {}
    for _ in range(max(3, bench.rounds // 2)):
        for name, extra in (("without", []), ("with", ["--save", target])):
            begin = time.perf_counter()
            with Peak(program) as peak:
                subprocess.run(
                    [LAUNCHER, "-n", "2", program, *flags, "--steps", "1", *extra],
                    check=True, env=ENVIRONMENT, capture_output=True)
            seconds = time.perf_counter() - begin
            results[name] = min(results.get(name, seconds), seconds)
            peaks[name] = max(peaks.get(name, 0), peak.bytes)
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
    bench.row("  growth of rank 0, MiB",
              (peaks["with"] - peaks["without"]) / 2**20, 32)
    print(f"  at most {peaks['with'] / 2**20:.0f} MiB")


ROWS = {"hand-over": hand_over, "overlap": overlap, "sum": sums, "record": record,
        "two": two_ranks, "four": four_ranks, "eight": eight_ranks,
        "action": empty_action, "threads": helper_threads, "start": start,
        "save": save, "ends": ends}


def main():
    parser = argparse.ArgumentParser(
        usage=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--ends", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--keep-going", action="store_true")
    options = parser.parse_args()
    if not shutil.which(LAUNCHER):
        sys.exit(f"{LAUNCHER} is not installed")
    bench = Bench(options.rounds, options.ends)
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
