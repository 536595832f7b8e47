"""Reads the error of a run whose loss was not finite: it ended after that update,
or at most so many later.

usage: ended_soon.py ERRORS MOST
"""

import pathlib
import re
import sys

text = pathlib.Path(sys.argv[1]).read_text()
at, last = (int(re.search(word + r" update (\d+),", text)[1])
            for word in ("at", "after"))
print(f"not finite at update {at}, ended after update {last}")
sys.exit(not at <= last <= at + int(sys.argv[2]))
