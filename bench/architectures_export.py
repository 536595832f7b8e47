"""PyTorch's half of a row of architectures.py: the export and the losses.

    architectures_export.py NAME EXPORTER UPDATES FOLDER

Leaves in FOLDER the model, the data, and reference.json: how it is trained and
what PyTorch's losses are, or why there is no export. What has not changed since
an earlier call is not made again.
"""

import contextlib
import copy
import importlib.metadata
import inspect
import io
import json
import pathlib
import re
import sys
import warnings

import numpy
import torch

import architectures_list
import architectures_own
from architectures_row import MICROBATCHES, MOMENTUM, digest, once


def versions():
    return ", ".join(f"{name} {importlib.metadata.version(name).split('+')[0]}"
                     for name in ("torch", "torchvision", "timm", "transformers"))


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


def freeze_flags(module, model, exporter):
    """What PyTorch does not train and the file cannot tell apart.

    The dynamo exporter marks buffers. Statistics of a batch normalization are
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


def prepare(architecture, exporter, updates, folder):
    """The contents of reference.json."""
    torch.manual_seed(7)
    module = architecture.build().train()
    generator = torch.Generator().manual_seed(11)
    count = architecture.batch * MICROBATCHES * 4
    inputs = {name: make(count, generator) for name, make in architecture.inputs.items()}
    labels = architecture.labels(count, generator)
    for name, value in {**inputs, "labels": labels}.items():
        numpy.save(folder / f"{name}.npy", value.numpy())
    key = digest(versions(), module, inspect.getsource(architectures_own),
                 inspect.getsource(type(module)), architecture.batch,
                 *(value.sum().item() for value in module.state_dict().values()))
    problem = once(folder, "export.json", key, lambda: try_export(
        architecture, exporter, module, inputs, str(folder / "model.onnx")))
    if problem:
        return {"versions": versions(), "problem": f"not exported: {problem}"}
    key = digest(key, updates, architecture.rate, architecture.loss)
    expected, exact = once(folder, "losses.json", key, lambda: [
        reference_losses(architecture, module, inputs, labels, updates, dtype)
        for dtype in (torch.float32, torch.float64)])
    return {"versions": versions(), "key": key, "inputs": list(inputs),
            "batch": architecture.batch, "rate": architecture.rate, "loss": architecture.loss,
            "freeze": freeze_flags(module, folder / "model.onnx", exporter),
            "expected": expected, "exact": exact}


def main(name, exporter, updates, folder):
    torch.set_num_threads(1)
    architecture = next(a for a in architectures_list.ARCHITECTURES if a.name == name)
    folder = pathlib.Path(folder)
    reference = prepare(architecture, exporter, int(updates), folder)
    (folder / "reference.json").write_text(json.dumps(reference))


if __name__ == "__main__":
    main(*sys.argv[1:])
