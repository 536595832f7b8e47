#!/usr/bin/env python3
"""This build beside another one: compile time, training time, and bits.

    bench/compare_builds.py OTHER [--only=REGEX] [--rounds=5] [--compiles=3] [--updates=6]

OTHER is the build folder of another commit. The models of training_steps.py are
compiled in two stages under four methods by both builds: user time, the least
of each. The programs of both train in turn, and what they save and log is
compared. Ratios are this build over the other. Needs torch, torchvision and onnx.
"""

import json
import os
import pathlib
import re
import subprocess

import measure
from training_steps import MODELS, prepare

METHODS = ("sync", "pipedream", "2bw", "pipeoptim")


def user_time(*command):
    """Runs a command; returns its user time in seconds."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime


def train(program, data, updates):
    """Returns the model that a program saves, and its losses."""
    saved, log = (program.with_suffix(suffix) for suffix in (".onnx", ".jsonl"))
    subprocess.run([program, *data, "--steps", str(updates), "--save", saved, "--log", log],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return saved.read_bytes(), [json.loads(line)["loss"] for line in log.read_text().splitlines()]


def difference(losses, others):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, others, strict=True))


def compare(name, build, batch, make_input, make_label, builds, options):
    folder = measure.work_folder() / "compare_builds" / name
    *_, data = prepare(folder, build, batch, make_input, make_label)
    for method in METHODS:
        programs = [folder / f"{method}-{side}" for side in ("this", "other")]
        compiles = [float("inf")] * 2
        for _ in range(options.compiles):
            for i, (compiler, program) in enumerate(zip(builds, programs)):
                compiles[i] = min(compiles[i], user_time(
                    compiler / "bin" / "penstockc", folder / "model.onnx", "-o", program,
                    "--stages=2", f"--microbatch-size={batch // 2}", "--microbatches=4",
                    "--loss=softmax-cross-entropy", f"--method={method}",
                    "--optimizer=sgd:lr=0.01,momentum=0.9"))
        (saved, losses), (other, others) = (train(program, data, options.updates)
                                            for program in programs)
        short, long = ([float("inf")] * 2 for _ in range(2))
        for _ in range(options.rounds):
            for i, program in enumerate(programs):
                short[i] = min(short[i], measure.wall(program, data, 1))
                long[i] = min(long[i], measure.wall(program, data, 1 + options.updates))
        times = [(b - a) / options.updates for a, b in zip(short, long)]
        bits = ("equal bits" if saved == other and losses == others else
                f"losses differ by {difference(losses, others):.0e}")
        print(f"{name}, {method}: compile {compiles[0]:.2f} s, {compiles[0] / compiles[1]:.3f}; "
              f"update {1e3 * times[0]:.1f} ms, {times[0] / times[1]:.3f}; {bits}", flush=True)


def main():
    options = measure.read_options(__doc__, "other", only="", rounds=5, compiles=3, updates=6)
    builds = [measure.build_folder(), pathlib.Path(options.other)]
    print(measure.machine())
    for model in MODELS:
        if re.search(options.only, model[0]):
            compare(*model, builds, options)


if __name__ == "__main__":
    main()
