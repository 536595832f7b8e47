#!/usr/bin/env python3
"""Simulated against measured time of an update, for two stages.

    predicted_step.py PENSTOCKC [--steps=N]

For each model and schedule: compiles with --profile, which measures nodes and
the stages that they are cut into, takes the time of an update that the simulation predicts from these
costs, trains, and prints the measured time beside it: the lower quartile over
windows of ten updates. Needs two idle cores to mean anything. Where PyTorch is
installed, the models of memory.py join in.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

from mlp_model import write_data, write_mlp  # noqa: E402

WINDOW = 10


def measure(log):
    times = [json.loads(line)["seconds"] for line in log.read_text().splitlines()]
    windows = sorted((b - a) / WINDOW
                     for a, b in zip(times[WINDOW:], times[2 * WINDOW:]))
    return windows[len(windows) // 4]


def main(compiler, *arguments):
    steps = 100
    for argument in arguments:
        if argument.startswith("--steps="):
            steps = int(argument.removeprefix("--steps="))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        digits = ROOT / "examples" / "digits"
        cases = [("digits MLP", digits / "mlp.onnx", 32,
                  ["--data", f"x={digits / 'train-images.npy'}",
                   "--labels", str(digits / "train-labels.npy")])]
        for width in (256, 1024):
            model, data = folder / f"mlp{width}.onnx", folder / f"data{width}"
            data.mkdir()
            write_mlp(model, 8, width, 100)
            cases.append((f"MLP 8 x {width}", model, 64,
                          write_data(data, 1024, width, 100)))
        try:
            import memory_models
            for model in memory_models.export_all(folder, "cnn|gpt|resnet18"):
                cases.append((model.name, model.path, model.batch, model.data))
        except ImportError:
            print("without PyTorch: MLPs only")
        print(f"{'model':14}{'schedule':>9}{'predicted ms':>14}"
              f"{'measured ms':>13}{'error':>8}")
        for title, model, size, data in cases:
            for schedule in ("1f1b", "gpipe"):
                program, report = folder / "run", folder / "report.json"
                log = folder / "log.jsonl"
                log.unlink(missing_ok=True)
                subprocess.run(
                    [compiler, str(model), "-o", str(program), "--profile",
                     "--stages=2", "--loss=softmax-cross-entropy",
                     f"--microbatch-size={size}", "--microbatches=4",
                     f"--schedule={schedule}", f"--report-json={report}"],
                    check=True)
                predicted = json.loads(report.read_text())["predicted_seconds"]
                subprocess.run([str(program), *data, "--steps", str(steps),
                                "--log", str(log)], check=True,
                               capture_output=True)
                measured = measure(log)
                print(f"{title:14}{schedule:>9}{1e3 * predicted:14.3f}"
                      f"{1e3 * measured:13.3f}"
                      f"{100 * (predicted / measured - 1):+7.1f}%", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
