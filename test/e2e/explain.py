#!/usr/bin/env python3
"""What --explain says of cuts, against programs that are cut there.

    explain.py DIR penstockc MODEL [flags]

For every cut and every neighbor that is listed with it, the model is compiled
with that one cut moved there: what is then said of the cut that stands is what
was said of the neighbor, bytes and slowest stage. No neighbor is faster. Of
two stages, no cut at all is.
"""

import pathlib
import re
import subprocess
import sys

CUT = re.compile(r"note: stage (\d+) begins here, after '(.*)': it carries (\d+) bytes; "
                 r"stage (\d+) takes ([\d.]+) us")
PLACE = re.compile(r"  (or|here ) after '(.*)': (\d+) bytes, slowest stage ([\d.]+) us")


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


class Cut:
    def __init__(self, match):
        self.name, self.bytes, self.seconds = match[2], int(match[3]), float(match[5])
        self.places = []  # Whether it stands there, name, bytes, slowest stage.

    def standing(self):
        here, = [place for place in self.places if place[0]]
        return here


def main(folder, compiler, model, *flags):
    out = pathlib.Path(folder) / "out.mlir"

    def explain(*how):
        result = subprocess.run(
            [compiler, model, *flags, *how, "--explain", "--emit=stages", "-o", str(out)],
            capture_output=True, text=True)
        check(result.returncode == 0, *how, result.stderr)
        cuts = []
        for line in result.stderr.splitlines():
            if match := CUT.search(line):
                cuts.append(Cut(match))
            elif match := PLACE.search(line):
                cuts[-1].places.append((match[1] != "or", match[2], int(match[3]),
                                        float(match[4])))
        return cuts

    # 1. The neighbors of three stages.
    cuts = explain("--stages=3")
    check(len(cuts) == 2, "not two cuts:", len(cuts))
    names = [cut.name for cut in cuts]
    compared = 0
    for index, cut in enumerate(cuts):
        stands, name, bytes_, slowest = cut.standing()
        check((name, bytes_) == (cut.name, cut.bytes), "two opinions of", cut.name)
        check(max(c.seconds for c in cuts) <= slowest, "a stage is slower than the slowest")
        for isHere, place, carried, time in cut.places:
            check(time >= slowest, "the cut after", place, "is faster than", cut.name)
            if isHere:
                continue
            moved = explain(f"--split-at={','.join(names[:index] + [place] + names[index + 1:])}")
            check(moved[index].standing() == (True, place, carried, time), "said of", place, ":",
                  carried, time, "; is:", moved[index].standing())
            compared += 1
    check(compared >= 4, "only", compared, "neighbors")

    # 2. Every cut of two stages, one neighbor after the other.
    best, = explain("--stages=2")
    known, todo = {}, [best.name]
    while todo:
        name = todo.pop()
        if name in known:
            continue
        cut, = explain(f"--split-at={name}")
        known[name] = cut.standing()[3]
        todo += [place[1] for place in cut.places]
    check(min(known.values()) == best.standing()[3], "of", known, "not the fastest:",
          best.standing())
    print(f"{compared} neighbors of {len(names)} cuts, {len(known)} cuts of two stages")


if __name__ == "__main__":
    main(*sys.argv[1:])
