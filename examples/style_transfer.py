"""Repaints a photograph in the style of a painting: `python examples/style_transfer.py --help`.

The network is that of Johnson et al., "Perceptual Losses for Real-Time Style Transfer and Super-Resolution"
(2016), with instance normalization. Its trained weights are Microsoft's, published with the samples of
DirectML (mosaic.npz and la_muse.npz); they are not part of this project.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

import opendml as dml

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT.parent / "shared" / "models" / "style_transfer"
STYLES = ("mosaic", "la_muse")
MEANS = (103.939, 116.779, 123.68)  # Of the channels of the pictures that the network was trained on.
BORDER = 40  # Mirrored on each side, since ten 3x3 convolutions on a quarter of the size have no padding.
RESIDUAL_BLOCKS = 5

Picture = NDArray[np.float32]  # (1, 3, height, width); red, green, blue from 0 to 255
Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Network:
    """The layers, as calls on tensors of `graph`, counted from 0 as the names of the weights are."""

    graph: dml.Graph
    weights: Weights

    def __call__(self, picture: dml.GraphTensor) -> dml.GraphTensor:
        """Return the repainted picture, about 0 to 255. Height and width must be multiples of 4."""
        x = dml.value_scale_2d(picture, scale=1.0, bias=[-mean for mean in MEANS])
        border = [0, 0, BORDER, BORDER]
        x = dml.padding(x, padding_mode="REFLECTION", start_padding=border, end_padding=border)
        x = self.normalized(self.convolved(x, 0, padding=4), 0)
        x = self.normalized(self.convolved(x, 1, padding=1, stride=2), 1)
        x = self.normalized(self.convolved(x, 2, padding=1, stride=2), 2)
        for block in range(RESIDUAL_BLOCKS):
            first, second = 3 + 2 * block, 4 + 2 * block
            y = self.normalized(self.convolved(x, first), first)
            y = self.normalized(self.convolved(y, second), second, relu=False)
            x = dml.element_wise_add(cropped(x, 2), y)
        x = self.normalized(self.enlarged(x, 13), 13)
        x = self.normalized(self.enlarged(x, 14), 14)
        x = self.convolved(x, 15, padding=4, activation=dml.descs.ActivationTanh())
        x = dml.activation_linear(x, alpha=150.0, beta=0.0)
        x = dml.element_wise_multiply(x, self.per_channel("Mul_B"))
        return dml.element_wise_add(x, self.per_channel("scale_B"))

    def convolved(
        self,
        x: dml.GraphTensor,
        layer: int,
        padding: int = 0,
        stride: int = 1,
        activation: dml.descs.ActivationTanh | None = None,
    ) -> dml.GraphTensor:
        """Convolve with bias."""
        name = numbered("convolution", layer)
        return dml.convolution(
            x,
            self.graph.constant(self.weights[f"{name}_W"]),
            self.per_channel(f"{name}_B"),
            strides=[stride, stride],
            start_padding=[padding, padding],
            end_padding=[padding, padding],
            fused_activation=activation,
        )

    def enlarged(self, x: dml.GraphTensor, layer: int) -> dml.GraphTensor:
        """Enlarge to twice the height and width by a transposed convolution."""
        name = f"convolution{layer}"
        x = dml.convolution(
            x,
            self.graph.constant(self.weights[f"{name}_W"]),
            self.per_channel(f"{name}_B"),
            direction="BACKWARD",
            strides=[2, 2],
            output_padding=[1, 1],
        )
        return cropped(x, 1)

    def normalized(self, x: dml.GraphTensor, layer: int, relu: bool = True) -> dml.GraphTensor:
        """Normalize each channel by its own mean and variance."""
        return dml.mean_variance_normalization1(
            x,
            self.per_channel(numbered("InstanceNormalization_scale", layer)),
            self.per_channel(numbered("InstanceNormalization_B", layer)),
            axes=[0, 2, 3],
            epsilon=1e-5,
            fused_activation=dml.descs.ActivationRelu() if relu else None,
        )

    def per_channel(self, name: str) -> dml.GraphTensor:
        """Return weights with one number for each channel."""
        return self.graph.constant(self.weights[name].reshape(1, -1, 1, 1))


def numbered(name: str, layer: int) -> str:
    """Return the name of a layer's weights: the first has no number."""
    return f"{name}{layer or ''}"


def cropped(x: dml.GraphTensor, border: int) -> dml.GraphTensor:
    """Remove `border` elements on each side of a picture."""
    batch, channels, height, width = x.sizes
    sizes = [batch, channels, height - 2 * border, width - 2 * border]
    return dml.slice(x, offsets=[0, 0, border, border], sizes=sizes)


def build(weights: Weights, height: int, width: int, device: str | dml.Device = "cpu") -> dml.Model:
    """Compile the network: "photo" becomes "painting"."""
    graph = dml.Graph()
    photo = graph.input("photo", dml.FLOAT32, [1, 3, height, width])
    return graph.compile({"painting": Network(graph, weights)(photo)}, device=device)


def load_weights(folder: Path, style: str) -> Weights:
    """Load the arrays of a style by name.

    Raises:
        SystemExit: they are not there.
    """
    path = folder / f"{style}.npz"
    if not path.is_file():
        raise SystemExit(f"no weights at {path}: pass --weights FOLDER, a folder with {path.name}")
    with np.load(path) as arrays:
        return dict(arrays)


def load_photo(path: Path, size: int) -> Picture:
    """Load the middle of a photograph, as a square.

    Raises:
        SystemExit: it cannot be read.
    """
    try:
        with Image.open(path) as image:
            square = ImageOps.fit(image.convert("RGB"), (size, size))
    except OSError as error:
        raise SystemExit(f"no photograph at {path}: pass --photo PATH, a picture ({error})") from error
    return np.ascontiguousarray(np.asarray(square, np.float32).transpose(2, 0, 1)[np.newaxis])


def save(picture: Picture, path: Path) -> None:
    """Write a picture; the kind of file follows from the suffix."""
    pixels = (picture[0].transpose(1, 2, 0).clip(0, 255) + 0.5).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def multiple_of_four(text: str) -> int:
    """Parse a size, a multiple of four."""
    if (size := int(text)) <= 0 or size % 4:
        raise argparse.ArgumentTypeError(f"{size}; must be a positive multiple of 4")
    return size


def main() -> None:
    """Repaint the photograph that the arguments name."""
    parser = argparse.ArgumentParser(description="Repaints a photograph in the style of a painting.")
    parser.add_argument("--style", choices=STYLES, default=STYLES[0])
    parser.add_argument("--device", default="cpu", help="cpu, cuda or reference")
    parser.add_argument("--weights", type=Path, default=WEIGHTS, metavar="FOLDER", help="of the .npz files")
    parser.add_argument("--photo", type=Path, metavar="PATH", help="any picture; dog.jpg beside the weights")
    parser.add_argument("--size", type=multiple_of_four, default=720, help="pixels of each side")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "style_transfer.png", metavar="PNG")
    arguments = parser.parse_args()
    weights = load_weights(arguments.weights, arguments.style)
    photo = load_photo(arguments.photo or arguments.weights / "dog.jpg", arguments.size)
    begun = time.perf_counter()
    model = build(weights, arguments.size, arguments.size, arguments.device)
    compiled = time.perf_counter()
    painting = model(photo=photo)["painting"]
    done = time.perf_counter()
    save(painting, arguments.output)
    print(f"compiled in {compiled - begun:.2f} s, repainted in {done - compiled:.2f} s: {arguments.output}")


if __name__ == "__main__":
    main()
