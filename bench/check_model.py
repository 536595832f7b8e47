#!/usr/bin/env python3
"""Does a model of yours train as it should? Losses, gradients and outputs against ONNX Runtime.

    bench/check_model.py MODEL.onnx [--updates=3] [--integers=2] [--parameters=60]
                         [penstockc's options]

The model is compiled by penstockc, and trained on random data for a few updates.
ONNX Runtime then runs the same file with the weights that each update left:

- the loss before each update must be what the program printed;
- the gradient (a single step of a large rate gives it) must agree with central
  differences of ONNX Runtime's loss, parameter by parameter, along the gradient
  and a random direction;
- what the model gives in --mode=infer must be ONNX Runtime's outputs.

Integer inputs are drawn from 0 to --integers - 1. Dropout is taken out first, since
its masks are random; batch normalizations are written out by their definition, since
ONNX Runtime has only their inference form. Needs onnx, onnxruntime and numpy.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, numpy_helper

import measure
from onnx_reference import (NOISE, Reference, Settings, expose_logits, with_batch_statistics,
                            without_dropout)

LOSSES, GRADIENTS, OUTPUTS = 1e-4, 3e-2, 1e-4
RATE = 2.0**20
KINDS = {"tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32,
         "tensor(double)": numpy.float64, "tensor(bool)": numpy.bool_}


class Refused(Exception):
    """What penstockc says."""


class Failed(Exception):
    """What is not as it should be."""


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def compile_model(path, program, flags):
    """What penstockc remarks; raises what it refuses."""
    said = run(measure.build_folder() / "bin" / "penstockc", path, "-o", program, *flags)
    if said.returncode:
        lines = [line for line in said.stderr.splitlines()
                 if not re.search(": (note|warning|remark): ", line)]
        raise Refused(f"exit {said.returncode}: " + " ".join(lines))
    return said.stderr


def input_shapes(program):
    """Name -> (type, shape of a sample or None), as the program prints them."""
    text = run(program, "--help").stdout.partition("inputs:\n")[2].partition("\n\n")[0]
    shapes = {}
    for line in text.splitlines():
        name, kind, shape = re.fullmatch(r"  (.*?)\s+(\w+) \((.*?),?\)", line).groups()
        sizes = [part for part in shape.split(", ") if part]
        shapes[name] = (kind, [int(size) for size in sizes if size != "samples"])
    return shapes


def train(program, folder, names, updates, rate):
    """Losses and the saved weights after `updates`."""
    log, saved = folder / "log.jsonl", folder / "saved.onnx"
    arguments = [part for name in names if name != "labels"
                 for part in ("--data", f"{name}={folder / 'data' / file_name(name)}")]
    if "labels" in names:
        arguments += ["--labels", folder / "data" / "labels.npy"]
    said = run(program, *arguments, "--steps", updates, "--lr", rate, "--log", log, "--save", saved)
    if said.returncode:
        raise Failed(f"the program ends with {said.returncode}: {said.stderr.strip()[-300:]}")
    weights = {tensor.name: numpy_helper.to_array(tensor)
               for tensor in onnx.load(saved).graph.initializer}
    return [json.loads(line)["loss"] for line in log.read_text().splitlines()], weights


def file_name(name):
    return re.sub(r"[^\w.-]", "_", name) + ".npy"


def directions(draw, gradient):
    """Of unit length: along the gradient, and anywhere."""
    for part in (gradient, draw.standard_normal(gradient.shape)):
        if length := numpy.linalg.norm(part):
            yield part / length


def gradient_error(reference, data, labels, name, gradient, draw):
    """The largest error of central differences, relative to the gradient; None: too small."""
    weight, length = reference.weights[name].astype(numpy.float64), numpy.linalg.norm(gradient)
    center = abs(reference.loss(data, labels)) + 1e-3
    kind = reference.weights[name].dtype
    worst, first = None, 0.1 * max(numpy.linalg.norm(weight), 0.1)
    for direction in directions(draw, gradient):
        best, seen = None, False
        for step in first * 4.0**-numpy.arange(8):
            ends = [reference.loss(data, labels, {**reference.weights, name:
                                   (weight + sign * step * direction).astype(kind)})
                    for sign in (1, -1)]
            error = abs((ends[0] - ends[1]) / (2 * step) - float(numpy.sum(gradient * direction)))
            noise = reference.noise * center / step
            seen = seen or error <= noise
            if noise <= 0.3 * length:
                best = min(max(error - noise, 0) / length, numpy.inf if best is None else best)
            if best is not None and best < GRADIENTS / 10 or noise > 0.3 * length and seen:
                break
        if best is None and not seen:
            best = numpy.inf
        if best is not None:
            worst = max(best, worst or 0)
    return worst


def check_outputs(path, folder, flags, inputs, reference):
    """The largest error of --mode=infer, relative to the largest element of the output."""
    program, outputs = folder / "infer", folder / "outputs"
    compile_model(path, program, ["--mode=infer", *flags])
    shapes = input_shapes(program)
    arguments = [part for name in shapes
                 for part in ("--data", f"{name}={folder / 'data' / ('first-' + file_name(name))}")]
    for name in shapes:
        numpy.save(folder / "data" / ("first-" + file_name(name)), inputs[name])
    outputs.mkdir(exist_ok=True)
    said = run(program, *arguments, "--outputs", outputs)
    if said.returncode:
        raise Failed(f"inference ends with {said.returncode}: {said.stderr.strip()[-300:]}")
    worst = 0.0
    for name, expected in reference.run(inputs).items():
        path = outputs / (name.replace("/", "_") + ".npy")
        if path.exists() and expected.size and expected.dtype.kind in "fiub":
            expected = expected.astype(numpy.float64)
            ours = numpy.load(path).astype(numpy.float64)
            if ours.shape != expected.shape:
                raise Failed(f"output '{name}' has shape {ours.shape}, not {expected.shape}")
            worst = max(worst, numpy.max(numpy.abs(ours - expected)) /
                        max(numpy.max(numpy.abs(expected)), 1e-6))
    return worst


class Check:
    """One model, trained by penstockc and by ONNX Runtime on the same data."""

    def __init__(self, path, folder, flags, updates, integers):
        self.path, self.folder, self.flags, self.updates = path, folder, flags, updates
        self.draw, model = numpy.random.default_rng(0), onnx.load(path)
        # Half precision rounds to 3 digits, in an order of its own.
        self.slack = 100 if any(t.data_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
                                for t in model.graph.initializer) else 1
        (folder / "data").mkdir(parents=True, exist_ok=True)
        self.settings = Settings(flags, model)
        self.errors = {"dropout": without_dropout(model)}
        if self.errors["dropout"]:
            self.path = folder / "without_dropout.onnx"
            onnx.save(model, self.path)
        self.compile(model)
        self.draw_data(integers)
        self.first = dict(self.reference.weights)

    def compile(self, model):
        """The program, and what ONNX Runtime makes of the model in training and in inference."""
        self.program = self.folder / "program"
        # What ONNX Runtime is asked for: the same weights, once per form.
        said = compile_model(self.path, self.program,
                             ["--optimizer=sgd", "--explain", *self.flags])
        if "is part of --loss" in said:
            self.settings.output = expose_logits(model, self.settings.output)
        plan = json.loads(run(self.program, "--plan").stdout)
        self.trained, self.size = set(plan["trained"]), plan["microbatch_size"]
        if not self.trained:
            raise Refused("nothing is trained: the weights are no initializers")
        self.errors["parameters"] = len(self.trained)
        self.inference = Reference(onnx.ModelProto.FromString(model.SerializeToString()),
                                   self.trained, self.settings)
        if "--batch-norm=frozen" not in self.flags:
            with_batch_statistics(model)
        self.reference = Reference(model, self.trained, self.settings)
        self.reference.noise = NOISE * self.slack**2

    def draw_data(self, integers):
        """Files for the program, and per update what ONNX Runtime gets."""
        self.shapes, inputs, size = input_shapes(self.program), {}, self.size
        needed = {value.name: value for value in self.reference.session.get_inputs()
                  if value.name not in self.trained}
        for name, (kind, shape) in self.shapes.items():
            if name not in needed:
                continue
            shape = (size * self.updates, *shape)
            inputs[name] = (self.draw.standard_normal(shape).astype(kind)
                            if kind.startswith("float") else
                            self.draw.integers(0, integers, shape).astype(kind))
        # ONNX Runtime wants all inputs, also those that no output depends on.
        rest = {name: numpy.zeros([d if isinstance(d, int) else size for d in needed[name].shape],
                                  KINDS.get(needed[name].type, numpy.float32))
                for name in set(needed) - set(inputs)}
        self.parts = [{**rest, **{name: value[k * size:(k + 1) * size]
                                  for name, value in inputs.items()}}
                      for k in range(self.updates)]
        output = self.reference.run(self.parts[0])[self.settings.output]
        self.labels = [None] * self.updates
        if self.settings.loss != "output":
            self.labels = [self.settings.labels(self.draw, output) for _ in range(self.updates)]
            numpy.save(self.folder / "data" / "labels.npy", numpy.concatenate(self.labels))
        for name, value in inputs.items():
            numpy.save(self.folder / "data" / file_name(name), value)

    def train(self, updates, rate):
        return train(self.program, self.folder, self.shapes, updates, rate)

    def check_losses(self):
        """With the weights of every update."""
        rate, worst = plan_rate(self.flags), 0.0
        losses, _ = self.train(self.updates, rate)
        for k in range(self.updates):
            if k:
                saved = self.train(k, rate)[1]
                self.reference.weights = {name: saved[name] for name in self.first}
            expected = self.reference.loss(self.parts[k], self.labels[k])
            if losses[k] is None or not numpy.isfinite(expected):
                if losses[k] is None and not numpy.isfinite(expected):
                    break
                raise Failed(f"the loss of update {k + 1} is {losses[k]}, "
                             f"ONNX Runtime's {expected}")
            worst = max(worst, abs(losses[k] - expected) / max(abs(expected), 1e-3))
        self.errors["losses"] = worst
        if worst > LOSSES * self.slack:
            raise Failed(f"losses differ from ONNX Runtime's by {worst:.1e}")

    def check_gradients(self, limit):
        """Of at most `limit` parameters."""
        rate = RATE if self.slack == 1 else 1.0  # Half precision ends at 65504.
        self.reference.weights, stepped = self.first, self.train(1, rate)[1]
        names = sorted(self.trained)
        names = names[::max(1, -(-len(names) // limit))]
        self.errors.update(gradients=0.0, unmeasured=0, checked=len(names))
        wrong = {}
        for name in names:
            gradient = (self.first[name].astype(numpy.float64) -
                        stepped[name].astype(numpy.float64)) / rate
            error = gradient_error(self.reference, self.parts[0], self.labels[0], name, gradient,
                                   self.draw)
            if error is None:
                self.errors["unmeasured"] += 1
                continue
            self.errors["gradients"] = max(self.errors["gradients"], error)
            if error > GRADIENTS:
                wrong[name] = error
        if wrong:
            worst = max(wrong, key=wrong.get)
            raise Failed(f"gradients of {len(wrong)} of {len(names)} parameters differ from "
                         f"central differences, that of '{worst}' by {wrong[worst]:.1e}")

    def check_inference(self):
        """It has outputs that training does not need, and may be refused."""
        flags = [flag for flag in self.flags if not flag.startswith("--loss")]
        try:
            error = check_outputs(self.path, self.folder, flags, self.parts[0], self.inference)
        except Refused:
            error = None
        self.errors["outputs"] = error
        if error is not None and error > OUTPUTS * self.slack:
            raise Failed(f"outputs differ from ONNX Runtime's by {error:.1e}")


def check(path, folder, flags, updates=3, integers=2, limit=60):
    """The largest errors; raises Refused or Failed."""
    one = Check(path, folder, flags, updates, integers)
    one.check_losses()
    one.check_gradients(limit)
    one.check_inference()
    return one.errors


def plan_rate(flags):
    """The learning rate of the flags, or a small one."""
    found = re.search(r"--optimizer=\S*lr=([\d.e-]+)", " ".join(flags))
    return found.group(1) if found else "0.01"


def describe(errors):
    outputs = ("refused in --mode=infer" if errors["outputs"] is None else
               f"within {errors['outputs']:.1e}")
    return (f"losses within {errors['losses']:.1e}, gradients of {errors['checked']} of "
            f"{errors['parameters']} parameters within {errors['gradients']:.1e} "
            f"({errors['unmeasured']} too small to measure), outputs {outputs}" +
            (", without dropout" if errors["dropout"] else ""))


def main(arguments):
    numbers, flags, paths = {"updates": 3, "integers": 2, "parameters": 60}, [], []
    for argument in arguments:
        key, _, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and key in numbers and value.isdigit():
            numbers[key] = int(value)
        else:
            (flags if argument.startswith("-") else paths).append(argument)
    if len(paths) != 1:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        try:
            errors = check(pathlib.Path(paths[0]), pathlib.Path(folder), flags,
                           numbers["updates"], numbers["integers"], numbers["parameters"])
        except (Refused, Failed) as problem:
            sys.exit(f"{paths[0]}: {problem}")
    print(f"{paths[0]}: {describe(errors)}")


if __name__ == "__main__":
    main(sys.argv[1:])
