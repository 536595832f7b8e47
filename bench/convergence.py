#!/usr/bin/env python3
"""How far each training method comes with the same samples, on eight stages.

    bench/convergence.py FOLDER [--updates=600] [--only=METHOD;...] [--draw]
                         [--rates=OPTIMIZER@RATE,...]

A character transformer of six blocks learns the text of this repository's
licence, 32 lines of 32 characters per update, for as many updates under every
method and at two learning rates of two optimizers. Methods that update after
every microbatch take the 32 lines as one microbatch, so that they are up to seven
updates late; 2bw, which needs as many microbatches as stages, takes eight of four
lines, and so does sync, for which it makes no difference. Writes results.json,
which a later call adds to, and with --draw a table on stdout and convergence.svg. --rates tries
other rates, of one optimizer, and draws no picture.
Needs the Python packages numpy and onnx. Methods that the compiler does not have
are left out.
"""

import json
import pathlib
import subprocess
import sys

import measure

LENGTH, WIDTH, HEADS, BLOCKS, STAGES, LINES = 32, 48, 3, 6, 8, 32
METHODS = {
    "sync": "sync", "naive": "naive", "pipedream": "pipedream",
    "pipedream:vertical-sync": "pipedream:vertical-sync", "2bw": "2bw",
    "pipemare, none": "pipemare:decay=0",
    "pipemare, T1": "pipemare:anneal-steps={half},decay=0",
    "pipemare, T1+T2": "pipemare:anneal-steps={half}",
    "pipemare, T1+T2+T3": "pipemare:anneal-steps={half},warmup-steps={tenth}",
    "spectrain": "spectrain", "xpipe": "xpipe", "pipeoptim": "pipeoptim",
}
RATES = {"sgd:momentum=0.9": ["0.005", "0.02"], "adamw": ["0.0003", "0.001"]}
COLUMNS = [f"{optimizer}, lr {rate}" for optimizer, rates in RATES.items() for rate in rates]


def write_model(folder):
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    text = (measure.ROOT / "LICENSE").read_text(encoding="ascii", errors="replace")
    letters = sorted(set(text))
    codes = numpy.array([letters.index(c) for c in text], numpy.int64)
    random = numpy.random.Generator(numpy.random.PCG64(5))
    starts = random.integers(0, len(codes) - LENGTH - 1, 2048)
    ones = numpy.eye(len(letters), dtype=numpy.float32)
    numpy.save(folder / "x.npy", ones[numpy.stack([codes[s:s + LENGTH] for s in starts])])
    numpy.save(folder / "y.npy", numpy.stack([codes[s + 1:s + LENGTH + 1] for s in starts]))

    nodes, weights = [], []

    def weight(name, *shape, scale=None, offset=0.0):
        scale = shape[0] ** -0.5 if scale is None else scale
        array = random.normal(offset, 1, shape) * scale if scale else numpy.full(shape, offset)
        weights.append(numpy_helper.from_array(array.astype(numpy.float32), name))
        return name

    def fixed(name, array):
        weights.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def node(kind, *inputs, name, **attributes):
        nodes.append(helper.make_node(kind, inputs, [name], name=f"{name}_node", **attributes))
        return name

    def linear(x, name, inputs, outputs):
        x = node("MatMul", x, weight(f"{name}.w", inputs, outputs), name=f"{name}.product")
        return node("Add", x, weight(f"{name}.b", outputs, scale=0), name=name)

    def norm(x, name):
        return node("LayerNormalization", x, weight(f"{name}.scale", WIDTH, scale=0, offset=1.0),
                    weight(f"{name}.shift", WIDTH, scale=0), name=name, axis=-1)

    split = fixed("split", numpy.array([0, LENGTH, HEADS, WIDTH // HEADS], numpy.int64))
    merge = fixed("merge", numpy.array([0, LENGTH, WIDTH], numpy.int64))
    mask = fixed("mask", numpy.where(numpy.tril(numpy.ones((LENGTH, LENGTH))) > 0, 0.0,
                                     -1e9).astype(numpy.float32))
    root = fixed("root", numpy.float32((WIDTH // HEADS) ** 0.5))
    x = node("MatMul", "x", weight("letters", len(letters), WIDTH, scale=0.3), name="embedded")
    x = node("Add", x, weight("places", LENGTH, WIDTH, scale=0.3), name="placed")
    for i in range(BLOCKS):
        n = norm(x, f"{i}.norm1")
        heads = {}
        for part, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            h = node("Reshape", linear(n, f"{i}.{part}", WIDTH, WIDTH), split,
                     name=f"{i}.{part}.split")
            heads[part] = node("Transpose", h, name=f"{i}.{part}.heads", perm=perm)
        s = node("MatMul", heads["q"], heads["k"], name=f"{i}.scores")
        s = node("Add", node("Div", s, root, name=f"{i}.scaled"), mask, name=f"{i}.masked")
        a = node("MatMul", node("Softmax", s, name=f"{i}.weights", axis=-1), heads["v"],
                 name=f"{i}.mixed")
        a = node("Transpose", a, name=f"{i}.places", perm=[0, 2, 1, 3])
        a = linear(node("Reshape", a, merge, name=f"{i}.merged"), f"{i}.out", WIDTH, WIDTH)
        x = node("Add", x, a, name=f"{i}.attended")
        h = node("Relu", linear(norm(x, f"{i}.norm2"), f"{i}.up", WIDTH, 3 * WIDTH),
                 name=f"{i}.active")
        x = node("Add", x, linear(h, f"{i}.down", 3 * WIDTH, WIDTH), name=f"{i}.done")
    x = linear(norm(x, "last"), "logits", WIDTH, len(letters))
    graph = helper.make_graph(
        nodes, "characters",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", LENGTH, len(letters)])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", LENGTH, len(letters)])],
        weights)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, folder / "characters.onnx")


def train(folder, method, optimizer, updates):
    """By rate: losses by update, or why there are none."""
    late = method.partition(":")[0] not in ("sync", "2bw")
    count = 1 if late else STAGES
    program, log = folder / "program", folder / "log.jsonl"
    done = subprocess.run(
        [measure.build_folder() / "bin" / "penstockc", folder / "characters.onnx", "-o", program,
         f"--stages={STAGES}", f"--microbatch-size={LINES // count}",
         f"--microbatches={count}", f"--method={method}", f"--optimizer={optimizer}",
         "--loss=softmax-cross-entropy", "--freeze=^(mask|root)$"],
        capture_output=True, text=True)
    results = {}
    for rate in RATES[optimizer]:
        if done.returncode:
            results[rate] = done.stderr.strip()
            continue
        subprocess.run([program, "--data", f"x={folder / 'x.npy'}", "--labels",
                        folder / "y.npy", "--steps", str(updates), "--lr", rate, "--log", log],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        results[rate] = [json.loads(line)["loss"] for line in open(log, encoding="utf-8")]
    return results


def mean(values):
    if any(v is None for v in values):
        return float("nan")
    return sum(values) / len(values)


def draw_table(results):
    print("| method | " + " | ".join(COLUMNS) + " |")
    print("|---" * (1 + len(COLUMNS)) + "|")
    for name in METHODS:
        cells = []
        for column in COLUMNS:
            losses = results.get(f"{name}, {column}")
            last = mean(losses[-len(losses) // 20:]) if isinstance(losses, list) else None
            cells.append("-" if last is None else "diverges" if not last < 20 else f"{last:.3f}")
        if any(cell != "-" for cell in cells):
            print(f"| {name} | " + " | ".join(cells) + " |")


COLOURS = ["#000000", "#888888", "#1f77b4", "#7fb3de", "#2ca02c", "#f5a9b8", "#e377c2", "#d62728",
           "#8c1010", "#ff7f0e", "#9467bd", "#17becf"]


def draw_plot(results, path):
    """Four panels of curves, each point the mean of a twentieth of the updates."""
    width, height, left, top = 430, 260, 46, 26
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="960" height="660" '
             'font-family="sans-serif" font-size="11">',
             '<rect width="960" height="660" fill="white"/>']
    for number, column in enumerate(COLUMNS):
        x0 = left + (number % 2) * (width + 46)
        y0 = top + (number // 2) * (height + 44)
        low, high = 0.5, 4.5
        parts.append(f'<text x="{x0}" y="{y0 - 8}" font-weight="bold">{column}</text>')
        for tick in (1, 2, 3, 4):
            y = y0 + height * (high - tick) / (high - low)
            parts.append(f'<line x1="{x0}" x2="{x0 + width}" y1="{y:.1f}" y2="{y:.1f}" '
                         f'stroke="#ddd"/><text x="{x0 - 14}" y="{y + 4:.1f}">{tick}</text>')
        for name, colour in zip(METHODS, COLOURS):
            losses = results.get(f"{name}, {column}")
            if not isinstance(losses, list):
                continue
            size, points = max(1, len(losses) // 20), []
            for i in range(0, len(losses) - size + 1, size):
                value = mean(losses[i:i + size])
                if not value < 20:
                    break
                x = x0 + width * (i + size / 2) / len(losses)
                y = y0 + height * (high - min(max(value, low), high)) / (high - low)
                points.append(f"{x:.1f},{y:.1f}")
            parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" '
                         'stroke-width="1.5"/>')
        parts.append(f'<rect x="{x0}" y="{y0}" width="{width}" height="{height}" fill="none" '
                     'stroke="#555"/>')
    named = [(n, colour) for n, colour in zip(METHODS, COLOURS)
             if any(isinstance(results.get(f"{n}, {c}"), list) for c in COLUMNS)]
    for i, (name, colour) in enumerate(named):
        x, y = left + (i % 6) * 154, 628 + (i // 6) * 18
        parts.append(f'<line x1="{x}" x2="{x + 18}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" '
                     f'stroke-width="3"/><text x="{x + 23}" y="{y}">{name}</text>')
    path.write_text("\n".join(parts + ["</svg>"]) + "\n", encoding="utf-8")


def main(folder, *arguments):
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    updates, only, draws = 600, list(METHODS), False
    for argument in arguments:
        if argument.startswith("--updates="):
            updates = int(argument.partition("=")[2])
        elif argument.startswith("--only="):
            only = argument.partition("=")[2].split(";")
        elif argument == "--draw":
            draws = True
        elif argument.startswith("--rates="):
            optimizer, _, rates = argument.partition("=")[2].partition("@")
            RATES.clear()
            RATES[optimizer] = rates.split(",")
            COLUMNS[:] = [f"{optimizer}, lr {rate}" for rate in RATES[optimizer]]
        else:
            sys.exit(__doc__)
    if not (folder / "characters.onnx").exists():
        write_model(folder)
    path = folder / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in [] if draws else only:
        for optimizer in RATES:
            method = METHODS[name].format(half=updates // 2, tenth=updates // 10)
            for rate, losses in train(folder, method, optimizer, updates).items():
                key = f"{name}, {optimizer}, lr {rate}"
                results[key] = losses
                print(f"{key}: " + (losses if isinstance(losses, str)
                                    else f"{mean(losses[-updates // 20:]):.3f}"), flush=True)
            path.write_text(json.dumps(results) + "\n", encoding="utf-8")
    if draws:
        draw_table(results)
        if len(RATES) > 1:
            draw_plot(results, folder / "convergence.svg")


if len(sys.argv) < 2:
    sys.exit(__doc__)
main(*sys.argv[1:])
