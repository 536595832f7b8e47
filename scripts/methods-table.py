#!/usr/bin/env python3
"""Prints the table of what methods cost, for docs/methods.md, as the compiler plans
it: the digits example on four stages, sgd with momentum.

    scripts/methods-table.py PENSTOCKC [--check PAGE | --write PAGE]

--write puts it into PAGE, below the line `<!-- generated -->`; --check compares it
with what is there.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Methods that accumulate are shown with as many microbatches as stages.
METHODS = [("sync", 4), ("naive", 1), ("pipedream", 1), ("pipedream:vertical-sync", 1), ("2bw", 4),
           ("pipemare", 1), ("pipemare", 4), ("spectrain", 1), ("xpipe", 1), ("xpipe", 4),
           ("pipeoptim", 1), ("timeprest", 4), ("timeprest:ahead=1", 4), ("v-timeprest", 4),
           ("v-timeprest:ahead=1", 4), ("i-timeprest", 4), ("i-timeprest:ahead=1", 4),
           ("hetpipe", 1), ("hetpipe:distance=1", 1)]


def plan(penstockc, method, count, folder):
    subprocess.run(
        [penstockc, "examples/digits/mlp.onnx", "-o", f"{folder}/unused.mlir", "--emit=program",
         "--stages=4", "--microbatch-size=10", f"--microbatches={count}", f"--method={method}",
         "--optimizer=sgd:lr=0.1,momentum=0.9", "--loss=softmax-cross-entropy",
         f"--report-json={folder}/plan.json"], cwd=ROOT, check=True)
    return json.loads(pathlib.Path(folder, "plan.json").read_text(encoding="utf-8"))


def table(penstockc):
    rows = ["| method | M | forward, updates late | backward | versions | of these held | "
            "further weights | adjusted weights | throughput over a pipe that flushes |",
            "|---" * 9 + "|"]
    with tempfile.TemporaryDirectory() as folder:
        base = plan(penstockc, "sync", 1, folder)
        state = sum(stage["bytes"]["optimizer"] for stage in base["stages"])
        weights = sum(stage["bytes"]["weights"] for stage in base["stages"])
        for method, count in METHODS:
            made = plan(penstockc, method, count, folder)
            # Of a method of several workers, those of the first.
            stages = made["stages"][:4]

            def column(key):
                return ", ".join(f"{stage[key]:g}" for stage in stages)

            def share(key, less=0):
                extra = (sum(stage["bytes"][key] for stage in stages) - less) / weights
                return f"{extra:.2f}" if extra else "-"

            rows.append(
                f"| `{method}` | {count} | {column('tau_forward')} | {column('tau_backward')} | "
                f"{column('versions')} | {column('versions_held')} | {share('versions')} | "
                f"{share('optimizer', state)} | {made['predicted_speedup_over_flush']:.2f} |")
    return "\n".join(rows) + "\n"


def main(penstockc, *arguments):
    made = table(penstockc)
    if not arguments:
        print(made, end="")
        return
    action, page = arguments[0], pathlib.Path(arguments[1])
    old = page.read_text(encoding="utf-8")
    new, count = re.subn(r"(?<=<!-- generated -->\n\n)(\|.*\n)*", lambda _: made, old)
    if count != 1:
        sys.exit(f"{page} has {count} places for the table")
    if action == "--write":
        page.write_text(new, encoding="utf-8")
    elif new != old:
        sys.exit(f"{page}: the table is not what the compiler plans; scripts/generate-docs.sh "
                 f"writes it:\n{made}")


main(*sys.argv[1:])
