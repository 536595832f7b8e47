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
its masks are random; batch normalisations are written out by their definition, since
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
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import measure

LOSSES, GRADIENTS, OUTPUTS = 1e-4, 3e-2, 1e-4
# Of a loss that ONNX Runtime computes in f32, relative.
NOISE = 5e-8
RATE = 2.0**20
KINDS = {"tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32,
         "tensor(double)": numpy.float64, "tensor(bool)": numpy.bool_}


class Refused(Exception):
    """What penstockc says."""


class Failed(Exception):
    """What is not as it should be."""


def without_dropout(model):
    """Whether there was one that drops."""
    changed = False
    for node in model.graph.node:
        if node.op_type == "Dropout" and node.domain in ("", "ai.onnx"):
            node.CopyFrom(helper.make_node("Identity", node.input[:1], node.output[:1],
                                           name=node.name))
            changed = True
    return changed


def batch_statistics(node, rank, opset):
    """The nodes of a batch normalisation in training."""
    x, scale, bias = node.input[:3]
    y, name = node.output[0], f"{node.output[0]}/statistics/"
    epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
    axes, nodes = [0, *range(2, rank)], []

    def add(kind, inputs, output="", **attributes):
        output = output or f"{name}{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def number(value, kind=numpy.float32):
        return add("Constant", [], value=numpy_helper.from_array(numpy.array(value, kind)))

    def mean(value):
        if opset < 18:
            return add("ReduceMean", [value], axes=axes, keepdims=1)
        return add("ReduceMean", [value, number(axes, numpy.int64)], keepdims=1)
    places = number([1, -1] + [1] * (rank - 2), numpy.int64)
    centered = add("Sub", [x, mean(x)])
    variance = add("Add", [mean(add("Mul", [centered, centered])), number(epsilon)])
    normal = add("Div", [centered, add("Sqrt", [variance])])
    scaled = add("Mul", [normal, add("Reshape", [scale, places])])
    add("Add", [scaled, add("Reshape", [bias, places])], output=y)
    return nodes


def with_batch_statistics(model):
    """Batch normalisations as training computes them."""
    opset = max((i.version for i in model.opset_import if i.domain in ("", "ai.onnx")), default=1)
    ranks = {value.name: len(value.type.tensor_type.shape.dim)
             for value in [*onnx.shape_inference.infer_shapes(model).graph.value_info,
                           *model.graph.input]}
    nodes = []
    for node in model.graph.node:
        if node.op_type == "BatchNormalization" and node.domain in ("", "ai.onnx"):
            nodes += batch_statistics(node, ranks.get(node.input[0], 4), opset)
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def expose_logits(model, name):
    """What a Softmax or Sigmoid at the end reads, as an output."""
    makers = {output: node for node in model.graph.node for output in node.output}
    while makers[name].op_type == "Identity":
        name = makers[name].input[0]
    name = makers[name].input[0]
    if name not in [output.name for output in model.graph.output]:
        model.graph.output.append(helper.make_empty_tensor_value_info(name))
    return name


class Reference:
    """ONNX Runtime's loss, as a function of the trained weights."""

    def __init__(self, model, trained, settings):
        # An initializer that is an input as well can be given another value.
        inputs = {value.name for value in model.graph.input}
        self.weights = {}
        for tensor in model.graph.initializer:
            if tensor.name in trained:
                self.weights[tensor.name] = numpy_helper.to_array(tensor)
                if tensor.name not in inputs:
                    model.graph.input.append(helper.make_tensor_value_info(
                        tensor.name, tensor.data_type, list(tensor.dims)))
        model.ir_version = max(model.ir_version, 4)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        onnxruntime.set_default_logger_severity(4)
        options.intra_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]
        self.settings, self.noise = settings, NOISE

    def run(self, data, weights=None):
        return dict(zip(self.names, self.session.run(None, {**data, **(weights or self.weights)})))

    def loss(self, data, labels, weights=None):
        output = numpy.asarray(self.run(data, weights)[self.settings.output], numpy.float64)
        return self.settings.loss_of(output, labels)


class Settings:
    """What the flags say of the loss."""

    def __init__(self, flags, model):
        def value(name, default):
            return next((flag.partition("=")[2] for flag in flags if flag.startswith(f"--{name}=")),
                        default)
        self.loss, self.axis = value("loss", "output"), int(value("class-axis", "-1"))
        self.output = value("loss-input", model.graph.output[0].name)

    def labels(self, draw, output):
        if self.loss == "softmax-cross-entropy":
            shape = numpy.delete(output.shape, self.axis)
            return draw.integers(0, output.shape[self.axis], shape)
        return draw.random(output.shape, numpy.float32)

    def loss_of(self, output, labels):
        if self.loss == "output":
            return float(output.reshape(()))
        if self.loss == "mse":
            return float(numpy.mean((output - labels)**2))
        if self.loss == "bce-with-logits":
            return float(numpy.mean(numpy.logaddexp(0, output) - labels * output))
        logits = numpy.moveaxis(output, self.axis, -1)
        logits = logits - numpy.max(logits, -1, keepdims=True)
        logs = logits - numpy.log(numpy.sum(numpy.exp(logits), -1, keepdims=True))
        return float(-numpy.mean(numpy.take_along_axis(logs, labels[..., None], -1)))


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


def check(path, folder, flags, updates=3, integers=2, limit=60):
    """The largest errors; raises Refused or Failed."""
    draw, model = numpy.random.default_rng(0), onnx.load(path)
    # Half precision rounds to 3 digits, in an order of its own.
    slack = 100 if any(t.data_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
                       for t in model.graph.initializer) else 1
    (folder / "data").mkdir(parents=True, exist_ok=True)
    settings = Settings(flags, model)
    dropout = without_dropout(model)
    if dropout:
        path = folder / "without_dropout.onnx"
        onnx.save(model, path)
    program = folder / "program"
    # What ONNX Runtime is asked for: the same weights, once per form.
    said = compile_model(path, program, ["--optimizer=sgd", "--explain", *flags])
    if "is part of --loss" in said:
        settings.output = expose_logits(model, settings.output)
    plan = json.loads(run(program, "--plan").stdout)
    trained, size = set(plan["trained"]), plan["microbatch_size"]
    if not trained:
        raise Refused("nothing is trained: the weights are no initializers")
    inference = Reference(onnx.ModelProto.FromString(model.SerializeToString()), trained, settings)
    if "--batch-norm=frozen" not in flags:
        with_batch_statistics(model)
    reference = Reference(model, trained, settings)
    reference.noise = NOISE * slack**2

    # 1. Data.
    shapes, inputs = input_shapes(program), {}
    needed = {value.name: value for value in reference.session.get_inputs()
              if value.name not in trained}
    for name, (kind, shape) in shapes.items():
        if name not in needed:
            continue
        shape = (size * updates, *shape)
        inputs[name] = (draw.standard_normal(shape).astype(kind) if kind.startswith("float") else
                        draw.integers(0, integers, shape).astype(kind))
    # ONNX Runtime wants all inputs, also those that no output depends on.
    rest = {name: numpy.zeros([d if isinstance(d, int) else size for d in needed[name].shape],
                              KINDS.get(needed[name].type, numpy.float32))
            for name in set(needed) - set(inputs)}
    parts = [{**rest, **{name: value[k * size:(k + 1) * size] for name, value in inputs.items()}}
             for k in range(updates)]
    output = reference.run(parts[0])[settings.output]
    labels = [None] * updates
    if settings.loss != "output":
        labels = [settings.labels(draw, output) for _ in range(updates)]
        numpy.save(folder / "data" / "labels.npy", numpy.concatenate(labels))
    for name, value in inputs.items():
        numpy.save(folder / "data" / file_name(name), value)

    # 2. Losses, with the weights of every update.
    first, errors = dict(reference.weights), {"parameters": len(trained), "dropout": dropout}
    losses, _ = train(program, folder, shapes, updates, plan_rate(flags))
    errors["losses"] = 0.0
    for k in range(updates):
        if k:
            saved = train(program, folder, shapes, k, plan_rate(flags))[1]
            reference.weights = {name: saved[name] for name in first}
        expected = reference.loss(parts[k], labels[k])
        if losses[k] is None or not numpy.isfinite(expected):
            if losses[k] is None and not numpy.isfinite(expected):
                break
            raise Failed(f"the loss of update {k + 1} is {losses[k]}, ONNX Runtime's {expected}")
        errors["losses"] = max(errors["losses"],
                               abs(losses[k] - expected) / max(abs(expected), 1e-3))
    if errors["losses"] > LOSSES * slack:
        raise Failed(f"losses differ from ONNX Runtime's by {errors['losses']:.1e}")

    # 3. Gradients.
    rate = RATE if slack == 1 else 1.0  # Half precision ends at 65504.
    reference.weights, stepped = first, train(program, folder, shapes, 1, rate)[1]
    names = sorted(trained)
    names = names[::max(1, -(-len(names) // limit))]
    errors["gradients"], errors["unmeasured"], wrong = 0.0, 0, {}
    for name in names:
        gradient = (first[name].astype(numpy.float64) - stepped[name].astype(numpy.float64)) / rate
        error = gradient_error(reference, parts[0], labels[0], name, gradient, draw)
        if error is None:
            errors["unmeasured"] += 1
        else:
            errors["gradients"] = max(errors["gradients"], error)
            if error > GRADIENTS:
                wrong[name] = error
    errors["checked"] = len(names)
    if wrong:
        worst = max(wrong, key=wrong.get)
        raise Failed(f"gradients of {len(wrong)} of {len(names)} parameters differ from central "
                     f"differences, that of '{worst}' by {wrong[worst]:.1e}")

    # 4. Inference. It has outputs that training does not need, and may be refused.
    try:
        errors["outputs"] = check_outputs(path, folder, [
            flag for flag in flags if not flag.startswith("--loss")], parts[0], inference)
    except Refused:
        errors["outputs"] = None
    if errors["outputs"] is not None and errors["outputs"] > OUTPUTS * slack:
        raise Failed(f"outputs differ from ONNX Runtime's by {errors['outputs']:.1e}")
    return errors


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
