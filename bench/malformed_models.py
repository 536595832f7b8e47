#!/usr/bin/env python3
"""Malformed ONNX files: what onnx.checker says of them, and what penstockc does.

    bench/malformed_models.py [--count 12] [--seed 1] [--keep FOLDER] [--all]

Each file is a model of the tree with one field changed: cleared, set, emptied, another
number, an element of a list removed, repeated or moved. Of each kind of change, COUNT
are drawn from every model. A file that the checker rejects and penstockc accepts is
compiled and trained for three updates: the losses are those of the model as it was, or
the kind is one that changes numbers. Prints a row for each kind of which some were
accepted, and ends with 1 if a loss differs or a compiler crashes. --all prints all
kinds. Needs onnx.
"""

import argparse
import collections
import pathlib
import random
import subprocess
import sys
import tempfile

import onnx
import onnx.checker

import measure

DATA = measure.ROOT / "test" / "fixtures"
#  Model, flags, data.
MODELS = [
    (DATA / "cnn.onnx", ["--loss=softmax-cross-entropy", "--microbatch-size=2"],
     ["--data", f"x={DATA}/cnn-x.npy", "--labels", f"{DATA}/cnn-labels.npy"]),
    (DATA / "attention.onnx", ["--loss=softmax-cross-entropy", "--microbatch-size=2"],
     ["--data", f"x={DATA}/attention-x.npy", "--labels", f"{DATA}/attention-labels.npy"]),
    (DATA / "operators.onnx", ["--loss=mse", "--microbatch-size=2"],
     ["--data", f"x={DATA}/operators-x.npy", "--labels", f"{DATA}/operators-y.npy"]),
]
# Values of tensors are data, not form: only how many bytes there are.
DATA_FIELDS = ("raw_data", "float_data", "int64_data", "int32_data", "double_data")
TEXTS = {9, 12}    # Field types of protobuf: string, bytes.
MESSAGE = 11


def changes(field, message):
    """Yields (name, function of the message) for one field."""
    name, kind = field.name, field.type
    value = getattr(message, name)
    if field.is_repeated if hasattr(field, "is_repeated") else field.label == 3:
        if len(value):
            yield "element removed", lambda m: getattr(m, name).pop()
            if kind == MESSAGE:
                yield "element repeated", lambda m: getattr(m, name).add().CopyFrom(
                    getattr(m, name)[0])
            else:
                yield "element repeated", lambda m: getattr(m, name).append(getattr(m, name)[0])
        if len(value) > 1 and name not in DATA_FIELDS and kind != MESSAGE:
            def swap(m):
                values = list(getattr(m, name))
                values[0], values[-1] = values[-1], values[0]
                del getattr(m, name)[:]
                getattr(m, name).extend(values)
            yield "elements exchanged", swap
        elif not len(value) and kind not in (MESSAGE, *TEXTS):
            yield "set", lambda m: getattr(m, name).append(1)
        return
    if not message.HasField(name):
        if kind in TEXTS:
            yield "set", lambda m: setattr(m, name, b"x" if kind == 12 else "x")
        elif kind != MESSAGE:
            yield "set", lambda m: setattr(m, name, 1)
        return
    yield "cleared", lambda m: m.ClearField(name)
    if kind in TEXTS:
        empty, more = (b"", b"x") if kind == 12 else ("", "x")
        yield "emptied", lambda m: setattr(m, name, empty)
        yield "longer", lambda m: setattr(m, name, getattr(m, name) + more)
        yield "shorter", lambda m: setattr(m, name, getattr(m, name)[:-1])
    elif kind == MESSAGE:
        yield "emptied", lambda m: getattr(m, name).Clear()
    elif field.enum_type is None and kind not in (1, 2):
        for number in (0, -1, 99):
            if number >= 0 or kind not in (4, 13):
                yield f"{number}", lambda m, number=number: setattr(m, name, number)


def visit(message, path=()):
    """Yields (kind, path, change): the path is that of the message."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        for what, change in changes(field, message):
            yield f"{message.DESCRIPTOR.name}.{field.name} {what}", path, change
        if field.type != MESSAGE:
            continue
        if hasattr(value, "add"):
            for index, element in enumerate(value):
                yield from visit(element, (*path, (field.name, index)))
        elif message.HasField(field.name):
            yield from visit(value, (*path, (field.name, None)))


def follow(message, path):
    for name, index in path:
        message = getattr(message, name)
        if index is not None:
            message = message[index]
    return message


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def train(folder, model, flags, data):
    """Returns the losses, or what went wrong."""
    program, log = folder / "program", folder / "log.jsonl"
    code, text = run(measure.build_folder() / "bin" / "penstockc", model, "-o", program, *flags)
    if code:
        return f"compiler, exit {code}: {text}"
    code, text = run(program, *data, "--steps", "3", "--log", log)
    if code:
        return f"run, exit {code}: {text}"
    return [line.split('"seconds"')[0] for line in log.read_text().splitlines()]


def is_rejected(model):
    try:
        onnx.checker.check_model(model)
    except Exception as error:  # What it raises depends on what is wrong.
        return str(error).splitlines()[0]
    return None


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    found = collections.defaultdict(collections.Counter)
    bad = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for path, flags, data in MODELS:
            original = onnx.load(path)
            expected = train(folder, path, flags, data)
            if isinstance(expected, str):
                sys.exit(f"{path}: {expected}")
            kinds = collections.defaultdict(list)
            for kind, place, change in visit(original):
                kinds[kind].append((place, change))
            for kind, sites in kinds.items():
                draw = random.Random(f"{options.seed} {kind}")
                for number, (place, change) in enumerate(
                        draw.sample(sites, min(options.count, len(sites)))):
                    model = onnx.ModelProto()
                    model.CopyFrom(original)
                    change(follow(model, place))
                    file = folder / "model.onnx"
                    file.write_bytes(model.SerializeToString())
                    reason = is_rejected(model)
                    code, text = run(measure.build_folder() / "bin" / "penstockc", file,
                                     "--emit=graph", "-o", folder / "graph.mlir", *flags)
                    counts = found[kind]
                    counts["files"] += 1
                    counts["checker"] += reason is not None
                    counts["both"] += reason is not None and code != 0
                    counts["ours"] += reason is None and code != 0
                    if code not in (0, 1) or (code and text.count("\n")):
                        bad.append(f"{path.name}: {kind} {place}: exit {code}: {text}")
                    if reason is None or code:
                        continue
                    losses = train(folder, file, flags, data)
                    if losses == expected:
                        counts["same"] += 1
                        continue
                    # What it gives up later, it rejects, too.
                    if isinstance(losses, str) and "exit 1" in losses:
                        counts["both"] += 1
                        continue
                    counts["other"] += 1
                    bad.append(f"{path.name}: {kind} {place}: {reason}: "
                               f"{losses if isinstance(losses, str) else 'other losses'}")
                    if options.keep:
                        options.keep.mkdir(parents=True, exist_ok=True)
                        (options.keep / f"{path.stem}-{len(bad)}-{number}.onnx").write_bytes(
                            file.read_bytes())
    print("| change | files | checker rejects | rejected here, too | accepted, same losses | "
          "accepted, other losses |\n|---|---|---|---|---|---|")
    total = collections.Counter()
    for kind, counts in sorted(found.items()):
        total.update(counts)
        if options.all or counts["same"] or counts["other"]:
            print_row(kind, counts)
    print_row("all", total)
    print(f"{total['ours']} that the checker accepts are rejected")
    for line in bad:
        print(line)
    sys.exit(bool(bad))


def print_row(kind, counts):
    print(f"| {kind} | {counts['files']} | {counts['checker']} | {counts['both']} | "
          f"{counts['same']} | {counts['other']} |")


main()
