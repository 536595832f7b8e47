#!/usr/bin/env python3
"""How long penstockc takes on the digits MLP: bench/compile_time.py [--check]

The best of five, in four stages; --check fails above 2 seconds.
"""

import sys
import time

import measure

GOAL = 2.0


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        measure.compile_model(
            measure.ROOT / "examples" / "digits" / "mlp.onnx",
            measure.work_folder() / "digits", "--stages=4", "--microbatch-size=10",
            "--microbatches=8", "--loss=softmax-cross-entropy")
        best = min(best, time.perf_counter() - begin)
    print(f"{measure.machine()}: {best:.2f} s")
    if arguments and best > GOAL:
        sys.exit(f"compile_time: {best:.2f} s is above {GOAL:g} s")


if __name__ == "__main__":
    main(sys.argv[1:])
