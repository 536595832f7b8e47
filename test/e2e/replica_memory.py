#!/usr/bin/env python3
"""A limit of memory holds for every replica: they may have other transfers than the first.

    replica_memory.py DIR penstockc MODEL [flags] -- [flags for the program]

Some replica of a stage must need more than the first one. The report states what each device
allocates, the largest need is the least limit that is accepted, and the refusal names its stage.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import plan_reports


def main(folder, *arguments):
    program = pathlib.Path(folder) / "replicas"
    command, data = (arguments[:arguments.index("--")], arguments[arguments.index("--") + 1:])
    stages = plan_reports.compiled(command, program)
    index, stage = max(enumerate(stages), key=lambda entry: max(entry[1]["arenas"]))
    most = max(stage["arenas"])
    print([stage["arenas"] for stage in stages])
    if most == stage["arenas"][0]:
        sys.exit("the first replica needs most: that tests nothing")
    compared = plan_reports.compare(plan_reports.train(program, *data)[1], stages)
    if compared != "equal":
        sys.exit(f"the program differs: {compared}")
    plan_reports.compiled(command, program, f"--device-memory={most}")
    status, text = plan_reports.compile_plan(command, program, f"--device-memory={most - 1}")
    if status != plan_reports.DOES_NOT_FIT or f"stage {index} needs {most} bytes, 1 more" not in text:
        sys.exit(f"one byte less: exit status {status}, {text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
