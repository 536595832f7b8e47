#!/usr/bin/env python3
"""run_page.py PAGE FOLDER [--without WORD]...: runs a page as a reader would.

Of the page's blocks, in order:

  ```console                 lines with `$ ` are run in FOLDER, with `\\` at the end
                             going on; what follows each is what it prints
  <!-- file: NAME --> and    is written to FOLDER/NAME
  the block below it

A line `...` stands for lines left out. Numbers may differ by a tenth, since they
depend on the processor; on lines about times and on those of the table of devices
they are not compared; nor is it whether a message begins with `error:`. The last
command of a block fails if and only if `<!-- fails -->` stands above.
FOLDER is /home/me on the page. Commands with a WORD of --without are not run: what they need is not here. Their
python3 is the one that runs this.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
TIMES = re.compile(r"samples/s|measured|peak memory|^\d+ +\d+ +[\d.]+ %|^(wall|load)")
TOLERANCE = 0.1


def get_blocks(text):
    """(file, whether it fails, lines) of each block that is run or written."""
    for match in re.finditer(
            r"^(?:<!-- (?:file: (\S+)|(fails)) -->\n+)?```(\w*)\n(.*?)^```", text, re.M | re.S):
        name, fails, language, body = match.groups()
        if name or language == "console":
            yield name, bool(fails), body


def get_commands(body):
    """The commands of a block, each with the lines that it prints."""
    commands, goes_on = [], False
    for line in body.splitlines():
        if goes_on:
            commands[-1][0] += "\n" + line
        elif line.startswith("$ "):
            commands.append([line[2:], []])
        elif commands:
            commands[-1][1].append(line)
            continue
        else:
            sys.exit(f"a block begins with output: {line}")
        goes_on = line.endswith("\\")
    return commands


def is_same(shown, printed):
    """Whether a line of the page is that which was printed."""
    shown, printed = (" ".join(line.replace("error: ", "").split())
                      for line in (shown, printed))
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    if TIMES.search(printed):
        return True
    return all(abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) for a, b in zip(
        map(float, NUMBER.findall(shown)), map(float, NUMBER.findall(printed))))


def find_missing(shown, printed):
    """The first line of the page that was not printed where it stands, or none."""
    position, skips = 0, False
    for line in shown:
        if line.strip() == "...":
            skips = True
            continue
        end = len(printed) if skips else position + 1
        found = next((i for i in range(position, min(end, len(printed)))
                      if is_same(line, printed[i])), None)
        if found is None:
            return line
        position, skips = found + 1, False
    return None if skips or position == len(printed) else "(the end of the output)"


parser = argparse.ArgumentParser()
parser.add_argument("page")
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--without", action="append", default=[])
arguments = parser.parse_args()
os.environ["PATH"] = os.pathsep.join(
    [os.path.dirname(sys.executable), os.environ["PATH"]])
text = pathlib.Path(arguments.page).read_text(encoding="utf-8")
wrong = ran = 0
for name, block_fails, body in get_blocks(text):
    if name:
        (arguments.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (arguments.folder / name).write_text(body, encoding="utf-8")
        continue
    commands = get_commands(body)
    for command, shown in commands:
        fails = block_fails and command is commands[-1][0]
        if any(word in command for word in arguments.without):
            continue
        ran += 1
        done = subprocess.run(["bash", "-c", command], cwd=arguments.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        output = done.stdout.replace(str(arguments.folder.resolve()), "/home/me")
        printed = output.splitlines()
        missing = find_missing(shown, printed)
        if missing is None and fails == (done.returncode != 0):
            continue
        wrong += 1
        print(f"{arguments.page}: $ {command}\n  ended with {done.returncode}"
              + (f"; not printed there: {missing}" if missing else "")
              + "\n  it printed:\n" + output)
if not ran:
    sys.exit(f"{arguments.page} shows no command that was run")
sys.exit(wrong != 0)
