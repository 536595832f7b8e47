"""What scripts that write models as ONNX text share."""

import math


def weights(generator, name, *shape):
    """An initializer of random values, of the spread that keeps that of activations."""
    count, fan = math.prod(shape), math.prod(shape[1:])
    values = ", ".join(f"{generator.gauss(0, math.sqrt(2 / fan)):.4f}" for _ in range(count))
    return f"float[{', '.join(map(str, shape))}] {name} = {{{values}}}"
