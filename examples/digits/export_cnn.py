#!/usr/bin/env python3
"""Exports the untrained CNN of this example from PyTorch as cnn.onnx.

Not needed to use the example: the file is in the tree. Made like mlp.onnx, with
the versions that export_mlp.py names:

    python3 export_cnn.py

It takes the same rows of 64 pixels as the MLP, and makes images of them. In
training mode, so that the batch normalizations are nodes with statistics, not
factors merged into the convolutions.
"""

import torch

from export_mlp import SEED, export


def convolution(inputs, outputs):
    return [torch.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()]


class Cnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Unflatten(1, (1, 8, 8)),
            *convolution(1, 12),
            *convolution(12, 16), torch.nn.MaxPool2d(2),
            *convolution(16, 24), torch.nn.MaxPool2d(2),
            torch.nn.Flatten(), torch.nn.Linear(96, 10))

    def forward(self, x):
        return self.layers(x)


if __name__ == "__main__":
    torch.manual_seed(SEED)
    export(Cnn().train(), "cnn.onnx")
