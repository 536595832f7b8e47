#!/usr/bin/env python3
"""check-docs.py [PAGE...]: the form of the pages, all of them if none is named.

  - a page for users has at most 250 lines, and paragraphs of at most 500
    characters; list items count as paragraphs, tables and code do not, nor do
    lines that are generated;
  - links to files and headings lead somewhere, on every page.

Prints each fault with its line; the exit status is 1 if there are any.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_LINES, MOST_CHARACTERS = 250, 500
# For who changes Penstock, and records of measurements: any length.
NOT_FOR_USERS = ["docs/ir.md", "docs/ir-decisions.md", "docs/proofs.md", "docs/measurements/", "docs/style.md"]


def get_paragraphs(lines):
    """(line, text) of each paragraph and list item."""
    start, text, is_code = 0, [], False
    for number, line in enumerate(lines + [""], 1):
        is_fence = line.lstrip().startswith("```")
        ends = (is_code or is_fence or not line.strip()
                or line.startswith(("    ", "|", "#", "<!--"))
                or re.match(r"\s*([-*]|\d+\.) ", line))
        if ends and text:
            yield start, " ".join(text)
            text = []
        is_code ^= is_fence
        if is_code or is_fence or not line.strip() or line.startswith(
                ("    ", "|", "#", "<!--")):
            continue
        if not text:
            start = number
        text.append(line.strip())


def get_anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    anchors = set()
    for title in re.findall(r"^#+ +(.*)", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S),
                            re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        anchor = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        number = 0
        while (unique := anchor + (f"-{number}" if number else "")) in anchors:
            number += 1
        anchors.add(unique)
    return anchors


def check_links(page, text):
    without_code = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text,
                          flags=re.M | re.S)
    for number, line in enumerate(without_code.splitlines(), 1):
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path) if path else page
            if not target.exists():
                yield number, f"there is no {link}"
            elif anchor and target.suffix == ".md" and anchor not in get_anchors(
                    target.read_text(encoding="utf-8")):
                yield number, f"{target.name} has no heading #{anchor}"


def check(page):
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    yield from check_links(page, text)
    if any(name.startswith(other) for other in NOT_FOR_USERS):
        return
    lines = text.partition("<!-- generated")[0].splitlines()
    if len(lines) > MOST_LINES:
        yield len(lines), f"the page has {len(lines)} lines, {MOST_LINES} at most"
    for number, paragraph in get_paragraphs(lines):
        if len(paragraph) > MOST_CHARACTERS:
            yield number, (f"a paragraph of {len(paragraph)} characters, "
                           f"{MOST_CHARACTERS} at most")


pages = [pathlib.Path(p).resolve() for p in sys.argv[1:]] or sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
faults = [f"{page.relative_to(ROOT)}:{line}: {fault}"
          for page in pages for line, fault in check(page)]
print("\n".join(faults + [f"{len(pages)} pages, {len(faults)} faults"]))
sys.exit(bool(faults))
