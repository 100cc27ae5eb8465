"""`python -m tools.picture` draws docs/operators.png: a photograph before and after operators of the demo."""

from __future__ import annotations

import io

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import opendml as dml
from examples.demo import EXAMPLES, Picture, load_photograph, normalization, run, tensor_of

TARGET = EXAMPLES.parent / "docs" / "operators.png"
COLOURS = 160


def main() -> None:
    """Draws the three pictures side by side, in few enough colours for a small file."""
    matplotlib.use("Agg")
    figure, places = plt.subplots(1, 3, figsize=(8.4, 3.7), dpi=100, layout="compressed")
    for place, (title, picture) in zip(places, pictures().items(), strict=True):
        place.imshow(np.clip(picture[0].transpose(1, 2, 0), 0, 1))
        place.set_title(title, fontsize=9, family="monospace")
        place.axis("off")
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", bbox_inches="tight", pad_inches=0.05)
    image = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.FLOYDSTEINBERG)
    image.save(TARGET, optimize=True)


def pictures() -> dict[str, Picture]:
    """The photograph and the two results of the demo, with values from 0 to 1, by their titles."""
    photograph = load_photograph()
    soft = computed(photograph, normalization(photograph, dml.descs.ActivationCelu(alpha=1.0)))
    tensor = tensor_of(soft)
    visible = computed(soft, dml.descs.ActivationHardSigmoid(tensor, tensor, alpha=0.25, beta=0.25))
    hard = dml.descs.ActivationHardSigmoid(alpha=0.25, beta=0.5)
    return {
        "photograph": photograph / np.float32(255),
        "MEAN_VARIANCE_NORMALIZATION1\n+ CELU, then HARD_SIGMOID": visible,
        "MEAN_VARIANCE_NORMALIZATION1\n+ HARD_SIGMOID, one kernel": computed(
            photograph, normalization(photograph, hard)
        ),
    }


def computed(picture: Picture, desc: object) -> Picture:
    """The output of an operator for the picture."""
    return run(desc, picture, "cpu", 1).output


if __name__ == "__main__":
    main()
