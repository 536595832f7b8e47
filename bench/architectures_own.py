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
