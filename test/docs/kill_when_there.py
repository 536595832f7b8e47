#!/usr/bin/env python3
"""kill_when_there.py FILE -- COMMAND...: kills the command soon after FILE is there."""

import pathlib
import subprocess
import sys
import time

file = pathlib.Path(sys.argv[1])
process = subprocess.Popen(sys.argv[sys.argv.index("--") + 1:])
try:
    for _ in range(600):
        if file.exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    time.sleep(0.3)
finally:
    process.kill()
if process.wait() >= 0 or not file.exists():
    sys.exit(f"it was not running, or there is no {file}")
