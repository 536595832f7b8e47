"""The architectures of architectures.py: small configurations, random weights.

Batch, image and rate are such that PyTorch's own f32 stays near its f64: batch
normalization over a handful of values amplifies rounding, whoever rounds.
"""

import dataclasses
import typing

import torch
from torch import nn

import architectures_own as own

CLASSES = 7


@dataclasses.dataclass
class Architecture:
    name: str
    build: typing.Callable[[], nn.Module]
    inputs: dict
    labels: typing.Callable
    loss: str = "softmax-cross-entropy"
    batch: int = 3
    rate: float = 0.001


def image(height, width=None, channels=3):
    shape = (channels, height, width or height)
    return lambda count, generator: torch.randn(count, *shape, generator=generator)


def classes(count, generator):
    return torch.randint(0, CLASSES, (count,), generator=generator)


def tokens(vocabulary, *shape):
    return lambda count, generator: torch.randint(0, vocabulary, (count, *shape),
                                                  generator=generator)


def floats(*shape):
    return lambda count, generator: torch.rand(count, *shape, generator=generator)


class Logits(nn.Module):
    """A model whose output is a record, as a model with one output."""

    def __init__(self, model, masked):
        super().__init__()
        self.model, self.masked = model, masked

    def forward(self, tokens):
        # With a mask the decoders' search for packed sequences, which TorchScript
        # has no ONNX for, is left out.
        mask = {"attention_mask": torch.ones_like(tokens)} if self.masked else {}
        return self.model(tokens, **mask).logits


class Translator(nn.Module):
    """An encoder and a decoder, which sees what it is to say before."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, source, target):
        return self.model(input_ids=source, decoder_input_ids=target).logits


class Pooled(nn.Module):
    """An encoder with a classifier on the mean of its last hidden states."""

    def __init__(self, model, width):
        super().__init__()
        self.model, self.head = model, nn.Linear(width, CLASSES)

    def forward(self, tokens):
        return self.head(self.model(tokens).last_hidden_state.mean(1))


def as_exported(module):
    """Without what an export has no trace of: PyTorch's dropout is drawn from its
    own random numbers, and the row `padding_idx` of an embedding never trains.
    """
    for child in module.modules():
        if isinstance(child, (nn.Dropout, nn.Dropout2d)):
            child.p = 0.0
        if type(child).__name__ in ("StochasticDepth", "DropPath", "StableDropout"):
            child.p = child.drop_prob = 0.0
        if isinstance(child, nn.MultiheadAttention):
            child.dropout = 0.0
        if type(child).__name__ == "_DenseLayer":
            child.drop_rate = 0.0
        if isinstance(child, nn.Embedding):
            child.padding_idx = None
    return module


def torchvision_model(name, size, make, **training):
    """`make` takes torchvision.models."""
    def build():
        import torchvision
        return as_exported(make(torchvision.models))
    return Architecture(f"torchvision/{name}", build, {"x": image(size)}, classes, **training)


def timm_model(name, size, make, **training):
    """`make` takes timm.models."""
    def build():
        import timm
        return as_exported(make(timm.models))
    return Architecture(f"timm/{name}", build, {"x": image(size)}, classes, **training)


def transformers_model(name, model, config, options, pooled=0, causal=False, **training):
    def build():
        import transformers
        settings = getattr(transformers, config)(**options)
        settings._attn_implementation = "eager"
        settings.use_cache = False
        module = getattr(transformers, model)(settings)
        return as_exported(Pooled(module, pooled) if pooled else Logits(module, causal))
    length = 11
    return Architecture(f"transformers/{name}", build, {"input_ids": tokens(53, length)},
                        tokens(53, length) if causal else classes, **training)


def translator(name, model, config, options):
    def build():
        import transformers
        settings = getattr(transformers, config)(**options)
        settings._attn_implementation = "eager"
        settings.use_cache = False
        return as_exported(Translator(getattr(transformers, model)(settings)))
    return Architecture(f"transformers/{name}", build,
                        {"source": tokens(53, 11), "target": tokens(53, 7)}, tokens(53, 7))


def small_resnet(block):
    def make(models):
        return models.ResNet(getattr(models.resnet, block), [1, 1, 1, 1], num_classes=CLASSES,
                             zero_init_residual=True)
    return make


def small_vgg(models):
    """The head that one uses on small images."""
    module = models.VGG(models.vgg.make_layers([16, "M", 24, "M", 32, 32, "M"], batch_norm=True),
                        num_classes=CLASSES)
    module.avgpool = nn.AdaptiveAvgPool2d(1)
    module.classifier = nn.Sequential(nn.Linear(32, 24), nn.ReLU(), nn.Linear(24, CLASSES))
    return module


def small_alexnet(models):
    module = models.alexnet(weights=None, num_classes=CLASSES)
    module.avgpool = nn.AdaptiveAvgPool2d(1)
    module.classifier = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    return module


def small_efficientnet(models):
    block = models.efficientnet.MBConvConfig
    fused = models.efficientnet.FusedMBConvConfig
    return models.EfficientNet([fused(1, 3, 1, 24, 16, 1), block(4, 3, 2, 16, 24, 2),
                                block(6, 5, 2, 24, 40, 1)],
                               dropout=0.0, num_classes=CLASSES, last_channel=64)


def small_convnext(models):
    block = models.convnext.CNBlockConfig
    return models.ConvNeXt([block(24, 48, 1), block(48, 64, 2), block(64, None, 1)],
                           num_classes=CLASSES)


def small_swin(block, merging):
    def make(models):
        transformer = models.swin_transformer
        return models.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=CLASSES,
                                      block=getattr(transformer, block),
                                      downsample_layer=getattr(transformer, merging))
    return make


def small_repvgg(models):
    block = models.byobnet.ByoBlockCfg
    return models.ByobNet(models.byobnet.ByoModelCfg(
        blocks=tuple(block("rep", d=1, c=width, s=2) for width in (16, 24, 32)),
        stem_type="rep", stem_chs=12), num_classes=CLASSES)


def gated_mlp():
    import timm.layers
    return timm.layers.GatedMlp


# Kernel, width of expansion, width, squeeze and excitation, stride.
SMALL_GHOST = [[[3, 16, 16, 0, 1]], [[3, 24, 20, 0, 2]], [[5, 32, 24, 0.25, 2]],
               [[3, 48, 24, 0.25, 1]]]
SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
         "intermediate_size": 48, "vocab_size": 53, "max_position_embeddings": 16,
         "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
CLASSIFIER = {**SMALL, "num_labels": CLASSES, "pad_token_id": None}
ROTARY = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 53,
          "max_position_embeddings": 16, "pad_token_id": None, "bos_token_id": 0,
          "eos_token_id": 0, "tie_word_embeddings": False}

ARCHITECTURES = [
    torchvision_model("alexnet", 67, small_alexnet),
    torchvision_model("convnext", 40, small_convnext),
    torchvision_model("densenet", 48, lambda models: models.DenseNet(
        8, (2, 2, 2), 16, num_classes=CLASSES), batch=8),
    torchvision_model("efficientnet", 48, small_efficientnet, batch=8),
    torchvision_model("mobilenet_v2", 48, lambda models: models.MobileNetV2(
        num_classes=CLASSES, inverted_residual_setting=[
            [1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 1, 2], [6, 48, 2, 1]]), batch=6, rate=2e-4),
    torchvision_model("mobilenet_v3_small", 48, lambda models: models.mobilenet_v3_small(
        weights=None, num_classes=CLASSES), batch=6),
    torchvision_model("regnet_y", 64, lambda models: models.RegNet(
        models.regnet.BlockParams.from_init_params(depth=5, w_0=16, w_a=24.0, w_m=2.0,
                                                   group_width=8, se_ratio=0.25),
        num_classes=CLASSES), batch=8, rate=2e-4),
    torchvision_model("resnet_basic", 48, small_resnet("BasicBlock"), batch=6, rate=1e-4),
    torchvision_model("resnet_bottleneck", 48, small_resnet("Bottleneck"), batch=6, rate=1e-4),
    torchvision_model("shufflenet_v2", 64, lambda models: models.ShuffleNetV2(
        [2, 3, 2], [16, 24, 48, 64, 96], num_classes=CLASSES), batch=8, rate=2e-4),
    torchvision_model("squeezenet1_1", 35, lambda models: models.squeezenet1_1(
        weights=None, num_classes=CLASSES), rate=5e-4),
    torchvision_model("swin", 32, small_swin("SwinTransformerBlock", "PatchMerging")),
    torchvision_model("swin_v2", 32, small_swin("SwinTransformerBlockV2", "PatchMergingV2")),
    torchvision_model("vgg_bn", 37, small_vgg, batch=8),
    torchvision_model("vit", 24, lambda models: models.VisionTransformer(
        24, 8, 3, 4, 32, 48, num_classes=CLASSES)),
    timm_model("beit", 32, lambda models: models.Beit(
        32, num_classes=CLASSES, depth=3, embed_dim=48, num_heads=4, init_values=0.1)),
    timm_model("cait", 32, lambda models: models.Cait(
        32, num_classes=CLASSES, depth=2, embed_dim=48, num_heads=4, init_values=0.1)),
    timm_model("convmixer", 40, lambda models: models.ConvMixer(
        40, 3, kernel_size=5, patch_size=4, num_classes=CLASSES), batch=8),
    timm_model("edgenext", 64, lambda models: models.EdgeNeXt(
        num_classes=CLASSES, dims=(16, 24, 32, 40), depths=(1, 1, 2, 1), heads=(4, 4, 4, 4))),
    timm_model("ghostnet", 64, lambda models: models.GhostNet(
        SMALL_GHOST, num_classes=CLASSES, drop_rate=0.0), batch=8),
    timm_model("gmlp", 32, lambda models: models.MlpMixer(
        CLASSES, 32, num_blocks=3, embed_dim=48, mlp_ratio=4,
        block_layer=models.mlp_mixer.SpatialGatingBlock, mlp_layer=gated_mlp())),
    timm_model("levit", 64, lambda models: models.Levit(
        64, num_classes=CLASSES, embed_dim=(32, 48, 64), num_heads=(2, 3, 4), depth=(1, 1, 1),
        key_dim=8), batch=8),
    timm_model("mixer", 64, lambda models: models.MlpMixer(
        CLASSES, 64, patch_size=32, num_blocks=3, embed_dim=48)),
    timm_model("nf_resnet", 48, lambda models: models.NormFreeNet(models.nfnet.NfCfg(
        (1, 1, 1, 1), (16, 24, 32, 48), stem_type="7x7_pool", stem_chs=16),
        num_classes=CLASSES)),
    timm_model("poolformer", 48, lambda models: models.MetaFormer(
        num_classes=CLASSES, depths=(1, 1, 1, 1), dims=(16, 24, 32, 40))),
    timm_model("repvgg", 48, small_repvgg, batch=8, rate=5e-4),
    timm_model("resmlp", 32, lambda models: models.MlpMixer(
        CLASSES, 32, num_blocks=3, embed_dim=48, mlp_ratio=4,
        block_layer=models.mlp_mixer.ResBlock, norm_layer=models.mlp_mixer.Affine)),
    timm_model("vit", 32, lambda models: models.VisionTransformer(
        32, 8, num_classes=CLASSES, embed_dim=48, depth=3, num_heads=4)),
    transformers_model("albert", "AlbertForSequenceClassification", "AlbertConfig",
                       {**CLASSIFIER, "embedding_size": 24, "classifier_dropout_prob": 0.0}),
    translator("bart", "BartForConditionalGeneration", "BartConfig",
               {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
                "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
                "decoder_ffn_dim": 48, "vocab_size": 53, "max_position_embeddings": 16,
                "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}),
    transformers_model("bert", "BertForSequenceClassification", "BertConfig", CLASSIFIER),
    transformers_model("bloom", "BloomForCausalLM", "BloomConfig",
                       {"hidden_size": 32, "n_layer": 3, "n_head": 4, "vocab_size": 53},
                       causal=True),
    transformers_model("convbert", "ConvBertForSequenceClassification", "ConvBertConfig",
                       {**CLASSIFIER, "embedding_size": 24, "head_ratio": 2,
                        "conv_kernel_size": 3}),
    transformers_model("deberta_v2", "DebertaV2ForSequenceClassification", "DebertaV2Config",
                       {**CLASSIFIER, "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
                        "position_buckets": 4, "pooler_hidden_size": 32}),
    transformers_model("distilbert", "DistilBertForSequenceClassification", "DistilBertConfig",
                       {"num_labels": CLASSES, "dim": 32, "n_layers": 3, "n_heads": 4,
                        "hidden_dim": 48, "vocab_size": 53, "max_position_embeddings": 16}),
    transformers_model("electra", "ElectraForSequenceClassification", "ElectraConfig",
                       {**CLASSIFIER, "embedding_size": 24}),
    transformers_model("falcon", "FalconForCausalLM", "FalconConfig",
                       {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                        "vocab_size": 53, "tie_word_embeddings": False}, causal=True),
    transformers_model("fnet", "FNetForSequenceClassification", "FNetConfig",
                       {key: CLASSIFIER[key] for key in CLASSIFIER if "attention" not in key}),
    transformers_model("gemma", "GemmaForCausalLM", "GemmaConfig", {**ROTARY, "head_dim": 8},
                       causal=True),
    transformers_model("gpt_neo", "GPTNeoForCausalLM", "GPTNeoConfig",
                       {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 4,
                        "attention_types": [[["global", "local"], 1]], "vocab_size": 53,
                        "max_position_embeddings": 16, "embed_dropout": 0.0,
                        "attention_dropout": 0.0, "resid_dropout": 0.0}, causal=True),
    transformers_model("gpt2", "GPT2LMHeadModel", "GPT2Config",
                       {"n_embd": 32, "n_layer": 3, "n_head": 4, "vocab_size": 53,
                        "n_positions": 16, "bos_token_id": 0, "eos_token_id": 0}, causal=True),
    transformers_model("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig",
                       {**{key: ROTARY[key] for key in ROTARY if key != "num_key_value_heads"},
                        "rotary_pct": 0.5}, causal=True),
    transformers_model("gptj", "GPTJForCausalLM", "GPTJConfig",
                       {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 53,
                        "n_positions": 16, "rotary_dim": 4, "resid_pdrop": 0, "attn_pdrop": 0,
                        "embd_pdrop": 0, "tie_word_embeddings": False}, causal=True),
    transformers_model("lfm2", "Lfm2ForCausalLM", "Lfm2Config",
                       {**ROTARY, "layer_types": ["conv", "full_attention", "conv"]}, causal=True),
    transformers_model("llama", "LlamaForCausalLM", "LlamaConfig", ROTARY, causal=True),
    transformers_model("mamba", "MambaForCausalLM", "MambaConfig",
                       {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4,
                        "time_step_rank": 4, "vocab_size": 53}, causal=True),
    transformers_model("mistral", "MistralForCausalLM", "MistralConfig",
                       {**ROTARY, "sliding_window": 4}, causal=True),
    transformers_model("mobilebert", "MobileBertForSequenceClassification", "MobileBertConfig",
                       {**CLASSIFIER, "embedding_size": 16, "intra_bottleneck_size": 16,
                        "true_hidden_size": 16}),
    transformers_model("mpnet", "MPNetForSequenceClassification", "MPNetConfig",
                       {**CLASSIFIER, "max_position_embeddings": 20, "pad_token_id": 1}),
    transformers_model("opt", "OPTForCausalLM", "OPTConfig",
                       {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
                        "ffn_dim": 48, "vocab_size": 53, "word_embed_proj_dim": 32, "dropout": 0.0,
                        "max_position_embeddings": 16}, causal=True),
    transformers_model("phi", "PhiForCausalLM", "PhiConfig", ROTARY, causal=True),
    transformers_model("qwen2", "Qwen2ForCausalLM", "Qwen2Config", ROTARY, causal=True),
    transformers_model("roberta", "RobertaForSequenceClassification", "RobertaConfig",
                       {**CLASSIFIER, "max_position_embeddings": 20, "pad_token_id": 1}),
    transformers_model("roformer", "RoFormerForSequenceClassification", "RoFormerConfig",
                       CLASSIFIER),
    transformers_model("rwkv", "RwkvForCausalLM", "RwkvConfig",
                       {"hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32,
                        "intermediate_size": 48, "vocab_size": 53, "context_length": 16},
                       causal=True),
    transformers_model("squeezebert", "SqueezeBertForSequenceClassification",
                       "SqueezeBertConfig", {**CLASSIFIER, "embedding_size": 32}),
    translator("t5", "T5ForConditionalGeneration", "T5Config",
               {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
                "vocab_size": 53, "dropout_rate": 0.0, "decoder_start_token_id": 0}),
    transformers_model("t5_encoder", "T5EncoderModel", "T5Config",
                       {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 3, "num_heads": 4,
                        "vocab_size": 53, "dropout_rate": 0.0}, pooled=32),
    transformers_model("xlnet", "XLNetForSequenceClassification", "XLNetConfig",
                       {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48,
                        "vocab_size": 53, "dropout": 0.0, "num_labels": CLASSES,
                        "summary_last_dropout": 0.0}),
    Architecture("autoencoder", own.AutoEncoder, {"x": image(21, 13, 3)}, floats(3, 21, 13),
                 loss="mse", rate=0.05),
    Architecture("capsules", lambda: own.Capsules(CLASSES), {"x": image(21)}, classes, rate=0.02),
    Architecture("diffusion_unet", own.DiffusionUNet,
                 {"x": image(8), "t": tokens(1000), "context": floats(5, 8)}, floats(3, 8, 8),
                 loss="mse", rate=0.02),
    Architecture("discriminator", own.Discriminator, {"x": image(32)}, floats(1),
                 loss="bce-with-logits", batch=6),
    Architecture("graph_attention", lambda: own.GraphAttention(CLASSES),
                 {"x": floats(9, 6), "edges": tokens(9, 2, 20)}, classes, rate=0.02),
    Architecture("gru", lambda: own.Recurrent("GRU", CLASSES), {"x": tokens(29, 9)},
                 tokens(CLASSES, 9)),
    Architecture("kan", lambda: nn.Sequential(own.SplineLayer(4, 6), own.SplineLayer(6, CLASSES)),
                 {"x": floats(4)}, classes, rate=0.02),
    Architecture("lstm", lambda: own.Recurrent("LSTM", CLASSES), {"x": tokens(29, 9)},
                 tokens(CLASSES, 9)),
    Architecture("lstm_language_model", own.LanguageModel, {"x": tokens(29, 9)}, tokens(29, 9)),
    Architecture("recommender", own.Recommender,
                 {"dense": floats(4), "sparse": tokens(100, 2), "bag": tokens(13, 5)}, floats(1),
                 loss="bce-with-logits", rate=0.02),
    Architecture("style_generator", own.StyleGenerator, {"z": floats(16)}, floats(3, 16, 16),
                 loss="mse", rate=0.02),
    Architecture("transformer", own.EncoderDecoder, {"x": tokens(29, 9)}, tokens(29, 9)),
    Architecture("unet", lambda: own.UNet(CLASSES, (8, 12, 16), groups=2, depth=1),
                 {"x": image(20)}, tokens(CLASSES, 20, 20)),
    Architecture("wavenet", own.WaveNet, {"x": tokens(17, 31)}, tokens(17, 31)),
]
