"""The network that repaints photographs, as a Graph of `directml`, gives the picture of the example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opendml import directml

pytest.importorskip("PIL", reason="Pillow is not installed")

from examples import style_transfer

SIZE = 44
BORDER = [0, 0, style_transfer.BORDER, style_transfer.BORDER]


class Network:
    """The layers of the example."""

    def __init__(self, weights: style_transfer.Weights) -> None:
        self.weights = weights
        self.graph = directml.Graph(directml.Device(use_gpu=False))

    def channels(self, name: str) -> Any:
        return self.graph.constant(self.weights[name], sizes=[1, self.weights[name].size, 1, 1])

    def convolved(self, x: Any, layer: int, **options: Any) -> Any:
        name = style_transfer.numbered("convolution", layer)
        filter = self.graph.constant(self.weights[f"{name}_W"])
        return directml.convolution(x, filter, self.channels(f"{name}_B"), **options)

    def normalized(self, x: Any, layer: int, relu: bool = True) -> Any:
        scale = self.channels(style_transfer.numbered("InstanceNormalization_scale", layer))
        bias = self.channels(style_transfer.numbered("InstanceNormalization_B", layer))
        activation = directml.FusedActivation.relu() if relu else None
        return directml.mean_variance_normalization(
            x, scale, bias, axes=[0, 2, 3], fused_activation=activation
        )

    def cropped(self, x: Any, border: int) -> Any:
        batch, channels, height, width = x.shape
        return directml.slice(
            x,
            input_window_offsets=[0, 0, border, border],
            input_window_sizes=[batch, channels, height - 2 * border, width - 2 * border],
            input_window_strides=[1, 1, 1, 1],
        )

    def enlarged(self, x: Any, layer: int) -> Any:
        _, channels, height, width = x.shape
        y = self.convolved(
            x,
            layer,
            direction=directml.ConvolutionDirection.BACKWARD,
            strides=[2, 2],
            output_sizes=[1, channels // 2, 2 * height + 2, 2 * width + 2],
        )
        return self.cropped(y, 1)

    def compiled(self, shape: tuple[int, ...]) -> Any:
        x = self.graph.input(shape, name="photo")
        x = directml.value_scale_2d(x, scale=1.0, bias=[-mean for mean in style_transfer.MEANS])
        x = directml.padding(
            x, padding_mode=directml.PaddingMode.REFLECTION, start_padding=BORDER, end_padding=BORDER
        )
        x = self.normalized(self.convolved(x, 0, start_padding=[4, 4], end_padding=[4, 4]), 0)
        for layer in (1, 2):
            options: Any = {"strides": [2, 2], "start_padding": [1, 1], "end_padding": [1, 1]}
            x = self.normalized(self.convolved(x, layer, **options), layer)
        for block in range(style_transfer.RESIDUAL_BLOCKS):
            first, second = 3 + 2 * block, 4 + 2 * block
            y = self.normalized(self.convolved(x, first), first)
            x = self.normalized(self.convolved(y, second), second, relu=False) + self.cropped(x, 2)
        x = self.normalized(self.enlarged(x, 13), 13)
        x = self.normalized(self.enlarged(x, 14), 14)
        tanh = directml.FusedActivation.tanh()
        x = self.convolved(x, 15, start_padding=[4, 4], end_padding=[4, 4], fused_activation=tanh) * 150.0
        x = x * directml.broadcast(self.channels("Mul_B"), x.shape)
        return self.graph.compile([x + directml.broadcast(self.channels("scale_B"), x.shape)])


def test_the_network_gives_the_picture_of_the_example(shared: Path) -> None:
    folder = shared / "models" / "style_transfer"
    weights = style_transfer.load_weights(folder, "mosaic")
    photo = style_transfer.load_photo(folder / "dog.jpg", SIZE)
    (painting,) = Network(weights).compiled(photo.shape)({"photo": photo})
    exact = style_transfer.build(weights, SIZE, SIZE)(photo=photo)["painting"]
    assert painting.std() > 20
    np.testing.assert_allclose(painting, exact, atol=5e-3)
