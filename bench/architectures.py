#!/usr/bin/env python3
"""Exported architectures against PyTorch: the same model, data and optimizer.

    bench/architectures.py [--only=REGEX] [--exporter=dynamo|script|both]
                           [--stages=1,2,3,5] [--updates=20] [--keep]

Every architecture of `architectures_list.py` gets random weights, is exported
by PyTorch's two exporters, compiled by penstockc, and trained for 20 updates.
The table has the largest relative difference of the losses from PyTorch's, of
both from those of PyTorch in f64 (batch normalisation of few samples amplifies
rounding, ours and theirs), and whether the logs and the saved models of all
numbers of stages are equal byte for byte; or the error in which penstockc
refused the model. Needs torch, onnx, torchvision, timm
and transformers, which nothing else of the project does.
"""

import contextlib
import copy
import hashlib
import io
import json
import re
import subprocess
import sys
import time
import warnings

import numpy
import torch

import architectures_list
import measure

# A small rate: with few samples, batch normalisation amplifies rounding.
MICROBATCHES, BATCH, RATE, MOMENTUM = 2, 3, 0.001, 0.9


def export(architecture, module, inputs, path, exporter):
    names = list(architecture.inputs)
    arguments = tuple(inputs[name][:BATCH] for name in names)
    if exporter == "dynamo":
        batch = torch.export.Dim("batch", min=1, max=4096)
        torch.onnx.export(module, arguments, path, dynamo=True, optimize=False,
                          external_data=False,
                          input_names=names, output_names=["logits"],
                          dynamic_shapes=tuple({0: batch} for _ in names))
    else:
        torch.onnx.export(module, arguments, path, dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, input_names=names,
                          output_names=["logits"],
                          dynamic_axes={name: {0: "batch"} for name in names + ["logits"]})


def reference_losses(architecture, module, inputs, labels, updates, dtype):
    """What PyTorch computes: the mean of the microbatches' gradients per update."""
    module = copy.deepcopy(module).to(dtype)
    inputs = {name: value.to(dtype) if value.is_floating_point() else value
              for name, value in inputs.items()}
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE, momentum=MOMENTUM)
    losses, microbatch = [], 0
    total = len(labels) // (BATCH * MICROBATCHES) * MICROBATCHES
    for _ in range(updates):
        optimizer.zero_grad()
        mean = 0.0
        for _ in range(MICROBATCHES):
            at = microbatch % total * BATCH
            batch = [inputs[name][at:at + BATCH] for name in architecture.inputs]
            logits = module(*batch)
            loss = torch.nn.functional.cross_entropy(
                logits.reshape(-1, logits.shape[-1]), labels[at:at + BATCH].reshape(-1))
            (loss / MICROBATCHES).backward()
            mean += loss.item() / MICROBATCHES
            microbatch += 1
        optimizer.step()
        losses.append(mean)
    return losses


def worst(losses, expected):
    return max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(losses, expected))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def compile_and_train(folder, model, architecture, stages, updates):
    """Losses, digest of log and saved model, seconds of penstockc; or an error."""
    program = folder / f"program-{stages}"
    begin = time.perf_counter()
    compiler = subprocess.run(
        [measure.build_folder() / "bin" / "penstockc", model, "-o", program,
         f"--stages={stages}", f"--microbatch-size={BATCH}",
         f"--microbatches={MICROBATCHES}", "--loss=softmax-cross-entropy",
         f"--optimizer=sgd:lr={RATE},momentum={MOMENTUM}"],
        capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if compiler.returncode:
        return None, f"exit {compiler.returncode}: {compiler.stderr.strip().splitlines()[-1] if compiler.stderr.strip() else ''}", seconds
    log, saved = folder / "log.jsonl", folder / "saved.onnx"
    data = [argument for name in architecture.inputs
            for argument in ("--data", f"{name}={folder / name}.npy")]
    run = subprocess.run(
        [program, *data, "--labels", folder / "labels.npy", "--steps", str(updates),
         "--log", log, "--save", saved], capture_output=True, text=True)
    if run.returncode:
        return None, f"run: exit {run.returncode}: {run.stderr.strip()[-300:]}", seconds
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    losses = [row["loss"] for row in rows]
    return losses, (repr(losses), digest(saved)), seconds


def compare(architecture, exporter, stages, updates, keep):
    folder = measure.work_folder() / "architectures" / f"{architecture.name}-{exporter}"
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    module = architecture.build().train()
    generator = torch.Generator().manual_seed(11)
    count = BATCH * MICROBATCHES * 4
    inputs = {name: make(count, generator) for name, make in architecture.inputs.items()}
    labels = architecture.labels(count, generator)
    for name, value in inputs.items():
        numpy.save(folder / f"{name}.npy", value.numpy())
    numpy.save(folder / "labels.npy", labels.numpy())
    model = folder / "model.onnx"
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            export(architecture, module, inputs, str(model), exporter)
    except Exception as error:  # The exporter's own refusals are many.
        return f"not exported: {(str(error) or repr(error)).splitlines()[0][:90]}"
    results, seconds = [], 0.0
    for stage_count in stages:
        losses, what, seconds = compile_and_train(folder, model, architecture, stage_count, updates)
        if losses is None:
            return f"{stage_count} stages: {what[:400]}"
        results.append((losses, what))
    expected, exact = (reference_losses(architecture, module, inputs, labels, updates, dtype)
                       for dtype in (torch.float32, torch.float64))
    equal = all(what == results[0][1] for _, what in results)
    if not keep:
        for path in folder.iterdir():
            path.unlink()
    ours = results[0][0]
    return (f"{worst(ours, expected):.1e} | {worst(ours, exact):.1e} | "
            f"{worst(expected, exact):.1e} | {'equal' if equal else 'DIFFERENT'} | {seconds:.1f} s | "
            f"{expected[0]:.4f} -> {expected[-1]:.4f}")


def main(arguments):
    only, exporters, stages, updates, keep = "", ["dynamo", "script"], [1, 2, 3, 5], 20, False
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key == "--only":
            only = value
        elif key == "--exporter":
            exporters = ["dynamo", "script"] if value == "both" else [value]
        elif key == "--stages":
            stages = [int(number) for number in value.split(",")]
        elif key == "--updates":
            updates = int(value)
        elif key == "--keep":
            keep = True
        else:
            sys.exit(__doc__)
    print(f"{measure.machine()}; PyTorch {torch.__version__}; {updates} updates of "
          f"{MICROBATCHES} x {BATCH} samples, stages {stages}")
    print("| architecture | exporter | from PyTorch | from f64 | PyTorch from f64 | stages | "
          "penstockc | loss |")
    print("|---|---|---|---|---|---|---|---|")
    for architecture in architectures_list.ARCHITECTURES:
        if not re.search(only, architecture.name):
            continue
        for exporter in exporters:
            row = compare(architecture, exporter, stages, updates, keep)
            print(f"| {architecture.name} | {exporter} | {row} |", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1:])
