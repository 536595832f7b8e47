#!/usr/bin/env python3
"""What training methods make of the digits example with the same samples.

    bench/digits_methods.py FOLDER [--epochs=5] [--only=METHOD;...]

The MLP of examples/digits in four stages, 8 microbatches of 4 samples per update or,
where a method updates after every microbatch, the same 32 samples as one. Prints a
table of the loss on the test images after as many epochs, for several optimizers.
Only the standard library is needed.
"""

import pathlib
import re
import subprocess

import measure

STAGES, SAMPLES, COUNT = 4, 32, 8
NOT_FINITE = 7  # The exit status of a run that --on-nan stopped.
DIGITS = measure.ROOT / "examples" / "digits"
# Method, and microbatches per update.
METHODS = [("sync", COUNT), ("2bw", COUNT), ("naive", 1), ("naive", COUNT), ("pipedream", 1),
           ("timeprest", COUNT), ("timeprest:ahead=1", COUNT), ("v-timeprest", COUNT),
           ("v-timeprest:ahead=1", COUNT), ("i-timeprest", COUNT), ("i-timeprest:ahead=1", COUNT),
           ("i-timeprest:decay=0.25", COUNT),
           # Two workers of waves of four microbatches: as many samples per wave.
           ("hetpipe:workers=2,distance=0", COUNT), ("hetpipe:workers=2,distance=1", COUNT),
           ("hetpipe:workers=2,distance=2", COUNT)]
OPTIMIZERS = ["sgd:lr=0.05", "sgd:lr=0.02,momentum=0.9", "adamw:lr=0.001"]


def evaluate(folder, method, count, optimizer, epochs):
    """Loss and accuracy on the test images, as text."""
    program = folder / "program"
    subprocess.run(
        [measure.build_folder() / "bin" / "penstockc", DIGITS / "mlp.onnx", "-o", program,
         f"--stages={STAGES}", f"--microbatch-size={SAMPLES // count}",
         f"--microbatches={1 if method.startswith('hetpipe') else count}",
         f"--method={method}", f"--optimizer={optimizer}", "--loss=softmax-cross-entropy"],
        check=True, capture_output=True)
    arrays = []
    for flag, part in (("--", "train"), ("--eval-", "test")):
        arrays += [f"{flag}data", f"x={DIGITS / part}-images.npy",
                   f"{flag}labels", DIGITS / f"{part}-labels.npy"]
    done = subprocess.run([program, *arrays, "--epochs", str(epochs), "--shuffle"],
                          capture_output=True, text=True)
    if done.returncode == NOT_FINITE:
        return "diverges"
    done.check_returncode()
    found = re.findall(r"^eval: .* loss (\S+) accuracy (\S+)", done.stdout, re.MULTILINE)[-1]
    return f"{float(found[0]):.3f} ({found[1]})"


def main():
    options = measure.read_options(__doc__, "folder", epochs=5,
                                   only=";".join(method for method, _ in METHODS))
    folder = pathlib.Path(options.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    print("| method | M | " + " | ".join(OPTIMIZERS) + " |")
    print("|---" * (2 + len(OPTIMIZERS)) + "|")
    for method, count in METHODS:
        if method in options.only.split(";"):
            cells = [evaluate(folder, method, count, optimizer, options.epochs)
                     for optimizer in OPTIMIZERS]
            print(f"| `{method}` | {count} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
