#!/usr/bin/env python3
"""json_fields.py PAGE FOLDER: the fields that a page lists are those of real files.

A table below a line `<!-- fields: FILE... -->` lists in its first column the fields
of the JSON files in FOLDER, together: `stages[].bytes.arena` is a field of the
object `bytes` in each object of the list `stages`. `a.*` stands for an object whose
names are data. A .jsonl file has an object per line. Every field of the files must
be listed, and every listed one be there. Prints what is not.
"""

import json
import pathlib
import re
import sys


def get_fields(value, path=""):
    """The paths of all values that are neither objects nor lists of objects."""
    if isinstance(value, dict) and value:
        for name, member in value.items():
            yield from get_fields(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value):
        for member in value:
            yield from get_fields(member, path + "[]")
    else:
        yield path


def read(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


page, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
tables = re.findall(r"^<!-- fields: (.*?) -->\n+((?:\|.*\n)+)",
                    page.read_text(encoding="utf-8"), re.M)
if not tables:
    sys.exit(f"{page} lists no fields")
wrong = []
for names, table in tables:
    listed = set()
    for row in table.splitlines()[2:]:
        listed.update(re.findall(r"`([^`]+)`", row.split("|")[1]))
    found = set()
    for name in names.split():
        found.update(path.removeprefix("[].") for path in get_fields(read(folder / name)))
    families = [field[:-1] for field in listed if field.endswith(".*")]
    for field in sorted(found):
        if field not in listed and not any(field.startswith(f) for f in families):
            wrong.append(f"{names}: `{field}` is not listed")
    for field in sorted(listed):
        start = field[:-1] if field.endswith(".*") else None
        if not any(f.startswith(start) if start else f == field for f in found):
            wrong.append(f"{names}: there is no `{field}`")
print("\n".join(wrong + [f"{len(tables)} tables, {len(wrong)} wrong"]))
sys.exit(bool(wrong))
