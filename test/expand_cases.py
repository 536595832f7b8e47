"""Writes out the cases of a test that states them as edits of one module.

    // RUN: %expand-cases %s | penstock-opt --split-input-file --verify-diagnostics

Cases stand between lines "// -----". A case is a whole module, or edits of the
last whole module before it: what is wrong, and nothing else. An edit starts with
"@@" and looks like a patch without line numbers:

    // S1: an execution is missing.
    @@
    +  // expected-error @+1 {{device 0 runs @a.B 0 times}}
       pipeline.order 0 {
    @@ pipeline.order 1
    -    pipeline.run @a.B

Lines of context and removed lines must occur exactly once in the module, or, if
text follows "@@", are the first ones below the only line that starts with it.
Indentation does not count. What a module expects (// expected-...) holds for
itself only.
"""

import sys

SEPARATOR = "// -----"


def fail(number, message):
    sys.exit(f"{sys.argv[1]}:{number}: {message}")


def read_sections(lines):
    """Returns lists of (line number, line), one for each case."""
    sections = [[]]
    for number, line in enumerate(lines, 1):
        if line.strip() == SEPARATOR:
            sections.append([])
        else:
            sections[-1].append((number, line))
    return sections


def find(base, wanted, anchor, number):
    """Returns where `wanted` starts in `base`; fails unless that is clear."""
    stripped = [line.strip() for line in base]
    first = 0
    if anchor:
        places = [i for i, line in enumerate(stripped) if line.startswith(anchor)]
        if len(places) != 1:
            fail(number, f"{len(places)} lines of the module start with '{anchor}'")
        first = places[0]
    if not wanted:
        fail(number, "an edit needs a line of context or a removed line")
    places = [i for i in range(first, len(base) - len(wanted) + 1)
              if stripped[i:i + len(wanted)] == wanted]
    if not places:
        fail(number, f"the module has no line '{wanted[0]}' here")
    if len(places) > 1 and not anchor:
        fail(number, f"'{wanted[0]}' occurs {len(places)} times in the module; add "
                     "lines of context, or text of a line above behind @@")
    return places[0]


def apply_edits(base, section):
    """Returns `base` with the edits of `section`."""
    edits = []
    comments = []
    for number, line in section:
        if line.startswith("@@"):
            edits.append((number, line[2:].strip(), []))
        elif edits and line.strip():
            if line[0] not in " +-":
                fail(number, "a line of an edit starts with ' ', '+' or '-'")
            edits[-1][2].append(line)
        elif not edits:
            comments.append(line)
    changes = []
    for number, anchor, lines in edits:
        wanted = [line[1:].strip() for line in lines if line[0] != "+"]
        start = find(base, wanted, anchor, number)
        kept = iter(base[start:start + len(wanted)])
        new = []
        for line in lines:
            if line[0] == "+":
                new.append(line[1:])
            else:
                old = next(kept)
                if line[0] == " ":
                    new.append(old)
        changes.append((start, start + len(wanted), new, number))
    changes.sort()
    result, position = comments, 0
    for start, end, new, number in changes:
        if start < position:
            fail(number, "changes lines that another edit of the case changes")
        result += base[position:start] + new
        position = end
    return result + base[position:]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: expand_cases.py FILE")
    with open(sys.argv[1], encoding="utf-8") as file:
        sections = read_sections(file.read().splitlines())
    base = None
    modules = []
    for section in sections:
        if any(line.startswith("@@") for _, line in section):
            if base is None:
                fail(section[0][0], "there is no module above to edit")
            modules.append(apply_edits(base, section))
        else:
            modules.append([line for _, line in section])
            base = [line for line in modules[-1]
                    if not line.strip().startswith("// expected-")]
    print(f"\n{SEPARATOR}\n".join("\n".join(module) for module in modules))


if __name__ == "__main__":
    main()
