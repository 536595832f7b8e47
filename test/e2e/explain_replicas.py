#!/usr/bin/env python3
"""What --explain says of planned replicas, against plans with the replicas that it names.

    explain_replicas.py DIR penstockc MODEL [flags]

The plan is as fast as its slowest stage, and no neighbour is faster: no cut moved by up to two
nodes, no replica moved to the stage before or behind. Planned for the replicas of a neighbour,
with the best cuts for them, it is no slower than what was said of it; where all stages are
equally wide, exactly as fast.
"""

import pathlib
import re
import subprocess
import sys

STAGE = re.compile(r"stage \d+ on (\d+) devices?, from '.*' on: ([\d.]+) us of work per "
                   r"microbatch and device, ([\d.]+) us of sums")
PLACE = re.compile(r"  (or|here ) after '.*': \d+ bytes, slowest stage ([\d.]+) us")
WIDTHS = re.compile(r"  (or|here ) --replicas=([\d,]+): slowest stage ([\d.]+) us")


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


def main(folder, compiler, model, *flags):
    out = pathlib.Path(folder) / "out.mlir"

    def explain(replicas):
        result = subprocess.run(
            [compiler, model, *flags, "--stages=auto", f"--replicas={replicas}", "--explain",
             "--emit=stages", "-o", str(out)], capture_output=True, text=True)
        check(result.returncode == 0, replicas, result.stderr)
        text = result.stderr
        return STAGE.findall(text), PLACE.findall(text), WIDTHS.findall(text)

    stages, places, widths = explain("auto")
    (slowest,) = [float(time) for kind, _, time in widths if kind != "or"]
    check(max(max(float(work), float(sums)) for _, work, sums in stages) <= slowest, stages,
          "slower than", slowest)
    for kind, time in places:
        check(float(time) == slowest if kind != "or" else float(time) >= slowest,
              "a cut moved:", time, "not", slowest)
    are_equal = len({width for width, _, _ in stages}) == 1 and any(
        len(set(text.split(","))) == 1 and text.count(",") != len(stages) - 1
        for _, text, _ in widths)
    for kind, text, time in widths:
        check(float(time) >= slowest, "replicas", text, "are faster:", time, "than", slowest)
        if are_equal:
            text = text.split(",")[0]
            if text == "1":
                continue  # What has no replicas is cut by transfers, too.
        elif "," not in text:
            continue  # One stage needs no list, and one number is for all stages.
        planned, places, _ = explain(text)
        said = [float(time) for kind, time in places if kind != "or"]
        if not said:
            said = [max(float(work), float(sums)) for _, work, sums in planned]
        check(said[0] == float(time) if are_equal or kind != "or" else said[0] <= float(time),
              "planned for", text, ":", said[0], "; was said:", time)
    print(f"{len(stages)} stages, {len(widths)} numbers of replicas, slowest {slowest} us")


if __name__ == "__main__":
    main(*sys.argv[1:])
