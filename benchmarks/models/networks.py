"""Networks with random weights, most of them of the package transformers; and their export to ONNX."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.models.cases import Array, Case
from benchmarks.models.style_transfer import StyleTransfer, random_weights


class Network(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """A model that takes its inputs in order, and gives its first output."""

    def __init__(self, model: Any, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Any) -> Any:
        return self.model(**dict(zip(self.names, inputs, strict=True)), return_dict=True)[0]


class NextToken(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """GPT-2 that takes a token after keys and values of earlier ones, and gives logits and all of these."""

    def __init__(self, model: Any, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, ids: Any, *past: Any) -> Any:
        from transformers import DynamicCache

        cache = DynamicCache()
        for number in range(len(past) // 2):
            cache.update(past[2 * number], past[2 * number + 1], number)
        found = self.model(input_ids=ids, past_key_values=cache, use_cache=True, return_dict=True)
        layers = found.past_key_values.layers
        return (found.logits, *(part for layer in layers for part in (layer.keys, layer.values)))


def _mobilenet() -> Any:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    return MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1001))


def _resnet() -> Any:
    from transformers import ResNetConfig, ResNetForImageClassification

    return ResNetForImageClassification(ResNetConfig(num_labels=1000))


def _vit() -> Any:
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(ViTConfig(num_labels=1000))


def _convnext() -> Any:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    # The factor of each block is 1e-6 before training, which would hide the blocks from the comparison.
    return ConvNextForImageClassification(ConvNextConfig(num_labels=1000, layer_scale_init_value=0.5))


def _efficientnet() -> Any:
    from transformers import EfficientNetConfig, EfficientNetForImageClassification

    sizes = {"image_size": 224, "width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280}
    return EfficientNetForImageClassification(EfficientNetConfig(num_labels=1000, **sizes))


def _segformer() -> Any:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    return SegformerForSemanticSegmentation(SegformerConfig(num_labels=150))


def _bert() -> Any:
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig())


def _gpt2(use_cache: bool) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(use_cache=use_cache))


_MODELS: dict[str, Callable[[], Any]] = {
    "mobilenet-v2": _mobilenet,
    "resnet-50": _resnet,
    "vit-b16": _vit,
    "convnext-t": _convnext,
    "efficientnet-b0": _efficientnet,
    "segformer-b0": _segformer,
    "bert-base": _bert,
    "gpt2-512": lambda: _gpt2(use_cache=False),
    "gpt2-next": lambda: _gpt2(use_cache=True),
}
"""The models in their standard sizes, by the names of the cases."""

_NORMALIZATIONS = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)


def make(case: Case, inputs: dict[str, Array]) -> Any:
    """Return the network of a case; its weights are the same in every process.

    Batch normalizations take the statistics of the inputs, and have the weight 1. Otherwise random layers
    make the values of a deep network vanish. Those of EfficientNet-B0 became subnormal numbers, which some
    processors multiply a hundred times more slowly.
    """
    torch.manual_seed(0)
    if case.name == "style-transfer":
        return StyleTransfer(random_weights()).eval()
    kind = NextToken if case.name == "gpt2-next" else Network
    network, fresh = (kind(_MODELS[case.name](), list(inputs)).eval() for _ in range(2))
    for layer in network.modules():
        if isinstance(layer, _NORMALIZATIONS):
            layer.train()
            layer.momentum = 1.0
            torch.nn.init.ones_(layer.weight)
    with torch.no_grad():
        network(*tensors(inputs))
    # A model that has run may hold hooks, which cannot be stored.
    fresh.load_state_dict(network.state_dict())
    return fresh


def tensors(inputs: dict[str, Array]) -> list[Any]:
    """Return the inputs as tensors over the same memory."""
    return [torch.from_numpy(array) for array in inputs.values()]


def export(network: Any, inputs: dict[str, Array], path: Path) -> None:
    """Write the network as an ONNX model, as PyTorch's exporter does, with its weights inside the file."""
    torch.onnx.export(
        network,
        tuple(tensors(inputs)),
        str(path),
        dynamo=True,
        opset_version=18,
        input_names=list(inputs),
        external_data=False,
        verbose=False,
    )
