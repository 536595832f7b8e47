"""The models of other_exporters.py: (name, function that writes it, flags)."""

import functools

import numpy
import onnx

CLASSES = 5
CROSS_ENTROPY = ["--loss=softmax-cross-entropy"]


def move_weights(model):
    """Fresh biases of zeros would be folded away by the exporter."""
    draw = numpy.random.default_rng(1)
    for variable in model.weights:
        value = numpy.array(variable)
        if value.dtype.kind == "f" and not value.std():
            value = value + 0.1 * draw.standard_normal(value.shape).astype(value.dtype)
            variable.assign(abs(value) if "variance" in variable.path else value)


def export_keras(make, path):
    import keras
    keras.utils.set_random_seed(0)
    keras.backend.clear_session()
    model = make()
    examples = [numpy.zeros((2, *i.shape[1:]), i.dtype) for i in model.inputs]
    model(examples if len(examples) > 1 else examples[0])
    move_weights(model)
    model.export(str(path), format="onnx", verbose=False)


def stack(shape, *layers, dtype=None):
    """Layers in a row, and a head."""
    def make():
        import keras
        x = first = keras.Input(shape, dtype=dtype)
        for layer in layers:
            x = layer(keras.layers)(x)
        if len(x.shape) > 2:
            x = keras.layers.Flatten()(x)
        return keras.Model(first, keras.layers.Dense(CLASSES)(x))
    return make


def keras_layers():
    for name in ("elu", "selu", "silu", "softplus", "mish", "hard_sigmoid", "hard_silu", "celu"):
        yield f"keras/{name}", stack((7,), lambda L: L.Dense(9), lambda L, a=name: L.Activation(a))
    image, line, steps = (12, 12, 4), (20, 6), (7, 4)
    yield "keras/conv", stack(
        image, lambda L: L.Conv2D(8, 3, padding="same", activation="relu"), lambda L: L.MaxPooling2D(),
        lambda L: L.Conv2D(8, 3, strides=2, padding="same"), lambda L: L.BatchNormalization(),
        lambda L: L.ReLU(), lambda L: L.GlobalAveragePooling2D())
    yield "keras/separable", stack(
        image, lambda L: L.SeparableConv2D(8, 3, padding="same", depth_multiplier=2),
        lambda L: L.DepthwiseConv2D(3, strides=2, padding="same"), lambda L: L.BatchNormalization(),
        lambda L: L.GlobalMaxPooling2D())
    yield "keras/grouped", stack(image, lambda L: L.Conv2D(8, 3, groups=4))
    yield "keras/conv1d", stack(
        line, lambda L: L.Conv1D(8, 3, padding="causal"), lambda L: L.SeparableConv1D(8, 3),
        lambda L: L.MaxPooling1D(2), lambda L: L.UpSampling1D(2),
        lambda L: L.Conv1DTranspose(4, 3, strides=2, padding="same"))
    yield "keras/conv3d", stack(
        (6, 6, 6, 2), lambda L: L.Conv3D(4, 3, padding="same", activation="relu"),
        lambda L: L.MaxPooling3D(2), lambda L: L.Conv3DTranspose(3, 3, strides=2, padding="same"))
    yield "keras/upsampling", stack(
        (6, 6, 4), lambda L: L.Conv2DTranspose(8, 3, strides=2, padding="same"),
        lambda L: L.UpSampling2D(2), lambda L: L.UpSampling2D(2, interpolation="bilinear"),
        lambda L: L.ZeroPadding2D((1, 2)), lambda L: L.Cropping2D(1))
    yield "keras/norms", stack(
        (6, 6, 8), lambda L: L.Conv2D(8, 1), lambda L: L.LayerNormalization(),
        lambda L: L.GroupNormalization(4), lambda L: L.UnitNormalization(),
        lambda L: L.BatchNormalization())
    yield "keras/prelu", stack((6, 6, 3), lambda L: L.Conv2D(4, 3), lambda L: L.PReLU(shared_axes=[1, 2]))
    for name in ("LSTM", "GRU", "SimpleRNN"):
        yield f"keras/{name}", stack(steps, lambda L, n=name: getattr(L, n)(6, return_sequences=True))
        yield f"keras/{name}-bidirectional", stack(
            steps, lambda L, n=name: L.Bidirectional(getattr(L, n)(5)))
    yield "keras/ConvLSTM2D", stack((4, 6, 6, 2), lambda L: L.ConvLSTM2D(3, 3, padding="same"))
    yield "keras/masked-LSTM", stack((9,), lambda L: L.Embedding(20, 8, mask_zero=True),
                                     lambda L: L.LSTM(6), dtype="int32")
    yield "keras/embedding", stack((9,), lambda L: L.Embedding(20, 8),
                                   lambda L: L.GlobalAveragePooling1D(), dtype="int32")
    yield "keras/attention", attention_model


def attention_model():
    import keras
    layers = keras.layers
    x = tokens = keras.Input((9,), dtype="int32")
    x = layers.Embedding(20, 8)(x)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
    x = layers.GlobalMaxPooling1D()(layers.Dense(16, activation="silu")(x))
    return keras.Model(tokens, layers.Dense(CLASSES, activation="softmax")(x))


def keras_rows():
    for name, make in keras_layers():
        yield name, functools.partial(export_keras, make), CROSS_ENTROPY
    sizes = {"MobileNet": 32, "MobileNetV2": 32, "MobileNetV3Small": 32, "EfficientNetB0": 32,
             "EfficientNetV2B0": 32, "ResNet50V2": 32, "DenseNet121": 32, "Xception": 71,
             "InceptionV3": 75, "ConvNeXtTiny": 32}
    for name, size in sizes.items():
        def make(name=name, size=size):
            import keras
            return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3),
                                                     classes=CLASSES)
        yield f"keras.applications/{name}", functools.partial(export_keras, make), CROSS_ENTROPY


def optimize(level, source, path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def simplify(source, path):
    import onnxsim
    onnx.save(onnxsim.simplify(str(source))[0], path)


def slim(source, path):
    import onnxslim
    onnx.save(onnxslim.slim(str(source)), path)


def to_float16(source, path):
    from onnxconverter_common import float16
    onnx.save(float16.convert_float_to_float16(onnx.load(source)), path)


def quantize(source, path):
    from onnxruntime.quantization import quantize_dynamic
    quantize_dynamic(str(source), str(path))


def convert_version(version, source, path):
    onnx.save(onnx.version_converter.convert_version(onnx.load(source), version), path)


def weights_to_constants(source, path):
    model = onnx.load(source)
    nodes = [onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
             for tensor in model.graph.initializer] + list(model.graph.node)
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(nodes)
    onnx.save(model, path)


def initializers_as_inputs(source, path):
    model = onnx.load(source)
    model.ir_version = 3
    model.graph.input.extend(onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims))
                             for t in model.graph.initializer)
    onnx.save(model, path)


def rewritten_rows():
    tools = {f"onnxruntime-{level}": functools.partial(optimize, f"ORT_ENABLE_{level.upper()}")
             for level in ("basic", "extended", "all")}
    tools |= {"onnxsim": simplify, "onnxslim": slim, "float16": to_float16, "quantized": quantize,
              "constants": weights_to_constants, "IR-3": initializers_as_inputs}
    tools |= {f"opset-{version}": functools.partial(convert_version, version)
              for version in (16, 18, 20, 21, 22, 23)}
    models = dict(keras_layers())
    for tool, rewrite in tools.items():
        for model in ("keras/conv", "keras/LSTM", "keras/attention"):
            def make(path, rewrite=rewrite, model=model):
                source = path.with_name("source.onnx")
                export_keras(models[model], source)
                rewrite(source, path)
            yield f"{tool}/{model.partition('/')[2]}", make, CROSS_ENTROPY


def export_sklearn(kind, path):
    from skl2onnx import to_onnx
    from sklearn import linear_model, neural_network
    draw = numpy.random.default_rng(0)
    samples = draw.standard_normal((60, 7)).astype(numpy.float32)
    classes, numbers = draw.integers(0, 3, 60), samples @ draw.standard_normal(7)
    model, labels = {
        "MLPClassifier": lambda: (neural_network.MLPClassifier((9, 8), max_iter=5), classes),
        "MLPRegressor": lambda: (neural_network.MLPRegressor(hidden_layer_sizes=(9,), max_iter=5),
                                 numbers),
        "LogisticRegression": lambda: (linear_model.LogisticRegression(), classes)}[kind]()
    model.fit(samples, labels)
    options = {id(model): {"zipmap": False}} if labels is classes else None
    onnx.save(to_onnx(model, samples[:1], options=options), path)


def sklearn_rows():
    for kind in ("MLPClassifier", "MLPRegressor", "LogisticRegression"):
        flags = (["--loss=mse"] if kind == "MLPRegressor" else
                 [*CROSS_ENTROPY, "--loss-input=probabilities"])
        yield f"sklearn/{kind}", functools.partial(export_sklearn, kind), flags


def constants_to_initializers(path):
    """paddle2onnx writes weights as Constant nodes; docs/exporting.md has this, too."""
    model = onnx.load(path)
    for node in [n for n in model.graph.node if n.op_type == "Constant"]:
        value = node.attribute[0]
        if value.name == "value" and value.t.data_type == onnx.TensorProto.FLOAT and value.t.dims:
            value.t.name = node.output[0]
            model.graph.initializer.append(value.t)
            model.graph.node.remove(node)
    onnx.save(model, path)


def export_paddle(kind, path):
    import paddle
    from paddle import nn
    paddle.seed(0)
    model, shape = {
        "mlp": lambda: (nn.Sequential(nn.Linear(7, 16), nn.GELU(), nn.LayerNorm(16),
                                      nn.Linear(16, CLASSES)), [7]),
        "cnn": lambda: (nn.Sequential(nn.Conv2D(3, 8, 3), nn.BatchNorm2D(8), nn.Hardswish(),
                                      nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Dropout(0.2),
                                      nn.Linear(8, CLASSES), nn.Softmax()), [3, 12, 12]),
        "resnet18": lambda: (paddle.vision.models.resnet18(num_classes=CLASSES), [3, 32, 32])}[kind]()
    model.eval()
    paddle.onnx.export(model, str(path.with_suffix("")), opset_version=13, input_spec=[
        paddle.static.InputSpec([None, *shape], "float32", "x")])
    constants_to_initializers(path)


def paddle_rows():
    for kind in ("mlp", "cnn", "resnet18"):
        yield f"paddle/{kind}", functools.partial(export_paddle, kind), CROSS_ENTROPY


def export_jax(kind, path):
    import jax
    from jax import numpy as jnp
    from jax2onnx import to_onnx
    draw = numpy.random.default_rng(0)
    def weight(*shape):
        return jnp.array(0.3 * draw.standard_normal(shape), jnp.float32)
    into, square, out, bias = weight(7, 16), weight(16, 16), weight(16, CLASSES), weight(16)

    def scan(x):
        def step(h, v):
            return (h := jnp.tanh(v @ into + h @ square + bias)), h
        return jax.lax.scan(step, jnp.zeros((x.shape[0], 16)), jnp.swapaxes(x, 0, 1))[0] @ out

    def attention(x):
        q = (x @ into).reshape(x.shape[0], -1, 2, 8)
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, q) / 8**0.5)
        return jnp.max(jnp.einsum("bhqk,bkhd->bqhd", weights, q).reshape(x.shape[0], -1, 16) @ out, 1)
    functions = {
        "mlp": (lambda x: jax.nn.gelu(x @ into + bias) @ out, ("B", 7)),
        "scan": (scan, ("B", 6, 7)), "attention": (attention, ("B", 6, 7)),
        "fori_loop": (lambda x: jax.lax.fori_loop(0, 5, lambda i, h: jnp.tanh(h @ square), x @ into) @ out,
                      ("B", 7))}
    function, shape = functions[kind]
    onnx.save(to_onnx(function, inputs=[shape]), path)


def jax_rows():
    for kind in ("mlp", "scan", "fori_loop", "attention"):
        yield f"jax/{kind}", functools.partial(export_jax, kind), CROSS_ENTROPY


SOURCES = (keras_rows, rewritten_rows, sklearn_rows, paddle_rows, jax_rows)
