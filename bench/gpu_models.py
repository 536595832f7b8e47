"""Models of bench/gpu.sh: one for each class of kernels, and those of the
comparison with PyTorch.

Kernel models are ONNX alone. The others are torch modules; their ONNX files get
weights that repeat after 4096 numbers, so that they travel compressed. Speed does
not depend on them.
"""

import dataclasses
import math
import typing

import numpy


# ----------------------------------------------------------------------------
# Kernels
# ----------------------------------------------------------------------------

@dataclasses.dataclass
class Kernel:
    """One class of kernels: inputs of one sample, and which share of the rate of
    a copy its kernel is to reach (0: no goal)."""
    name: str
    goal: float
    nodes: typing.Callable  # (helper, sizes) -> (nodes, initializers, outputs)
    inputs: typing.Callable  # sizes -> {name: (type, shape, largest integer)}
    large: dict  # sizes of at least 256 MiB of input, with two samples
    small: dict  # odd sizes for the comparison of bits


def tensor(helper, name, values):
    from onnx import numpy_helper
    return numpy_helper.from_array(numpy.asarray(values), name)


def floats(*names):
    return lambda s: {"x": ("f4", tuple(s[n] for n in names), None)}


def unary(op, **attributes):
    def make(helper, s):
        return [helper.make_node(op, ["x"], ["y"], **attributes)], [], ["y"]
    return make


def gelu(helper, s):
    return ([helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Mul", ["x", "t"], ["y"])],
            [], ["y"])


def narrow(helper, s):
    from onnx import TensorProto
    return ([helper.make_node("Cast", ["x"], ["b"], to=TensorProto.BFLOAT16),
             helper.make_node("Cast", ["b"], ["w"], to=TensorProto.FLOAT),
             helper.make_node("Mul", ["w", "w"], ["y"])], [], ["y"])


def norm(helper, s):
    scale = tensor(helper, "s", numpy.linspace(0.5, 1.5, s["m"], dtype="f4"))
    bias = tensor(helper, "b", numpy.linspace(-1, 1, s["m"], dtype="f4"))
    return ([helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1)],
            [scale, bias], ["y"])


def reduce(*axes):
    def make(helper, s):
        return ([helper.make_node("ReduceSum", ["x", "a"], ["y"], keepdims=0)],
                [tensor(helper, "a", numpy.array(axes, dtype="i8"))], ["y"])
    return make


def gather(helper, s):
    rows = numpy.resize(numpy.random.default_rng(1).standard_normal(4096), (s["v"], s["m"]))
    return ([helper.make_node("Gather", ["table", "i"], ["y"])],
            [tensor(helper, "table", rows.astype("f4"))], ["y"])


def scatter(helper, s):
    def shape(name, *sizes):
        return tensor(helper, name, numpy.array(sizes, dtype="i8"))
    return ([helper.make_node("Reshape", ["x", "rows"], ["updates"]),
             helper.make_node("Reshape", ["i", "column"], ["places"]),
             helper.make_node("ConstantOfShape", ["sums"], ["zero"]),
             helper.make_node("ScatterND", ["zero", "places", "updates"], ["sum"], reduction="add"),
             helper.make_node("Reshape", ["sum", "one"], ["y"])],
            [shape("rows", s["n"], s["m"]), shape("column", s["n"], 1), shape("sums", s["v"], s["m"]),
             shape("one", 1, s["v"], s["m"])], ["y"])


def cumulative(helper, s):
    return ([helper.make_node("CumSum", ["x", "a"], ["y"])],
            [tensor(helper, "a", numpy.int64(2))], ["y"])


def top(helper, s):
    return ([helper.make_node("TopK", ["x", "k"], ["y", "at"])],
            [tensor(helper, "k", numpy.array([5], dtype="i8"))], ["y", "at"])


MATRIX = {"large": {"n": 8192, "m": 8192}, "small": {"n": 37, "m": 129}}
ROWS = {"large": {"n": 65536, "m": 1024}, "small": {"n": 37, "m": 132}}
LONG = {"large": {"n": 8192, "m": 8192}, "small": {"n": 5, "m": 4100}}
IMAGES = {"large": {"c": 1024, "h": 256, "w": 256}, "small": {"c": 5, "h": 11, "w": 9}}
KERNELS = [
    Kernel("elementwise", 0.88, gelu, floats("n", "m"), **MATRIX),
    Kernel("bf16", 0, narrow, floats("n", "m"), **MATRIX),
    Kernel("softmax", 0.82, unary("Softmax", axis=-1), floats("n", "m"), **ROWS),
    Kernel("norm", 0.82, norm, floats("n", "m"), **LONG),
    Kernel("row-sums", 0.82, reduce(2), floats("n", "m"), **ROWS),
    Kernel("column-sums", 0.80, reduce(1), floats("n", "m"), **MATRIX),
    Kernel("full-sums", 0.80, reduce(1, 2), floats("n", "m"), **MATRIX),
    Kernel("transpose", 0.75, unary("Transpose", perm=[0, 2, 1]), floats("n", "m"), **MATRIX),
    Kernel("gather", 0.75, gather, lambda s: {"i": ("i8", (s["n"],), s["v"])},
           {"n": 131072, "v": 50257, "m": 768}, {"n": 37, "v": 29, "m": 12}),
    Kernel("scatter", 0.40, scatter,
           lambda s: {"x": ("f4", (s["n"], s["m"]), None), "i": ("i8", (s["n"],), s["v"])},
           {"n": 131072, "v": 50257, "m": 768}, {"n": 75, "v": 29, "m": 37}),
    Kernel("max-pool", 0.70, unary("MaxPool", kernel_shape=[3, 3], strides=[2, 2],
                                   pads=[1, 1, 1, 1]), floats("c", "h", "w"), **IMAGES),
    Kernel("cumulative", 0, cumulative, floats("n", "m"), **MATRIX),
    Kernel("top", 0, top, floats("n", "m"), {"n": 1, "m": 65536}, {"n": 3, "m": 517}),
]


def write_kernel(kernel, sizes, path):
    import onnx
    from onnx import TensorProto, helper
    types = {"f4": TensorProto.FLOAT, "i8": TensorProto.INT64}
    nodes, initializers, outputs = kernel.nodes(helper, sizes)
    inputs = [helper.make_tensor_value_info(name, types[kind], ["batch", *shape])
              for name, (kind, shape, _) in kernel.inputs(sizes).items()]
    graph = helper.make_graph(
        nodes, kernel.name, inputs,
        [helper.make_tensor_value_info(name, types["i8" if name == "at" else "f4"], None)
         for name in outputs], initializers)
    onnx.save(onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)), path)


def write_inputs(kernel, sizes, samples, folder):
    """--data flags."""
    flags = []
    for name, (kind, shape, limit) in kernel.inputs(sizes).items():
        generator = numpy.random.default_rng(7)
        count = samples * math.prod(shape)
        block = (generator.integers(0, limit, min(count, 99991)) if limit
                 else generator.standard_normal(min(count, 99991)))
        numpy.save(folder / f"{name}.npy",
                   numpy.resize(block.astype(kind), (samples, *shape)))
        flags += ["--data", f"{name}={folder / name}.npy"]
    return flags


# ----------------------------------------------------------------------------
# The comparison with PyTorch
# ----------------------------------------------------------------------------

@dataclasses.dataclass
class Model:
    name: str
    build: typing.Callable  # tiny -> torch module
    batch: int
    classes: typing.Callable  # tiny -> number
    sample: typing.Callable  # tiny -> (type, shape, largest integer)
    tokens: bool = False  # a label for each element of the sample


def build_mlp(tiny):
    from torch import nn
    width, layers = (64, 3) if tiny else (4096, 8)
    return nn.Sequential(*(layer for i in range(layers) for layer in (
        [nn.Linear(width, width), nn.ReLU()] if i + 1 < layers else [nn.Linear(width, 10)])))


def build_resnet(tiny):
    import torchvision
    return torchvision.models.resnet18() if tiny else torchvision.models.resnet50()


def build_gpt(tiny):
    import torch
    from torch import nn
    layers, width, heads, vocabulary, length = (1, 32, 2, 97, 16) if tiny else \
        (12, 768, 12, 50257, 1024)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.query, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.register_buffer("mask", torch.full((length, length), -1e9).triu(1))

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (y.view(b, t, heads, d // heads).transpose(1, 2)
                       for y in self.query(self.norm1(x)).split(d, 2))
            scores = q @ k.transpose(-1, -2) * (d // heads) ** -0.5 + self.mask
            x = x + self.merge((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
            return x + self.back(nn.functional.gelu(self.wide(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.blocks = nn.Embedding(vocabulary, width), nn.ModuleList(
                Block() for _ in range(layers))
            self.places = nn.Parameter(0.02 * torch.randn(length, width))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, x):
            y = self.tokens(x) + self.places
            for block in self.blocks:
                y = block(y)
            return self.head(self.norm(y))
    return Gpt()


MODELS = {model.name: model for model in (
    Model("mlp", build_mlp, 4096, lambda tiny: 10,
          lambda tiny: ("f4", (64 if tiny else 4096,), None)),
    Model("resnet50", build_resnet, 256, lambda tiny: 1000,
          lambda tiny: ("f4", (3, 32, 32) if tiny else (3, 224, 224), None)),
    Model("gpt2", build_gpt, 8, lambda tiny: 97 if tiny else 50257,
          lambda tiny: ("i8", (16,) if tiny else (1024,), 97 if tiny else 50257), tokens=True),
)}


def make_samples(model, tiny, count, seed=3):
    """Inputs and labels."""
    generator = numpy.random.default_rng(seed)
    kind, shape, limit = model.sample(tiny)
    x = (generator.integers(0, limit, (count, *shape)) if limit
         else generator.standard_normal((count, *shape), dtype="f4"))
    labels = generator.integers(0, model.classes(tiny), (count, *shape) if model.tokens else count)
    return x.astype(kind), labels


def write_model(model, tiny, path):
    """The module as ONNX, in training mode, with weights that repeat."""
    import onnx
    import torch
    from onnx import numpy_helper
    torch.manual_seed(1)
    module = model.build(tiny).train()
    x = torch.from_numpy(make_samples(model, tiny, 2)[0])
    torch.onnx.export(module, (x,), path, dynamo=False, opset_version=17, input_names=["x"],
                      output_names=["y"], training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    proto = onnx.load(path)
    for weight in proto.graph.initializer:
        values = numpy_helper.to_array(weight)
        if values.dtype == numpy.float32 and values.size > 4096 and values.min() > -1e8:
            weight.CopyFrom(numpy_helper.from_array(
                numpy.resize(values.ravel()[:4096], values.shape), weight.name))
    onnx.save(proto, path)
