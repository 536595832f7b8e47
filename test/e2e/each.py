#!/usr/bin/env python3
"""Runs a command of the shell for each of several variants, until one fails.

    each.py COMMAND VARIANT...

A variant is "NAME: FLAGS", or flags alone, which are then its name, too. COMMAND
has {name} and {flags} in their places.
"""

import subprocess
import sys

command, *variants = sys.argv[1:]
for variant in variants:
    name, _, flags = variant.rpartition(": ")
    text = command.replace("{name}", name or flags).replace("{flags}", flags)
    print("$", text, flush=True)
    if subprocess.run(["sh", "-ec", text], check=False).returncode:
        sys.exit(f"each: {variant}: failed")
