#!/usr/bin/env python3
"""Exports the untrained MLP of this example from PyTorch as mlp.onnx.

Not needed to use the example: the file is in the tree. It was made with
torch 2.15.0, onnx 1.23.2 and onnxscript 0.7.2:

    pip install torch==2.15.0 onnx==1.23.2 onnxscript==0.7.2
    python3 export_mlp.py

The model ends in logits; the loss is chosen when it is compiled. Six layers, so
that it can be cut into up to six stages that each hold one.
"""

import pathlib

import onnx
import torch

SEED = 7
WIDTHS = [64, 96, 80, 72, 64, 48, 10]


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for i, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:]), start=1):
            self.add_module(f"fc{i}", torch.nn.Linear(inputs, outputs))
        self.layers = len(WIDTHS) - 1
        for layer in self.children():
            torch.nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
            torch.nn.init.zeros_(layer.bias)

    def forward(self, x):
        for i in range(1, self.layers):
            x = torch.relu(getattr(self, f"fc{i}")(x))
        return getattr(self, f"fc{self.layers}")(x)


def export(model, name):
    """Writes `model`, whose input is a batch of images, beside this script."""
    path = pathlib.Path(__file__).resolve().parent / name
    torch.onnx.export(
        model,
        (torch.zeros(4, WIDTHS[0]),),
        str(path),
        dynamo=True,
        optimize=False,  # the optimizer of the exporter merges layers
        external_data=False,
        opset_version=18,
        input_names=["x"],
        output_names=["logits"],
        dynamic_shapes={"x": {0: torch.export.Dim("batch")}},
    )
    # The exporter notes the source lines of every node, with the paths of the
    # machine that it ran on.
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [p for p in node.metadata_props if "stack_trace" not in p.key]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, path)
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    torch.manual_seed(SEED)
    export(Mlp(), "mlp.onnx")
