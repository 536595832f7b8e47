#!/usr/bin/env python3
"""Compares the losses of a training log with a recorded fixture.

    compare_losses.py FIXTURE.json NAME LOG.jsonl [--tolerance 1e-5]
    compare_losses.py --same LOG.jsonl LOG.jsonl...
    compare_losses.py --falls LOG.jsonl FACTOR
    compare_losses.py --near LOG.jsonl LOG.jsonl --tolerance 1e-5

The first prints the largest relative difference and fails beyond the tolerance;
rates are compared too where they are recorded.
--same fails unless all logs have the same losses and rates as text, that is, to
the last bit that the log shows; what time it took is left out. --falls fails
unless the last loss is at most FACTOR times the first. --near compares two logs
that may differ by rounding. Only the standard
library is needed.
"""

import json
import math
import sys


def fail(message):
    print(f"compare_losses: {message}", file=sys.stderr)
    sys.exit(1)


def read_log(path):
    """The objects of a log, numbers left as their text."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line, parse_float=str, parse_int=str)
                missing = {"step", "loss", "lr", "seconds"} - row.keys()
            except (ValueError, AttributeError) as error:
                fail(f"{path}:{number}: not a JSON object: {error}")
            if "eval" in row:  # A record of its own, without a loss.
                continue
            if missing:
                fail(f"{path}:{number}: no {', '.join(sorted(missing))}")
            if row["step"] != str(len(rows) + 1):
                fail(f"{path}:{number}: step is {row['step']}, expected "
                     f"{len(rows) + 1}")
            rows.append(row)
    if not rows:
        fail(f"{path}: empty")
    return rows


def number(text):
    """A log writes null for what JSON has no number for."""
    return math.nan if text is None else float(text)


def compare_with_fixture(fixture_path, name, log_path, tolerance):
    with open(fixture_path, encoding="utf-8") as file:
        fixtures = {f["name"]: f for f in json.load(file)["fixtures"]}
    if name not in fixtures:
        fail(f"{fixture_path} has no fixture {name}, but {', '.join(fixtures)}")
    expected = fixtures[name]["losses"]
    rows = read_log(log_path)
    losses = [number(row["loss"]) for row in rows]
    if len(losses) != len(expected):
        fail(f"{log_path}: {len(losses)} updates, {name} has {len(expected)}")
    differences = [abs(a - b) / abs(b) for a, b in zip(losses, expected)]
    worst = max(range(len(differences)),
                key=lambda i: math.inf if math.isnan(differences[i]) else differences[i])
    print(f"{name}: largest relative difference {differences[worst]:.3g} at step "
          f"{worst + 1} of {len(losses)} ({losses[worst]:.9g}, recorded {expected[worst]:.9g})")
    if not differences[worst] <= tolerance:
        fail(f"{name}: beyond the tolerance of {tolerance:g}")
    for row, rate in zip(rows, fixtures[name].get("rates", [])):
        if not math.isclose(number(row["lr"]), rate, rel_tol=tolerance, abs_tol=1e-12):
            fail(f"{name}: the rate of step {row['step']} is {row['lr']}, recorded {rate:.9g}")


def same(paths):
    logs = [[(r["step"], r["loss"], r["lr"]) for r in read_log(path)] for path in paths]
    for path, log in zip(paths[1:], logs[1:]):
        if len(log) != len(logs[0]):
            fail(f"{path} has {len(log)} updates, {paths[0]} has {len(logs[0])}")
        for ours, first in zip(log, logs[0]):
            if ours != first:
                fail(f"{path} differs from {paths[0]}: step, loss, lr {ours}, not {first}")
    print(f"{len(paths)} logs of {len(logs[0])} updates are equal")


def near(path, reference, tolerance):
    losses, expected = ([number(row["loss"]) for row in read_log(p)] for p in (path, reference))
    if len(losses) != len(expected):
        fail(f"{path} has {len(losses)} updates, {reference} has {len(expected)}")
    worst = max(abs(a - b) / abs(b) for a, b in zip(losses, expected))
    print(f"largest relative difference of {len(losses)} losses {worst:.3g}")
    if not worst <= tolerance:
        fail(f"{path}: {worst:.3g} from {reference}, beyond {tolerance:g}")


def falls(path, factor):
    losses = [number(row["loss"]) for row in read_log(path)]
    print(f"loss {losses[0]:.6g} -> {losses[-1]:.6g}")
    if not losses[-1] <= factor * losses[0]:
        fail(f"{path}: the loss does not fall to {factor:g} of the first")


def main(arguments):
    if len(arguments) >= 3 and arguments[0] == "--same":
        return same(arguments[1:])
    if len(arguments) == 3 and arguments[0] == "--falls":
        return falls(arguments[1], float(arguments[2]))
    if len(arguments) == 5 and arguments[0] == "--near" and arguments[3] == "--tolerance":
        return near(arguments[1], arguments[2], float(arguments[4]))
    tolerance = 1e-5
    if len(arguments) == 5 and arguments[3] == "--tolerance":
        tolerance = float(arguments[4])
        arguments = arguments[:3]
    if len(arguments) != 3:
        fail(__doc__)
    compare_with_fixture(*arguments, tolerance)


if __name__ == "__main__":
    main(sys.argv[1:])
