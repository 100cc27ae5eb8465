"""`make demo`: three JSON models through `opendml run`, then a photograph through the operators, to PNGs.

The photograph is matplotlib's sample picture of Grace Hopper, 512 x 600 pixels.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.cbook import get_sample_data
from numpy.typing import NDArray
from PIL import Image

import opendml as dml

EXAMPLES = Path(__file__).parent
BUILD = EXAMPLES.parent / "build" / "demo"
MODELS = ("celu.json", "hard_sigmoid.json", "mean_variance_normalization1.json")
RUNS = 50

Picture = NDArray[np.float32]  # (1, 3, height, width)


@dataclass(frozen=True)
class Run:
    """The result of an operator, its seconds to compile, and its median seconds to run."""

    output: Picture
    compile_seconds: float
    seconds: float


def main() -> None:
    """Run everything and print it."""
    for model in MODELS:
        path = (EXAMPLES / model).relative_to(EXAMPLES.parent)
        print(f"$ opendml run {path}", flush=True)
        command = [sys.executable, "-m", "opendml", "run", str(path)]
        subprocess.run(command, check=True, cwd=EXAMPLES.parent)
        print()
    BUILD.mkdir(parents=True, exist_ok=True)
    photograph = load_photograph()
    print(f"photograph: {photograph.shape[3]} x {photograph.shape[2]} pixels, as float32 {photograph.shape}")

    # Each channel with mean 0 and deviation 1, dark parts softly limited at -1; then -1 to 3 becomes 0 to 1.
    soft = step(photograph, normalization(photograph, dml.descs.ActivationCelu(alpha=1.0)))
    tensor = tensor_of(soft)
    visible = step(soft, dml.descs.ActivationHardSigmoid(tensor, tensor, alpha=0.25, beta=0.25))
    save(visible, "celu.png")

    # The same with both ends cut off at twice the deviation, in one operator.
    hard = dml.descs.ActivationHardSigmoid(alpha=0.25, beta=0.5)
    save(step(photograph, normalization(photograph, hard)), "hard_sigmoid.png")


def load_photograph() -> Picture:
    """Load the photograph with values from 0 to 255."""
    pixels = np.asarray(Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False)), np.float32)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[np.newaxis])


def tensor_of(picture: Picture) -> dml.TensorDesc:
    return dml.TensorDesc(dml.FLOAT32, picture.shape)


def normalization(picture: Picture, activation: Any) -> dml.descs.MeanVarianceNormalization1:
    """Return the desc that normalizes each channel by its mean and variance, and applies `activation`."""
    tensor = tensor_of(picture)
    return dml.descs.MeanVarianceNormalization1(
        tensor,
        None,
        None,
        tensor,
        axes=[2, 3],
        normalize_variance=True,
        epsilon=1e-5,
        fused_activation=activation,
    )


def step(picture: Picture, desc: Any) -> Picture:
    """Run one operator on the picture, print its speed and accuracy, and return its result."""
    done = run(desc, picture, "cpu", RUNS)
    exact = run(desc, picture, "reference", 1)
    difference = float(np.max(np.abs(done.output - exact.output)))
    fused = getattr(desc, "fused_activation", None)
    megabytes = 2 * picture.nbytes / 1e6
    print(
        f"{desc.operator}{f' + {fused.operator}' if fused else ''}: "
        f"{megabytes:.1f} MB in and out, compiled in {done.compile_seconds * 1e3:.1f} ms, "
        f"run in {done.seconds * 1e3:.3f} ms = {megabytes / 1e3 / done.seconds:.1f} GB/s; "
        f"at most {difference:.1g} from the float64 reference"
    )
    return done.output


def run(desc: Any, picture: Picture, device_name: str, runs: int) -> Run:
    """Compile `desc`, bind the picture and a new output, and dispatch `runs` times."""
    device = dml.Device(device_name)
    operator = device.create_operator(desc)
    begun = time.perf_counter()
    compiled = device.compile_operator(operator)
    compile_seconds = time.perf_counter() - begun
    output = np.zeros_like(picture)
    inputs = [picture if tensor else None for tensor in compiled.input_tensors]
    bound = compiled.bind(inputs, [output])
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        bound.dispatch()
        times.append(time.perf_counter() - begun)
    return Run(output, compile_seconds, statistics.median(times))


def save(picture: Picture, name: str) -> None:
    """Write a picture with values from 0 to 1 as a PNG."""
    pixels = (picture[0].transpose(1, 2, 0) * 255 + 0.5).astype(np.uint8)
    path = BUILD / name
    Image.fromarray(pixels).save(path)
    print(f"wrote {path.relative_to(EXAMPLES.parent)}\n")


if __name__ == "__main__":
    main()
