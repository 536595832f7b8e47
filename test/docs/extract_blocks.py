#!/usr/bin/env python3
"""Prints the ```mlir blocks of a Markdown file, to be read with -split-input-file.

The first block holds the aliases that all others use.
"""

import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    aliases, *blocks = re.findall(r"^```mlir\n(.*?)^```", file.read(), re.M | re.S)
if not blocks:
    sys.exit(f"{sys.argv[1]} has no example")
print("\n// -----\n".join(aliases + block for block in blocks))
