"""Kills a training at random moments, also while it writes a checkpoint, and
lets it go on until it ends: weights, state and log are those of a training that
nobody killed.

usage: kill_and_resume.py [--ranks 2,3,4] FOLDER KILLS EVERY STEPS PROGRAM
           [ARGUMENT]...

With --ranks it runs as so many processes under Open MPI, another number each
time, and any of them is killed; the one that nobody kills is one process.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from kill import find_processes
from transports import ENVIRONMENT, LAUNCHERS


def command(folder, every, steps, program):
    return [*program, f"--steps={steps}", f"--log={folder}/log.jsonl",
            f"--save={folder}/model.onnx", f"--checkpoint-dir={folder}/run",
            f"--checkpoint-every={every}", "--resume-if-any"]


def is_writing(folder):
    return any((folder / "run").glob("step-*.part"))


def wait(process, folder, seconds, in_writer):
    """Returns when it is time to kill, or the process has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.001)
    while in_writer and process.poll() is None and not is_writing(folder):
        pass


def wait_for_training(process, folder, before):
    """The log is opened anew when a training begins."""
    log = folder / "log.jsonl"
    while process.poll() is None:
        if log.exists() and log.stat().st_mtime_ns > before:
            return
        time.sleep(0.001)


def kill(process, executable, generator):
    """Kills one of its processes, and waits for all; whether it could."""
    if process.poll() is not None:
        return False
    if process.args[0] == executable:
        process.kill()
        return True
    found = find_processes(executable)
    if not found:
        return False
    try:
        os.kill(generator.choice(sorted(found.values())), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def read_log(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        record.pop("seconds", None)
        record.pop("resumed", None)
    return records


def check(process, problem, is_launched):
    if is_launched:
        # The launcher has more to say of a process that was killed.
        assert process.returncode in (0, 5, 137), (process.returncode, problem)
        return
    assert process.returncode in (0, -9), (process.returncode, problem)
    for line in problem.splitlines():
        assert line.startswith(("note: ", "training: ", "step ")), problem


def main():
    arguments, ranks = sys.argv[1:], []
    if arguments[0] == "--ranks":
        ranks = [int(text) for text in arguments[1].split(",")]
        arguments = arguments[2:]
    folder, kills, every, steps, *program = arguments
    program[0] = os.path.realpath(program[0])
    folder, kills = pathlib.Path(folder), int(kills)
    whole, killed = folder / "whole", folder / "killed"
    for each in (whole, killed):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir(parents=True)
    start = time.monotonic()
    subprocess.run(command(whole, every, steps, program), check=True,
                   stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - start

    generator = random.Random(kills)
    done = resumed = in_writer = 0
    while True:
        size = generator.choice(ranks) if ranks else 0
        launcher = [LAUNCHERS["openmpi"], "-n", str(size)] if size else []
        before = time.time_ns()
        process = subprocess.Popen(
            launcher + command(killed, every, steps, program),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=ENVIRONMENT)
        if done < kills:
            aims = done % 3 == 2
            if ranks:
                wait_for_training(process, killed, before)
            wait(process, killed, generator.uniform(0, seconds), aims)
            writes = is_writing(killed)
            if kill(process, program[0], generator):
                done += 1
                in_writer += writes
        out, problem = process.communicate(timeout=300)
        check(process, problem, bool(ranks))
        resumed += "resumed at update" in out
        if process.returncode == 0 and done >= kills:
            break
        if process.returncode == 0:  # It was too fast; once more.
            shutil.rmtree(killed)
            killed.mkdir()
    print(f"killed {done} times, {in_writer} of them in the writer, resumed "
          f"{resumed} times")
    assert read_log(killed / "log.jsonl") == read_log(whole / "log.jsonl")
    assert ((killed / "model.onnx").read_bytes()
            == (whole / "model.onnx").read_bytes())
    subprocess.run(["penstock-checkpoint", "--diff", whole / "run",
                    killed / "run"], check=True)


main()
