#!/usr/bin/env python3
"""What --microbatch-size=auto takes, against every size given by hand.

    planned_microbatches.py DIR penstockc MODEL BATCH [flags]

Without a limit on memory, and with limits that rule out what was taken before: of all divisors
of the batch with which the program fits, the one that is taken has the fastest update, by the time
that reports state; the program is the one that is compiled for it by hand, byte for byte. What
--explain says of the sizes is what their reports say. Where none fits, the exit status is 3, and
the bytes named are the least that any size needs.
"""

import json
import pathlib
import re
import subprocess
import sys

DOES_NOT_FIT, LIMITS = 3, 2
ROW = re.compile(r"^  (or|here ) --microbatch-size=(\d+) --microbatches=(\d+): (.*)$", re.M)


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


class Sizes:
    def __init__(self, folder, compiler, model, batch, *flags):
        self.folder, self.batch = pathlib.Path(folder), int(batch)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.command = [compiler, model, "--emit=program", *flags]

    def compile(self, name, *flags):
        """Exit status, what was said, and the report or None."""
        report = self.folder / f"{name}.json"
        report.unlink(missing_ok=True)
        result = subprocess.run([*self.command, "-o", self.folder / f"{name}.mlir", *flags,
                                 f"--report-json={report}"], capture_output=True, text=True)
        return (result.returncode, result.stderr,
                None if result.returncode else json.loads(report.read_text()))

    def by_hand(self, *flags):
        """What each size comes to: seconds and bytes, or none and the bytes that it lacks."""
        found = {}
        for size in range(1, self.batch + 1):
            if self.batch % size:
                continue
            status, said, report = self.compile(f"size{size}", f"--microbatch-size={size}",
                                                f"--microbatches={self.batch // size}", *flags)
            if report:
                found[size] = (report["simulated_seconds"],
                               max(max(stage["arenas"]) for stage in report["stages"]))
            elif status == DOES_NOT_FIT:
                found[size] = (None, int(re.search(r"needs (\d+) bytes", said)[1]))
        return found

    def compare(self, *flags):
        """The size that is taken and its bytes, or None."""
        every = self.by_hand(*flags)
        status, said, report = self.compile("auto", f"--global-batch={self.batch}",
                                            "--microbatch-size=auto", "--explain", *flags)
        rows = {int(size): (kind, outcome) for kind, size, _, outcome in ROW.findall(said)}
        check(set(every) <= set(rows), "sizes", set(rows), "were planned, not", set(every))
        fitting = {size: seconds for size, (seconds, _) in every.items() if seconds}
        if not fitting:
            check(status == DOES_NOT_FIT, status, said)
            need = int(re.search(r"a device needs (\d+) bytes", said)[1])
            check(need == min(need for _, need in every.values()), "another size needs less:",
                  every, said)
            return None, 0
        check(report, status, said)
        best = min(fitting, key=lambda size: (fitting[size], -size))
        taken = report["microbatch_size"]
        check(taken == best and report["microbatches"] == self.batch // best, "it takes", taken,
              "and", best, "is faster:", every)
        check((self.folder / "auto.mlir").read_bytes() ==
              (self.folder / f"size{best}.mlir").read_bytes(), "the programs differ for", best)
        for size, (kind, outcome) in rows.items():
            check((kind != "or") == (size == best), "row of", size)
            seconds = every.get(size, (None, 0))[0]
            said_us = re.match(r"(at least )?([\d.]+) us per update", outcome)
            check(bool(said_us) == (seconds is not None) or
                  (said_us and said_us[1] and float(said_us[2]) * 1e-6 >= fitting[best]),
                  "row of", size, outcome, every)
            if said_us and seconds:
                stated = float(said_us[2]) * 1e-6
                check(stated <= seconds + 1e-8 if said_us[1] else abs(stated - seconds) < 1e-8,
                      size, "is said to take", outcome, "and takes", seconds)
        return best, every[best][1]


def main(*arguments):
    sizes = Sizes(*arguments)
    taken, need = sizes.compare()
    every = [taken]
    for _ in range(LIMITS):
        if taken:
            taken, need = sizes.compare(f"--device-memory={need - 1}")
            every.append(taken)
    if taken:
        every.append(sizes.compare("--device-memory=1000")[0])
    check(every[-1] is None, "1000 bytes are not enough:", every)
    print("sizes taken:", *every)


if __name__ == "__main__":
    main(*sys.argv[1:])
