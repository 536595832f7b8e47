#!/usr/bin/env python3
"""The models of memory.py and predicted_step.py, exported by PyTorch.

    export_all(folder, only) -> [Exported]

An MLP, a CNN, a GPT, ResNet-18, a U-Net and a BERT, with random weights, large
enough that tensors weigh more than their alignment and small enough to compile
and train in seconds. Needs torch, torchvision, transformers and onnx.
"""

import dataclasses
import pathlib
import re

import numpy
import torch
from torch import nn

import architectures_list
import training_steps


@dataclasses.dataclass
class Exported:
    name: str
    path: pathlib.Path
    batch: int
    flags: list  # For penstockc.
    data: list   # For the program.


class Mlp(nn.Sequential):
    def __init__(self, width=512):
        layers = [layer for _ in range(7) for layer in (nn.Linear(width, width), nn.ReLU())]
        super().__init__(*layers, nn.Linear(width, 100))


class Cnn(nn.Sequential):
    def __init__(self):
        layers, channels = [], 3
        for width in (24, 48, 96):
            for _ in range(2):
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width),
                           nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2d(2))
        super().__init__(*layers, nn.Flatten(), nn.Linear(96 * 16, 120), nn.ReLU(),
                         nn.Linear(120, 10))


def bert():
    return architectures_list.transformers_model(
        "bert", "BertForSequenceClassification", "BertConfig",
        {"vocab_size": 500, "hidden_size": 128, "num_hidden_layers": 4,
         "num_attention_heads": 4, "intermediate_size": 512, "max_position_embeddings": 64,
         "num_labels": 7}).build()


#     name, module, batch, one sample, its labels
MODELS = [
    ("mlp", Mlp, 32, lambda: torch.randn(512), lambda: torch.randint(100, ())),
    ("cnn", Cnn, 8, lambda: torch.randn(3, 32, 32), lambda: torch.randint(10, ())),
    ("gpt", lambda: training_steps.Gpt(96, 64, 192, 6, 4), 4,
     lambda: torch.randint(96, (64,)), lambda: torch.randint(96, (64,))),
    ("resnet18", training_steps.resnet18, 8, lambda: torch.randn(3, 32, 32),
     lambda: torch.randint(10, ())),
    ("unet", training_steps.unet, 2, lambda: torch.randn(3, 64, 64),
     lambda: torch.randint(5, (64, 64))),
    ("bert", bert, 4, lambda: torch.randint(500, (48,)), lambda: torch.randint(7, ())),
]


def export_all(folder, only=""):
    """Keeps what is there from an earlier time."""
    exported = []
    for name, build, batch, sample, label in MODELS:
        if not re.search(only, name):
            continue
        place = pathlib.Path(folder) / name
        place.mkdir(parents=True, exist_ok=True)
        if not (place / "model.onnx").exists():
            torch.manual_seed(7)
            module = build().train()
            inputs = torch.stack([sample() for _ in range(32 * batch)])
            labels = torch.stack([label() for _ in range(32 * batch)])
            numpy.save(place / "x.npy", inputs.numpy())
            numpy.save(place / "labels.npy", labels.numpy())
            training_steps.export(module, inputs[:batch], place / "partial.onnx")
            (place / "partial.onnx").rename(place / "model.onnx")
        exported.append(Exported(
            name, place / "model.onnx", batch,
            [f"--microbatch-size={batch}", "--loss=softmax-cross-entropy"],
            ["--data", f"x={place / 'x.npy'}", "--labels", str(place / "labels.npy")]))
    return exported
