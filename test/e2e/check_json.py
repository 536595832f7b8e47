#!/usr/bin/env python3
"""Checks the JSON files that the tools write.

    check_json.py trace FILE --stages=P --microbatches=M --updates=N
    check_json.py arrows FILE --processes=N
    check_json.py report FILE --stages=P

A trace is in the Chrome trace event format, has a row per stage, and on every
row each microbatch's F and B and each update's U exactly once, none overlapping
another. An arrow of a trace begins in an action, ends in another row where a wait
for its message does, and points backwards by no more than the clocks of its two
processes may differ. A report has every documented field, and its sums are consistent.
"""

import collections
import json
import sys


def expect(condition, message):
    if not condition:
        sys.exit(f"check_json: {message}")


def trace(document, stages, microbatches, updates):
    events = document["traceEvents"] if isinstance(document, dict) else document
    rows = collections.defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and event.get("cat", "action") == "action":
            for field in ("name", "ts", "dur", "pid", "tid"):
                expect(field in event, f"slice without {field}: {event}")
            expect(event["dur"] >= 0, f"negative duration: {event}")
            rows[event["pid"], event["tid"]].append(event)
    expect(len(rows) == stages, f"{len(rows)} rows of actions, expected {stages}")
    total = microbatches * updates
    wanted = collections.Counter(
        [f"F{k}" for k in range(total)] + [f"B{k}" for k in range(total)]
        + [f"U{t}" for t in range(updates)])
    for row, slices in rows.items():
        found = collections.Counter(s["name"] for s in slices)
        expect(found == wanted, f"row {row}: missing {dict(wanted - found)}, "
               f"too many {dict(found - wanted)}")
        slices.sort(key=lambda s: s["ts"])
        for a, b in zip(slices, slices[1:]):
            # Times are rounded to nanoseconds.
            expect(a["ts"] + a["dur"] <= b["ts"] + 0.002,
                   f"row {row}: {a['name']} overlaps {b['name']}")
    print(f"{len(rows)} rows of {sum(wanted.values())} actions")


def arrows(document, processes):
    events = document["traceEvents"]
    errors = (document["otherData"]["clock_error_microseconds"]
              if processes > 1 else [0])
    expect(len(errors) == processes, f"clock errors of {len(errors)} processes")
    slices = collections.defaultdict(list)
    begins, ends = {}, {}
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append(event)
        elif event["ph"] in "sf":
            side = begins if event["ph"] == "s" else ends
            expect(event["id"] not in side, f"two arrows {event['id']}")
            side[event["id"]] = event
    expect(begins and begins.keys() == ends.keys(), "arrows without an end")
    backwards, far = 0, 0
    for number, begin in begins.items():
        end = ends[number]
        row, other = ((e["pid"], e["tid"]) for e in (begin, end))
        expect(row != other, f"an arrow within a row: {begin}")
        far += row[0] != other[0]
        expect(any(s["cat"] == "action" and
                   s["ts"] - 0.002 <= begin["ts"] <= s["ts"] + s["dur"] + 0.002
                   for s in slices[row]), f"no action sends {begin}")
        expect(any(s["name"] == f"wait {end['name']}" and
                   abs(s["ts"] + s["dur"] - end["ts"]) < 0.003
                   for s in slices[other]), f"no wait ends with {end}")
        bound = errors[row[0] - 1] + errors[other[0] - 1] + 0.002
        late = begin["ts"] - end["ts"]
        expect(late <= bound, f"{begin['name']} arrives {late} us before it is "
               f"sent, and the clocks differ by at most {bound} us")
        backwards = max(backwards, late)
    expect(processes == 1 or far, "no arrow between processes")
    print(f"{len(begins)} arrows, {far} of them between processes, backwards by "
          f"{backwards:.3f} us at most; clock errors {errors} us")


def report(document, stages):
    for field in ("model", "method", "schedule", "microbatch_size", "microbatches",
                  "predicted_bubble", "trained", "frozen", "stages"):
        expect(field in document, f"no {field}")
    expect(0 <= document["predicted_bubble"] < 1, "predicted_bubble is not in 0..1")
    expect(len(document["stages"]) == stages,
           f"{len(document['stages'])} stages, expected {stages}")
    owned = []
    for i, stage in enumerate(document["stages"]):
        for field in ("index", "device", "parameters", "nodes", "flops", "lag_forward",
                      "lag_backward", "tau", "versions", "bytes"):
            expect(field in stage, f"stage {i} has no {field}")
        expect(stage["index"] == i, f"stage {i} has index {stage['index']}")
        for field in ("weights", "versions", "gradients", "optimizer", "residuals",
                      "temporaries", "channels", "arena"):
            expect(stage["bytes"].get(field, -1) >= 0, f"stage {i}: no bytes.{field}")
        expect(stage["bytes"]["arena"] >= stage["bytes"]["weights"],
               f"stage {i}: the arena is smaller than its weights")
        expect(stage["flops"] > 0, f"stage {i} does no work")
        owned += stage["parameters"]
    expect(sorted(owned) == sorted(set(owned)), "a parameter has two stages")
    expect(set(document["trained"]) <= set(owned), "a trained parameter has no stage")
    print(f"{stages} stages, {len(owned)} parameters")


def main(kind, path, *options):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    numbers = {key[2:]: int(value)
               for key, value in (option.split("=") for option in options)}
    {"trace": trace, "arrows": arrows, "report": report}[kind](document, **numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
