#!/usr/bin/env python3
"""Whole training steps against PyTorch, eager and compiled, in one run.

    bench/training_steps.py [--only=REGEX] [--threads=1] [--rounds=5] [--no-compile]

An MLP, ResNet-18 at 32 x 32, a GPT of 6 layers and a U-Net, one stage, SGD with
momentum, as many threads for both sides. The losses of the first updates are
compared before anything is timed. Rounds alternate between the peers, and the
shortest of each counts: absolute times on a shared machine are noise, the ratio
is what is measured. Needs torch, torchvision and onnx.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
import time
import warnings

import numpy
import torch
from torch import nn

import architectures_own
import measure

RATE, MOMENTUM, CHECKED = 0.01, 0.9, 3


class Mlp(nn.Sequential):
    def __init__(self):
        layers = [layer for _ in range(7) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
        super().__init__(*layers, nn.Linear(1024, 1024))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm1(x)
        heads = [part(y).unflatten(2, (self.heads, -1)).transpose(1, 2)
                 for part in (self.query, self.key, self.value)]
        y = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary=256, length=128, width=384, heads=6, blocks=6):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        y = self.tokens(x) + self.positions
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


def unet():
    return architectures_own.UNet(5, (32, 64, 128), groups=8, depth=2)


def resnet18():
    import torchvision
    model = torchvision.models.resnet18(weights=None, num_classes=10)
    model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return model


#        name, module, batch, inputs of one sample, labels of one sample and their classes
MODELS = [
    ("mlp", Mlp, 64, lambda: torch.randn(1024), lambda: torch.randint(1024, ())),
    ("resnet18", resnet18, 16, lambda: torch.randn(3, 32, 32), lambda: torch.randint(10, ())),
    ("gpt", Gpt, 8, lambda: torch.randint(256, (128,)), lambda: torch.randint(256, (128,))),
    ("unet", unet, 4, lambda: torch.randn(3, 64, 64), lambda: torch.randint(5, (64, 64))),
]


class Peer:
    """PyTorch's training loop over one fixed batch after the other."""

    def __init__(self, module, inputs, labels, batch):
        self.module, self.inputs, self.labels, self.batch = module, inputs, labels, batch
        self.optimizer = torch.optim.SGD(module.parameters(), lr=RATE, momentum=MOMENTUM)
        self.position = 0

    def step(self):
        at = self.position % (len(self.labels) // self.batch) * self.batch
        self.position += 1
        self.optimizer.zero_grad()
        logits = self.module(self.inputs[at:at + self.batch])
        loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]),
                                           self.labels[at:at + self.batch].reshape(-1))
        loss.backward()
        self.optimizer.step()
        return loss

    def seconds(self, steps):
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        return (time.perf_counter() - begin) / steps


def export(module, sample, path):
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (sample,), str(path), dynamo=True, optimize=False,
                          external_data=False,
                          input_names=["x"], output_names=["logits"],
                          dynamic_shapes=({0: torch.export.Dim("batch")},))


def prepare(folder, build, batch, make_input, make_label):
    """Writes a model and four batches; returns the module, the batches, and their flags."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    module = build().train()
    inputs = torch.stack([make_input() for _ in range(4 * batch)])
    labels = torch.stack([make_label() for _ in range(4 * batch)])
    numpy.save(folder / "x.npy", inputs.numpy())
    numpy.save(folder / "labels.npy", labels.numpy())
    export(module, inputs[:batch], folder / "model.onnx")
    return module, inputs, labels, ["--data", f"x={folder / 'x.npy'}", "--labels",
                                    str(folder / "labels.npy")]


def measure_model(name, build, batch, make_input, make_label, threads, rounds, compiled):
    folder = measure.work_folder() / "training_steps" / name
    module, inputs, labels, data = prepare(folder, build, batch, make_input, make_label)
    program = folder / "program"
    begin = time.perf_counter()
    measure.compile_model(folder / "model.onnx", program, "--stages=1", f"--threads={threads}",
                          f"--microbatch-size={batch}", "--loss=softmax-cross-entropy",
                          f"--optimizer=sgd:lr={RATE},momentum={MOMENTUM}")
    compile_seconds = time.perf_counter() - begin
    log = folder / "log.jsonl"
    subprocess.run([program, *data, "--steps", str(CHECKED), "--log", log], check=True,
                   stdout=subprocess.DEVNULL)
    ours = [json.loads(line)["loss"] for line in log.read_text().splitlines()]

    state = {key: value.clone() for key, value in module.state_dict().items()}
    eager = Peer(module, inputs, labels, batch)
    theirs = [eager.step().item() for _ in range(CHECKED)]
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    if worst > 1e-4:
        sys.exit(f"{name}: losses differ by {worst:.1e}: {ours} and {theirs}")
    peers = {"eager": eager}
    if compiled:
        module.load_state_dict(state)
        peers["compiled"] = Peer(torch.compile(module), inputs, labels, batch)
        for _ in range(CHECKED):
            peers["compiled"].step()

    steps = max(8, int(1.0 / eager.seconds(1)))
    best = dict.fromkeys(["ours", *peers], float("inf"))
    shortest = longest = float("inf")
    for _ in range(rounds):
        # The difference of a long and a short run: start and end cancel out.
        shortest = min(shortest, measure.wall(program, data, 1))
        longest = min(longest, measure.wall(program, data, 1 + 2 * steps))
        for key, peer in peers.items():
            best[key] = min(best[key], peer.seconds(steps))
    best["ours"] = (longest - shortest) / (2 * steps)
    fastest = min(best[key] for key in peers)
    times = ", ".join(f"{key} {1e3 * value:.1f} ms" for key, value in best.items())
    print(f"{name}: {times}; {fastest / best['ours']:.2f} x the faster PyTorch row "
          f"(losses differ by {worst:.0e}; compiled in {compile_seconds:.1f} s)", flush=True)


def main():
    options = measure.read_options(__doc__, only="", threads=1, rounds=5, no_compile=False)
    torch.set_num_threads(options.threads)
    print(f"{measure.machine()}; PyTorch {torch.__version__}; {options.threads} thread(s)")
    for model in MODELS:
        if re.search(options.only, model[0]):
            measure_model(*model, options.threads, options.rounds, not options.no_compile)


if __name__ == "__main__":
    main()
