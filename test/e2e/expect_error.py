#!/usr/bin/env python3
"""Runs a command that must fail the way every mistake of a user does.

    expect_error.py [--code N] [--any-lines] [--absent PATH]... WORD... -- COMMAND...

The exit status is N (default 1), stderr is one line (any number with
--any-lines) besides the one that begins a training; it holds every WORD, case
aside, and no PATH exists afterwards, nor a temporary file that begins with its
name.
"""

import pathlib
import subprocess
import sys


def main(arguments):
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1:]
    code, any_lines, absent, words = 1, False, [], []
    while options:
        option = options.pop(0)
        if option == "--code":
            code = int(options.pop(0))
        elif option == "--any-lines":
            any_lines = True
        elif option == "--absent":
            absent.append(pathlib.Path(options.pop(0)))
        else:
            words.append(option)

    print("$", *command, flush=True)
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            timeout=120)
    print(result.stderr, end="")
    problems = []
    if result.returncode != code:
        problems.append(f"exit status {result.returncode}, expected {code}")
    lines = [line for line in result.stderr.splitlines()
             if not line.startswith("training: ")]
    if not lines or (len(lines) != 1 and not any_lines):
        problems.append(f"{len(lines)} lines on stderr, expected one")
    problems += [f"stderr does not name '{word}'" for word in words
                 if word.lower() not in result.stderr.lower()]
    for path in absent:
        left = [str(p) for p in path.parent.glob(path.name + "*")]
        left += [str(p) for p in path.parent.glob("." + path.name + "*")]
        problems += [f"{p} was left behind" for p in left]
    for problem in problems:
        print("expect_error:", problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
