#!/usr/bin/env python3
"""Prints the ```mlir blocks of a Markdown file that were written by hand, to be
read with -split-input-file. Outputs are the business of compare_outputs.py."""

import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    text = re.sub(r"^<!-- output: .*?^```\w*\n.*?^```", "", file.read(),
                  flags=re.M | re.S)
blocks = re.findall(r"^```mlir\n(.*?)^```", text, re.M | re.S)
if not blocks:
    sys.exit(f"{sys.argv[1]} has no example")
print("\n// -----\n".join(blocks))
