#!/usr/bin/env python3
"""Measures what the proofs take: proof_time.py BUILD [--stages 8,16,...] [--microbatches 1,...]
[--flags FLAGS] [--folder FOLDER [--prepare]].

The model is a chain of matrix products, one per stage. Prints a row per number of stages
and microbatches per update: processor seconds of pipeline-verify-schedule (S1 to S7) on
the schedule, and of pipeline-verify-program (S8 to S12) on the functions of the devices.
The last line has the exponents of both: s in seconds = c * (stages * microbatches)^s.

--folder keeps the programs, and --prepare only writes them: compiling the largest takes
longer than their proofs.
"""

import argparse
import contextlib
import math
import pathlib
import resource
import subprocess
import tempfile


def write_chain(path, length):
    weights = ", ".join(f"float[3, 3] w{i} = {{0.3, -0.2, 0.5, 0.7, 0.1, -0.6, -0.4, 0.2, 0.9}}"
                        for i in range(length))
    lines = [f"  v{i + 1} = MatMul (v{i}, w{i})" for i in range(length)]
    path.write_text("\n".join(['<ir_version: 8, opset_import: ["" : 13]>',
                               f"chain (float[N, 3] v0) => (float[N, 3] v{length})",
                               f"<{weights}>", "{", *lines, "}", ""]))


def spend(command):
    """Returns the processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr[:400]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(optimizer, name, text):
    """Returns the processor seconds of a pass, without reading and printing."""
    others = [optimizer, "--mlir-disable-threading", "-o", "/dev/null", text]
    return max(0.0, spend([*others, f"--{name}"]) - spend(others))


def write_programs(compiler, chain, stages, microbatches, flags):
    """Returns the files of the schedule and of the program; writes what is missing."""
    texts = []
    for level in ("schedule", "program"):
        text = chain.with_suffix(f".{microbatches}.{level}.mlir")
        texts.append(text)
        if not text.exists():
            subprocess.run([compiler, chain, f"--stages={stages}", "--loss=mse",
                            f"--microbatches={microbatches}", "--microbatch-size=1",
                            f"--emit={level}", "-o", text, *flags.split()], check=True)
    return texts


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--stages", default="8,16,32,64,128,256")
    parser.add_argument("--microbatches", default="1,16,64,256,1024,4096")
    parser.add_argument("--flags", default="--schedule=1f1b")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true")
    options = parser.parse_args()
    tools = options.build / "bin"
    points = []
    if not options.prepare:
        print("| stages | microbatches | S1 to S7 | S8 to S12 |\n|---|---|---|---|", flush=True)
    with contextlib.ExitStack() as stack:
        folder = options.folder or pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        for stages in map(int, options.stages.split(",")):
            chain = folder / f"chain.{stages}.onnxtext"
            write_chain(chain, stages)
            for microbatches in map(int, options.microbatches.split(",")):
                texts = write_programs(tools / "penstockc", chain, stages, microbatches,
                                       options.flags)
                if options.prepare:
                    continue
                seconds = [measure(tools / "penstock-opt", name, text) for name, text in
                           zip(("pipeline-verify-schedule", "pipeline-verify-program"), texts)]
                if not options.folder:
                    for text in texts:
                        text.unlink()
                points.append((stages * microbatches, *seconds))
                print(f"| {stages} | {microbatches} | {seconds[0]:.2f} | {seconds[1]:.2f} |",
                      flush=True)
    if options.prepare:
        return
    exponents = []
    for column in (1, 2):
        logs = [(math.log(point[0]), math.log(point[column])) for point in points
                if point[column] >= 0.05]
        if len(logs) < 2:
            exponents.append("-")
            continue
        x = sum(a for a, _ in logs) / len(logs)
        y = sum(b for _, b in logs) / len(logs)
        slope = (sum((a - x) * (b - y) for a, b in logs) / sum((a - x) ** 2 for a, _ in logs))
        exponents.append(f"{slope:.2f}")
    print(f"exponents: {exponents[0]}, {exponents[1]}")


main()
