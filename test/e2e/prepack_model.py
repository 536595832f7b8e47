#!/usr/bin/env python3
"""Writes a model whose convolutions and products can read prepacked weights.

    prepack_model.py MODEL.onnxtext

Windows with stride 2, of one element, and in groups, each with enough weights;
one of them, read twice, has a bias that is trained, too. Linear layers as
exporters write them, over four positions of each image, so that their products
have enough rows. Only the standard library is needed.
"""

import sys

import onnx_text

onnx_text.write(
    sys.argv[1], "prepack", 11,
    ["int64[4] image = {-1, 1, 8, 8}", "int64[2] rows = {-1, 64}", "int64[2] together = {-1, 512}"],
    {"w1": (64, 1, 3, 3), "w2": (40, 64, 3, 3), "w3": (448, 40, 1, 1), "w4": (64, 224, 3, 3),
     "w5": (64, 64, 2, 2), "b5": (64,), "fc1": (256, 64), "fc2": (128, 256),
     "positions": (10, 512), "head": (10, 64)}, """
  plane = Reshape (x, image)
  c1 = Conv <pads = [1, 1, 1, 1]> (plane, w1)
  a1 = Relu (c1)
  c2 = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (a1, w2)
  a2 = Relu (c2)
  c3 = Conv (a2, w3)
  a3 = Relu (c3)
  c4 = Conv <pads = [1, 1, 1, 1], group = 2> (a3, w4)
  a4 = Relu (c4)
  c5 = Conv <strides = [2, 2]> (a4, w5, b5)
  a5 = Relu (c5)
  c6 = Conv <strides = [2, 2]> (a5, w5, b5)
  flat = Flatten (c6)
  y1 = Gemm <transB = 1> (flat, head)
  last = Transpose <perm = [0, 2, 3, 1]> (a5)
  p = Reshape (last, rows)
  l1 = Gemm <transB = 1> (p, fc1)
  t1 = Tanh (l1)
  l2 = Gemm <transB = 1> (t1, fc2)
  t2 = Tanh (l2)
  q = Reshape (t2, together)
  y2 = Gemm <transB = 1> (q, positions)
  y = Add (y1, y2)
""")
