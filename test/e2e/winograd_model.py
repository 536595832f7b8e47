#!/usr/bin/env python3
"""Writes a CNN whose convolutions have enough channels for Winograd's algorithm.

    winograd_model.py MODEL.onnxtext

Only the standard library is needed.
"""

import functools
import random
import sys

import onnx_text


def main(path):
    weights = functools.partial(onnx_text.weights, random.Random(7))
    initializers = ",\n ".join([
        "int64[4] image = {-1, 1, 8, 8}",
        weights("w1", 24, 1, 3, 3), weights("w2", 40, 24, 3, 3), weights("w3", 130, 40, 3, 3),
        weights("w4", 127, 130, 3, 3), weights("head", 10, 127)])
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"""<ir_version: 8, opset_import: ["" : 20]>
winograd (float[N, 64] x) => (float[N, 10] y)
<{initializers}>
{{
  plane = Reshape (x, image)
  c1 = Conv <pads = [1, 1, 1, 1]> (plane, w1)
  a1 = Relu (c1)
  c2 = Conv <pads = [1, 1, 1, 1]> (a1, w2)
  a2 = Relu (c2)
  c3 = Conv <pads = [1, 0, 1, 1]> (a2, w3)
  a3 = Relu (c3)
  small = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a3)
  c4 = Conv <pads = [1, 1, 1, 1]> (small, w4)
  a4 = Relu (c4)
  mean = GlobalAveragePool (a4)
  flat = Flatten (mean)
  y = Gemm <transB = 1> (flat, head)
}}
""")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
