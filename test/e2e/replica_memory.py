#!/usr/bin/env python3
"""A limit of memory holds for every replica: they may have other transfers than the first.

    replica_memory.py DIR penstockc MODEL [flags] -- [flags for the program]

Some replica of a stage must need more than the first one. The report states what each device
allocates, the largest need is the least limit that is accepted, and the refusal names its stage.
What it prints of further replicas, in one line for all that allocate as much, is what it states.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import plan_reports


def printed(text):
    """Stage and devices of every line on arenas of further replicas."""
    lines = re.findall(r"^stage (\d+): the arenas? of devices? ([\d, -]+) ha(?:s|ve) \S+ \S+(?: each)?$",
                       text, re.M)
    for stage, devices in lines:
        runs = [run.split("-") for run in devices.split(", ")]
        yield int(stage), [device for run in runs for device in range(int(run[0]), int(run[-1]) + 1)]


def others(stages):
    """The same, from what is stated for each device."""
    for index, stage in enumerate(stages):
        groups = {}
        for device, arena in zip(stage["devices"], stage["arenas"]):
            groups.setdefault(arena, []).append(device)
        del groups[stage["arenas"][0]]
        for devices in groups.values():
            yield index, devices


def main(folder, *arguments):
    program = pathlib.Path(folder) / "replicas"
    command, data = (arguments[:arguments.index("--")], arguments[arguments.index("--") + 1:])
    stages = plan_reports.compiled(command, program)
    index, stage = max(enumerate(stages), key=lambda entry: max(entry[1]["arenas"]))
    most = max(stage["arenas"])
    print([stage["arenas"] for stage in stages])
    if most == stage["arenas"][0]:
        sys.exit("the first replica needs most: that tests nothing")
    text = subprocess.run([*command, "-o", program, "--report"], check=True, capture_output=True,
                          text=True).stdout
    if list(printed(text)) != list(others(stages)):
        sys.exit(f"the report prints {list(printed(text))}, not {list(others(stages))}: {text}")
    compared = plan_reports.compare(plan_reports.train(program, *data)[1], stages)
    if compared != "equal":
        sys.exit(f"the program differs: {compared}")
    plan_reports.compiled(command, program, f"--device-memory={most}")
    status, text = plan_reports.compile_plan(command, program, f"--device-memory={most - 1}")
    if status != plan_reports.DOES_NOT_FIT or f"({most} bytes), 1 B more" not in text or f"stage {index} needs" not in text:
        sys.exit(f"one byte less: exit status {status}, {text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
