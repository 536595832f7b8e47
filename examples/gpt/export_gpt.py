#!/usr/bin/env python3
"""Exports the untrained character GPT of this example from PyTorch as gpt.onnx.

Not needed to use the example: the file is in the tree. It was made with
torch 2.15.0, onnx 1.23.2 and onnxscript 0.7.2:

    pip install torch==2.15.0 onnx==1.23.2 onnxscript==0.7.2
    python3 export_gpt.py
"""

import pathlib

import onnx
import torch
from torch import nn

SEED = 7
CHARACTERS, LENGTH, WIDTH, HEADS, BLOCKS = 69, 64, 64, 4, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm1(x)
        heads = [part(y).unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)
                 for part in (self.query, self.key, self.value)]
        y = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.characters = nn.Embedding(CHARACTERS, WIDTH)
        self.positions = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CHARACTERS, bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.05)

    def forward(self, tokens):
        x = self.characters(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    torch.manual_seed(SEED)
    path = pathlib.Path(__file__).resolve().parent / "gpt.onnx"
    torch.onnx.export(
        Gpt(),
        (torch.zeros(4, LENGTH, dtype=torch.int32),),
        str(path),
        dynamo=True,
        optimize=False,  # the optimizer of the exporter merges layers
        external_data=False,
        opset_version=20,
        input_names=["tokens"],
        output_names=["logits"],
        dynamic_shapes={"tokens": {0: torch.export.Dim("batch")}},
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
    main()
