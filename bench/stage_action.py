#!/usr/bin/env python3
"""What one action of a stage costs beside its mathematics.

    bench/stage_action.py [--check]

An MLP of width 1 and microbatches of one sample: next to no mathematics, so that
what is left is dispatch, channels and bookkeeping. An update of M microbatches is
2 M + 1 actions on each stage; with p stages at work side by side, and the ideal
pipeline's fill and drain, it takes (M + p - 1) / M times that. --check fails when
an action takes more than 5 microseconds.
"""

import os
import sys

import measure
import mlp_model

MICROBATCHES, GOAL = 64, 5e-6


def main():
    options = measure.read_options(__doc__, check=False)
    folder = measure.work_folder()
    print(measure.machine())
    worst = 0.0
    cores = len(os.sched_getaffinity(0))
    for stages in (1, 2, 4):
        if stages > max(cores, 2):
            continue
        model = folder / f"empty-{stages}.onnx"
        mlp_model.write_mlp(model, stages, 1, 1)
        data = mlp_model.write_data(folder, 2 * MICROBATCHES, 1, 1)
        program = folder / f"empty-{stages}"
        # A stage per Gemm, with its Relu.
        cuts = [f"--split-at={','.join(f'relu{i}' for i in range(1, stages))}"] if stages > 1 else []
        measure.compile_model(
            model, program, f"--stages={stages}", *cuts, "--microbatch-size=1",
            f"--microbatches={MICROBATCHES}", "--loss=softmax-cross-entropy")
        seconds = measure.seconds_per_update(program, data, 100, 2100)
        fill = (MICROBATCHES + stages - 1) / MICROBATCHES
        action = seconds / (2 * MICROBATCHES + 1) / fill
        worst = max(worst, action)
        print(f"{stages} stage(s): {seconds * 1e6:.1f} us per update of {MICROBATCHES} "
              f"microbatches, {action * 1e6:.2f} us per action")
    if options.check and worst > GOAL:
        sys.exit(f"stage_action: {worst * 1e6:.2f} us is above {GOAL * 1e6:.0f} us")


if __name__ == "__main__":
    main()
