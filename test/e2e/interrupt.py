"""Interrupts a training at random moments; what it leaves is what a training
of that length leaves.

usage: interrupt.py FOLDER ROUNDS PROGRAM [ARGUMENT]...
"""

import pathlib
import random
import re
import signal
import subprocess
import sys
import time

from transports import read_log


def train(program, folder, name, updates):
    """Starts a training that writes NAME.jsonl and NAME.onnx. It does not ignore
    SIGINT, as what a shell starts in the background does."""
    files = [f"--log={folder}/{name}.jsonl", f"--save={folder}/{name}.onnx"]
    return subprocess.Popen([*program, f"--steps={updates}", *files],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, preexec_fn=lambda: signal.signal(
                                signal.SIGINT, signal.SIG_DFL))


def wait_until_caught(process, number):
    """A signal before that would end the process."""
    status = pathlib.Path(f"/proc/{process.pid}/status")
    end = time.monotonic() + 60
    while time.monotonic() < end:
        caught = re.search(r"SigCgt:\s*(\w+)", status.read_text())
        if int(caught.group(1), 16) >> (number - 1) & 1:
            return
        time.sleep(0.001)
    process.kill()
    sys.exit(f"{process.args[0]} does not catch signal {number}")


def main():
    folder, rounds, *program = sys.argv[1:]
    folder = pathlib.Path(folder)
    generator = random.Random(int(rounds))
    for i in range(int(rounds)):
        number = (signal.SIGINT, signal.SIGTERM)[i % 2]
        process = train(program, folder, "interrupted", 10**12)
        wait_until_caught(process, number)
        time.sleep(generator.uniform(0, 0.5))
        process.send_signal(number)
        out, problem = process.communicate(timeout=120)
        assert process.returncode == 128 + number, (process.returncode, problem)
        # Behind the line that begins a training.
        found = re.fullmatch(
            f"training: .*\ninterrupted by {number.name} after update (\\d+) of 1000000000000\n",
            problem)
        assert found, problem
        updates = int(found.group(1))
        print(f"{number.name} after update {updates}")
        if not updates:
            continue
        assert f"{updates} updates of" in out, out
        process = train(program, folder, "short", updates)
        _, problem = process.communicate(timeout=120)
        assert process.returncode == 0, problem
        short, interrupted = (
            (read_log(folder / f"{name}.jsonl"),
             (folder / f"{name}.onnx").read_bytes())
            for name in ("short", "interrupted"))
        assert len(interrupted[0]) == updates
        assert short == interrupted, f"{updates} updates differ"


main()
