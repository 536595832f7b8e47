"""Random PyTorch modules of odd sizes, for random_models.py.

A value between layers has a kind and a shape without the batch: `image` (C, H, W),
`line` (C, L), `sequence` (T, D) or `vector` (F). A maker takes a generator of
random numbers and such a shape, and gives a module with the kind and the shape of
what it computes, or None where it does not apply.
"""

import torch
from torch import nn

MOST = 2500  # elements of a sample
ACTIVATIONS = (nn.ReLU, nn.GELU, lambda: nn.GELU("tanh"), nn.SiLU, nn.ELU, nn.Tanh, nn.Sigmoid,
               nn.Softplus, nn.Mish, nn.Hardswish, lambda: nn.LeakyReLU(0.1), nn.Softsign,
               nn.CELU, nn.SELU, nn.Hardsigmoid, lambda: nn.Softmax(-1))


class Apply(nn.Module):
    """A function of tensors as a layer."""

    def __init__(self, function, name):
        super().__init__()
        self.function, self.name = function, name

    def forward(self, x):
        return self.function(x)

    def extra_repr(self):
        return self.name


class Residual(nn.Module):
    def __init__(self, inner, sign):
        super().__init__()
        self.inner, self.sign = inner, sign

    def forward(self, x):
        return x + self.inner(x) if self.sign else x - self.inner(x)


class Gate(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x * torch.sigmoid(self.inner(x))


class Branches(nn.Module):
    """Two ways side by side, joined along an axis."""

    def __init__(self, left, right, axis):
        super().__init__()
        self.left, self.right, self.axis = left, right, axis

    def forward(self, x):
        return torch.cat([self.left(x), self.right(x)], self.axis)


class Split(nn.Module):
    """A part of the channels goes through, the rest passes by."""

    def __init__(self, inner, sizes, axis):
        super().__init__()
        self.inner, self.sizes, self.axis = inner, sizes, axis

    def forward(self, x):
        first, second = torch.split(x, self.sizes, self.axis)
        return torch.cat([second, self.inner(first)], self.axis)


class Attention(nn.Module):
    """Queries may have fewer heads of keys and values than of their own."""

    def __init__(self, width, heads, groups, causal, plain):
        super().__init__()
        size = width // heads
        self.heads, self.groups, self.causal, self.plain = heads, groups, causal, plain
        self.query, self.out = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.both = nn.Linear(width, 2 * groups * size)

    def forward(self, x):
        size, places = self.query.out_features // self.heads, x.shape[:2]
        query = self.query(x).reshape(*places, self.heads, size).transpose(1, 2)
        key, value = (part.reshape(*places, self.groups, size).transpose(1, 2).repeat_interleave(
            self.heads // self.groups, 1) for part in self.both(x).chunk(2, -1))
        if self.plain:
            scores = query @ key.transpose(-1, -2) / size ** 0.5
            if self.causal:
                above = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
                scores = scores.masked_fill(above, float("-inf"))
            y = scores.softmax(-1) @ value
        else:
            y = nn.functional.scaled_dot_product_attention(query, key, value,
                                                           is_causal=self.causal)
        return self.out(y.transpose(1, 2).flatten(2))


class Recurrent(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


class Positions(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.table = nn.Parameter(0.1 * torch.randn(*shape))

    def forward(self, x):
        return x + self.table


class Scale(nn.Module):
    """RMS norm as LLaMA writes it."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


def divisor(draw, number, most):
    return draw.choice([d for d in range(1, most + 1) if number % d == 0])


def sizes_after(module, kind, shape):
    """What PyTorch says of the shape; None where it refuses or nothing is left."""
    try:
        with torch.no_grad():
            result = tuple(module.eval()(torch.zeros(2, *shape)).shape[1:])
    except (RuntimeError, ValueError):
        return None
    finally:
        module.train()
    return (module, kind, result) if result and 0 < torch.Size(result).numel() <= MOST else None


def convolution(draw, kind, shape):
    rank, channels = len(shape) - 1, shape[0]
    if kind not in ("image", "line"):
        return None
    groups = draw.choice([1, 1, 1, channels, divisor(draw, channels, channels)])
    outputs = groups * draw.randint(1, max(1, 20 // groups))
    kernel = [draw.choice([1, 2, 3, 3, 3, 4, 5]) for _ in range(rank)]
    if draw.random() < 0.5:
        kernel = kernel[:1] * rank
    stride, bias = draw.choice([1, 1, 2, 3]), draw.random() < 0.5
    padding = [draw.randint(0, k // 2) for k in kernel]
    if draw.random() < 0.25:
        make = nn.ConvTranspose2d if rank == 2 else nn.ConvTranspose1d
        module = make(channels, outputs, kernel, stride, padding, bias=bias, groups=groups,
                      output_padding=draw.randint(0, stride - 1))
    else:
        make = nn.Conv2d if rank == 2 else nn.Conv1d
        mode = draw.choice(["zeros", "zeros", "zeros", "reflect", "replicate", "circular"])
        module = make(channels, outputs, kernel, stride, padding, bias=bias, groups=groups,
                      dilation=draw.choice([1, 1, 2]), padding_mode=mode)
    return sizes_after(module, kind, shape)


def pooling(draw, kind, shape):
    if kind not in ("image", "line"):
        return None
    image, size, stride = kind == "image", draw.randint(2, 3), draw.randint(1, 2)
    ceil = draw.random() < 0.3
    module = draw.choice([
        lambda: (nn.MaxPool2d if image else nn.MaxPool1d)(
            size, stride, draw.randint(0, 1), draw.randint(1, 2), ceil_mode=ceil),
        lambda: (nn.AvgPool2d if image else nn.AvgPool1d)(
            size, stride, draw.randint(0, 1), count_include_pad=draw.random() < 0.5,
            ceil_mode=ceil)])()
    return sizes_after(module, kind, shape)


def resizing(draw, kind, shape):
    if kind not in ("image", "line"):
        return None
    modes = ["nearest", "bilinear", "bicubic"] if kind == "image" else ["nearest", "linear"]
    mode = draw.choice(modes)
    corners = {} if mode == "nearest" else {"align_corners": draw.random() < 0.5}
    if draw.random() < 0.5:
        module = nn.Upsample(scale_factor=2, mode=mode, **corners)
    else:
        module = nn.Upsample(size=tuple(draw.randint(2, 9) for _ in shape[1:]), mode=mode,
                             **corners)
    return sizes_after(module, kind, shape)


def padding(draw, kind, shape):
    if kind == "image":
        make = draw.choice([nn.ZeroPad2d, nn.ReflectionPad2d, nn.ReplicationPad2d])
        return sizes_after(make([draw.randint(0, 1) for _ in range(4)]), kind, shape)
    if kind == "line":
        make = draw.choice([nn.ReflectionPad1d, nn.ReplicationPad1d])
        return sizes_after(make([draw.randint(0, 1) for _ in range(2)]), kind, shape)
    return None


def shuffling(draw, kind, shape):
    if kind != "image":
        return None
    if shape[0] % 4 == 0 and draw.random() < 0.5:
        return sizes_after(nn.PixelShuffle(2), kind, shape)
    return sizes_after(nn.PixelUnshuffle(2), kind, shape)


def channel_norm(draw, kind, shape):
    if kind not in ("image", "line"):
        return None
    channels, image = shape[0], kind == "image"
    options = [lambda: (nn.BatchNorm2d if image else nn.BatchNorm1d)(channels),
               lambda: nn.GroupNorm(divisor(draw, channels, channels), channels)]
    if torch.Size(shape[1:]).numel() > 3:
        options.append(lambda: (nn.InstanceNorm2d if image else nn.InstanceNorm1d)(
            channels, affine=draw.random() < 0.5))
    return draw.choice(options)(), kind, shape


def last_norm(draw, kind, shape):
    if kind not in ("sequence", "vector") or shape[-1] < 3:
        return None
    width = shape[-1]
    options = [lambda: nn.LayerNorm(width), lambda: nn.RMSNorm(width, eps=1e-5),
               lambda: Scale(width), lambda: nn.LayerNorm(shape)]
    if kind == "vector":
        options.append(lambda: nn.BatchNorm1d(width))
    return draw.choice(options)(), kind, shape


def linear(draw, kind, shape):
    if kind not in ("sequence", "vector"):
        return None
    return sizes_after(nn.Linear(shape[-1], draw.randint(2, 40), bias=draw.random() < 0.7),
                       kind, shape)


def gated(draw, kind, shape):
    axis = 1 if kind in ("image", "line") else -1
    return sizes_after(nn.GLU(axis), kind, shape) if shape[axis - (axis > 0)] % 2 == 0 else None


def activation(draw, kind, shape):
    if draw.random() < 0.15:
        return nn.PReLU(shape[0] if kind in ("image", "line") else 1), kind, shape
    return draw.choice(ACTIVATIONS)(), kind, shape


def attention(draw, kind, shape):
    if kind != "sequence":
        return None
    heads = divisor(draw, shape[1], 6)
    if draw.random() < 0.25:
        return nn.TransformerEncoderLayer(
            shape[1], heads, draw.randint(5, 30), dropout=0.0, batch_first=True,
            activation=draw.choice(["relu", "gelu"]), norm_first=draw.random() < 0.5), kind, shape
    return Attention(shape[1], heads, divisor(draw, heads, heads), draw.random() < 0.5,
                     draw.random() < 0.5), kind, shape


def recurrent(draw, kind, shape):
    if kind != "sequence" or shape[0] > 9:
        return None
    make = draw.choice([nn.LSTM, nn.GRU, nn.RNN])
    module = make(shape[1], draw.randint(3, 12), num_layers=draw.choice([1, 1, 2]),
                  bidirectional=draw.random() < 0.4, bias=draw.random() < 0.8, batch_first=True)
    return sizes_after(Recurrent(module), kind, shape)


def positions(draw, kind, shape):
    return Positions(*shape), kind, shape


def smooth(draw, kind, shape):
    """Functions without parameters."""
    functions = [(lambda x: x.clamp(-1.5, 0.9), "clamp"), (lambda x: x * x.abs(), "x abs(x)"),
                 (lambda x: torch.sqrt(x * x + 0.3), "sqrt"), (torch.atan, "atan"),
                 (lambda x: torch.log1p(x.exp()), "log1p"), (torch.sin, "sin"),
                 (lambda x: x / (1 + x.pow(2)), "rational"), (torch.erf, "erf"),
                 (lambda x: torch.where(x > 0.1, x, 0.3 * x), "where"),
                 (lambda x: x.cumsum(-1) / x.shape[-1], "cumsum"), (lambda x: x.flip(-1), "flip"),
                 (lambda x: x.roll(1, -1), "roll"), (lambda x: x - x.mean(-1, True), "center"),
                 (lambda x: x - x.logsumexp(-1, True), "logsumexp"),
                 (lambda x: x / (x.norm(dim=-1, keepdim=True) + 1), "normalize"),
                 (lambda x: x * x.amax(1, True), "amax"), (lambda x: torch.maximum(x, -x), "max")]
    return Apply(*draw.choice(functions)), kind, shape


def slicing(draw, kind, shape):
    if shape[-1] < 4:
        return None
    options = [(lambda x: x[..., 1:], "[1:]"), (lambda x: x[..., ::2], "[::2]"),
               (lambda x: x[..., :-1], "[:-1]")]
    return sizes_after(Apply(*draw.choice(options)), kind, shape)


def changing(draw, kind, shape):
    """To another kind."""
    mean = (lambda x: x.mean(1), "mean over time")
    changes = {
        "image": [("sequence", lambda x: x.flatten(2).transpose(1, 2), "pixels in a row"),
                  ("line", lambda x: x.mean(-1), "mean of rows"),
                  ("line", lambda x: x.flatten(2), "flatten"),
                  ("vector", lambda x: x.mean((2, 3)), "global mean"),
                  ("vector", lambda x: x.amax((2, 3)), "global maximum"),
                  ("vector", lambda x: x.flatten(1), "flatten")],
        "line": [("sequence", lambda x: x.transpose(1, 2), "transpose"),
                 ("vector", lambda x: x.flatten(1), "flatten"),
                 ("vector", lambda x: x.mean(-1), "mean")],
        "sequence": [("line", lambda x: x.transpose(1, 2), "transpose"),
                     ("vector", *mean), ("vector", lambda x: x[:, 0], "first"),
                     ("vector", lambda x: x[:, -1], "last"),
                     ("vector", lambda x: x.flatten(1), "flatten"),
                     ("image", lambda x: x.unsqueeze(1), "unsqueeze")],
        "vector": [("sequence", lambda x: x.reshape(len(x), -1, 3), "in threes"),
                   ("line", lambda x: x.reshape(len(x), 2, -1), "two halves"),
                   ("image", lambda x: x.reshape(len(x), 3, 2, -1), "six parts")]}
    to, function, name = draw.choice(changes[kind])
    if kind == "vector" and shape[0] % {"sequence": 3, "line": 2, "image": 6}[to]:
        return None
    return sizes_after(Apply(function, name), to, shape)


def combined(draw, kind, shape, depth):
    """A module around others."""
    axis = 1 if kind in ("image", "line") else -1
    channels = shape[axis - (axis > 0)]
    what = draw.choice(["residual", "gate", "branches", "split"])
    if what == "split" and channels > 2:
        first = draw.randint(1, channels - 1)
        part = (first, *shape[1:]) if axis == 1 else (*shape[:-1], first)
        inner = stack(draw, kind, part, draw.randint(1, 2), depth + 1, keep=True)
        return Split(inner[0], [first, channels - first], axis), kind, shape
    inner = stack(draw, kind, shape, draw.randint(1, 3), depth + 1, keep=True)
    if what == "branches" and 2 * torch.Size(shape).numel() <= MOST:
        other = stack(draw, kind, shape, draw.randint(1, 2), depth + 1, keep=True)
        return sizes_after(Branches(inner[0], other[0], axis), kind, shape)
    module = Gate(inner[0]) if what == "gate" else Residual(inner[0], draw.random() < 0.8)
    return module, kind, shape


MAKERS = (convolution, convolution, pooling, resizing, padding, shuffling, channel_norm,
          channel_norm, last_norm, last_norm, linear, linear, linear, gated, activation, activation,
          activation, attention, attention, recurrent, positions, smooth, smooth, slicing, changing)


def stack(draw, kind, shape, count, depth=0, keep=False):
    """`count` layers, one after the other; with `keep` none changes the shape."""
    modules = []
    for _ in range(100 * count):
        if len(modules) == count:
            break
        if depth < 2 and draw.random() < 0.25:
            made = combined(draw, kind, shape, depth)
        else:
            made = draw.choice(MAKERS)(draw, kind, shape)
        if made and not (keep and made[1:] != (kind, shape)):
            module, kind, shape = made
            modules.append(module)
    return nn.Sequential(*modules), kind, shape
