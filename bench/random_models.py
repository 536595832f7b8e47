#!/usr/bin/env python3
"""Random PyTorch models: losses against PyTorch, bits against each other.

    bench/random_models.py SEED COUNT [--keep]

Model SEED, SEED+1, ... is drawn from its number (random_layers.py), exported by
one of PyTorch's exporters and trained for a few updates by a random loss and
optimizer, some parameters frozen, some gradients clipped. Then

- losses are near PyTorch's in f64, as PyTorch's own in f32 are;
- inference gives what PyTorch's module gives in evaluation mode;
- other numbers of stages, schedules and policies of recomputation give the same
  losses and the same saved model, byte for byte;
- methods and replicas give what their replay gives (--verify).

A refusal by a compiler is printed: it is right where it names what a user can
change. Failures keep their folder, with the command lines; so does everything
with --keep. Needs torch and onnx.
"""

import contextlib
import copy
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import warnings

import numpy
import torch
from torch import nn

import measure
import random_layers
from architectures_export import freeze_flags

sys.path.insert(0, str(measure.ROOT / "test" / "e2e"))
import plans

UPDATES, MICROBATCHES = 6, 4
TOKENS, CLASSES = 13, 5
SLACK, FACTOR = 1e-5, 30
POLICIES = ([], [], ["--recompute=full"], ["--recompute=(Relu|Mul|Add|Conv|MatMul)"])
# Replicas of stages.
REPLICAS = (["--stages=1", "--replicas=2"], ["--stages=2", "--replicas=2"],
            ["--stages=2", "--replicas=2,1"], ["--stages=3", "--replicas=1,4,2"],
            ["--stages=2", f"--schedule={plans.BIDIRECTIONAL}"])


def penstockc():
    return measure.build_folder() / "bin" / "penstockc"


def draw_schedule(draw):
    schedule = draw.choice([schedule for schedule in plans.schedules(penstockc())
                            if schedule != plans.BIDIRECTIONAL])
    # Devices can have neighboring stages, too.
    chunks = draw.choice([1, 2]) if schedule == "1f1b" else plans.stages_per_device(schedule)
    devices = 2 if chunks > 1 else draw.randint(2, 5)
    return [f"--stages={devices * chunks}", f"--devices={devices}", f"--schedule={schedule}"]


def draw_methods(draw, count):
    for method in draw.sample(plans.methods(penstockc()), count):
        # It updates after every microbatch.
        single = ["--microbatches=1"] if method == "spectrain" else []
        yield [f"--method={method}", *single]


class Failed(Exception):
    pass


class Model(nn.Module):
    """Layers, and a head that fits the labels."""

    def __init__(self, draw):
        super().__init__()
        start = draw.choice(["image", "image", "line", "sequence", "vector", "tokens"])
        shape = {"image": (draw.randint(1, 5), draw.randint(5, 11), draw.randint(5, 11)),
                 "line": (draw.randint(1, 5), draw.randint(7, 23)),
                 "sequence": (draw.randint(3, 9), draw.randint(4, 20)),
                 "vector": (draw.randint(4, 30),),
                 "tokens": (draw.randint(3, 9),)}[start]
        self.tokens, self.shape = start == "tokens", shape
        if self.tokens:
            width = draw.randint(4, 20)
            self.embedding, start, shape = nn.Embedding(TOKENS, width), "sequence", (*shape, width)
        self.layers, self.kind, shape = random_layers.stack(draw, start, shape,
                                                            draw.randint(3, 8))
        if self.kind in ("image", "line"):
            make = nn.Conv2d if self.kind == "image" else nn.Conv1d
            self.head, places = make(shape[0], CLASSES, 1), shape[1:]
        else:
            self.head, places = nn.Linear(shape[-1], CLASSES), shape[:-1]
        self.outputs = (*places, CLASSES)

    def forward(self, x):
        x = self.head(self.layers(self.embedding(x) if self.tokens else x))
        return x.movedim(1, -1) if self.kind in ("image", "line") else x

    def inputs(self, count):
        if self.tokens:
            return torch.randint(0, TOKENS, (count, *self.shape))
        return torch.randn(count, *self.shape)

    def labels(self, loss, count):
        if loss == "softmax-cross-entropy":
            return torch.randint(0, CLASSES, (count, *self.outputs[:-1]))
        return torch.rand(count, *self.outputs)


class Case:
    """What a seed stands for."""

    def __init__(self, seed):
        draw = random.Random(seed)
        torch.manual_seed(seed)
        self.module, self.batch = Model(draw).train(), draw.randint(2, 5)
        self.loss = draw.choice(["softmax-cross-entropy", "mse", "bce-with-logits"])
        rate = draw.choice([0.001, 0.003])
        self.optimizer, self.make_optimizer = draw.choice([
            (f"sgd:lr={rate},momentum=0.9",
             lambda p: torch.optim.SGD(p, lr=rate, momentum=0.9)),
            (f"sgd:lr={rate},momentum=0.8,nesterov,weight-decay=0.01",
             lambda p: torch.optim.SGD(p, lr=rate, momentum=0.8, nesterov=True,
                                       weight_decay=0.01)),
            (f"adam:lr={rate},eps=0.001", lambda p: torch.optim.Adam(p, lr=rate, eps=0.001)),
            (f"adamw:lr={rate},eps=0.001,weight-decay=0.1",
             lambda p: torch.optim.AdamW(p, lr=rate, eps=0.001, weight_decay=0.1))])
        self.clip = draw.choice([None, None, 0.5])
        self.exporter = draw.choice(["dynamo", "script"])
        self.opset = draw.randint(18, 23) if self.exporter == "dynamo" else draw.randint(12, 17)
        with torch.no_grad():
            for parameter in self.module.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
        if draw.random() < 0.3:
            draw.choice(list(self.module.parameters())).requires_grad_(False)
        self.variants = [(draw_schedule(draw) + draw.choice(POLICIES), False)
                         for _ in range(3)]
        stages = f"--stages={draw.randint(2, 4)}"
        self.variants += [([stages, *flags], True) for flags in draw_methods(draw, 2)]
        self.variants.append((draw.choice(REPLICAS), True))
        count = self.batch * MICROBATCHES * 2
        self.inputs, self.labels = self.module.inputs(count), self.module.labels(self.loss, count)

    def __str__(self):
        names = re.findall(r": (\w+)\(", str(self.module.layers))
        return (f"{','.join(names)} | {self.exporter} {self.opset} | {self.loss} | "
                f"{self.optimizer.split(':')[0]}{' clipped' if self.clip else ''}")

    def export(self, path):
        if self.exporter == "dynamo":
            torch.onnx.export(self.module, (self.inputs[:self.batch],), path, dynamo=True,
                              opset_version=self.opset, optimize=False,
                              external_data=False, input_names=["x"], output_names=["y"],
                              dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=4096)},))
        else:
            torch.onnx.export(self.module, (self.inputs[:self.batch],), path, dynamo=False,
                              opset_version=self.opset, do_constant_folding=False,
                              training=torch.onnx.TrainingMode.TRAINING, input_names=["x"],
                              output_names=["y"], dynamic_axes={"x": {0: "b"}, "y": {0: "b"}})

    def loss_of(self, output, labels):
        if self.loss == "softmax-cross-entropy":
            return nn.functional.cross_entropy(output.reshape(-1, CLASSES), labels.reshape(-1))
        return {"mse": nn.functional.mse_loss,
                "bce-with-logits": nn.functional.binary_cross_entropy_with_logits}[self.loss](
                    output, labels)

    def expected(self, dtype):
        """PyTorch's losses, and what its module gives before training."""
        def convert(value):
            return value.to(dtype) if value.is_floating_point() else value
        module, inputs, labels = (copy.deepcopy(self.module).to(dtype), convert(self.inputs),
                                  convert(self.labels))
        with torch.no_grad():
            output = module.eval()(inputs)
        module.train()
        trained = [p for p in module.parameters() if p.requires_grad]
        optimizer, losses, at = self.make_optimizer(trained), [], 0
        for _ in range(UPDATES):
            optimizer.zero_grad()
            parts = []
            for _ in range(MICROBATCHES):
                part = slice(at, at + self.batch)
                loss = self.loss_of(module(inputs[part]), labels[part]) / MICROBATCHES
                loss.backward()
                parts.append(loss.item())
                at = (at + self.batch) % len(inputs)
            if self.clip:
                nn.utils.clip_grad_norm_(trained, self.clip)
            optimizer.step()
            losses.append(sum(parts))
        return losses, output


class Runner:
    """Compiles and runs in the folder of a model, and notes the commands."""

    def __init__(self, folder):
        self.folder, self.commands = folder, []

    def command(self, *command):
        self.commands.append(shlex.join(map(str, command)))
        return subprocess.run(list(map(str, command)), capture_output=True, text=True,
                              check=False, timeout=600)

    def compile(self, *flags):
        """None, or the line of a refusal."""
        said = self.command(penstockc(), self.folder / "model.onnx", "-o",
                            self.folder / "program", *flags)
        lines = [line for line in said.stderr.splitlines()
                 if ": note: " not in line and ": warning: " not in line and
                 ": remark: " not in line]
        if said.returncode not in (0, 1):
            raise Failed(f"penstockc ends with {said.returncode}: {' '.join(lines)[:300]}")
        if said.returncode == 1 and len(lines) != 1:
            raise Failed(f"{len(lines)} lines of refusal: {' '.join(lines)[:300]}")
        return lines[0].replace(f"{self.folder}/", "") if said.returncode else None

    def train(self, *flags):
        """Losses; the bytes that are to be compared."""
        log, saved = self.folder / "log.jsonl", self.folder / "saved.onnx"
        run = self.command(self.folder / "program", "--data", f"x={self.folder / 'x.npy'}",
                           "--labels", self.folder / "labels.npy", "--steps", UPDATES, "--log",
                           log, "--save", saved, *flags)
        if run.returncode:
            raise Failed(f"the program ends with {run.returncode}: {run.stderr.strip()[-300:]}")
        printed = re.findall(r'"loss": ([^,]*)', log.read_text())
        identity = hashlib.sha256(saved.read_bytes()).hexdigest()
        return [json.loads(loss) for loss in printed], (printed, identity)

    def infer(self):
        outputs = self.folder / "outputs"
        shutil.rmtree(outputs, ignore_errors=True)
        run = self.command(self.folder / "program", "--data", f"x={self.folder / 'x.npy'}",
                           "--outputs", outputs)
        if run.returncode:
            raise Failed(f"inference ends with {run.returncode}: {run.stderr.strip()[-300:]}")
        return torch.from_numpy(numpy.load(outputs / "y.npy"))


def furthest(losses, exact):
    return max(abs(a - b) / max(abs(b), 1e-12) if a is not None else float("inf")
               for a, b in zip(losses, exact))


def require_near(what, ours, theirs):
    if not ours <= SLACK + FACTOR * theirs:
        raise Failed(f"{what}: {ours:.1e} from f64, PyTorch in f32 {theirs:.1e}")


def check(case, runner):
    """What is worth a line; raises Failed."""
    (losses, output), (exact, exact_output) = (case.expected(d) for d in
                                               (torch.float32, torch.float64))
    if not all(map(numpy.isfinite, exact)):
        return "PyTorch's losses are not finite"
    flags = [f"--microbatch-size={case.batch}", f"--loss={case.loss}",
             f"--microbatches={MICROBATCHES}", f"--optimizer={case.optimizer}",
             *freeze_flags(case.module, runner.folder / "model.onnx", case.exporter)]
    if case.clip:
        flags.append(f"--clip-grad-norm={case.clip}")
    refused = runner.compile("--stages=1", *flags)
    if refused:
        return f"REFUSED: {refused}"
    ours, identity = runner.train("--verify")
    theirs = furthest(losses, exact)
    require_near("losses", furthest(ours, exact), theirs)
    notes = [f"losses {furthest(ours, exact):.1e} (PyTorch {theirs:.1e})"]

    refused = runner.compile("--stages=2", "--mode=infer", f"--microbatch-size={case.batch}")
    if refused:
        notes.append(f"infer refused: {refused}")
    else:
        scale = exact_output.abs().max().item() + 1e-12
        require_near("outputs", (runner.infer() - exact_output).abs().max().item() / scale,
                     (output - exact_output).abs().max().item() / scale)

    for variant, own_numbers in case.variants:
        other = {flag.split("=")[0] for flag in variant}
        refused = runner.compile(*variant, *(flag for flag in flags
                                             if flag.split("=")[0] not in other))
        if refused:
            notes.append(f"{' '.join(variant)} refused: {refused}")
        elif own_numbers:
            runner.train("--verify")
        elif runner.train()[1] != identity:
            raise Failed(f"{' '.join(variant)}: other bytes than one stage")
    return "; ".join(notes)


@contextlib.contextmanager
def silence():
    """PyTorch's exporters print from Python and from C++."""
    sys.stdout.flush()
    streams = [os.dup(1), os.dup(2)]
    with open(os.devnull, "w", encoding="utf-8") as nothing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in (1, 2):
            os.dup2(nothing.fileno(), number)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, stream in zip((1, 2), streams):
                os.dup2(stream, number)
                os.close(stream)


def try_export(case, folder):
    """None, or what the exporter says."""
    try:
        with silence():
            case.export(str(folder / "model.onnx"))
    except Exception as error:  # The exporters' own refusals are of many types.
        return str(error).strip().splitlines()[0][:80]
    return None


def run_case(seed, folder):
    """A line, and whether all is well."""
    case = Case(seed)
    numpy.save(folder / "x.npy", case.inputs.numpy())
    numpy.save(folder / "labels.npy", case.labels.numpy())
    runner = Runner(folder)
    problem = try_export(case, folder)
    if problem and case.exporter == "script":  # It knows fewer operators.
        case.exporter, case.opset = "dynamo", 18
        problem = try_export(case, folder)
    line = f"{seed} | {case}"
    if problem:
        return f"{line} | not exported: {problem}", True
    try:
        return f"{line} | {check(case, runner)}", True
    except (Failed, subprocess.TimeoutExpired) as failed:
        (folder / "commands.sh").write_text("\n".join(runner.commands) + "\n")
        return f"{line} | FAILED: {failed}", False


def main(arguments, usage, name, run):
    """Runs a case per seed in a folder of its own, which stays if it failed."""
    keep = "--keep" in arguments
    numbers = [argument for argument in arguments if argument.isdigit()]
    if len(numbers) != 2 or len(arguments) != 2 + keep:
        sys.exit(usage)
    torch.set_num_threads(1)
    failures = 0
    for seed in range(int(numbers[0]), int(numbers[0]) + int(numbers[1])):
        folder = measure.work_folder() / name / str(seed)
        folder.mkdir(parents=True, exist_ok=True)
        line, well = run(seed, folder)
        print(line, flush=True)
        failures += not well
        if well and not keep:
            shutil.rmtree(folder)
    print(f"{failures} of {numbers[1]} models failed")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main(sys.argv[1:], __doc__, "random_models", run_case)
