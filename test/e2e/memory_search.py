#!/usr/bin/env python3
"""What a limit on memory makes of cuts and recomputation.

    memory_search.py DIR penstockc MODEL [flags]

With `--recompute=auto` the bytes of a plan follow the limit: above what the
plan needs nothing is recomputed; between that and what full recomputation needs
every plan fits; below, the exit status is 3 and the message names a stage and
its bytes. With `--stages=auto` the same, by moving the cuts, and with `--replicas=auto`, by
other replicas.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import plan_reports


def main(folder, *command):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def compile(*flags):
        status, stages = plan_reports.compile_plan(command, folder / "out.mlir",
                                                   "--emit=program", *flags)
        return status, stages, None if status else max(plan_reports.arenas(stages).values())

    def check(condition, what):
        if not condition:
            sys.exit(what)

    code, plain, most = compile("--stages=3")
    check(code == 0, plain)
    _, _, least = compile("--stages=3", "--recompute=full")
    print(f"three stages need {most} bytes, recomputed {least}")
    check(least < most, "full recomputation needs no less")

    # Recomputation, the cuts as they are.
    before = sum(s["bytes"]["residuals"] for s in plain)
    for limit in (most, most - 64, (most + least) // 2, least):
        code, stages, need = compile("--stages=3", "--recompute=auto",
                                     f"--device-memory={limit}")
        check(code == 0, f"{limit}: {stages}")
        stored = sum(s["bytes"]["residuals"] for s in stages)
        print(f"limit {limit}: needs {need}, residuals {stored}")
        check(need <= limit, "it does not fit")
        check((stored == before) == (limit == most),
              "it recomputes without need, or not")
        check(stored <= before, "it stores more")
    code, text, _ = compile("--stages=3", "--recompute=auto",
                            f"--device-memory={least // 2}")
    print(f"limit {least // 2}: exit status {code}: {text.strip()}")
    said = re.search(r"stage \d needs [^(]*\((\d+) bytes\), .* more.*--device-memory=([\d.]+)([KM])iB would do", text)
    check(code == plan_reports.DOES_NOT_FIT and said, "not refused as it should be")
    unit = {"K": 1 << 10, "M": 1 << 20}[said[3]]
    check(0 <= float(said[2]) * unit - int(said[1]) < unit / 100, "the bytes differ")
    check(compile("--stages=3", "--recompute=auto",
                  f"--device-memory={said[2]}{said[3]}iB")[0] == 0,
          "what would do does not")

    # Other cuts.
    code, stages, need = compile("--stages=auto", "--devices=3",
                                 f"--device-memory={most}")
    check(code == 0 and need == most, "the same cuts fit, and were not taken")
    for limit in (most - 64, most * 15 // 16):
        code, stages, need = compile("--stages=auto", "--devices=3",
                                     f"--device-memory={limit}")
        print(f"limit {limit}, any cuts: {code} {need}")
        check(code == 0 and need <= limit, f"{limit}: {stages}")
        check(len(stages) == 3, "it has other stages")
    code, text, _ = compile("--stages=auto", "--devices=3",
                            "--device-memory=10000")
    print(f"limit 10000, any cuts: exit status {code}: {text.strip()}")
    check(code == plan_reports.DOES_NOT_FIT, "not refused as it should be")

    # Other replicas.
    every = ("--stages=auto", "--replicas=auto", "--devices=4")
    code, fastest, most = compile(*every)
    check(code == 0, fastest)
    code, stages, need = compile(*every, f"--device-memory={most}")
    check(code == 0 and shape(stages) == shape(fastest),
          f"the fastest plan fits, and was not taken: {stages}")
    for limit in (most - 64, most * 7 // 8):
        code, stages, need = compile(*every, f"--device-memory={limit}")
        print(f"limit {limit}, any replicas: {code} {need}")
        check(code == 0 and need <= limit, f"{limit}: {stages}")
        check(shape(stages) != shape(fastest), "it is the same plan")
    code, text, _ = compile(*every, "--device-memory=100000")
    print(f"limit 100000, any replicas: exit status {code}: {text.strip()}")
    said = re.search(r"the closest is --devices=\d --replicas=[\d,]+, where a device needs at least "
                     r"[^(]*\((\d+) bytes\), [\d.]+ \w+ more", text)
    check(code == plan_reports.DOES_NOT_FIT and said, "not refused as it should be")
    check(int(said[1]) > 100000, "the bytes would fit")


def shape(stages):
    return [(stage["parameters"], stage["devices"] or stage["device"]) for stage in stages]


if __name__ == "__main__":
    main(*sys.argv[1:])
