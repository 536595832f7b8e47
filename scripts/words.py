#!/usr/bin/env python3
"""words.py [--list TERM | --check | --write]: words that are not the field's.

The table in docs/style.md says which, each with a regular expression. Counts the
lines of the repository's files that match, per term; --list prints the lines of one
term. scripts/words.json has the counts that are allowed: --check fails where there
are more (they may only fall), --write puts the present ones there, if none is more.

Exempt are the lines that an expression below matches: names of algorithms, flags
and formats, of other projects, and English that has no other word.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTS = ROOT / "scripts" / "words.json"
SUFFIXES = (".h", ".cpp", ".c", ".td", ".def", ".md", ".py", ".cmake", ".sh", ".inc", ".in")
# Not read: data and fixtures, what is copied from elsewhere, and the table itself.
NOT_READ = ("docs/style.md", "scripts/words.py", "LICENSE", "examples/gpt/alice.txt")
EXEMPT = {
    "turn": [r"\b(in turn|by turns|tak(e|es|ing) turns|in \w+ turns)\b",
             r"\bturns? (out|on|off|it|into|all|over|a|an|the|that|ONNX)\b"],
    "price": [r"\bprice of\b", r"\btheir price\b"],
    "way": [r"\b(by|the|a|an|other|one|this|that|same|on its|all the|in|no|either|each) way\b",
            r"way (back|down|up|to|of)\b", r"\bway that\b"],
    # A field of the JSON report; what a pipeline has with its fill.
    "drain": [r"\bdrain_seconds\b", r"\bfill\b.*\bdrain\b"],
    "beaten": [r"\bisBeat\b"],  # of the heart
    "defect": [r"PENSTOCK_DEFECT"],  # of the C API
    "homes": [r"HOME\b", r"\bhome folder\b", r"/home/"],
    "-ise, -our": [r"--\w*is(e|ation)\b"],
}


def read_terms():
    """Per term, its expression and what to say instead."""
    text = (ROOT / "docs" / "style.md").read_text(encoding="utf-8")
    table = text[text.index("| not | expression | but |"):]
    terms = {}
    for row in table.splitlines()[2:]:
        if not row.startswith("|"):
            break
        term, expression, instead = (
            cell.strip().replace(r"\|", "|")
            for cell in re.split(r"(?<!\\)\|", row)[1:4])
        terms[term] = (re.compile(expression.strip("`")), instead)
    return terms


def find_uses(terms):
    """Per term, the (file, line number, line) where it is used."""
    files = sorted(path.relative_to(ROOT).as_posix() for folder in ROOT.iterdir()
                   if folder.name != "build" and not folder.name.startswith(".")
                   for path in ([folder] if folder.is_file() else folder.rglob("*")))
    exempt = {term: [re.compile(e) for e in EXEMPT.get(term, [])] for term in terms}
    uses = {term: [] for term in terms}
    for name in files:
        path = ROOT / name
        if not name.endswith(SUFFIXES) or name in NOT_READ:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for term, (expression, _) in terms.items():
                if expression.search(line) and not any(
                        e.search(line) for e in exempt[term]):
                    uses[term].append((name, number, line.strip()))
    return uses


def main():
    terms = read_terms()
    uses = find_uses(terms)
    action = sys.argv[1] if len(sys.argv) > 1 else ""
    if action == "--list":
        if sys.argv[2:3] == [] or sys.argv[2] not in terms:
            sys.exit("words.py: --list needs one of: " + ", ".join(terms))
        for name, number, line in uses[sys.argv[2]]:
            print(f"{name}:{number}: {line}")
        return 0
    counts = {term: len(found) for term, found in uses.items()}
    allowed = json.loads(COUNTS.read_text(encoding="utf-8")) if COUNTS.exists() else counts
    more = [term for term in terms if counts[term] > allowed.get(term, 0)]
    if action in ("--check", "--write"):
        for term in more:
            print(f"'{term}' stands on {counts[term]} lines, {allowed.get(term, 0)} are "
                  f"allowed; say {terms[term][1]} (scripts/words.py --list '{term}')")
    if action == "--write" and not more:
        COUNTS.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
    if not action:
        for term, count in counts.items():
            print(f"{count:6} {term}: say {terms[term][1]}")
    print(f"{sum(counts.values())} lines with {len(terms)} terms, "
          f"{sum(allowed.values())} allowed")
    return 1 if more else 0


sys.exit(main())
