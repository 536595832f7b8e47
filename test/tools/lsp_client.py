"""lsp_client.py COMMAND -- FILE...: what a language server says of files.

Opens each file, one after the other, as an editor does over stdio, and prints the
diagnostics that are published for it, `LINE:COLUMN-COLUMN: severity: message`,
counted from 1. FILE=OTHER opens FILE and then changes it into OTHER, by an edit of the
lines that differ if the server takes edits.
"""

import json
import pathlib
import subprocess
import sys

at = sys.argv.index("--")
server = subprocess.Popen(sys.argv[1:at], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)


def send(method, params, **more):
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    server.stdin.flush()


def receive():
    length = 0
    while (line := server.stdout.readline().strip()):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if not length:
        sys.exit("the server has ended")
    return json.loads(server.stdout.read(length))


def print_diagnostics(uri, version):
    while True:
        message = receive()
        params = message.get("params", {})
        if (message.get("method") == "textDocument/publishDiagnostics"
                and params["uri"] == uri and params.get("version", version) == version):
            break
    for found in sorted(params["diagnostics"], key=lambda d: d["range"]["start"]["line"]):
        start, end = found["range"]["start"], found["range"]["end"]
        severity = {1: "error", 2: "warning", 3: "note"}[found["severity"]]
        print(f"{start['line'] + 1}:{start['character'] + 1}-{end['character'] + 1}: "
              f"{severity}: {found['message']}")
        for note in found.get("relatedInformation", []):
            place = note["location"]["range"]["start"]
            print(f"  {place['line'] + 1}: {note['message']}")
    if not params["diagnostics"]:
        print("nothing")


def make_edit(old, new):
    """The range of lines of `old` that differ, and their text in `new`."""
    before, after = old.splitlines(True), new.splitlines(True)
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while (tail < min(len(before), len(after)) - head
           and before[-1 - tail] == after[-1 - tail]):
        tail += 1
    return {"range": {"start": {"line": head, "character": 0},
                      "end": {"line": len(before) - tail, "character": 0}},
            "text": "".join(after[head:len(after) - tail])}


send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, id=1)
takes_edits = receive()["result"]["capabilities"]["textDocumentSync"]["change"] == 2
send("initialized", {})
for argument in sys.argv[at + 1:]:
    name, _, other = argument.partition("=")
    path = pathlib.Path(name).resolve()
    uri, text = path.as_uri(), path.read_text(encoding="utf-8")
    print(f"{path.name}:")
    send("textDocument/didOpen", {"textDocument": {
        "uri": uri, "languageId": "mlir", "version": 1, "text": text}})
    print_diagnostics(uri, 1)
    if other:
        new = pathlib.Path(other).read_text(encoding="utf-8")
        print(f"{path.name}, changed:")
        send("textDocument/didChange", {
            "textDocument": {"uri": uri, "version": 2},
            "contentChanges": [make_edit(text, new) if takes_edits else {"text": new}]})
        print_diagnostics(uri, 2)
    send("textDocument/didClose", {"textDocument": {"uri": uri}})
send("shutdown", None, id=2)
while receive().get("id") != 2:
    pass
send("exit", None)
print("ended with", server.wait(20))
