#!/usr/bin/env python3
"""Writes a CNN whose convolutions have enough channels for Winograd's algorithm.

    winograd_model.py MODEL.onnxtext

Only the standard library is needed.
"""

import sys

import onnx_text

onnx_text.write(
    sys.argv[1], "winograd", 7, ["int64[4] image = {-1, 1, 8, 8}"],
    {"w1": (24, 1, 3, 3), "w2": (40, 24, 3, 3), "w3": (130, 40, 3, 3), "w4": (127, 130, 3, 3),
     "head": (10, 127)}, """
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
""")
