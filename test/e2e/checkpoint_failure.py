"""One of two processes cannot write its part of a checkpoint: training goes on,
rank 0 says which one and why, and no part is left.

usage: checkpoint_failure.py FOLDER PROGRAM [ARGUMENT]...
"""

import os
import pathlib
import resource
import signal
import subprocess
import sys

from kill import find_processes, wait_for
from transports import ENVIRONMENT, LAUNCHERS


def main():
    folder, *program = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    log, errors, run = folder / "log.jsonl", folder / "errors.txt", folder / "run"
    program = [os.path.realpath(program[0]), *program[1:], "--steps=1000000000",
               f"--checkpoint-dir={run}", f"--log={log}"]
    # What is too long fails, and does not end the process.
    ignoring = ["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""]
    with errors.open("w") as stream:
        process = subprocess.Popen(
            [LAUNCHERS["openmpi"], "-n", "1", *program, ":", "-n", "1",
             *ignoring, *program], stdout=stream, stderr=stream,
            env=ENVIRONMENT)
    try:
        wait_for(lambda: log.exists() and log.stat().st_size)
        pids = find_processes(program[0])
        resource.prlimit(pids[1], resource.RLIMIT_FSIZE, (1000, 1000))
        os.kill(pids[1], signal.SIGUSR1)
        wait_for(lambda: "warning: " in errors.read_text())
        size = log.stat().st_size
        wait_for(lambda: log.stat().st_size > size)
        os.kill(pids[0], signal.SIGTERM)
        code = process.wait(timeout=60)
    finally:
        process.kill()
    text = errors.read_text()
    print(text)
    # The last one is missing, which is worse than having been interrupted.
    assert code == 1, code
    assert not list(run.glob("step-*")), list(run.iterdir())


main()
