#!/usr/bin/env python3
"""Whatever is recomputed under whichever schedule: the bits of one stage.

    policies_table.py MODEL X.npy Y.npy DIR [--steps=N] [--schedules=A;B]
                      [penstockc flags]

Trains under every schedule with every policy of recomputation, and verifies on
one device. Losses, weights and running statistics must be those of one stage
that recomputes nothing, to the last bit; under an asynchronous method, which
must keep the weights that its forward saw, those of the same method. Prints a
line per schedule: the bytes of residuals under each policy.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import plan_reports

SCHEDULES = ("gpipe --stages=4;1f1b --stages=4;interleaved:chunks=2 --stages=4;"
             "looped-bfs:chunks=2 --stages=4;zb-h1 --stages=4;zb-h2 --stages=4;"
             "zb-auto --stages=4;zb-v --stages=4;v-half --stages=4;"
             "v-min --stages=4;dualpipe-v --stages=4;hanayo --stages=4")
METHODS = "pipedream --stages=3;pipedream:vertical-sync --stages=3;2bw --stages=3"
# `auto` has to make do with half of what recomputation can save.
POLICIES = ("none", "full", "auto", "^[dh]")


def main(model, x, y, folder, *arguments):
    steps, schedules, flags = "4", SCHEDULES, []
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key == "--steps":
            steps = value
        elif key == "--schedules":
            schedules = value
        else:
            flags.append(argument)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def train(schedule, policy, limit=None):
        program, saved = folder / "run", folder / "saved.onnx"
        saved.unlink(missing_ok=True)
        more = [f"--recompute={policy}"]
        if limit:
            more.append(f"--device-memory={limit}")
        stages = plan_reports.compiled(["penstockc", model], program, *flags, *more, *schedule)
        losses, allocated, said = plan_reports.train(
            program, "--data", f"x={x}", "--labels", y, "--steps", steps, "--verify", "--save",
            saved)
        if "bitwise equal" not in said:
            sys.exit(f"{schedule} {policy}: not verified: {said}")
        compared = plan_reports.compare(allocated, stages)
        if compared != "equal":
            sys.exit(f"{schedule} {policy}: {compared}")
        kept = sum(stage["bytes"]["residuals"] for stage in stages)
        return (losses, saved.read_bytes()), kept, max(plan_reports.arenas(stages).values())

    one_stage = train(["--stages=1"], "none")[0]
    for line in f"{schedules};{METHODS}".split(";"):
        name, *places = line.split()
        is_method = line in METHODS.split(";")
        plan = [f"--{'method' if is_method else 'schedule'}={name}", *places]
        reference = None if is_method else one_stage
        kept, arenas = {}, {}
        for policy in POLICIES:
            limit = None
            if policy == "auto":
                limit = max((arenas["none"] + arenas["full"]) // 2, arenas["full"])
            result, kept[policy], arenas[policy] = train(plan, policy, limit)
            reference = reference or result
            if result[0] != reference[0]:
                sys.exit(f"{name} {policy}: losses differ: {result[0]}, not {reference[0]}")
            if result[1] != reference[1]:
                sys.exit(f"{name} {policy}: the saved models differ")
        print(f"{name:22}" + "".join(f"  {policy}: {size}"
                                     for policy, size in kept.items()), flush=True)
        if kept["full"] >= kept["none"]:
            sys.exit(f"{name}: full recomputation stores as much as none")


if __name__ == "__main__":
    main(*sys.argv[1:])
