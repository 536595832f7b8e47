"""Changes a text in a file of --tune, which stays whole.

usage: change_tune.py FILE CHANGED OLD NEW
"""

import hashlib
import sys

source, target, old, new = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    body = file.read().rpartition("sha256 ")[0]
if old not in body:
    sys.exit(f"{source} has no '{old}'")
body = body.replace(old, new)
with open(target, "w", encoding="utf-8") as file:
    file.write(f"{body}sha256 {hashlib.sha256(body.encode()).hexdigest()}\n")
