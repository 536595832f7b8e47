#!/usr/bin/env python3
"""Whole training steps of an 8 x 1024 MLP against the best rate of its products.

    bench/mlp_step.py [--microbatches=8] [--check]

Once as 1 stage with 2 threads, once as 2 stages with 1 thread each; microbatches
of 64. The share is (floating-point operations of the products in one update) /
(time of one update) / (rate of gemm_rate on the same products, right before and
after, with as many threads). --check fails below 75 %.
"""

import sys

import measure
import mlp_model

LAYERS, WIDTH, BATCH, GOAL = 8, 1024, 64, 0.75


def main():
    options = measure.read_options(__doc__, microbatches=8, check=False)
    microbatches = options.microbatches
    folder = measure.work_folder()
    model = folder / "mlp-8x1024.onnx"
    if not model.exists():
        mlp_model.write_mlp(model, LAYERS, WIDTH, WIDTH)
    data = mlp_model.write_data(folder, 2 * microbatches * BATCH, WIDTH, WIDTH)
    flops = 2.0 * WIDTH * WIDTH * BATCH * (3 * LAYERS - 1) * microbatches

    print(f"{measure.machine()}; {LAYERS} x {WIDTH}, {microbatches} microbatches of {BATCH}, SGD")
    worst = 1e9
    for stages, threads in ((1, 2), (2, 1)):
        program = folder / f"mlp-{stages}x{threads}"
        measure.compile_model(
            model, program, f"--stages={stages}", f"--threads={threads}", "--schedule=1f1b",
            f"--microbatch-size={BATCH}", f"--microbatches={microbatches}",
            "--loss=softmax-cross-entropy", "--optimizer=sgd:lr=0.0001")
        # A stage's working set is its own layers.
        rate = (LAYERS // stages, WIDTH, BATCH, threads, stages)
        before = measure.gemm_gflops(*rate)
        seconds = measure.seconds_per_update(program, data, 4, 24)
        gemm = max(before, measure.gemm_gflops(*rate))
        gflops = flops / seconds * 1e-9
        worst = min(worst, gflops / gemm)
        # The fill and drain of two stages cost their share whatever the kernels do.
        bubble = (stages - 1) / (microbatches + stages - 1)
        print(f"{stages} stage(s) x {threads} thread(s): {seconds * 1e3:.1f} ms per update, "
              f"{gflops:.0f} GF/s, products alone {gemm:.0f} GF/s: "
              f"{100 * gflops / gemm:.1f} %   (ideal bubble {100 * bubble:.1f} %)")
    if options.check and worst < GOAL:
        sys.exit(f"mlp_step: {100 * worst:.1f} % is below {100 * GOAL:.0f} %")


if __name__ == "__main__":
    main()
