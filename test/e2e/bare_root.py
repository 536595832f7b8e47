#!/usr/bin/env python3
"""Runs a program where there is nothing but what it needs.

    bare_root.py ROOT PROGRAM FILE... -- ARGUMENT...

Makes the folder ROOT with PROGRAM, the FILEs beside it, the libraries that
PROGRAM is linked with and those that it loads (oneDNN and what that needs), and
nothing else, neither /proc nor /dev; then runs PROGRAM in it by chroot(2).
Prints how many bytes there are of each.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

LOADED = ["libdnnl.so.2"]


def find_libraries(path):
    """What ldd lists: the libraries, and the loader."""
    output = subprocess.run(["ldd", path], capture_output=True, text=True,
                            check=True).stdout
    return re.findall(r"(/\S+) \(0x", output)


def main(arguments):
    split = arguments.index("--")
    (root, program, *files), rest = arguments[:split], arguments[split + 1:]
    root = pathlib.Path(root)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True,
                           text=True, check=True).stdout
    libraries = find_libraries(program)
    for name in LOADED:
        found = re.search(rf"^\s*{re.escape(name)} .* => (\S+)$", cache, re.MULTILINE)
        libraries += [found[1], *find_libraries(found[1])]
    for library in sorted(set(libraries)):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
        print("library", pathlib.Path(library).name)
    for file in (program, *files):
        shutil.copy(file, root)
        print("file", pathlib.Path(file).name, os.path.getsize(file))
    sys.stdout.flush()
    command = ["chroot", str(root), "/" + pathlib.Path(program).name, *rest]
    result = subprocess.run(command, check=False, timeout=120)
    sys.exit(result.returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
