"""What scripts that write models as ONNX text share."""

import math
import pathlib
import random


def weights(generator, name, *shape):
    """An initializer of random values, of the spread that keeps that of activations."""
    count, fan = math.prod(shape), math.prod(shape[1:])
    values = ", ".join(f"{generator.gauss(0, math.sqrt(2 / fan)):.4f}" for _ in range(count))
    return f"float[{', '.join(map(str, shape))}] {name} = {{{values}}}"


def write(path, name, seed, constants, shapes, nodes):
    """Writes a model of images of 64 pixels, in 10 classes, with weights of these shapes."""
    generator = random.Random(seed)
    initializers = ",\n ".join(
        constants + [weights(generator, weight, *shape) for weight, shape in shapes.items()])
    pathlib.Path(path).write_text(f"""<ir_version: 8, opset_import: ["" : 20]>
{name} (float[N, 64] x) => (float[N, 10] y)
<{initializers}>
{{{nodes}}}
""")
