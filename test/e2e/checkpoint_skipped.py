"""Checks the notes and the count of the checkpoints that a run left out.

usage: checkpoint_skipped.py OUTPUT NOTES UPDATES

One was due after every update.
"""

import pathlib
import re
import sys

output, notes = (pathlib.Path(path).read_text() for path in sys.argv[1:3])
updates = int(sys.argv[3])
written = int(re.search(r"(\d+) checkpoints in", output)[1])
found = re.search(r"; (\d+) more were due while one was being written", output)
skipped = int(found[1]) if found else 0
print(f"{written} written, {skipped} left out")
# The last one is written when there is time for it.
assert written + skipped in (updates, updates + 1)
lines = re.findall(r"no checkpoint of update (\d+): that of update (\d+) is still "
                   r"being written", notes)
print(f"{len(lines)} notes")
assert len(lines) <= skipped and bool(lines) == bool(skipped)
in_the_way = [int(newest) for _, newest in lines]
assert in_the_way == sorted(set(in_the_way)), in_the_way
assert all(int(newest) < int(update) for update, newest in lines)
