#!/usr/bin/env python3
"""Prints digests of the numbers that the end-to-end tests left behind.

  scripts/digests.py BUILD            a line per file: digest, path
  scripts/digests.py BUILD BEFORE     compares with another build's; exits with 1
                                      where a file that both have differs

Run the tests of both builds first: `lit BUILD/test --filter e2e`. Covered are
the logs of losses (without `seconds`, which no two runs share), saved models and
output arrays. For changes that must keep every bit.
"""

import hashlib
import json
import pathlib
import sys

SUFFIXES = (".jsonl", ".losses", ".onnx", ".npy")


def content(path):
    """Returns what of a file must not change."""
    data = path.read_bytes()
    if path.suffix not in (".jsonl", ".losses"):
        return data
    lines = []
    for line in data.decode(errors="replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            return data
        if isinstance(record, dict):
            record.pop("seconds", None)
        lines.append(json.dumps(record))
    return "\n".join(lines).encode()


def digests(build):
    root = pathlib.Path(build) / "test"
    return {
        path.relative_to(root).as_posix():
            hashlib.sha256(content(path)).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix in SUFFIXES
        and "Output" in path.parts}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    after = digests(sys.argv[1])
    if not after:
        sys.exit(f"digests.py: no end-to-end test has run in {sys.argv[1]}")
    if len(sys.argv) == 2:
        for path, digest in after.items():
            print(digest, path)
        return 0
    before = digests(sys.argv[2])
    shared = before.keys() & after.keys()
    differ = sorted(path for path in shared if before[path] != after[path])
    for path in differ:
        print(f"differs: {path}")
    for path in sorted(before.keys() - after.keys()):
        print(f"only before: {path}")
    total = hashlib.sha256("\n".join(
        f"{after[path]} {path}" for path in sorted(shared)).encode())
    print(f"{len(shared)} files, {len(differ)} differ, "
          f"digest of all {total.hexdigest()}")
    return 1 if differ or not shared else 0


sys.exit(main())
