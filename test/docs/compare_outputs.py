#!/usr/bin/env python3
"""compare_outputs.py PAGE FOLDER: the outputs that a page shows are real.

A block below a line `<!-- output: FILE -->` must be found in FOLDER/FILE, line by
line. A comment line `// ...` stands for lines left out, other comment lines are
the page's own; indentation does not matter. Nor do offsets in an arena, as the
scratch of the library, which depends on the processor, lies before some.
"""

import pathlib
import re
import sys

page, folder = sys.argv[1], pathlib.Path(sys.argv[2])
text = open(page, encoding="utf-8").read()
blocks = re.findall(r"^<!-- output: (\S+) -->\n+```\w*\n(.*?)^```", text, re.M | re.S)
if not blocks:
    sys.exit(f"{page} shows no output")


def normal(line):
    line = re.sub(r"\b(at|bytes)\(\d+\)", r"\1(...)", line.strip())
    return re.sub(r"memref<\d+xi8>", "memref<...xi8>", line)


def pieces(block):
    """The runs of lines between the `// ...`."""
    run = []
    for line in block.splitlines():
        line = normal(line)
        if line == "// ...":
            yield run
            run = []
        elif line and not line.startswith("//"):
            run.append(line)
    yield run


wrong = 0
for name, block in blocks:
    output = [normal(line) for line in (folder / name).read_text().splitlines()]
    position = 0
    for run in filter(None, pieces(block)):
        places = [i for i in range(position, len(output) - len(run) + 1)
                  if output[i:i + len(run)] == run]
        if places:
            position = places[0] + len(run)
            continue
        wrong += 1
        missing = next((line for line in run if line not in output), run[0])
        print(f"{page}: not in {name}, in this order:\n  {missing}")
sys.exit(wrong != 0)
