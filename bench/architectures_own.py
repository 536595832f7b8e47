"""Architectures of architectures_list.py that no library has in this form."""

import torch
from torch import nn


class UNet(nn.Module):
    """Of three levels, with `depth` convolutions in a block; widths must be multiples of groups."""

    def __init__(self, classes, widths, groups, depth):
        super().__init__()

        def block(inputs, outputs):
            return nn.Sequential(*(layer for k in range(depth) for layer in (
                nn.Conv2d(outputs if k else inputs, outputs, 3, padding=1),
                nn.GroupNorm(groups, outputs), nn.SiLU())))
        a, b, c = widths
        self.down1, self.down2, self.middle = block(3, a), block(a, b), block(b, c)
        self.up2 = nn.ConvTranspose2d(c, b, 2, stride=2)
        self.up1 = nn.ConvTranspose2d(b, a, 2, stride=2)
        self.merge2, self.merge1 = block(2 * b, b), block(2 * a, a)
        self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(a, classes, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(self.pool(first))
        y = self.up2(self.middle(self.pool(second)))
        y = self.up1(self.merge2(torch.cat([y, second], 1)))
        return self.head(self.merge1(torch.cat([y, first], 1))).permute(0, 2, 3, 1)


class AutoEncoder(nn.Module):
    """Odd sizes, so that the transposed convolutions need an output padding."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.LeakyReLU(0.1),
            nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.InstanceNorm2d(12, affine=True), nn.ELU())
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(12, 8, 3, stride=2, padding=1, output_padding=(0, 0)), nn.PReLU(8),
            nn.ConvTranspose2d(8, 5, 3, stride=2, padding=1, output_padding=(0, 0), groups=1),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), nn.AvgPool2d(2),
            nn.Conv2d(5, 3, 3, padding=1, padding_mode="reflect"), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Discriminator(nn.Module):
    """That of a DCGAN."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 12, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
            nn.Conv2d(12, 20, 4, 2, 1, bias=False), nn.BatchNorm2d(20), nn.LeakyReLU(0.2),
            nn.Conv2d(20, 28, 4, 2, 1, bias=False), nn.BatchNorm2d(28), nn.LeakyReLU(0.2),
            nn.Conv2d(28, 1, 4, bias=False), nn.Flatten())

    def forward(self, x):
        return self.layers(x)


class Recurrent(nn.Module):
    def __init__(self, kind, classes):
        super().__init__()
        self.embedding = nn.Embedding(29, 13)
        self.cell = getattr(nn, kind)(13, 17, num_layers=2, bidirectional=kind == "LSTM",
                                      batch_first=True)
        self.head = nn.Linear(34 if kind == "LSTM" else 17, classes)

    def forward(self, x):
        return self.head(self.cell(self.embedding(x))[0])


class LanguageModel(nn.Module):
    """An LSTM whose head is the embedding: one weight, read at both ends."""

    def __init__(self, vocabulary=29, width=17):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.cell = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.cell(self.embedding(x))[0])


class WaveNet(nn.Module):
    """Gated, dilated, causal convolutions with skip connections."""

    def __init__(self, levels=17, width=12, depth=4):
        super().__init__()
        self.embedding = nn.Embedding(levels, width)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2 ** i)
                                   for i in range(depth))
        self.skips = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(depth))
        self.residuals = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(depth))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(),
                                  nn.Conv1d(width, levels, 1))

    def forward(self, x):
        y = self.embedding(x).transpose(1, 2)
        total = 0
        for i, (gate, skip, residual) in enumerate(zip(self.gates, self.skips, self.residuals)):
            tanh, sigmoid = gate(nn.functional.pad(y, (2 ** i, 0))).chunk(2, dim=1)
            z = torch.tanh(tanh) * torch.sigmoid(sigmoid)
            total = total + skip(z)
            y = y + residual(z)
        return self.head(total).transpose(1, 2)


class EncoderDecoder(nn.Module):
    """torch.nn.Transformer, with sinusoids as a buffer."""

    def __init__(self, vocabulary=29, width=24):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.transformer = nn.Transformer(width, 4, 2, 2, 40, dropout=0.0, batch_first=True,
                                          norm_first=True)
        self.head = nn.Linear(width, vocabulary)
        angle = torch.arange(9)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("positions", torch.cat([angle.sin(), angle.cos()], 1))

    def forward(self, x):
        y = self.embedding(x) + self.positions
        return self.head(self.transformer(y, y))


class DiffusionUNet(nn.Module):
    """One level of a diffusion model: a time, a context, self and cross attention."""

    def __init__(self, width=16, context=8, heads=4):
        super().__init__()
        self.heads = heads
        self.time = nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, width))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, width)
        self.queries = nn.Conv2d(width, 3 * width, 1)
        self.merge = nn.Conv2d(width, width, 1)
        self.cross = nn.MultiheadAttention(width, heads, batch_first=True, kdim=context,
                                           vdim=context)
        self.up = nn.Conv2d(2 * width, width, 3, padding=1)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t, context):
        frequency = torch.exp(torch.arange(8) * (-9.2 / 8))
        angle = t[:, None].float() * frequency[None]
        time = self.time(torch.cat([angle.sin(), angle.cos()], -1).to(x.dtype))
        skip = self.first(x)
        y = self.norm(self.down(skip) + time[:, :, None, None])
        batch, width, height, breadth = y.shape
        q, k, v = self.queries(y).reshape(batch, 3, self.heads, -1, height * breadth).unbind(1)
        weights = torch.einsum("bhct,bhcs->bhts", q * 0.5, k).softmax(-1)
        z = torch.einsum("bhts,bhcs->bhct", weights, v)
        y = y + self.merge(z.reshape(batch, width, height, breadth))
        z = self.cross(y.flatten(2).transpose(1, 2), context, context, need_weights=False)[0]
        y = y + z.transpose(1, 2).reshape(batch, width, height, breadth)
        y = nn.functional.interpolate(y, scale_factor=2, mode="nearest")
        return self.last(nn.functional.silu(self.up(torch.cat([skip, y], 1))))


class StyleGenerator(nn.Module):
    """Of two levels, whose convolutions are scaled and demodulated by a style."""

    def __init__(self, width=8, style=16):
        super().__init__()
        self.mapping = nn.Sequential(nn.Linear(style, style), nn.LeakyReLU(0.2),
                                     nn.Linear(style, style))
        self.constant = nn.Parameter(torch.randn(1, width, 4, 4))
        self.weights = nn.ParameterList(torch.randn(width, width, 3, 3) * 0.1 for _ in range(2))
        self.styles = nn.ModuleList(nn.Linear(style, width) for _ in range(2))
        self.head = nn.Conv2d(width, 3, 1)

    def forward(self, z):
        w = self.mapping(z * torch.rsqrt(z.pow(2).mean(1, keepdim=True) + 1e-8))
        x = self.constant.expand(z.shape[0], -1, -1, -1)
        for weight, style in zip(self.weights, self.styles):
            scale = style(w) + 1
            x = nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = nn.functional.conv2d(x * scale[:, :, None, None], weight, padding=1)
            norm = ((weight[None] * scale[:, None, :, None, None]) ** 2).sum((2, 3, 4))
            x = nn.functional.leaky_relu(x * torch.rsqrt(norm + 1e-8)[:, :, None, None], 0.2)
        return torch.tanh(self.head(x))


class GraphAttention(nn.Module):
    """Edges are data: gathers of their ends, and sums at their targets."""

    def __init__(self, classes, features=6, width=16):
        super().__init__()
        self.first, self.head = nn.Linear(features, width), nn.Linear(width, classes)
        self.score = nn.Linear(2 * width, 1)

    def forward(self, x, edges):
        h = self.first(x)
        source, target = edges[:, 0, :, None], edges[:, 1, :, None]
        wide = [-1, -1, h.shape[-1]]
        sent = torch.gather(h, 1, source.expand(wide))
        received = torch.gather(h, 1, target.expand(wide))
        score = self.score(torch.cat([sent, received], -1))
        weight = torch.exp(nn.functional.leaky_relu(score, 0.2))
        total = torch.zeros_like(x[:, :, :1]).scatter_add(1, target, weight)
        weight = weight / (torch.gather(total, 1, target) + 1e-9)
        y = torch.zeros_like(h).scatter_add(1, target.expand(wide), weight * sent)
        return self.head((nn.functional.elu(y) + h).mean(1))


class Recommender(nn.Module):
    """Sparse features, one of them a bag of many, and the products of all pairs."""

    def __init__(self, rows=(11, 7), bag=13, width=8):
        super().__init__()
        self.rows = rows
        self.tables = nn.ModuleList(nn.Embedding(count, width) for count in rows)
        self.bag = nn.EmbeddingBag(bag, width, mode="mean")
        self.bottom = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, width))
        self.top = nn.Sequential(nn.Linear(width + 6, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense, sparse, bag):
        found = [table(sparse[:, i] % count)
                 for i, (table, count) in enumerate(zip(self.tables, self.rows))]
        y = torch.stack([self.bottom(dense), *found, self.bag(bag)], 1)
        row, column = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([y[:, 0], (y @ y.transpose(1, 2))[:, row, column]], 1))


class SplineLayer(nn.Module):
    """That of a Kolmogorov-Arnold network: a cubic spline per edge."""

    def __init__(self, inputs, outputs, pieces=5, degree=3):
        super().__init__()
        knots = torch.arange(-degree, pieces + degree + 1) * (2 / pieces) - 1
        self.register_buffer("knots", knots.expand(inputs, -1).contiguous())
        self.degree = degree
        self.base = nn.Parameter(torch.randn(outputs, inputs) * 0.3)
        self.splines = nn.Parameter(torch.randn(outputs, inputs, pieces + degree) * 0.1)

    def forward(self, x):
        y = nn.functional.linear(nn.functional.silu(x), self.base)
        x, t = x.unsqueeze(-1), self.knots
        b = ((x >= t[:, :-1]) & (x < t[:, 1:])).to(x.dtype)
        for k in range(1, self.degree + 1):
            b = ((x - t[:, :-k - 1]) / (t[:, k:-1] - t[:, :-k - 1]) * b[:, :, :-1] +
                 (t[:, k + 1:] - x) / (t[:, k + 1:] - t[:, 1:-k]) * b[:, :, 1:])
        return y + nn.functional.linear(b.flatten(1), self.splines.flatten(1))


class Capsules(nn.Module):
    """With routing by agreement, three times."""

    def __init__(self, classes):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 5, stride=3)
        self.votes = nn.Parameter(torch.randn(1, 32, classes, 6, 8) * 0.1)

    @staticmethod
    def squash(v):
        norm = (v ** 2).sum(-1, keepdim=True)
        return norm / (1 + norm) * v / torch.sqrt(norm + 1e-8)

    def forward(self, x):
        u = self.first(x)
        u = self.squash(u.reshape(u.shape[0], -1, 8))[:, :32]
        votes = (self.votes @ u[:, :, None, :, None]).squeeze(-1)
        logits = torch.zeros_like(votes[..., :1])
        for _ in range(3):
            v = self.squash((logits.softmax(2) * votes).sum(1))
            logits = logits + (votes * v[:, None]).sum(-1, keepdim=True)
        return v.norm(dim=-1) * 5
