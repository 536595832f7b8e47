#!/usr/bin/env python3
"""What `auto` takes of microbatches, replicas and recomputation, against every setting by hand.

    planned_settings.py DIR penstockc MODEL [--global-batch=B] [--replicas=auto] [flags]

Without a limit on memory, and with limits that rule out what was taken before: every size of
microbatches that divides the batch, with every width that all stages may have and every width that
--explain names, with each policy of recomputation, is compiled by hand. Of those that fit, none
has a faster update than what is taken, by the time that reports state; that program is the one
that its flags make by hand, byte for byte; and what --explain says of the others is what their
reports say. Where none fits, the exit status is 3, and no setting by hand fits.
"""

import json
import pathlib
import re
import subprocess
import sys

DOES_NOT_FIT, LIMITS = 3, 2
ROW = re.compile(r"^  (or|here ) (--\S+=.*?): (.*)$", re.M)
MICROSECOND = 1e-6


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


def value(flags, name):
    """Of the last flag of this name, or None."""
    found = [flag.split("=", 1)[1] for flag in flags if flag.startswith(f"{name}=")]
    return found[-1] if found else None


class Settings:
    def __init__(self, folder, compiler, model, *flags):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.command = [compiler, model, "--emit=program"]
        self.flags = list(flags)
        batch = value(flags, "--global-batch")
        self.batch = int(batch) if batch else None
        self.plans_replicas = value(flags, "--replicas") == "auto"
        self.policy = value(flags, "--recompute")
        self.devices = int(value(flags, "--devices") or 0)
        replaced = ("--global-batch", "--recompute", *(("--replicas", "--devices")
                                                       if self.plans_replicas else ()))
        self.fixed = [flag for flag in flags if flag.split("=")[0] not in replaced]

    def compile(self, name, *flags):
        """Exit status, what was said, and the report or None."""
        report = self.folder / f"{name}.json"
        report.unlink(missing_ok=True)
        result = subprocess.run([*self.command, "-o", self.folder / f"{name}.mlir", *flags,
                                 f"--report-json={report}"], capture_output=True, text=True)
        return (result.returncode, result.stderr,
                None if result.returncode else json.loads(report.read_text()))

    def sizes(self):
        if not self.batch:
            return [""]
        return [f"--microbatch-size={size} --microbatches={self.batch // size}"
                for size in range(self.batch, 0, -1) if self.batch % size == 0]

    def widths(self, named):
        """All equal ones, and those that --explain names."""
        if not self.plans_replicas:
            return [""]
        every = {f"--devices={width * depth} --replicas={width}"
                 for width in range(1, self.devices + 1)
                 for depth in range(1, self.devices // width + 1)}
        every |= {found[0] for flags in named if (found := re.findall(r"--devices=\S+ "
                                                                      r"--replicas=\S+", flags))}
        return sorted(every)

    def policies(self):
        return ["none", "auto", "full"] if self.policy == "auto" else [self.policy or "none"]

    def by_hand(self, named, limit):
        """By flags, and the policy: seconds if it fits."""
        found, self.needs = {}, []
        for size in self.sizes():
            for widths in self.widths(named):
                for policy in self.policies():
                    flags = " ".join(part for part in (size, widths) if part)
                    status, said, report = self.compile(
                        "hand", *self.fixed, *flags.split(), f"--recompute={policy}", *limit)
                    check(report or status in (1, DOES_NOT_FIT), flags, status)
                    if status == DOES_NOT_FIT:
                        self.needs.append(int(re.search(r"needs [^(]*\((\d+) bytes", said)[1]))
                    if report:
                        found[flags, policy] = report["simulated_seconds"]
        return found

    def compare(self, *limit):
        """What is taken and its bytes, or None."""
        auto = ["--microbatch-size=auto"] if self.batch else []
        status, said, report = self.compile("auto", *self.flags, *auto, "--explain", *limit)
        rows = {flags: (kind, outcome) for kind, flags, outcome in ROW.findall(said)}
        check("not tried" not in said, said)
        every = self.by_hand(rows, limit)
        if not every:
            check(status == DOES_NOT_FIT, status, said)
            need = int(re.search(r"a device needs at least [^(]*\((\d+) bytes", said)[1])
            check(need <= min(self.needs), "a setting by hand needs less:", self.needs, said)
            return None, 0
        check(report, "it is refused, and", every, "fit:", status, said)
        (taken,) = [flags for flags, (kind, _) in rows.items() if kind != "or"]
        plain, policy = (re.fullmatch(r"(.*?)(?: --recompute=(\w+))?", taken)).groups()
        flags = [*self.fixed, *plain.split(), f"--recompute={policy or self.policy or 'none'}",
                 *limit]
        check(self.compile("hand", *flags)[0] == 0, taken, "is not compiled by hand")
        check((self.folder / "auto.mlir").read_bytes() == (self.folder / "hand.mlir").read_bytes(),
              "the programs differ for", taken)
        seconds = report["simulated_seconds"]
        fastest = min(every, key=every.get)
        check(seconds <= every[fastest], "it takes", taken, seconds, "and", fastest, "is faster:",
              every[fastest])
        for flags, (kind, outcome) in rows.items():
            plain, policy = (re.fullmatch(r"(.*?)(?: --recompute=(\w+))?", flags)).groups()
            real = every.get((plain, policy or self.policy or "none"))
            stated = re.match(r"(at least )?([\d.]+) us per update", outcome)
            check(real is None or stated, flags, "fits, and is said not to:", outcome)
            if stated and real is not None:
                bound = float(stated[2]) * MICROSECOND
                check(bound <= real + 1e-8 if stated[1] else abs(bound - real) < 1e-8, flags,
                      "is said to take", outcome, "and takes", real)
        return taken, max(max(stage["arenas"]) for stage in report["stages"])


def main(*arguments):
    settings = Settings(*arguments)
    taken, need = settings.compare()
    every = [taken]
    for _ in range(LIMITS):
        if taken:
            taken, need = settings.compare(f"--device-memory={need - 1}")
            every.append(taken)
    if taken:
        every.append(settings.compare("--device-memory=1000")[0])
    check(every[-1] is None, "1000 bytes are not enough:", every)
    print("taken:", *every, sep="\n  ")


if __name__ == "__main__":
    main(*sys.argv[1:])
