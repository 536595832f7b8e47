#!/usr/bin/env python3
"""Checks what a plan says of versions, stage by stage.

    check_versions.py PLAN.json --ages A,B --backward A,B --kept A,B --speedup X
                      [--held A,B] [--reads "0 0 1/0 1 2"]

Ages are the lags of the forwards in microbatches; the versions that microbatches
0 to 11 read must follow from them and M, and the bytes of further versions must
be no more than those of the versions held, which are those kept if not given.
--reads states the versions of the first forwards, stage by stage.
"""

import argparse
import json
import sys


def expect(condition, message):
    if not condition:
        sys.exit(f"check_versions: {message}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plan")
    for name in ["ages", "backward", "kept"]:
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--held")
    parser.add_argument("--reads")
    parser.add_argument("--speedup", type=float, required=True)
    options = parser.parse_args()
    with open(options.plan, encoding="utf-8") as file:
        plan = json.load(file)
    count = plan["microbatches"]
    numbers = [list(map(int, text.split(",")))
               for text in (options.ages, options.backward, options.kept,
                            options.held or options.kept)]
    expect(len(plan["stages"]) == len(numbers[0]), "another number of stages")
    expect(abs(plan["predicted_speedup_over_flush"] - options.speedup) < 1e-9,
           f"speed-up {plan['predicted_speedup_over_flush']}")
    if options.reads:
        reads = [list(map(int, text.split())) for text in options.reads.split("/")]
        expect(len(reads) == len(plan["stages"]), "reads of another number of stages")
        for stage, read in zip(plan["stages"], reads):
            found = stage["versions_read"]["forward"][:len(read)]
            expect(found == read, f"stage {stage['index']}: reads {found}, not {read}")
    for stage, age, backward, kept, held in zip(plan["stages"], *numbers):
        where = f"stage {stage['index']}: "
        for key, lag in (("forward", age), ("backward", backward)):
            expect(stage[f"lag_{key}"] == lag, where + f"lag_{key} {stage[f'lag_{key}']}")
            expect(stage[f"tau_{key}"] == lag / count, where + f"tau_{key}")
            read = [max(0, (k - lag) // count) for k in range(12)]
            expect(stage["versions_read"][key] == read,
                   where + f"{key} reads {stage['versions_read'][key]}, not {read}")
        expect(stage["tau"] == (age - backward) / count, where + f"tau {stage['tau']}")
        expect(stage["versions"] == kept, where + f"{stage['versions']} versions, not {kept}")
        expect(stage["versions_held"] == held, where + f"holds {stage['versions_held']}, not {held}")
        size = stage["bytes"]
        expect((size["versions"] > 0) == (held > 1)
               and size["versions"] <= (held - 1) * size["weights"],
               where + f"{size['versions']} bytes of versions")


main()
