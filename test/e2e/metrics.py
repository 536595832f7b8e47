"""Asks a run for its metrics while it trains: they are in Prometheus' text
format, and they move.

usage: metrics.py [--ranks N] FOLDER PROGRAM [ARGUMENT]...
"""

import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request

from kill import find_processes
from transports import ENVIRONMENT, LAUNCHERS

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|Inf)|NaN"
LABEL = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-z_:]+)(?:\{{({LABEL}(?:,{LABEL})*)\}})? ({NUMBER})")


def read(port):
    """Returns values by name and labels; every line is checked."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics",
                                timeout=10) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4"
        text = answer.read().decode()
    kinds, values = {}, collections.defaultdict(dict)
    for line in text.splitlines():
        if line.startswith("# "):
            word, name, rest = line[2:].split(" ", 2)
            if word == "TYPE":
                assert name not in kinds and rest in ("gauge", "counter"), line
                kinds[name] = rest
            else:
                assert word == "HELP" and name not in kinds, line
            continue
        found = SAMPLE.fullmatch(line)
        assert found, line
        name, labels, value = found.groups()
        # All of one name come behind its type.
        assert list(kinds)[-1] == name, line
        assert labels not in values[name], line
        assert kinds[name] != "counter" or float(value) >= 0, line
        values[name][labels] = float(value)
    return values


def main():
    arguments, ranks = sys.argv[1:], 0
    if arguments[0] == "--ranks":
        ranks, arguments = int(arguments[1]), arguments[2:]
    folder, *program = arguments
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    program[0] = os.path.realpath(program[0])
    launcher = [LAUNCHERS["openmpi"], "-n", str(ranks)] if ranks else []
    errors = folder / "errors.txt"
    with errors.open("w") as stream:
        process = subprocess.Popen(
            [*launcher, *program, "--steps=1000000000", "--metrics-port=0",
             f"--tensorboard={folder}/events"],
            stdout=subprocess.DEVNULL, stderr=stream, env=ENVIRONMENT)
    try:
        end, found, first = time.monotonic() + 60, None, {}
        while not found or not first.get("penstock_loss"):
            assert time.monotonic() < end, errors.read_text()
            time.sleep(0.05)
            found = re.search(r"^metrics: port (\d+)$", errors.read_text(),
                              re.MULTILINE)
            first = read(found[1]) if found else {}
        later = first
        evaluates = any(word.startswith("--eval-data") for word in program)
        while (later["penstock_step"] == first["penstock_step"]
               or evaluates and not later.get("penstock_evaluation")):
            assert time.monotonic() < end
            time.sleep(0.1)
            later = read(found[1])
        pid = find_processes(program[0])[0] if ranks else process.pid
        os.kill(pid, signal.SIGTERM)
        process.wait(timeout=60)
    finally:
        process.kill()

    (step,), (samples,) = (later[f"penstock_{name}"].values()
                           for name in ("step", "samples_total"))
    assert samples % step == 0, (samples, step)
    busy = later["penstock_device_busy_ratio"]
    assert all(0 <= value <= 1 for value in busy.values()), busy
    places = sorted(re.findall(r'device="(\d+)",.*rank="(\d+)"', labels)[0]
                    for labels in busy)
    print("devices and ranks:", *(":".join(pair) for pair in places))
    print("ranks that beat:", len(later["penstock_rank_last_beat_seconds"]))
    moved = later["penstock_transfer_bytes_total"]
    print("channels between processes:",
          sum(value > 0 for value in moved.values()))
    for labels, value in sorted(later["penstock_evaluation"].items()):
        print("evaluation:", labels, "is", "finite" if abs(value) < 1e9 else value)
    files = list((folder / "events").glob("events.out.tfevents.*"))
    assert len(files) == 1 and files[0].stat().st_size > 100 * step // 2, files


main()
