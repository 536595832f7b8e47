"""The model of docs/tutorial.md: a small residual network for 8 x 8 images."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.blocks = nn.Sequential(Block(16), nn.MaxPool2d(2), Block(16))
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(16 * 4 * 4, 10)

    def forward(self, image):
        x = self.blocks(torch.relu(self.stem(image.unflatten(1, (1, 8, 8)))))
        return self.head(self.dropout(x.flatten(1)))
