"""The table of cases: what is computed, on which tensor, and how fast it should be.

Every case is one straight program on one tensor: a normalization if it has `axes` (with scale and bias), then
its activations in order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np


class Layout(StrEnum):
    """The order of a tensor's elements in memory; its sizes are always those of the NCHW order."""

    PACKED = "packed"
    PADDED = "padded rows"
    NHWC = "NHWC"
    BROADCAST = "broadcast channels"


@dataclass(frozen=True)
class Activation:
    """An activation by DirectML's name without `ACTIVATION_`, and its attributes in the desc's order."""

    name: str
    attributes: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Goal:
    """The least speed that opendml should reach, as a share of the copy's and as multiples of others'."""

    of_copy: float
    over_bound: float | None = None  # PyTorch into an existing output
    over_all: bool = False  # ahead of each peer, and three times it where it is below a quarter of the copy


@dataclass(frozen=True)
class Case:
    name: str
    group: str
    sizes: tuple[int, ...]
    goal: Goal
    dtype: str = "float32"
    activations: tuple[Activation, ...] = ()
    axes: tuple[int, ...] = ()
    input_layout: Layout = Layout.PACKED
    output_layout: Layout = Layout.PACKED

    @property
    def elements(self) -> int:
        return math.prod(self.sizes)

    @property
    def parameter_sizes(self) -> tuple[int, ...]:
        """The sizes of scale and bias: the last axis if only that is normalized, else one per channel."""
        last = len(self.sizes) - 1
        axis = last if self.axes == (last,) else 1
        return tuple(size if i == axis else 1 for i, size in enumerate(self.sizes))

    @property
    def traffic(self) -> int:
        """The bytes that must move: each element of the input read once, each of the output written once."""
        read = self.elements // (self.sizes[1] if self.input_layout is Layout.BROADCAST else 1)
        return (read + self.elements) * np.dtype(self.dtype).itemsize

    def strides(self, layout: Layout) -> tuple[int, ...]:
        """Strides in elements of a tensor of these sizes in `layout`."""
        if layout is Layout.PACKED:
            return tuple(math.prod(self.sizes[i + 1 :]) for i in range(len(self.sizes)))
        _, channels, height, width = self.sizes
        if layout is Layout.PADDED:
            row = width + 32
            return (channels * height * row, height * row, row, 1)
        if layout is Layout.BROADCAST:
            return (height * width, 0, width, 1)
        return (height * width * channels, 1, width * channels, channels)


# Attributes are chosen so that the peers' own kernels apply: PyTorch's hardsigmoid has a slope of 1/6, its
# softshrink equal bias and threshold.
TRANSCENDENTAL = (
    Activation("CELU", (("alpha", 1.0),)),
    Activation("ELU", (("alpha", 1.0),)),
    Activation("SCALED_ELU", (("alpha", 1.6732632423543772), ("gamma", 1.0507009873554805))),
    Activation("SIGMOID"),
    Activation("TANH"),
    Activation("SCALED_TANH", (("alpha", 1.5), ("beta", 0.5))),
    Activation("SOFTPLUS", (("steepness", 1.0),)),
    Activation("PARAMETRIC_SOFTPLUS", (("alpha", 0.5), ("beta", 2.0))),
    Activation("GELU"),
)
CHEAP = (
    Activation("HARD_SIGMOID", (("alpha", 1 / 6), ("beta", 0.5))),
    Activation("IDENTITY"),
    Activation("LINEAR", (("alpha", 0.5), ("beta", 1.0))),
    Activation("RELU"),
    Activation("LEAKY_RELU", (("alpha", 0.01),)),
    Activation("THRESHOLDED_RELU", (("alpha", 1.0),)),
    Activation("SHRINK", (("bias", 0.5), ("threshold", 0.5))),
    Activation("SOFTSIGN"),
)
NAMED = {activation.name: activation for activation in (*TRANSCENDENTAL, *CHEAP)}
CHAIN = tuple(NAMED[name] for name in ("CELU", "LINEAR", "LEAKY_RELU", "SHRINK", "HARD_SIGMOID"))
HEAVY_CHAIN = tuple(NAMED[name] for name in ("CELU", "HARD_SIGMOID", "TANH", "SOFTPLUS", "LEAKY_RELU"))
TYPES = ("float32", "float16")
NORMALIZED_SIZES = ((8, 64, 112, 112), (32, 256, 56, 56), (4096, 1, 1, 1024), (1, 3, 1080, 1920))
NORMALIZED_AXES = ((2, 3), (1, 2, 3), (0, 2, 3), (1,), (3,))
MILLIONS_16 = (16, 64, 128, 128)


def all_cases(scale: float = 1.0) -> list[Case]:
    """Every case; `scale` below 1 shrinks the tensors along their first axis, for a quick look."""
    cases = [*_activations(), *_chains(), *_normalizations(), *_layouts()]
    return [_resized(case, scale) for case in cases]


def _activations() -> Iterator[Case]:
    for dtype in TYPES:
        for activation in (*TRANSCENDENTAL, *CHEAP):
            if dtype == "float16":
                goal = Goal(0.8)
            elif activation in TRANSCENDENTAL:
                goal = Goal(0.85, over_bound=1.1)
            else:
                goal = Goal(0.9)
            name = f"{activation.name.lower()} {dtype}"
            yield Case(name, "activation", MILLIONS_16, goal, dtype, (activation,))


def _chains() -> Iterator[Case]:
    # A chain should take no longer than one activation does, so that its goal is that of one. Three
    # transcendental ones in a row are more arithmetic than the memory leaves time for.
    yield Case("one of the chain", "chain", MILLIONS_16, Goal(0.85), activations=CHAIN[:1])
    yield Case("chain of five", "chain", MILLIONS_16, Goal(0.85), activations=CHAIN)
    yield Case(
        "chain of five, three transcendental", "chain", MILLIONS_16, Goal(0.85), activations=HEAVY_CHAIN
    )


def _normalizations() -> Iterator[Case]:
    for dtype in TYPES:
        for sizes in NORMALIZED_SIZES:
            for axes in NORMALIZED_AXES:
                group = math.prod(sizes[axis] for axis in axes)
                if group == 1:
                    continue
                fits = group * np.dtype(dtype).itemsize <= second_level_cache()
                name = f"mvn1 {'x'.join(map(str, sizes))} axes {','.join(map(str, axes))} {dtype}"
                goal = Goal(0.7 if fits else 0.5, over_all=True)
                yield Case(name, "normalization", sizes, goal, dtype, (NAMED["RELU"],), axes)


def _layouts() -> Iterator[Case]:
    celu = (NAMED["CELU"],)
    # Contiguous rows may take 1.5 times as long as packed tensors with the same bytes.
    rows, transposition = Goal(0.85 / 1.5), Goal(0.6)
    for layout in (Layout.PADDED, Layout.BROADCAST):
        yield Case(f"celu {layout}", "layout", MILLIONS_16, rows, activations=celu, input_layout=layout)
    nhwc = Layout.NHWC
    yield Case("celu NHWC to NHWC", "layout", MILLIONS_16, rows, "float32", celu, (), nhwc, nhwc)
    for dtype in TYPES:
        yield Case(
            f"identity NCHW to NHWC {dtype}",
            "layout",
            MILLIONS_16,
            transposition,
            dtype,
            (NAMED["IDENTITY"],),
            output_layout=nhwc,
        )


def _resized(case: Case, scale: float) -> Case:
    first, *rest = case.sizes
    return replace(case, sizes=(max(1, round(first * scale)), *rest))


def second_level_cache() -> int:
    """Bytes of one core's second-level cache, as Linux tells it; 1 MiB elsewhere."""
    path = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
    try:
        return int(path.read_text().strip().removesuffix("K")) * 1024
    except (OSError, ValueError):
        return 1 << 20
