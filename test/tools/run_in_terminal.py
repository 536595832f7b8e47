"""run_in_terminal.py COMMAND...: what a command prints on a terminal.

Escape sequences that set the color red appear as [red], those that end colors as
[plain], others as [...].
"""

import os
import pty
import re
import sys

printed = bytearray()


def read(descriptor):
    data = os.read(descriptor, 4096)
    printed.extend(data)
    return data


# What is typed does not matter; the copy of the output goes nowhere.
sys.stdout.flush()
null, out = os.open(os.devnull, os.O_RDWR), os.dup(1)
os.dup2(null, 1)
pty.spawn(sys.argv[1:], read)
os.dup2(out, 1)
text = printed.decode(errors="replace").replace("\r\n", "\n")
text = text.replace("\033[1;31m", "[red]").replace("\033[0m", "[plain]")
text = re.sub("\033\\[[0-9;]*[A-Za-z]", "[...]", text)
sys.stdout.write(text)
