"""Prints the files of CONTRIBUTING's guides that are missing: guides.py ROOT

A guide, "## Add a schedule", has a table of files. A row names files of the tree; a
path with NAME, or a folder, stands for those of the kind that are there. An example
is a link to a file that the build of a test names.
"""

import pathlib
import re
import sys

KINDS = ("an operator", "a schedule", "a method", "a target", "a transport")
root = pathlib.Path(sys.argv[1])
text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
builds = "".join((root / path).read_text() for path in (
    "examples/plugin/CMakeLists.txt", "test/runtime/CMakeLists.txt",
    "test/unit/runtime/CMakeLists.txt"))
files, missing = 0, []
for kind in KINDS:
    guide = text.split(f"## Add {kind}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", guide, re.M)
    paths = [path for row in rows for path in re.findall(r"`([^`]+)`", row)]
    examples = re.findall(r"\]\(((?:examples|test)/[^)]+\.cpp)\)", guide)
    files += len(paths) + len(examples)
    missing += [f"{kind}: {path}" for path in paths + examples
                if not any(root.glob(path.rstrip("/").replace("NAME", "*")))]
    missing += [f"{kind}: {path} is in no build" for path in examples
                if pathlib.Path(path).name not in builds]
    missing += [f"{kind}: no {what}" for what, found in
                (("table", rows), ("example", examples)) if not found]
print("\n".join(missing))
print(f"{len(KINDS)} guides, {files} files, {len(missing)} missing")
