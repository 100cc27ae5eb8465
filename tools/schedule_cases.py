"""Typical kernels, by name, to show and compare how they are scheduled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.compiler.simplify import simplify
from opendml.operators.normalization import mean_variance_normalization2
from opendml.operators.softmax import softmax1
from opendml.program import functions
from opendml.program.node import Node, convert, source
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from opendml.program.view import permuted, view, windows
from tools.cuda_contraction_cases import convolution, matrix_product
from tools.cuda_view_cases import program

FLOAT32, FLOAT16 = ScalarType.FLOAT32, ScalarType.FLOAT16
Sizes = Sequence[int]


def kernels() -> Iterator[tuple[str, Kernel]]:
    """All of them."""
    for name, result in (*_elements(), *_groups(), *_scans(), *_products()):
        given = program(result)
        simple = Program(given.inputs, given.outputs, simplify(given.results))
        (kernel,) = fuse(simple).kernels
        yield name, kernel


def _elements() -> Iterator[tuple[str, Node]]:
    images = (8, 64, 56, 56)
    shapes: list[tuple[ScalarType, Sizes]] = [(FLOAT32, (1000,)), (FLOAT32, images), (FLOAT16, images)]
    for type, sizes in shapes:
        x = source(0, type, sizes)
        yield _name("tanh", x), _narrow(functions.tanh(_float32(x)), type)
    for type, sizes in ((FLOAT32, (4096, 4096)), (FLOAT16, (4096, 4096)), (FLOAT32, (65536, 5))):
        x = source(0, type, sizes)
        yield _name("transpose", x), permuted(x, (1, 0))
    x = source(0, FLOAT32, (8, 56, 56, 64))
    yield _name("channels first", x), permuted(x, (0, 3, 1, 2))
    x = source(0, FLOAT32, (32, 64, 56, 56))
    yield _name("columns", x), view(x, (32, 64, 56, 48), (0, 0, 0, 4), np.eye(4, dtype=int).tolist())
    x = source(0, FLOAT32, (8, 2, 2, 16, 56, 56))
    yield _name("depth to space", x), permuted(x, (0, 3, 4, 1, 5, 2))
    x, y = (source(number, FLOAT32, (1024, 1024)) for number in range(2))
    yield _name("sum with a transpose", x), x + permuted(y, (1, 0))
    for channels, size, stride in ((192, 28, 1), (960, 7, 1), (96, 112, 2)):
        filtered = convolution(
            FLOAT32,
            (1, channels, size, size),
            (channels, 3, 3),
            groups=channels,
            stride=stride,
            before=1,
            after=1,
        )
        yield f"convolution of {channels} channels {size}x{size} alone, stride {stride}", filtered


def _groups() -> Iterator[tuple[str, Node]]:
    softmaxes: list[tuple[Sizes, Sizes]] = [
        ((1024, 64), (1,)),
        ((32, 1000), (1,)),
        ((2048, 4096), (1,)),
        ((8, 100_000), (1,)),
        ((15, 16_384), (1,)),
        ((400, 24_000), (1,)),
        ((4, 500_000), (1,)),
        ((1, 16_777_216), (1,)),
        ((64, 4096), (0,)),
        ((200, 10_000), (0,)),
    ]
    for sizes, axes in softmaxes:
        x = source(0, FLOAT32, sizes)
        yield _name("softmax", x, axes), softmax1(x, axes=axes)
    normalized: list[tuple[ScalarType, Sizes, Sizes]] = [
        (FLOAT32, (4096, 128), (1,)),
        (FLOAT32, (1000, 33), (1,)),
        (FLOAT16, (4096, 125), (1,)),
        (FLOAT32, (32, 128, 768), (2,)),
        (FLOAT16, (32, 128, 768), (2,)),
        (FLOAT32, (8, 64, 56, 56), (2, 3)),
        (FLOAT32, (1, 32, 256, 256), (2, 3)),
        (FLOAT32, (1, 32, 512, 512), (2, 3)),
        (FLOAT32, (4, 4_000_000), (1,)),
        (FLOAT32, (4, 16_777_216), (1,)),
        (FLOAT32, (8, 64, 56, 56), (1,)),
        (FLOAT32, (8, 64, 56, 56), (0, 2, 3)),
        (FLOAT32, (64, 256, 7, 7), (0, 2, 3)),
        (FLOAT16, (64, 7, 7, 2048), (0, 1, 2)),
        (FLOAT32, (12_001, 3), (0,)),
    ]
    for type, sizes, axes in normalized:
        x = source(0, type, sizes)
        yield _name("normalization", x, axes), _narrow(_normalized(_float32(x), axes), type)
    x = source(0, FLOAT32, (64, 32, 7, 7))
    scaled = _normalized(x, (1, 2, 3)) * source(1, FLOAT32, (1, 32, 1, 1))
    yield _name("normalization times a scale", x, (1, 2, 3)), scaled
    reduced: list[tuple[str, Callable[[Node, Sizes], Node], Sizes, Sizes]] = [
        ("sum", functions.reduce_sum, (1, 4_000_000), (1,)),
        ("sum", functions.reduce_sum, (127, 70_000), (1,)),
        ("sum", functions.reduce_sum, (128, 70_000), (1,)),
        ("sum", functions.reduce_sum, (4096, 4096), (0,)),
        ("sum", functions.reduce_sum, (40, 300_000), (0,)),
        ("sum", functions.reduce_sum, (100_000, 70), (0,)),
        ("greatest", functions.reduce_maximum, (1000, 512), (1,)),
        ("greatest", functions.reduce_maximum, (1000, 513), (1,)),
        ("greatest", functions.reduce_maximum, (32, 20_000), (1,)),
        ("greatest", functions.reduce_maximum, (20, 300_000), (0,)),
        ("position of the greatest", functions.index_of_maximum, (64, 1000), (1,)),
    ]
    for what, function, sizes, axes in reduced:
        x = source(0, FLOAT32, sizes)
        yield _name(what, x, axes), convert(function(x, axes), FLOAT32)
    for lines, length in ((1000, 500), (64, 2000)):
        x = source(0, FLOAT32, (lines, length))
        padded = view(x, (lines, length + 2), (0, -1), [[1, 0], [0, 1]], 0.0)
        yield _name("greatest of padded rows", x, (1,)), functions.reduce_maximum(padded, (1,))
    x = source(0, FLOAT32, (8, 32, 112, 112))
    seen = windows(x, (16, 16), (7, 7), (7, 7), (1, 1), (0, 0))
    yield _name("greatest of windows", x), functions.reduce_maximum(seen, (4, 5))


def _scans() -> Iterator[tuple[str, Node]]:
    lines = (((4096, 512), 1), ((1000, 5000), 1), ((256, 65_536), 1), ((64, 65_536), 1), ((4, 1_000_000), 1))
    abreast = (((4096, 512), 0), ((500, 40_000), 0), ((4096, 4096), 0), ((64, 131_072), 0))
    for sizes, axis in (*lines, *abreast):
        x = source(0, FLOAT32, sizes)
        total = functions.running_sum(x, axis, exclusive=False, reverse=False)
        yield _name("running sum", x, (axis,)), convert(total, FLOAT32)


def _products() -> Iterator[tuple[str, Node]]:
    sizes: list[tuple[ScalarType, tuple[int, int, int]]] = [
        (FLOAT32, (512, 512, 512)),
        (FLOAT32, (2048, 2048, 2048)),
        (FLOAT32, (128, 768, 3072)),
        (FLOAT32, (1, 4096, 4096)),
        (FLOAT32, (50_176, 64, 147)),
        (FLOAT32, (16, 16, 16)),
        (FLOAT16, (4096, 4096, 4096)),
        (FLOAT16, (8, 4096, 4096)),
    ]
    for type, (m, n, k) in sizes:
        result = matrix_product(type, (m, n, k), b_turned=True)
        yield f"product {type.name} [{m}, {n}, {k}]", convert(result, type)
    for m, n, k in ((1, 4096, 4096), (1, 1000, 16_384), (1024, 1024, 1024), (128, 768, 3072)):
        yield f"product FLOAT32 [{m}, {n}, {k}] along rows", matrix_product(FLOAT32, (m, n, k))
    images, filters = (1, 64, 56, 56), (64, 3, 3)
    yield (
        "convolution FLOAT32 [1, 64, 56, 56] by 64x3x3",
        convolution(FLOAT32, images, filters, before=1, after=1),
    )


def _name(what: str, x: Node, axes: Sizes | None = None) -> str:
    over = "" if axes is None else f" over {list(axes)}"
    return f"{what} {x.type.name} {list(x.sizes)}{over}"


def _normalized(x: Node, axes: Sizes) -> Node:
    return mean_variance_normalization2(
        x, None, None, axes=axes, use_mean=True, use_variance=True, epsilon=1e-5, fused_activation=None
    )


def _float32(x: Node) -> Node:
    return x if x.type is FLOAT32 else convert(x, FLOAT32)


def _narrow(x: Node, type: ScalarType) -> Node:
    return x if x.type is type else convert(x, type)
