"""Kills a training at random moments, also while it writes a checkpoint, and
lets it go on until it ends: weights, state and log are those of a training that
nobody killed.

usage: kill_and_resume.py FOLDER KILLS EVERY STEPS PROGRAM [ARGUMENT]...
"""

import json
import pathlib
import random
import shutil
import subprocess
import sys
import time


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


def read_log(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        record.pop("seconds", None)
        record.pop("resumed", None)
    return records


def check(process, out, problem):
    assert process.returncode in (0, -9), (process.returncode, problem)
    for line in problem.splitlines():
        assert line.startswith(("note: ", "training: ", "step ")), problem


def main():
    folder, kills, every, steps, *program = sys.argv[1:]
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
        process = subprocess.Popen(command(killed, every, steps, program),
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        if done < kills:
            aims = done % 3 == 2
            wait(process, killed, generator.uniform(0, seconds), aims)
            writes = is_writing(killed)
            if process.poll() is None:
                process.kill()
                done += 1
                in_writer += writes
        out, problem = process.communicate(timeout=300)
        check(process, out, problem)
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
