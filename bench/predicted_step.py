#!/usr/bin/env python3
"""Simulated against measured time of an update, for two stages.

    bench/predicted_step.py [--only=REGEX] [--schedules=A,B] [--steps=N]

For each model and schedule: compiles with --profile, which measures nodes and
the stages that they are cut into, takes the time of an update that the
simulation predicts from these costs, trains three times, and prints the
measured time beside it: the mean over the faster half of the updates, as in the
profile. Last come the median and the largest of the relative errors. Nothing is
taken from the user's cache. Needs two idle cores to mean anything. Where
PyTorch is installed, the models of memory.py join in.
"""

import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

from measure import build_folder, machine, read_options  # noqa: E402
from mlp_model import write_data, write_mlp  # noqa: E402

WARMUP = 4
RUNS = 3


def seconds_of_updates(program, data, steps, log):
    log.unlink(missing_ok=True)
    subprocess.run([str(program), *data, "--steps", str(steps + WARMUP + 1),
                    "--log", str(log)], check=True, capture_output=True)
    times = [json.loads(line)["seconds"] for line in log.read_text().splitlines()]
    return [after - before for before, after in zip(times[WARMUP:], times[WARMUP + 1:])]


def measure(program, data, steps, log):
    """About a second of training at a time, but not fewer than 6 updates."""
    updates = []
    few = seconds_of_updates(program, data, 6, log)
    steps = max(6, min(steps, int(1 / statistics.median(few))))
    for _ in range(RUNS):
        updates += seconds_of_updates(program, data, steps, log)
    return statistics.mean(sorted(updates)[:(len(updates) + 1) // 2])


def list_cases(folder):
    """Title, model, microbatch, data."""
    digits = ROOT / "examples" / "digits"
    yield ("digits MLP", digits / "mlp.onnx", 32,
           ["--data", f"x={digits / 'train-images.npy'}",
            "--labels", str(digits / "train-labels.npy")])
    for width in (256, 1024):
        model, data = folder / f"mlp{width}.onnx", folder / f"data{width}"
        data.mkdir()
        write_mlp(model, 8, width, 100)
        yield f"MLP 8 x {width}", model, 64, write_data(data, 1024, width, 100)
    try:
        import memory_models
    except ImportError:
        print("without PyTorch: MLPs only")
        return
    for model in memory_models.export_all(folder):
        yield model.name, model.path, model.batch, model.data


def compare(compiler, folder, steps, schedule, model, size, data):
    program, report = folder / "run", folder / "report.json"
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir()
    subprocess.run(
        [compiler, str(model), "-o", str(program), "--profile", "--stages=2",
         "--loss=softmax-cross-entropy", f"--microbatch-size={size}",
         "--microbatches=4", f"--schedule={schedule}", f"--report-json={report}"],
        check=True, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    predicted = json.loads(report.read_text())["predicted_seconds"]
    return predicted, measure(program, data, steps, folder / "log.jsonl")


def main():
    options = read_options(__doc__, only="", schedules="1f1b,gpipe,zb-h1", steps=200)
    compiler = build_folder() / "bin" / "penstockc"
    print(f"{machine()}\n\n{'model':14}{'schedule':>9}{'predicted ms':>14}"
          f"{'measured ms':>13}{'error':>8}")
    errors = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for title, *case in list_cases(folder):
            for schedule in options.schedules.split(","):
                if not re.search(options.only, title):
                    continue
                predicted, measured = compare(compiler, folder, options.steps,
                                              schedule, *case)
                errors.append(predicted / measured - 1)
                print(f"{title:14}{schedule:>9}{1e3 * predicted:14.3f}"
                      f"{1e3 * measured:13.3f}{errors[-1]:+8.1%}", flush=True)
    sizes = [abs(error) for error in errors]
    print(f"\nof {len(sizes)}: median {statistics.median(sizes):.1%}, "
          f"largest {max(sizes):.1%}")


if __name__ == "__main__":
    main()
