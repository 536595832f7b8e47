"""The architectures of architectures.py: small configurations, random weights.

Dropout and stochastic depth are off, since PyTorch's random numbers are its own.
"""

import dataclasses
import typing

import torch
from torch import nn

CLASSES = 7


@dataclasses.dataclass
class Architecture:
    name: str
    build: typing.Callable[[], nn.Module]
    inputs: dict
    labels: typing.Callable


def image(size, channels=3):
    return lambda count, generator: torch.randn(count, channels, size, size, generator=generator)


def classes(count, generator):
    return torch.randint(0, CLASSES, (count,), generator=generator)


def tokens(vocabulary, length):
    return lambda count, generator: torch.randint(0, vocabulary, (count, length),
                                                  generator=generator)


class Logits(nn.Module):
    """A model whose output is a record, as a model with one output."""

    def __init__(self, model, field="logits"):
        super().__init__()
        self.model, self.field = model, field

    def forward(self, tokens):
        return getattr(self.model(tokens), self.field)


def without_dropout(module):
    for child in module.modules():
        if isinstance(child, (nn.Dropout, nn.Dropout2d)):
            child.p = 0.0
        if type(child).__name__ in ("StochasticDepth", "DropPath"):
            child.p = child.drop_prob = 0.0
        if isinstance(child, nn.MultiheadAttention):
            child.dropout = 0.0
    return module


def torchvision_model(name, size, **options):
    def build():
        import torchvision
        return without_dropout(getattr(torchvision.models, name)(
            weights=None, num_classes=CLASSES, **options))
    return Architecture(f"torchvision/{name}", build, {"x": image(size)}, classes)


def timm_model(name, size, **options):
    def build():
        import timm
        return without_dropout(timm.create_model(name, pretrained=False, num_classes=CLASSES,
                                                 **options))
    return Architecture(f"timm/{name}", build, {"x": image(size)}, classes)


def transformers_model(name, model, config, length=11, vocabulary=53, causal=True, **options):
    def build():
        import transformers
        settings = getattr(transformers, config)(**options)
        settings._attn_implementation = "eager"
        settings.use_cache = False
        return without_dropout(Logits(getattr(transformers, model)(settings)))
    labels = tokens(vocabulary, length) if causal else classes
    return Architecture(f"transformers/{name}", build, {"input_ids": tokens(vocabulary, length)},
                        labels)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()

        def block(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(2, outputs),
                                 nn.SiLU())
        self.down1, self.down2, self.middle = block(3, 8), block(8, 12), block(12, 16)
        self.up2 = nn.ConvTranspose2d(16, 12, 2, stride=2)
        self.up1 = nn.ConvTranspose2d(12, 8, 2, stride=2)
        self.merge2, self.merge1 = block(24, 12), block(16, 8)
        self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(8, CLASSES, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(self.pool(first))
        y = self.up2(self.middle(self.pool(second)))
        y = self.up1(self.merge2(torch.cat([y, second], 1)))
        return self.head(self.merge1(torch.cat([y, first], 1))).permute(0, 2, 3, 1)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(29, 13)
        self.cell = getattr(nn, kind)(13, 17, num_layers=2, bidirectional=kind == "LSTM",
                                      batch_first=True)
        self.head = nn.Linear(34 if kind == "LSTM" else 17, CLASSES)

    def forward(self, x):
        return self.head(self.cell(self.embedding(x))[0])


SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
         "intermediate_size": 48, "vocab_size": 53}

ARCHITECTURES = [
    torchvision_model("resnet18", 40),
    torchvision_model("resnet50", 33),
    torchvision_model("vgg11_bn", 32),
    torchvision_model("alexnet", 67),
    torchvision_model("mobilenet_v2", 33),
    torchvision_model("mobilenet_v3_small", 33),
    torchvision_model("efficientnet_b0", 33),
    torchvision_model("shufflenet_v2_x0_5", 35),
    torchvision_model("squeezenet1_1", 35),
    torchvision_model("densenet121", 33),
    torchvision_model("convnext_tiny", 33),
    torchvision_model("regnet_y_400mf", 33),
    torchvision_model("swin_t", 32),
    timm_model("vit_tiny_patch16_224", 32, img_size=32, depth=3),
    timm_model("mixer_s32_224", 64, img_size=64),
    timm_model("resmlp_12_224", 32, img_size=32),
    timm_model("ghostnet_100", 33),
    timm_model("edgenext_xx_small", 64),
    transformers_model("gpt2", "GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=3, n_head=4,
                       vocab_size=53, n_positions=16, bos_token_id=0, eos_token_id=0),
    transformers_model("bert", "BertForSequenceClassification", "BertConfig", causal=False,
                       num_labels=CLASSES, max_position_embeddings=16, **SMALL),
    transformers_model("distilbert", "DistilBertForSequenceClassification", "DistilBertConfig",
                       causal=False, num_labels=CLASSES, dim=32, n_layers=3, n_heads=4,
                       hidden_dim=48, vocab_size=53, max_position_embeddings=16),
    transformers_model("llama", "LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2,
                       max_position_embeddings=16, **SMALL),
    transformers_model("opt", "OPTForCausalLM", "OPTConfig", hidden_size=32, num_hidden_layers=3,
                       num_attention_heads=4, ffn_dim=48, vocab_size=53, word_embed_proj_dim=32,
                       max_position_embeddings=16),
    transformers_model("roberta", "RobertaForSequenceClassification", "RobertaConfig",
                       causal=False, num_labels=CLASSES, max_position_embeddings=20, **SMALL),
    Architecture("unet", UNet, {"x": image(20)},
                 lambda count, generator: torch.randint(0, CLASSES, (count, 20, 20),
                                                        generator=generator)),
    Architecture("lstm", lambda: Recurrent("LSTM"), {"x": tokens(29, 9)},
                 lambda count, generator: torch.randint(0, CLASSES, (count, 9),
                                                        generator=generator)),
    Architecture("gru", lambda: Recurrent("GRU"), {"x": tokens(29, 9)},
                 lambda count, generator: torch.randint(0, CLASSES, (count, 9),
                                                        generator=generator)),
]
