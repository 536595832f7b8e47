#!/usr/bin/env python3
"""Compares what evaluations wrote.

    check_summary.py SUMMARY LOG
    check_summary.py --evaluations LOG...

The first says that --summary-json agrees with the log of its run; the second
that the last evaluations of several logs have one accuracy and one loss, but for
rounding.
"""

import json
import math
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def check(summary_path, log_path):
    with open(summary_path, encoding="utf-8") as file:
        summary = json.load(file)
    log = read(log_path)
    updates = [record for record in log if "loss" in record]
    evaluations = [record for record in log if "eval" in record]
    assert summary["updates"] == len(updates) > 0
    assert summary["loss"] == updates[-1]["loss"]
    best = min(updates, key=lambda record: record["loss"])
    assert summary["best_loss"] == {"step": best["step"], "loss": best["loss"]}
    assert summary["eval"] == evaluations[-1]["eval"]
    best = max(evaluations, key=lambda record: record["eval"]["accuracy"])
    assert summary["best_eval"] == {"step": best["step"],
                                    "accuracy": best["eval"]["accuracy"]}
    assert math.isclose(summary["samples_per_second"],
                        summary["samples"] / summary["seconds"], rel_tol=1e-4)
    assert {device["device"] for device in summary["devices"]} == \
        set(range(len(summary["devices"])))
    for device in summary["devices"]:
        assert 0 <= device["busy"] <= 1
        assert device["arena_bytes"] == device["planned_bytes"]


def compare(*paths):
    evaluations = [read(path)[-1]["eval"] for path in paths]
    for evaluation in evaluations:
        print(evaluation)
    assert len({evaluation["accuracy"] for evaluation in evaluations}) == 1
    for evaluation in evaluations:
        assert math.isclose(evaluation["loss"], evaluations[0]["loss"],
                            rel_tol=2e-6)


if __name__ == "__main__":
    if sys.argv[1] == "--evaluations":
        compare(*sys.argv[2:])
    else:
        check(*sys.argv[1:])
