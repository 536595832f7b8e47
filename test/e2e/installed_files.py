#!/usr/bin/env python3
"""Are all files that are installed made by a target?  installed_files.py BUILD TARGET

The quickstart builds one target, and `cmake --install` shall work after it.
"""

import pathlib
import re
import subprocess
import sys


def main():
    build, target = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    graph = subprocess.run(["ninja", "-C", str(build), "-t", "graph", target], check=True,
                           capture_output=True, text=True).stdout
    made = set(re.findall(r'label="([^"]+)"', graph))
    installed = set()
    for script in build.rglob("cmake_install.cmake"):
        for path in re.findall(rf'"{re.escape(str(build))}/([^"]+)"', script.read_text()):
            if re.search(r"\.(a|so)$|^bin/", path):
                installed.add(path)
    missing = sorted(installed - made)
    for path in missing:
        print(f"{path} is installed, but '{target}' does not build it")
    print(f"{len(installed)} installed files, {len(missing)} missing")
    return bool(missing) or len(installed) < 10


if __name__ == "__main__":
    sys.exit(main())
