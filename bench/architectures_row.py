"""One row of architectures.py: export, compile, train, compare.

    architectures_row.py NAME EXPORTER STAGES UPDATES FOLDER

Leaves FOLDER/row.json, and in FOLDER the export, PyTorch's losses and those of
each number of stages, which later calls use again where nothing has changed.
"""

import contextlib
import copy
import hashlib
import importlib.metadata
import inspect
import io
import json
import pathlib
import re
import subprocess
import sys
import time
import warnings

import numpy
import torch

import architectures_list
import architectures_own
import measure

MICROBATCHES, MOMENTUM = 2, 0.9


def versions():
    return ", ".join(f"{name} {importlib.metadata.version(name).split('+')[0]}"
                     for name in ("torch", "torchvision", "timm", "transformers"))


def digest(*parts):
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def once(folder, name, key, make):
    """The JSON of FOLDER/NAME, made again where its key is another."""
    path = folder / name
    if path.exists():
        found = json.loads(path.read_text())
        if found["key"] == key:
            return found["value"]
    value = make()
    path.write_text(json.dumps({"key": key, "value": value}))
    return value


def export(architecture, exporter, module, inputs, path):
    names = list(architecture.inputs)
    arguments = tuple(inputs[name][:architecture.batch] for name in names)
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


def try_export(*arguments):
    """None, or what the exporter says."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            export(*arguments)
    except Exception as error:  # The exporters' own refusals are of many types.
        lines = [line for line in str(error).splitlines() if line.strip()] or [repr(error)]
        return f"{type(error).__name__}: {lines[0].strip()[:120]}"
    return None


def loss_of(architecture, output, labels):
    if architecture.loss == "mse":
        return torch.nn.functional.mse_loss(output, labels)
    if architecture.loss == "bce-with-logits":
        return torch.nn.functional.binary_cross_entropy_with_logits(output, labels)
    return torch.nn.functional.cross_entropy(output.reshape(-1, output.shape[-1]),
                                             labels.reshape(-1))


def reference_losses(architecture, module, inputs, labels, updates, dtype):
    """What PyTorch computes: the mean of the microbatches' gradients per update."""
    def convert(value):
        return value.to(dtype) if value.is_floating_point() else value
    module = copy.deepcopy(module).to(dtype)
    inputs, labels = {name: convert(value) for name, value in inputs.items()}, convert(labels)
    optimizer = torch.optim.SGD(module.parameters(), lr=architecture.rate, momentum=MOMENTUM)
    losses, microbatch, size = [], 0, architecture.batch
    total = len(labels) // (size * MICROBATCHES) * MICROBATCHES
    for _ in range(updates):
        optimizer.zero_grad()
        mean = 0.0
        for _ in range(MICROBATCHES):
            at = microbatch % total * size
            output = module(*(inputs[name][at:at + size] for name in architecture.inputs))
            loss = loss_of(architecture, output, labels[at:at + size])
            (loss / MICROBATCHES).backward()
            mean += loss.item() / MICROBATCHES
            microbatch += 1
        optimizer.step()
        losses.append(mean)
    return losses


def worst(losses, expected):
    return max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(losses, expected))


class Failed(Exception):
    """A row without numbers."""


def freeze_flags(module, model, exporter):
    """What PyTorch does not train and the file cannot tell apart.

    The dynamo exporter marks buffers. Statistics of a batch normalisation are
    known as such.
    """
    import onnx
    initializers = {tensor.name for tensor in
                    onnx.load(model, load_external_data=False).graph.initializer}
    held = [name for name, parameter in module.named_parameters() if not parameter.requires_grad]
    if exporter == "script":
        held += [name for name, _ in module.named_buffers() if
                 not re.search(r"running_(mean|var)$|num_batches_tracked$", name)]
    held = [re.escape(name) for name in held if name in initializers]
    return [f"--freeze=^({'|'.join(held)})$"] if held else []


def compiler_key():
    """Changes with the compiler and with what it links into programs."""
    build = measure.build_folder()
    files = [build / "bin" / "penstockc", *sorted(build.glob("runtime/**/*.a")),
             *sorted(build.glob("lib/*.a"))]
    return [(str(path.relative_to(build)), path.stat().st_mtime_ns, path.stat().st_size)
            for path in files]


def compile_and_train(folder, architecture, freeze, stages, updates):
    """Losses, the bytes to compare, seconds of penstockc."""
    program = folder / "program"
    begin = time.perf_counter()
    compiler = subprocess.run(
        [measure.build_folder() / "bin" / "penstockc", folder / "model.onnx", "-o", program,
         f"--stages={stages}", f"--microbatch-size={architecture.batch}",
         f"--microbatches={MICROBATCHES}", f"--loss={architecture.loss}",
         f"--optimizer=sgd:lr={architecture.rate},momentum={MOMENTUM}", *freeze],
        capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    if compiler.returncode:
        said = [line for line in compiler.stderr.splitlines() if ": note: " not in line and
                ": warning: " not in line]
        problem = (said or ["(nothing said)"])[0].replace(str(folder) + "/", "")
        raise Failed(f"{stages} stages, exit {compiler.returncode}: {problem[:300]}")
    log, saved = folder / "log.jsonl", folder / "saved.onnx"
    data = [argument for name in architecture.inputs
            for argument in ("--data", f"{name}={folder / name}.npy")]
    run = subprocess.run(
        [program, *data, "--labels", folder / "labels.npy", "--steps", str(updates),
         "--log", log, "--save", saved], capture_output=True, text=True, check=False)
    program.unlink()
    if run.returncode:
        raise Failed(f"{stages} stages, the program ends with {run.returncode}: "
                     f"{run.stderr.strip()[-300:]}")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    # A log has times, too: what is compared is its losses, as printed.
    losses = re.findall(r'"loss": ([^,]*)', log.read_text())
    identity = digest(losses, hashlib.sha256(saved.read_bytes()).hexdigest())
    saved.unlink()
    return [row["loss"] for row in rows], identity, seconds


def measure_row(architecture, exporter, stages, updates, folder):
    torch.manual_seed(7)
    module = architecture.build().train()
    generator = torch.Generator().manual_seed(11)
    count = architecture.batch * MICROBATCHES * 4
    inputs = {name: make(count, generator) for name, make in architecture.inputs.items()}
    labels = architecture.labels(count, generator)
    for name, value in {**inputs, "labels": labels}.items():
        numpy.save(folder / f"{name}.npy", value.numpy())

    source = inspect.getsource(architectures_own)
    key = digest(versions(), module, source, architecture.batch,
                 *(value.sum().item() for value in module.state_dict().values()))
    problem = once(folder, "export.json", key, lambda: try_export(
        architecture, exporter, module, inputs, str(folder / "model.onnx")))
    if problem:
        raise Failed(f"not exported: {problem}")
    freeze = freeze_flags(module, folder / "model.onnx", exporter)

    key = digest(key, updates, architecture.rate, architecture.loss, freeze)
    results = [once(folder, f"stages-{number}.json", digest(key, compiler_key()),
                    lambda number=number: compile_and_train(folder, architecture, freeze, number,
                                                            updates))
               for number in stages]
    expected, exact = once(folder, "reference.json", key, lambda: [
        reference_losses(architecture, module, inputs, labels, updates, dtype)
        for dtype in (torch.float32, torch.float64)])
    ours = results[0][0]
    if None in ours:
        raise Failed(f"the loss of update {ours.index(None) + 1} is not finite; PyTorch's: "
                     f"{expected[ours.index(None)]}")
    return {"ours": worst(ours, expected), "ours_exact": worst(ours, exact),
            "pytorch_exact": worst(expected, exact),
            "equal": all(result[1] == results[0][1] for result in results),
            "seconds": results[-1][2], "first": expected[0], "last": expected[-1],
            "freeze": freeze, "losses": ours}


def main(name, exporter, stages, updates, folder):
    torch.set_num_threads(1)
    architecture = next(a for a in architectures_list.ARCHITECTURES if a.name == name)
    folder = pathlib.Path(folder)
    try:
        row = measure_row(architecture, exporter, stages.split(","), int(updates), folder)
    except Failed as failed:
        row = {"failed": str(failed)}
    row["versions"] = versions()
    (folder / "row.json").write_text(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
