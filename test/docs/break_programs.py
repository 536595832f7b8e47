#!/usr/bin/env python3
"""break_programs.py MODEL TIED: what verifiers report of programs that were changed.

Compiles the model MODEL and one with tied weights, TIED, changes one thing in each of
the programs below, and writes to sums.txt, calls.txt, facts.txt and longer.txt, in
the current folder, the first error of each, with the line of the program that it
points at.
"""

import pathlib
import re
import subprocess
import sys

COMPILE = ["--microbatch-size=5", "--microbatches=2", "--loss=softmax-cross-entropy"]
# Which model, and how it is compiled.
PROGRAMS = {
    "mlp": ("MODEL", ["--split-at=h2"]),
    "replicas": ("MODEL", ["--split-at=h2", "--replicas=2,1"]),
    "clipped": ("MODEL", ["--split-at=h2", "--clip-grad-norm=0.5"]),
    "pipedream": ("MODEL", ["--split-at=h2", "--method=pipedream"]),
    "tied": ("TIED", ["--stages=2"]),
}


def drop(*parts):
    """Leaves out the lines with one of these in them."""
    def change(text):
        lines = text.splitlines(keepends=True)
        kept = [line for line in lines if not any(part in line for part in parts)]
        return "".join(kept)
    return change


def replace(before, after):
    """Replaces the first text that the pattern matches."""
    return lambda text: re.sub(before, after, text, count=1)


def repeat(part):
    """Repeats the first line with this in it."""
    return replace(rf"( *[^\n]*{re.escape(part)}[^\n]*\n)", r"\1\1")


CASES = {
    "sums": [
        # No sum of the gradients of a parameter that two stages hold.
        ("tied", "schedule", drop("pipeline.group @w.tied", "all_reduce @w.tied")),
        # Nor of those of replicas, nor of the squares of a norm.
        ("replicas", "schedule", drop("pipeline.group @s0.replicas", "all_reduce @s0.replicas")),
        ("clipped", "schedule",
         drop("pipeline.group @clip_squares", "all_reduce @clip_squares")),
        # Replicas have different gradients.
        ("replicas", "schedule",
         replace(r"(pipeline.group @s0.replicas [^\n]*)", r"\1 {pipeline.once}")),
        # The group is there, but the devices do not sum it.
        ("tied", "program",
         drop("pipeline.start_all_reduce @w.tied", "pipeline.await @w.tied")),
    ],
    "calls": [
        # @sgd(%gradient, %weight).
        ("mlp", "schedule", replace(r"(call @sgd.7x11\()(%\w+), (%\w+)", r"\1\3, \2")),
        # Two operands of one type.
        ("mlp", "schedule",
         replace(r"(call @s0.backward\()(%\w+)(, %\w+#0, %\w+#1, )(%\w+#2)", r"\1\4\3\2")),
        # Twice under one mark: the gradient would be added twice.
        ("mlp", "program", repeat("call @s0.backward(")),
        # The weight and its gradient, in the function of a device.
        ("mlp", "program", replace(r"(call @sgd.7x11\()(%[\w.]+), (%[\w.]+)", r"\1\3, \2")),
        # The message of another buffer.
        ("mlp", "program", replace(r"(start_send @dh2\[[^\]]*\], )%\w+", r"\1%h2")),
    ],
    "facts": [
        # Frozen, but updated.
        ("mlp", "schedule", replace(r"(pipeline.variable @fc1 [^\n]*)", r"\1 {frozen}")),
        # The gradient of another parameter.
        ("mlp", "schedule",
         replace(r"(pipeline.variable @fc1.grad [^\n]*pipeline.parameter = )@fc1", r"\1@fc2")),
        # Versions without a method or lags.
        ("pipedream", "schedule",
         lambda text: re.sub(r" method<[^\n]*>$| \{pipeline.lags = [^\n]*\}$", "", text,
                             flags=re.M)),
        # Initial values behind the end of the file.
        ("mlp", "schedule",
         replace(r"(pipeline.variable @fc3 [^\n]*init <\"[^\"]*\", )\d+", r"\g<1>5000")),
        # An evaluation of two microbatches at a time.
        ("mlp", "schedule",
         replace(r"(pipeline.schedule @evaluate[^\n]* microbatches)\(1\)", r"\1(2)")),
    ],
    "longer": [
        # Four updates, however many there are.
        ("mlp", "program",
         replace(r"( *)(%\w+ = arith.addi %first, )%updates",
                 r"\1%last = arith.constant 4 : index\n\1\2%last")),
        # The thousandth update of a segment again and again, and update 1000.
        ("mlp", "program",
         replace(r"( *)pipeline.mark @s0.U\[(%\w+)\]",
                 r"\1%last = arith.constant 1000 : index\n"
                 r"\1%passed = arith.subi \2, %first : index\n"
                 r"\1%at_most = arith.minsi %passed, %last : index\n"
                 r"\1%update = arith.addi %first, %at_most : index\n"
                 r"\1pipeline.mark @s0.U[%update]")),
        ("mlp", "program",
         replace(r"( *)pipeline.mark @s0.U\[(%\w+)\]",
                 r"\1%last = arith.constant 1000 : index\n"
                 r"\1%at_most = arith.minsi \2, %last : index\n"
                 r"\1pipeline.mark @s0.U[%at_most]")),
    ],
}


def shorten(line):
    """An op in at most 100 characters."""
    line = line.strip()
    return line if len(line) <= 100 else line[:96] + " ..."


def main(*models):
    models = dict(zip(("MODEL", "TIED"), models))
    for block, cases in CASES.items():
        lines = []
        for number, (name, level, change) in enumerate(cases):
            model, flags = PROGRAMS[name]
            program = pathlib.Path(f"{name}.{level}.mlir")
            if not program.exists():
                subprocess.run(["penstockc", models[model], f"--emit={level}", "-o", program,
                                *COMPILE, *flags], check=True)
            text = program.read_text()
            changed = change(text)
            assert changed != text, f"{block} {number} changes nothing"
            broken = pathlib.Path("broken.mlir")
            broken.write_text(changed)
            done = subprocess.run(["penstock-opt", broken, "--pipeline-verify",
                                   f"--pipeline-verify-{level}", "-o", "unused"],
                                  check=False, capture_output=True, text=True)
            message = re.match(r"broken.mlir:(\d+):\d+: (error: .*)\n", done.stderr)
            if done.returncode != 1 or not message:
                sys.exit(f"{block} {number}: exit {done.returncode}: {done.stderr}")
            lines += [message[2], "  " + shorten(changed.splitlines()[int(message[1]) - 1])]
        pathlib.Path(f"{block}.txt").write_text("\n".join(lines) + "\n")


main(*sys.argv[1:])
