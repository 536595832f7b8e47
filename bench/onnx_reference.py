"""What ONNX Runtime says that a training should compute.

The model of a training as ONNX Runtime can run it (without dropout, with batch
normalizations as training computes them), its loss as a function of the weights,
and the losses that penstockc appends. Needs onnx, onnxruntime and numpy.
"""

import numpy
import onnx
import onnxruntime
from onnx import helper, numpy_helper

# Of a loss that ONNX Runtime computes in f32, relative.
NOISE = 5e-8


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
    """The nodes of a batch normalization in training."""
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
    """Batch normalizations as training computes them."""
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
