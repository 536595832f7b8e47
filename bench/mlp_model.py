"""Writes an MLP as ONNX, and data for it, with nothing but the standard library.

    write_mlp(path, layers, width, classes, batch axis stays symbolic)
    write_data(folder, samples, width, classes)

Gemm and Relu alternate, weights stored as PyTorch does (transB = 1).
"""

import array
import pathlib
import random
import struct


def varint(value):
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, *parts):
    body = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def value_info(field, name, *dimensions):
    shape = b"".join(
        message(1, message(2, d) if isinstance(d, str) else number(1, d)) for d in dimensions)
    return message(field, message(1, name),
                   message(2, message(1, number(1, 1), message(2, shape))))


def tensor(name, values, *dimensions):
    return message(5, *(number(1, d) for d in dimensions), number(2, 1),
                   message(8, name), message(9, values.tobytes()))


def node(op_type, name, inputs, output, *attributes):
    return message(1, *(message(1, i) for i in inputs), message(2, output), message(3, name),
                   message(4, op_type), *attributes)


def normals(count, scale, seed):
    """Drawn for the first 2^16, then repeated: the speed does not depend on them."""
    generator = random.Random(seed)
    block = array.array("f", (generator.gauss(0, scale) for _ in range(min(count, 1 << 16))))
    whole = array.array("f")
    while len(whole) < count:
        whole.extend(block[:count - len(whole)])
    return whole


def write_mlp(path, layers, width, classes, seed=1):
    transposed = message(5, message(1, "transB"), number(3, 1), number(20, 2))
    nodes, tensors, value = [], [], "x"
    for i in range(1, layers + 1):
        outputs = classes if i == layers else width
        weight, bias = f"fc{i}.weight", f"fc{i}.bias"
        tensors += [tensor(weight, normals(outputs * width, (2 / width) ** 0.5, seed + i),
                           outputs, width),
                    tensor(bias, array.array("f", bytes(4 * outputs)), outputs)]
        result = "y" if i == layers else f"h{i}"
        nodes.append(node("Gemm", f"gemm{i}", [value, weight, bias], result, transposed))
        value = result
        if i < layers:
            value = f"a{i}"
            nodes.append(node("Relu", f"relu{i}", [result], value))
    graph = message(7, *nodes, message(2, "mlp"), *tensors,
                    value_info(11, "x", "n", width), value_info(12, "y", "n", classes))
    pathlib.Path(path).write_bytes(
        number(1, 8) + message(2, "penstock-bench") + graph + message(8, number(2, 13)))


def write_npy(path, code, shape, values):
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    pathlib.Path(path).write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + values.tobytes())


def write_data(folder, samples, width, classes, seed=2):
    """x.npy and labels.npy; --data and --labels flags for them."""
    folder = pathlib.Path(folder)
    generator = random.Random(seed)
    labels = array.array("q", (generator.randrange(classes) for _ in range(samples)))
    write_npy(folder / "x.npy", "<f4", (samples, width), normals(samples * width, 1.0, seed))
    write_npy(folder / "labels.npy", "<i8", (samples,), labels)
    return ["--data", f"x={folder / 'x.npy'}", "--labels", str(folder / "labels.npy")]
