#!/usr/bin/env python3
"""Checks the JSON files that the tools write.

    check_json.py trace FILE --stages=P --microbatches=M --updates=N
    check_json.py arrows FILE --processes=N
    check_json.py viewer FILE --processes=N
    check_json.py report FILE --stages=P

A trace is in the Chrome trace event format, has a row per stage, and on every
row each microbatch's F and B and each update's U exactly once, none overlapping
another. An arrow of a trace begins in an action, ends in another row where a wait
for its message does, and points backwards by no more than the clocks of its two
processes may differ. Perfetto and Chromium show all of a trace that `viewer` takes:
names, rows, slices that nest, arrows that bind to slices. A report has every documented field, and its sums are consistent.
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


ROUNDING = 0.002  # Times are rounded to nanoseconds.


def check_nesting(row, slices):
    """Viewers drop a slice that ends within another, or cut it."""
    open_until = []
    for each in sorted(slices, key=lambda s: (s["ts"], -s["dur"])):
        end = each["ts"] + each["dur"]
        while open_until and open_until[-1][0] <= each["ts"] + ROUNDING:
            open_until.pop()
        expect(not open_until or end <= open_until[-1][0] + ROUNDING,
               f"row {row}: {each['name']} ends after "
               f"{open_until[-1][1] if open_until else ''}, within which it begins")
        open_until.append((end, each["name"]))


def check_event(event):
    phase = event.get("ph")
    expect(phase in ("X", "M", "i", "s", "f"), f"an unknown phase: {event}")
    expect(isinstance(event.get("name"), str) and event["name"], f"no name: {event}")
    for field in ("pid", "tid"):
        expect(type(event.get(field)) is int and event[field] >= 0,
               f"{field} is no number: {event}")
    for field in {"X": ("ts", "dur"), "M": ()}.get(phase, ("ts",)):
        value = event.get(field)
        expect(isinstance(value, (int, float)) and 0 <= value < float("inf"),
               f"{field} is no time: {event}")
    expect(phase == "M" or isinstance(event.get("cat"), str), f"no category: {event}")
    expect(phase != "i" or event.get("s") in ("g", "p", "t"), f"no scope: {event}")


def viewer(document, processes):
    expect(document.get("displayTimeUnit") in ("ms", "ns"), "no displayTimeUnit")
    named = {"process_name": {}, "thread_name": {}, "thread_sort_index": {}}
    slices, flows = collections.defaultdict(list), collections.defaultdict(list)
    for event in document["traceEvents"]:
        check_event(event)
        row = event["pid"], event["tid"]
        if event["ph"] == "M":
            expect(event["name"] in named, f"unknown metadata: {event}")
            known = named[event["name"]]
            key = event["pid"] if event["name"] == "process_name" else row
            expect(key not in known, f"named twice: {event}")
            known[key] = event["args"].get("name", event["args"].get("sort_index"))
        elif event["ph"] == "X":
            slices[row].append(event)
        elif event["ph"] in "sf":
            flows[event["cat"], event["id"]].append(event)

    # 1. Names: of all processes and rows, each another one.
    expect(len(named["process_name"]) == processes,
           f"{len(named['process_name'])} processes have names, not {processes}")
    for kind, names in named.items():
        of_process = collections.Counter(
            (name, kind == "process_name" or key[0]) for key, name in names.items())
        expect(max(of_process.values()) == 1, f"{kind}: {of_process} is not unique")
    for row in slices:
        expect(row in named["thread_name"] and row in named["thread_sort_index"]
               and row[0] in named["process_name"], f"row {row} has no name")
    # Perfetto takes thread 0 for the main thread, whose number is its process's.
    processes_named = named["process_name"].keys()
    rows = [tid for _, tid in named["thread_name"]]
    expect(len(set(rows)) == len(rows) and not set(rows) & {0, *processes_named},
           f"rows that viewers take for others: {sorted(rows)}")

    # 2. Slices are within each other or apart.
    for row, own in slices.items():
        check_nesting(row, own)

    # 3. Arrows: from the slice around their begin to the next one in the row of
    # their end, as viewers bind them.
    for (_, number), both in flows.items():
        phases = sorted(event["ph"] for event in both)
        expect(phases == ["f", "s"] and len({e["name"] for e in both}) == 1,
               f"arrow {number} has ends {phases}")
        begin, end = sorted(both, key=lambda event: event["ph"], reverse=True)
        row = begin["pid"], begin["tid"]
        expect(any(s["ts"] - ROUNDING <= begin["ts"] <= s["ts"] + s["dur"]
                   for s in slices[row]), f"no slice is around {begin}")
        row = end["pid"], end["tid"]
        expect(any(s["ts"] >= end["ts"] - ROUNDING for s in slices[row]),
               f"no slice comes after {end}")
    print(f"{processes} processes, {len(slices)} rows, "
          f"{sum(map(len, slices.values()))} slices, {len(flows)} arrows")


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
    {"trace": trace, "arrows": arrows, "viewer": viewer,
     "report": report}[kind](document, **numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
