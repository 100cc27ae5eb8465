"""Trains a convolutional network to read handwritten digits: `python examples/digits.py --help`.

The digits are scikit-learn's, 1,797 pictures of 8 x 8 pixels. All that is learned is computed by DirectML's
operators: one graph for the network, its loss and its gradients, and then a step of Adam in place. So are
the first weights and the order of the pictures, which are random.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits

import opendml as dml

ROOT = Path(__file__).parents[1]
CLASSES, SIDE = 10, 8
CHANNELS = (16, 32)  # of the two convolutions
POOLED = SIDE // 2
HIDDEN = CHANNELS[1] * POOLED * POOLED
SHAPES = {
    "filter1": (CHANNELS[0], 1, 3, 3),
    "bias1": (1, CHANNELS[0], 1, 1),
    "filter2": (CHANNELS[1], CHANNELS[0], 3, 3),
    "bias2": (1, CHANNELS[1], 1, 1),
    "weights": (1, 1, HIDDEN, CLASSES),
    "added": (1, 1, 1, CLASSES),
}
ENDS = [0, *np.cumsum([math.prod(shape) for shape in SHAPES.values()]).tolist()]
ONE, TWO = [1, 1], [2, 2]  # for height and width: paddings, windows and strides
TESTED = 360  # pictures that are kept from the training, a fifth
BATCH = 64

Floats = NDArray[np.float32]


def parameters_in(flat: dml.GraphTensor) -> dict[str, dml.GraphTensor]:
    """Return the parameters by name. They follow each other in a tensor (1, 1, 1, all)."""
    return {
        name: dml.slice(flat, offsets=[0, 0, 0, start], sizes=[1, 1, 1, end - start]).reinterpret(shape)
        for (name, shape), (start, end) in zip(SHAPES.items(), pairwise(ENDS), strict=True)
    }


@dataclass(frozen=True)
class Layers:
    """The tensors between the layers of the network."""

    first: dml.GraphTensor
    second: dml.GraphTensor
    pooled: dml.GraphTensor
    scores: dml.GraphTensor


def convolved(
    x: dml.GraphTensor,
    filter: dml.GraphTensor,
    bias: dml.GraphTensor | None = None,
    activation: dml.descs.ActivationRelu | None = None,
) -> dml.GraphTensor:
    """Convolve with one element of padding, so that a filter of 3 x 3 elements keeps the size."""
    return dml.convolution(x, filter, bias, start_padding=ONE, end_padding=ONE, fused_activation=activation)


def forward(pictures: dml.GraphTensor, own: dict[str, dml.GraphTensor]) -> Layers:
    """Compute two convolutions, the greatest of each 2 x 2 elements, and a score for each digit."""
    relu = dml.descs.ActivationRelu()
    first = convolved(pictures, own["filter1"], own["bias1"], relu)
    second = convolved(first, own["filter2"], own["bias2"], relu)
    pooled = dml.max_pooling2(second, window_size=TWO, strides=TWO)
    count = pictures.sizes[0]
    added = own["added"].reinterpret([1, 1, count, CLASSES], strides=[0, 0, 0, 1])
    scores = dml.gemm(pooled.reinterpret([1, 1, count, HIDDEN]), own["weights"], added)
    return Layers(first, second, pooled, scores)


def backward(
    pictures: dml.GraphTensor, own: dict[str, dml.GraphTensor], layers: Layers, slope: dml.GraphTensor
) -> dml.GraphTensor:
    """Return the gradient of all parameters, in their order, from the gradient of the scores."""
    columns = layers.pooled.reinterpret([1, 1, pictures.sizes[0], HIDDEN])
    of_pooled = dml.gemm(slope, own["weights"], trans_b="TRANSPOSE").reinterpret(layers.pooled.sizes)
    of_second = dml.max_pooling_grad(layers.second, of_pooled, window_size=TWO, strides=TWO)
    of_second = dml.activation_relu_grad(layers.second, of_second)
    of_first = dml.convolution(
        of_second, own["filter2"], direction="BACKWARD", start_padding=ONE, end_padding=ONE
    )
    of_first = dml.activation_relu_grad(layers.first, of_first)
    gradients = {
        "filter1": of_filter(pictures, of_first),
        "bias1": dml.reduce(of_first, function="SUM", axes=[0, 2, 3]),
        "filter2": of_filter(layers.first, of_second),
        "bias2": dml.reduce(of_second, function="SUM", axes=[0, 2, 3]),
        "weights": dml.gemm(columns, slope, trans_a="TRANSPOSE"),
        "added": dml.reduce(slope, function="SUM", axes=[2]),
    }
    flat = [gradients[name].reinterpret([1, 1, 1, math.prod(shape)]) for name, shape in SHAPES.items()]
    return dml.join(flat, axis=3)


def of_filter(x: dml.GraphTensor, slope: dml.GraphTensor) -> dml.GraphTensor:
    """Return the gradient of a convolution's filter.

    It is x convolved with the gradient of the result. The pictures of a batch are the channels of this
    convolution, and the channels are its pictures.
    """
    return exchanged(convolved(exchanged(x), exchanged(slope)))


def exchanged(x: dml.GraphTensor) -> dml.GraphTensor:
    """Exchange the first two dimensions of a tensor."""
    a, b, height, width = x.sizes
    image = height * width
    return x.reinterpret([b, a, height, width], strides=[image, b * image, width, 1])


def training(device: str | dml.Device) -> dml.Model:
    """Compile the gradients: "pictures", "digits" and "parameters" become "loss" and "gradient".

    "digits" has a row for each digit, with a 1 at its number.
    """
    graph = dml.Graph()
    pictures = graph.input("pictures", dml.FLOAT32, [BATCH, 1, SIDE, SIDE])
    digits = graph.input("digits", dml.FLOAT32, [1, 1, BATCH, CLASSES])
    own = parameters_in(graph.input("parameters", dml.FLOAT32, [1, 1, 1, ENDS[-1]]))
    layers = forward(pictures, own)
    likely = dml.activation_log_softmax1(layers.scores, axes=[3])
    loss = dml.reduce(dml.element_wise_multiply(likely, digits), function="SUM", axes=[2, 3])
    slope = dml.element_wise_subtract(dml.activation_softmax1(layers.scores, axes=[3]), digits)
    slope = dml.element_wise_identity(slope, scale_bias=dml.descs.ScaleBias(1 / BATCH, 0.0))
    gradient = backward(pictures, own, layers, slope)
    loss = dml.element_wise_identity(loss, scale_bias=dml.descs.ScaleBias(-1 / BATCH, 0.0))
    return graph.compile({"loss": loss, "gradient": gradient}, device=device)


def reading(count: int, device: str) -> dml.Model:
    """Compile the network: `count` "pictures", and the "parameters", become "digits"."""
    graph = dml.Graph()
    pictures = graph.input("pictures", dml.FLOAT32, [count, 1, SIDE, SIDE])
    own = parameters_in(graph.input("parameters", dml.FLOAT32, [1, 1, 1, ENDS[-1]]))
    return graph.compile({"digits": dml.argmax(forward(pictures, own).scores, axes=[3])}, device=device)


class Random:
    """Numbers from a seed, by DirectML's generator."""

    def __init__(self, seed: int, device: str) -> None:
        self.state = np.array([0, 0, 0, 0, seed, 0], np.uint32)
        self.device = device

    def numbers(self, count: int) -> NDArray[np.uint32]:
        """Return `count` words of 32 bits."""
        drawn = dml.random_generator(self.state, sizes=[count], output_state=True, device=self.device)
        self.state = drawn.output_state
        return drawn.output

    def parameters(self) -> Floats:
        """Return initial parameters: weights within sqrt(6 / inputs) (He et al., 2015), biases 0."""
        parts = []
        for name, shape in SHAPES.items():
            inputs = HIDDEN if name == "weights" else math.prod(shape[1:])
            bound = 0.0 if name in ("bias1", "bias2", "added") else math.sqrt(6 / inputs)
            parts.append((self.numbers(math.prod(shape)) / 2.0**31 - 1) * bound)
        return np.concatenate(parts).astype(np.float32).reshape(1, 1, 1, -1)

    def order(self, count: int) -> NDArray[np.intp]:
        """Return the numbers below `count` in random order."""
        return np.argsort(self.numbers(count), kind="stable")


@dataclass(frozen=True)
class Digits:
    """Pictures (N, 1, 8, 8) with values from 0 to 1, and what they show."""

    pictures: Floats
    numbers: NDArray[np.intp]


def load(random: Random) -> tuple[Digits, Digits]:
    """Load the digits to learn from, and those to test with."""
    data = load_digits()
    order = random.order(len(data.target))
    pictures = (data.images[order] / 16).astype(np.float32)[:, np.newaxis]
    numbers = data.target[order]
    return Digits(pictures[TESTED:], numbers[TESTED:]), Digits(pictures[:TESTED], numbers[:TESTED])


def train(learned: Digits, random: Random, rounds: int, device: str) -> Floats:
    """Return the parameters after `rounds` passes over all pictures."""
    model = training(device)
    parameters = random.parameters()
    moments = np.zeros_like(parameters), np.zeros_like(parameters)
    rows = np.eye(CLASSES, dtype=np.float32)[learned.numbers]
    batches = len(learned.numbers) // BATCH
    step = np.zeros((1, 1, 1, 1), np.uint32)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns) as progress:
        task = progress.add_task("", total=rounds * batches)
        for number in range(rounds):
            order = random.order(len(learned.numbers))
            total = 0.0
            for batch in range(batches):
                chosen = order[batch * BATCH : (batch + 1) * BATCH]
                found = model(
                    pictures=learned.pictures[chosen],
                    digits=rows[chosen].reshape(1, 1, BATCH, CLASSES),
                    parameters=parameters,
                )
                step += 1
                dml.adam_optimizer(
                    parameters,
                    *moments,
                    found["gradient"],
                    step,
                    learning_rate=0.002 * (1 - number / rounds),
                    beta1=0.9,
                    beta2=0.999,
                    epsilon=1e-8,
                    out=(parameters, *moments),
                    device=device,
                )
                total += found["loss"].item()
                progress.advance(task)
            progress.update(task, description=f"loss {total / batches:.4f}")
    return parameters


def draw(tested: Digits, read: NDArray[np.integer], path: Path) -> None:
    """Write a picture of all test digits, 30 in a row, each above the number that the network reads.

    Mistakes are red and come first.
    """
    across, edge, line = 30, 4 * SIDE, 14
    order = np.argsort(read == tested.numbers, kind="stable")
    sheet = Image.new("L", (across * (edge + 4), -(-len(order) // across) * (edge + line + 4)), 255).convert(
        "RGB"
    )
    pen = ImageDraw.Draw(sheet)
    for place, number in enumerate(order):
        left, top = place % across * (edge + 4) + 2, place // across * (edge + line + 4) + 2
        pixels = (255 - 255 * tested.pictures[number, 0]).astype(np.uint8)
        sheet.paste(Image.fromarray(pixels).resize((edge, edge), Image.Resampling.NEAREST), (left, top))
        color = "black" if read[number] == tested.numbers[number] else "red"
        pen.text((left + edge // 2 - 3, top + edge), str(read[number]), fill=color)
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path)


def main() -> None:
    """Train and test the network, and write the picture."""
    parser = argparse.ArgumentParser(description="Trains a network to read handwritten digits.")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or reference")
    parser.add_argument("--rounds", type=int, default=20, help="times through all pictures")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "digits.png", metavar="PNG")
    arguments = parser.parse_args()
    begun = time.perf_counter()
    random = Random(arguments.seed, arguments.device)
    learned, tested = load(random)
    parameters = train(learned, random, arguments.rounds, arguments.device)
    model = reading(TESTED, arguments.device)
    read = model(pictures=tested.pictures, parameters=parameters)["digits"].reshape(-1)
    right = int((read == tested.numbers).sum())
    seconds = time.perf_counter() - begun
    draw(tested, read, arguments.output)
    share = f"{right} of {TESTED} test digits read ({right / TESTED:.1%})"
    print(f"{share}, after {seconds:.1f} s: {arguments.output}")


if __name__ == "__main__":
    main()
