"""Kills, stops and crashes processes of a run, and says how the others ended.

usage: kill.py EXECUTABLE FOLDER --data NAME=FILE --labels FILE [--rounds N]
           [--ranks 2,3,4] [--signals KILL STOP SEGV] [--mpi openmpi]
           [--limit SECONDS] [--peer-timeout SECONDS] [--seed S] [--show N]
           [--doctor PENSTOCK-DOCTOR]

SIGTERM and SIGINT are no such end: see stop.py. Each round starts the executable as several processes, waits a random time, and
sends a signal to one of them. All others have to end within the limit, with code
5 or by the launcher, and one line has to name the rank that was hit. Nothing of
the run may be left. With --doctor, its sentence about the flight record of the
round has to name the same rank. Prints the distribution of the times until the last of the
others had ended, and the lines of the first rounds. Exit code 1 if anything was
otherwise.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

from transports import ENVIRONMENT, LAUNCHERS

LINE = re.compile(r"^error: (?:\[rank \d+\] )?rank (\d+) \(.*\) was lost (?:at|after) \S+ "
                  r".*: (connection closed|no sign of life for [\d.]+ s.*)$|"
                  r"^error: (?:\[rank \d+\] )?rank (\d+) \(.*: .*$", re.MULTILINE)


def rank_of(pid):
    """The rank of a process by its environment, or None if it is none."""
    try:
        text = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode()
    except OSError:
        return None
    found = re.search(r"(?:OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d+)\0", text)
    return int(found[1]) if found else None


def wait_for(condition):
    """Returns when it holds; fails after a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def find_processes(executable):
    """Returns the processes that run the executable, by rank."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe") == executable:
                rank = rank_of(entry.name)
                if rank is not None:
                    found[rank] = int(entry.name)
        except OSError:
            pass
    return found


def is_alive(pid, executable):
    try:
        return (os.readlink(f"/proc/{pid}/exe") == executable and
                pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
                .split()[0] not in "ZX")
    except OSError:
        return False


def play(options, number, rng):
    """Returns the seconds until the others had ended, and what was printed."""
    size = rng.choice(options.ranks)
    name = rng.choice(options.signals)
    log = options.folder / "run.jsonl"
    log.unlink(missing_ok=True)
    flight = options.folder / "flight"
    shutil.rmtree(flight, ignore_errors=True)
    errors = options.folder / "errors.txt"
    command = [LAUNCHERS[options.mpi], "-n", str(size), options.executable,
               "--data", options.data, "--labels", options.labels,
               "--steps", "1000000000", "--log", log,
               "--peer-timeout", str(options.peer_timeout),
               "--flight-record", flight]
    with errors.open("w") as stream:
        launcher = subprocess.Popen(command, stdout=stream, stderr=stream,
                                    env=ENVIRONMENT)
    # 1. Until it trains, and a while longer.
    end = time.monotonic() + 60
    while not (log.exists() and log.stat().st_size):
        if launcher.poll() is not None or time.monotonic() > end:
            sys.exit(f"round {number}: the run did not start\n"
                     + errors.read_text())
        time.sleep(0.01)
    processes = find_processes(options.executable)
    if len(processes) != size:
        sys.exit(f"round {number}: {len(processes)} of {size} processes")
    time.sleep(rng.uniform(0, 0.5))
    victim = rng.randrange(size)
    begin = time.monotonic()
    os.kill(processes[victim], getattr(signal, "SIG" + name))

    # 2. Until the others have ended.
    others = [pid for rank, pid in processes.items()
              if rank != victim or name != "STOP"]
    while any(is_alive(pid, options.executable) for pid in others):
        if time.monotonic() - begin > options.limit:
            for pid in processes.values():
                os.kill(pid, signal.SIGKILL)
            sys.exit(f"round {number}: {name} of rank {victim} of {size}: the "
                     f"others did not end in {options.limit} s\n"
                     + errors.read_text())
        time.sleep(0.005)
    seconds = time.monotonic() - begin
    try:
        code = launcher.wait(timeout=options.limit)
    except subprocess.TimeoutExpired:
        sys.exit(f"round {number}: the launcher did not end")
    text = errors.read_text()
    named = [match[1] or match[3] for match in re.finditer(LINE, text)]
    if str(victim) not in named:
        sys.exit(f"round {number}: {name} of rank {victim} of {size}: no line "
                 f"names it\n{text}")
    if code == 0:
        sys.exit(f"round {number}: the launcher ended with code 0")
    # 3. What is left, after the launcher has cleaned up.
    end = time.monotonic() + options.limit
    while any(is_alive(pid, options.executable) for pid in processes.values()):
        if time.monotonic() > end:
            sys.exit(f"round {number}: a process is left")
        time.sleep(0.02)
    if options.doctor:
        found = json.loads(subprocess.run(
            [options.doctor, "--json", flight], check=True, capture_output=True,
            text=True).stdout)
        # All have trained, as there was a log.
        if found["rank"] != victim or "before its first" in found["sentence"]:
            sys.exit(f"round {number}: {name} of rank {victim} of {size}: the "
                     f"doctor says: {found['sentence']}\n{text}")
    line = next(line for line in text.splitlines() if line.startswith("error:"))
    return seconds, code, f"{name} of rank {victim} of {size}: {line}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("executable")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--data", required=True)
    parser.add_argument("--labels", required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--ranks", type=lambda text: list(map(int, text.split(","))),
                        default=[2, 3, 4])
    parser.add_argument("--signals", nargs="*",
                        default=["KILL", "STOP", "SEGV"])
    parser.add_argument("--mpi", default="openmpi")
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--peer-timeout", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--doctor")
    options = parser.parse_args()
    options.executable = os.path.realpath(options.executable)
    options.folder.mkdir(parents=True, exist_ok=True)
    if not shutil.which(LAUNCHERS[options.mpi]):
        sys.exit(f"{LAUNCHERS[options.mpi]} is not installed")
    rng = random.Random(options.seed)
    times, codes = {}, {}
    for number in range(options.rounds):
        seconds, code, text = play(options, number, rng)
        times.setdefault(text.partition(" ")[0], []).append(seconds)
        codes[code] = codes.get(code, 0) + 1
        if number < options.show:
            print(text, flush=True)
    for name, values in sorted(times.items()):
        values.sort()
        print(f"{name}: {len(values)} rounds, others ended after least "
              f"{values[0]:.3f} s, median {statistics.median(values):.3f} s, "
              f"99 % {values[min(len(values) - 1, int(len(values) * .99))]:.3f} s, "
              f"most {values[-1]:.3f} s")
    print("codes of the launcher:", ", ".join(f"{code} {count} times"
                                              for code, count in sorted(codes.items())))
    print(f"{options.rounds} rounds: all ended, the rank was named, none left")


if __name__ == "__main__":
    main()
