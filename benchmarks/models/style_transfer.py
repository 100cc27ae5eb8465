"""The network of `examples/style_transfer.py` in PyTorch. It imports no other engine, as the example does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.models.cases import Array

MEANS = (103.939, 116.779, 123.68)
BORDER = 40
RESIDUAL_LAYERS = range(3, 13)

_CHANNELS = (3, 16, 32, *[64] * 11, 32, 16, 3)
"""Before the first layer and after each."""
_WIDE_LAYERS = (0, 15)
_TRANSPOSED_LAYERS = (13, 14)


def random_weights() -> dict[str, Array]:
    """Return weights with the names and sizes of the trained ones."""
    random = np.random.default_rng(0)
    weights: dict[str, Array] = {"Mul_B": np.ones((3, 1, 1)), "scale_B": np.full((3, 1, 1), 120.0)}
    for layer in range(16):
        before, after = _CHANNELS[layer : layer + 2]
        length = 9 if layer in _WIDE_LAYERS else 3
        sizes = (before, after) if layer in _TRANSPOSED_LAYERS else (after, before)
        filter = random.standard_normal((*sizes, length, length)) * np.sqrt(2 / (before * length**2))
        weights[f"convolution{layer or ''}_W"] = filter
        weights[f"convolution{layer or ''}_B"] = random.standard_normal(after) * 0.02
        if layer < 15:
            weights[f"InstanceNormalization_scale{layer or ''}"] = random.uniform(0.5, 1.5, after)
            weights[f"InstanceNormalization_B{layer or ''}"] = random.standard_normal(after) * 0.1
    return {name: array.astype(np.float32) for name, array in weights.items()}


class StyleTransfer(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """The network with its weights by name; it repaints a photograph whose sides are multiples of 4."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        super().__init__()
        for name, array in weights.items():
            self.register_buffer(name, torch.from_numpy(array))
        self.register_buffer("means", torch.tensor(MEANS).reshape(1, 3, 1, 1))

    def forward(self, photo: Any) -> Any:
        x = functional.pad(photo - self.means, [BORDER] * 4, mode="reflect")
        x = self._normalized(self._convolved(x, 0, padding=4), 0)
        for layer in (1, 2):
            x = self._normalized(self._convolved(x, layer, padding=1, stride=2), layer)
        for layer in RESIDUAL_LAYERS[::2]:
            y = self._normalized(self._convolved(x, layer), layer)
            y = self._normalized(self._convolved(y, layer + 1), layer + 1, relu=False)
            x = x[:, :, 2:-2, 2:-2] + y
        for layer in _TRANSPOSED_LAYERS:
            filter, bias = self._weights(layer)
            x = functional.conv_transpose2d(x, filter, bias, stride=2, padding=1, output_padding=1)
            x = self._normalized(x, layer)
        x = torch.tanh(self._convolved(x, 15, padding=4))
        return x * 150 * self.Mul_B + self.scale_B

    def _weights(self, layer: int) -> list[Any]:
        return [getattr(self, f"convolution{layer or ''}_{part}") for part in "WB"]

    def _convolved(self, x: Any, layer: int, padding: int = 0, stride: int = 1) -> Any:
        filter, bias = self._weights(layer)
        return functional.conv2d(x, filter, bias, stride, padding)

    def _normalized(self, x: Any, layer: int, relu: bool = True) -> Any:
        name = "InstanceNormalization"
        scale, bias = (getattr(self, f"{name}_{part}{layer or ''}") for part in ("scale", "B"))
        x = functional.instance_norm(x, weight=scale, bias=bias, eps=1e-5)
        return torch.relu(x) if relu else x
