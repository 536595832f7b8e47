#!/usr/bin/env python3
"""What it gains never to drain the pipeline: updates per second of asynchronous
methods over those of synchronous 1F1B, on two stages.

    bench/flush.py [--rounds=5] [--width=768] [--check]

An 8 x 768 MLP in microbatches of 64, one thread per stage, 2 and 4 microbatches
per update. All programs take turns, and the best of each counts, as differences
of long and short runs. Beside the ratio stands the predicted one, (M + p - 1) / M,
which holds for stages of equal cost and updates that cost nothing. --check fails
where pipedream stays below 90 % of it.
"""

import sys

import measure
import mlp_model

LAYERS, BATCH, STAGES = 8, 64, 2
METHODS = ["sync", "naive", "pipedream", "pipedream:vertical-sync", "2bw"]
FEW, MANY = 8, 72  # microbatches


def main():
    options = measure.read_options(__doc__, rounds=5, width=768, check=False)
    width = options.width
    folder = measure.work_folder()
    model = folder / f"mlp-{LAYERS}x{width}.onnx"
    if not model.exists():
        mlp_model.write_mlp(model, LAYERS, width, width)
    data = mlp_model.write_data(folder, 8 * BATCH, width, width)
    print(f"{measure.machine()}; {LAYERS} x {width}, microbatches of {BATCH}, {STAGES} stages, "
          "SGD\n\n| M | method | ms per update | over sync | predicted |\n|---|---|---|---|---|")
    missed = False
    for count in (2, 4):
        programs, best = {}, {}
        for method in METHODS:
            programs[method] = folder / f"flush-{count}-{method.replace(':', '-')}"
            measure.compile_model(
                model, programs[method], f"--stages={STAGES}", "--threads=1",
                f"--microbatch-size={BATCH}", f"--microbatches={count}", f"--method={method}",
                "--loss=softmax-cross-entropy", "--optimizer=sgd:lr=0.0001")
            best[method] = [float("inf"), float("inf")]
        for _ in range(options.rounds):
            for method in METHODS:
                for i, microbatches in enumerate((FEW, MANY)):
                    seconds = measure.wall(programs[method], data, microbatches // count)
                    best[method][i] = min(best[method][i], seconds)
        steps = (MANY - FEW) // count
        times = {m: (long - short) / steps for m, (short, long) in best.items()}
        predicted = (count + STAGES - 1) / count
        for method in METHODS:
            ratio = times["sync"] / times[method]
            print(f"| {count} | {method} | {times[method] * 1e3:.1f} | {ratio:.2f} | "
                  f"{1 if method == 'sync' else predicted:.2f} |")
            missed |= method == "pipedream" and ratio < 0.9 * predicted
    if options.check and missed:
        sys.exit("flush: pipedream is below 90 % of the predicted gain")


main()
