#!/usr/bin/env python3
"""What orders, blends and flushes of asynchronous methods cost, on this machine.

    asynchronous.py FOLDER [--build build/default] [--rounds 7] [--width 768] [--only orders|updates|flushes]

An MLP of eight layers on two stages of one thread each. Prints

    nF1B over open 1F1B: time of an update of naive, with the same microbatches
    the blend of i-timeprest: time of the update of stage 0, over one without it
    a flush: what it costs pipedream, over what --profile predicts

Programs alternate, and the median of the rounds' ratios counts. Needs nothing but
Python and a C compiler.
"""

import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess

import measure
import mlp_model

LAYERS, BATCH, SAMPLES, MICROBATCHES = 8, 64, 512, 4
FEW, MANY = 4, 24  # updates
PROFILES = 5  # that flushes are predicted from
ROOT = pathlib.Path(__file__).resolve().parents[1]

#  Trains so many updates, in segments of as many as are said.
SEGMENTS = """
#include "penstock/abi.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
extern const penstock_program program __asm__("penstock_program");
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}
int main(int argc, char **argv) {
  const penstock_option options[] = {
      {"data", argv[1]}, {"labels", argv[2]}, {"quiet", NULL}, {NULL, NULL}};
  long updates = atol(argv[3]), each = atol(argv[4]);
  penstock_run *run;
  if (penstock_open(&program, options, &run) || penstock_train(run, each))
    return 1;
  double begin = now();
  for (long done = 0; done < updates; done += each)
    if (penstock_train(run, each))
      return 1;
  printf("%.9f\\n", now() - begin);
  penstock_close(run);
  return 0;
}
"""


class Bench:
    def __init__(self, arguments):
        self.build = arguments.build.resolve()
        self.rounds = arguments.rounds
        self.folder = pathlib.Path(arguments.folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        #  Costs are measured anew.
        self.cache = self.folder / "cache"
        shutil.rmtree(self.cache, ignore_errors=True)
        mlp_model.write_mlp(self.folder / "model.onnx", LAYERS, arguments.width, arguments.width)
        mlp_model.write_data(self.folder, SAMPLES, arguments.width, arguments.width)

    def compile(self, name, *flags):
        subprocess.run(
            [self.build / "bin/penstockc", self.folder / "model.onnx", "-o", self.folder / name,
             "--stages=2", "--threads=1", f"--microbatch-size={BATCH}",
             "--loss=softmax-cross-entropy", "--optimizer=sgd:lr=0.0001", *flags],
            check=True, stdout=subprocess.DEVNULL,
            env=os.environ | {"XDG_CACHE_HOME": str(self.cache)})
        return self.folder / name

    def run(self, program, steps, *more):
        """The seconds of training."""
        return measure.train(program, self.folder, steps, *more)[0]

    def compare_orders(self):
        programs = [self.compile(schedule, "--method=naive", f"--schedule={schedule}",
                                 f"--microbatches={MICROBATCHES}")
                    for schedule in ("1f1b", "nf1b")]
        rows = []
        for _ in range(self.rounds):
            times = []
            for program in programs:
                short, long = (self.run(program, steps) for steps in (FEW, MANY))
                times.append((long - short) / (MANY - FEW))
            rows.append(times)
        #  Of runs one after the other, as machines drift.
        ratios = sorted(nf1b / open_1f1b for open_1f1b, nf1b in rows)
        open_1f1b, nf1b = (1e3 * statistics.median(column) for column in zip(*rows))
        print(f"nF1B over open 1F1B: {statistics.median(ratios):.3f}, {ratios[0]:.3f} to "
              f"{ratios[-1]:.3f} (at most 1.03); {nf1b:.1f} and {open_1f1b:.1f} ms per update of "
              f"{MICROBATCHES}")

    def compare_updates(self):
        programs = {decay: self.compile(f"decay{decay}", f"--method=i-timeprest:decay={decay}",
                                        f"--microbatches={MICROBATCHES}")
                    for decay in (0, 1)}
        rows = []
        trace = self.folder / "trace.json"
        for _ in range(self.rounds):
            row = {}
            for decay, program in programs.items():
                self.run(program, MANY, f"--trace={trace}")
                events = json.loads(trace.read_text())["traceEvents"]
                [thread] = [event["tid"] for event in events if event["name"] == "thread_name"
                            and event["args"]["name"].startswith("stage 0 ")]
                row[decay] = statistics.median(
                    event["dur"] for event in events
                    if event["ph"] == "X" and event["tid"] == thread
                    and re.fullmatch(r"U\d+", event["name"]))
            rows.append(row)
        ratios = sorted(row[1] / row[0] for row in rows)
        without, blended = (1e-3 * statistics.median(row[decay] for row in rows)
                            for decay in (0, 1))
        #  Without it: weight and gradient are read, the weight is written.
        print(f"update with a blend, over one without: {statistics.median(ratios):.2f}, "
              f"{ratios[0]:.2f} to {ratios[-1]:.2f} (one more stream than the three: 1.33); "
              f"{blended:.2f} and {without:.2f} ms")

    def measure_flush(self):
        """Seconds of a flush and of an update, and as they are predicted."""
        report = self.folder / "report.json"
        shutil.rmtree(self.cache, ignore_errors=True)
        obj = self.compile("flush.o", "--emit=obj", "--method=pipedream", "--profile",
                           "--microbatches=1", f"--report-json={report}")
        plan = json.loads(report.read_text())
        source, program = self.folder / "segments.c", self.folder / "segments"
        source.write_text(SEGMENTS)
        subprocess.run(["cc", "-c", "-O2", f"-I{ROOT}/runtime/include", source, "-o",
                        source.with_suffix(".o")], check=True)
        subprocess.run(
            ["c++", obj, source.with_suffix(".o"), "-o", program, f"-L{self.build}/runtime",
             "-Wl,-u,penstock_cpu", "-lpenstock_cpu", "-lpenstock_runtime", "-lgomp", "-ldl",
             "-lpthread", "-lm"], check=True)
        updates, each = 96, 3
        seconds = {updates: [], each: []}
        for _ in range(self.rounds):
            for size, own in seconds.items():
                own.append(float(subprocess.run(
                    [program, f"x={self.folder}/x.npy", f"{self.folder}/labels.npy", str(updates),
                     str(size)], capture_output=True, text=True, check=True).stdout))
        #  Of runs one after the other, as machines drift.
        flush = statistics.median(
            short - long for short, long in zip(seconds[each], seconds[updates])
        ) / (updates / each - 1)
        update = statistics.median(seconds[updates]) / updates
        return flush, plan["drain_seconds"], update, plan["predicted_seconds"]

    def compare_flushes(self):
        #  Costs drift with the machine, too: each time they are measured anew.
        rows = [self.measure_flush() for _ in range(PROFILES)]
        ratios = sorted(flush / predicted for flush, predicted, *_ in rows)
        flush, predicted, update, planned = (1e3 * statistics.median(column)
                                             for column in zip(*rows))
        print(f"a flush, medians of {PROFILES}: {flush:.2f} ms, {predicted:.2f} predicted, "
              f"{statistics.median(ratios):.2f} of it, {ratios[0]:.2f} to {ratios[-1]:.2f} "
              f"(within 0.1 of 1); an update: {update:.2f} ms, {planned:.2f} predicted")


def main():
    arguments = measure.read_options(__doc__, "folder", build=ROOT / "build/default", rounds=7,
                                     width=768, only=("orders", "updates", "flushes"))
    bench = Bench(arguments)
    for name in ("orders", "updates", "flushes"):
        if name in arguments.only:
            getattr(bench, f"compare_{name}")()


main()
