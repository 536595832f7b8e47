penstockc: error: mlp.onnx: no such file
