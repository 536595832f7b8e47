#!/usr/bin/env python3
"""How far each training method comes with the same samples, on eight stages.

    bench/convergence.py FOLDER [--updates=500] [--only=METHOD;...] [--draw]
                         [--rates=OPTIMIZER@RATE,...] [--anneal=K]

The character GPT of examples/gpt learns its book, 16 lines of 64 characters per
update, for as many updates under every method and at several learning rates of
two optimizers. Methods that update after every microbatch take the 16 lines as
one microbatch, so that they are up to seven updates late; 2bw, which needs as many
microbatches as stages, takes eight of two lines, and so does sync, for which it
makes no difference. Writes results.json, which a later call adds to, and with
--draw a table on stdout, of the loss on the last tenth of the book, and
convergence.svg, of the losses while training. --rates tries other rates, of one
optimizer, and draws no picture. T1 anneals over K updates, a quarter of all if
not given; T3 warms up for a tenth. Only the standard library is needed.
"""

import json
import pathlib
import re
import subprocess

import measure

STAGES, LINES = 8, 16
BOOK = measure.ROOT / "examples" / "gpt"
METHODS = {
    "sync": "sync", "naive": "naive", "pipedream": "pipedream",
    "pipedream:vertical-sync": "pipedream:vertical-sync", "2bw": "2bw",
    "pipemare, none": "pipemare:decay=0",
    "pipemare, T1": "pipemare:anneal-steps={anneal},decay=0",
    "pipemare, T2": "pipemare",
    "pipemare, T1+T2": "pipemare:anneal-steps={anneal}",
    "pipemare, T1+T2+T3": "pipemare:anneal-steps={anneal},warmup-steps={tenth}",
    "spectrain": "spectrain", "xpipe": "xpipe", "pipeoptim": "pipeoptim",
}
RATES = {"sgd:momentum=0.9": ["0.02", "0.1"], "adamw": ["0.001", "0.003"]}
COLUMNS = [f"{optimizer}, lr {rate}" for optimizer, rates in RATES.items() for rate in rates]


def train(folder, method, optimizer, updates):
    """By rate: losses by update and the one on the test text, or why there are none."""
    late = method.partition(":")[0] not in ("sync", "2bw")
    count = 1 if late else STAGES
    program, log = folder / "program", folder / "log.jsonl"
    done = subprocess.run(
        [measure.build_folder() / "bin" / "penstockc", BOOK / "gpt.onnx", "-o", program,
         f"--stages={STAGES}", f"--microbatch-size={LINES // count}",
         f"--microbatches={count}", f"--method={method}", f"--optimizer={optimizer}",
         "--loss=softmax-cross-entropy"], capture_output=True, text=True)
    results = {}
    for rate in RATES[optimizer]:
        if done.returncode:
            results[rate] = done.stderr.strip()
            continue
        arrays = []
        for flag, part in (("--", "train"), ("--eval-", "test")):
            arrays += [flag + "data", f"tokens={BOOK / part}-tokens.npy",
                       flag + "labels", BOOK / f"{part}-labels.npy"]
        output = subprocess.run(
            [program, *arrays, "--steps", str(updates), "--lr", rate, "--log", log, "--shuffle"],
            check=True, capture_output=True, text=True).stdout
        test = re.search(r"^eval: .* loss (\S+)", output, re.MULTILINE)
        results[rate] = {
            "test": float(test[1]),
            "training": [record["loss"] for record in map(json.loads, open(log, encoding="utf-8"))
                         if "loss" in record]}
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
            result = results.get(f"{name}, {column}")
            cells.append(show(result) if isinstance(result, dict) else "-")
        if any(cell != "-" for cell in cells):
            print(f"| {name} | " + " | ".join(cells) + " |")


def show(result):
    return f"{result['test']:.3f}" if result["test"] < 20 else "diverges"


COLORS = dict(zip(METHODS, [
    "#000000", "#888888", "#1f77b4", "#7fb3de", "#2ca02c", "#f5a9b8", "#e377c2", "#b5651d",
    "#d62728", "#8c1010", "#ff7f0e", "#9467bd", "#17becf"], strict=True))


def draw_plot(results, path):
    """Four panels of curves, each point the mean of a twentieth of the updates."""
    width, height, left, top = 430, 260, 46, 26
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="960" height="680" '
             'font-family="sans-serif" font-size="11">',
             '<rect width="960" height="680" fill="white"/>']
    for number, column in enumerate(COLUMNS):
        x0 = left + (number % 2) * (width + 46)
        y0 = top + (number // 2) * (height + 44)
        low, high = 1.5, 4.0
        parts.append(f'<text x="{x0}" y="{y0 - 8}" font-weight="bold">{column}</text>')
        for tick in (2, 3):
            y = y0 + height * (high - tick) / (high - low)
            parts.append(f'<line x1="{x0}" x2="{x0 + width}" y1="{y:.1f}" y2="{y:.1f}" '
                         f'stroke="#ddd"/><text x="{x0 - 14}" y="{y + 4:.1f}">{tick}</text>')
        for name, color in COLORS.items():
            result = results.get(f"{name}, {column}")
            if not isinstance(result, dict):
                continue
            losses = result["training"]
            size, points = max(1, len(losses) // 20), []
            for i in range(0, len(losses) - size + 1, size):
                value = mean(losses[i:i + size])
                if not value < 20:
                    break
                x = x0 + width * (i + size / 2) / len(losses)
                y = y0 + height * (high - min(max(value, low), high)) / (high - low)
                points.append(f"{x:.1f},{y:.1f}")
            parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}" '
                         'stroke-width="1.5"/>')
        parts.append(f'<rect x="{x0}" y="{y0}" width="{width}" height="{height}" fill="none" '
                     'stroke="#555"/>')
    named = [(n, color) for n, color in COLORS.items()
             if any(isinstance(results.get(f"{n}, {c}"), dict) for c in COLUMNS)]
    for i, (name, color) in enumerate(named):
        x, y = left + (i % 5) * 182, 628 + (i // 5) * 18
        parts.append(f'<line x1="{x}" x2="{x + 18}" y1="{y - 4}" y2="{y - 4}" stroke="{color}" '
                     f'stroke-width="3"/><text x="{x + 23}" y="{y}">{name}</text>')
    path.write_text("\n".join(parts + ["</svg>"]) + "\n", encoding="utf-8")


def main():
    options = measure.read_options(__doc__, "folder", updates=500, only=";".join(METHODS),
                                   draw=False, rates="", anneal=0)
    folder, updates = pathlib.Path(options.folder).resolve(), options.updates
    folder.mkdir(parents=True, exist_ok=True)
    if options.rates:
        optimizer, _, rates = options.rates.partition("@")
        RATES.clear()
        RATES[optimizer] = rates.split(",")
        COLUMNS[:] = [f"{optimizer}, lr {rate}" for rate in RATES[optimizer]]
    path = folder / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in [] if options.draw else options.only.split(";"):
        for optimizer in RATES:
            method = METHODS[name].format(anneal=options.anneal or updates // 4,
                                          tenth=updates // 10)
            for rate, result in train(folder, method, optimizer, updates).items():
                key = f"{name}, {optimizer}, lr {rate}"
                results[key] = result
                print(f"{key}: " + (result if isinstance(result, str) else show(result)),
                      flush=True)
            path.write_text(json.dumps(results) + "\n", encoding="utf-8")
    if options.draw:
        draw_table(results)
        if len(RATES) > 1:
            draw_plot(results, folder / "convergence.svg")


main()
