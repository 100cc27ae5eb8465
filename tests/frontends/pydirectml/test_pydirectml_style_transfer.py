"""The network that repaints photographs, written with PyDirectML, gives the picture of the example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opendml import directml, pydirectml

pytest.importorskip("PIL", reason="Pillow is not installed")

from examples import style_transfer

SIZE = 44


class Network:
    """The layers of the example, as a program of PyDirectML writes them."""

    def __init__(self, module: Any, weights: style_transfer.Weights) -> None:
        self.dml, self.weights = module, weights
        self.device = module.Device(use_gpu=False)
        self.builder = module.GraphBuilder(self.device)
        self.bindings: list[Any] = []
        self.relu = module.FusedActivation(module.OperatorType.ACTIVATION_RELU)
        self.none = module.FusedActivation(module.OperatorType.INVALID)

    def tensor(self, data: Any, sizes: list[int], *more: Any, owned: bool = True) -> Any:
        flags = [self.dml.TensorFlags.OWNED_BY_DML] if owned else []
        desc = self.dml.TensorDesc(self.dml.TensorDataType.FLOAT32, *flags, sizes, *more)
        tensor = self.dml.input_tensor(self.builder, len(self.bindings), desc)
        self.bindings.append(self.dml.Binding(tensor, data))
        return tensor

    def channels(self, name: str) -> Any:
        data = self.weights[name]
        return self.tensor(data, [1, data.size, 1, 1])

    def convolved(self, x: Any, layer: int, **options: Any) -> Any:
        name = style_transfer.numbered("convolution", layer)
        filter = self.weights[f"{name}_W"]
        return self.dml.convolution(
            x, self.tensor(filter, list(filter.shape)), self.channels(f"{name}_B"), **options
        )

    def normalized(self, x: Any, layer: int, relu: bool = True) -> Any:
        scale = self.channels(style_transfer.numbered("InstanceNormalization_scale", layer))
        bias = self.channels(style_transfer.numbered("InstanceNormalization_B", layer))
        mean = {"normalize_mean": True} if self.dml is directml else {}
        return self.dml.mean_variance_normalization(
            x,
            scale,
            bias,
            axes=[0, 2, 3],
            normalize_variance=True,
            epsilon=1e-5,
            fused_activation=self.relu if relu else self.none,
            **mean,
        )

    def cropped(self, x: Any, border: int) -> Any:
        batch, channels, height, width = x.get_output_desc().sizes
        sizes = [batch, channels, height - 2 * border, width - 2 * border]
        return self.dml.slice(x, [0, 0, border, border], sizes, [1, 1, 1, 1])

    def enlarged(self, x: Any, layer: int) -> Any:
        _, channels, height, width = x.get_output_desc().sizes
        y = self.convolved(
            x,
            layer,
            mode=self.dml.ConvolutionMode.CROSS_CORRELATION,
            direction=self.dml.ConvolutionDirection.BACKWARD,
            strides=[2, 2],
            output_sizes=[1, channels // 2, 2 * height + 2, 2 * width + 2],
        )
        return self.cropped(y, 1)

    def repainted(self, photo: style_transfer.Picture) -> Any:
        module, border = self.dml, [0, 0, style_transfer.BORDER, style_transfer.BORDER]
        x = self.tensor(photo, list(photo.shape), owned=False)
        x = module.value_scale_2d(x, 1.0, [-mean for mean in style_transfer.MEANS])
        x = module.padding(x, module.PaddingMode.REFLECTION, 0, border, border)
        x = self.normalized(self.convolved(x, 0, start_padding=[4, 4], end_padding=[4, 4]), 0)
        for layer in (1, 2):
            options: Any = {"strides": [2, 2], "start_padding": [1, 1], "end_padding": [1, 1]}
            x = self.normalized(self.convolved(x, layer, **options), layer)
        for block in range(style_transfer.RESIDUAL_BLOCKS):
            first, second = 3 + 2 * block, 4 + 2 * block
            y = self.normalized(self.convolved(x, first), first)
            y = self.normalized(self.convolved(y, second), second, relu=False)
            x = module.add(y, self.cropped(x, 2))
        x = self.normalized(self.enlarged(x, 13), 13)
        x = self.normalized(self.enlarged(x, 14), 14)
        tanh = module.FusedActivation(module.OperatorType.ACTIVATION_TANH)
        x = self.convolved(x, 15, start_padding=[4, 4], end_padding=[4, 4], fused_activation=tanh)
        x = module.activation_linear(x, 150, 0)
        x = module.multiply(x, self.repeated("Mul_B", photo))
        x = module.add(x, self.repeated("scale_B", photo))
        model = self.builder.build(module.ExecutionFlags.NONE, [x])
        return np.array(self.device.compute(model, self.bindings, [x])[0])

    def repeated(self, name: str, photo: style_transfer.Picture) -> Any:
        """One number for each channel, by strides."""
        return self.tensor(self.weights[name], list(photo.shape), [3, 1, 0, 0], owned=False)


@pytest.mark.parametrize("module", [pydirectml, directml], ids=["pydirectml", "directml"])
def test_the_network_of_pydirectml_gives_the_picture_of_the_example(module: Any, shared: Path) -> None:
    folder = shared / "models" / "style_transfer"
    weights = style_transfer.load_weights(folder, "mosaic")
    photo = style_transfer.load_photo(folder / "dog.jpg", SIZE)
    painting = Network(module, weights).repainted(photo)
    exact = style_transfer.build(weights, SIZE, SIZE)(photo=photo)["painting"]
    assert painting.std() > 20
    np.testing.assert_allclose(painting, exact, atol=5e-3)
