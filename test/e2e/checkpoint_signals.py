"""A checkpoint that a signal asks for, and the one that a signal ends with.

usage: checkpoint_signals.py [--ranks N] FOLDER PROGRAM [ARGUMENT]...

With --ranks it runs as N processes under Open MPI; the last one gets the first
signal, and the first one the second.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from kill import find_processes, wait_for
from transports import ENVIRONMENT, LAUNCHERS


def checkpoints_in(run):
    return sorted(path.name for path in run.glob("step-*")
                  if not path.name.endswith(".part"))


def catches(pid, number):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    caught = re.search(r"SigCgt:\s*(\w+)", status).group(1)
    return int(caught, 16) >> (number - 1) & 1


def interrupt(process, executable, ranks, run, log):
    """Asks for a checkpoint, then for the end; returns when that was."""
    wait_for(lambda: log.exists() and log.stat().st_size > 0)
    pids = find_processes(executable) if ranks else {0: process.pid}
    assert not ranks or len(pids) == ranks, pids
    wait_for(lambda: all(catches(pid, signal.SIGUSR1) for pid in pids.values()))
    os.kill(pids[max(pids)], signal.SIGUSR1)
    wait_for(lambda: len(checkpoints_in(run)) == 1)
    first = int(checkpoints_in(run)[0][5:])
    # It goes on.
    size = log.stat().st_size
    wait_for(lambda: log.stat().st_size > size)
    os.kill(pids[0], signal.SIGTERM)
    out, problem = process.communicate(timeout=60)
    assert process.returncode == 143, (process.returncode, problem)
    drains = re.findall(r"note: stopped at update (\d+): this adds a drain",
                        problem)
    last = int(re.search(r"interrupted by SIGTERM after update (\d+)",
                         problem).group(1))
    print(f"asked for at {first}, ended at {last}")
    assert checkpoints_in(run) == [f"step-{step:09d}"
                                   for step in (first, last)]
    assert not drains or [int(step) for step in drains] == [first, last]
    print("drains:", len(drains))
    return last


def main():
    arguments, ranks = sys.argv[1:], 0
    if arguments[0] == "--ranks":
        ranks, arguments = int(arguments[1]), arguments[2:]
    folder, *program = arguments
    program[0] = os.path.realpath(program[0])
    launcher = [LAUNCHERS["openmpi"], "-n", str(ranks)] if ranks else []
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run = folder / "run"
    process = subprocess.Popen(
        [*launcher, *program, "--steps=1000000000", f"--checkpoint-dir={run}",
         f"--log={folder}/log.jsonl"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=ENVIRONMENT)
    try:
        last = interrupt(process, program[0], ranks, run, folder / "log.jsonl")
    finally:
        process.kill()

    # Nothing is left to do where it ended.
    result = subprocess.run([*program, f"--steps={last}", f"--resume={run}",
                             f"--save={folder}/model.onnx"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
    assert result.returncode == 0, result.stderr
    assert (f"resumed at update {last} of {last}, from {run}/step-{last:09d}: "
            "nothing is left to train") in result.stdout, result.stdout
    assert (folder / "model.onnx").exists()


main()
