"""Typical kernels of public operators, by name, to show and compare how they are scheduled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import opendml as dml
from opendml.compiler.kernel import Kernel
from opendml.program.program import Program
from opendml.spec.enums import AxisDirection, ReduceFunction
from tools.contraction_cases import attention, convolution, gemm
from tools.machines import kernels_of
from tools.model_cases import Network
from tools.operator_case import Form, Strided

FLOAT32, FLOAT16 = "FLOAT32", "FLOAT16"
Sizes = Sequence[int]
Named = Iterator[tuple[str, Program]]


def kernels(machine: str) -> Iterator[tuple[str, Kernel]]:
    """Yield the kernels that a machine of that name runs."""
    for name, program in programs():
        found = kernels_of(program, machine)
        for number, kernel in enumerate(found, 1):
            yield name if len(found) == 1 else f"{name}, kernel {number} of {len(found)}", kernel


def programs() -> Named:
    """Yield the programs of the kernels."""
    yield from _elements()
    yield from _groups()
    yield from _scans()
    yield from _placings()
    yield from _products()


def _program(type: str, operator: str, tensors: Mapping[str, Any], **attributes: Any) -> Program:
    sizes = attributes.pop("sizes", None)
    return Form(operator, "", tensors, attributes, sizes).case(type).program


def _elements() -> Named:
    images = (8, 64, 56, 56)
    shapes: list[tuple[str, Sizes]] = [(FLOAT32, (1000,)), (FLOAT32, images), (FLOAT16, images)]
    for type, sizes in shapes:
        yield _name("tanh", type, sizes), _program(type, "ACTIVATION_TANH", {"input": sizes})
    copied = "ELEMENT_WISE_IDENTITY"
    for type, (rows, columns) in ((FLOAT32, (4096, 4096)), (FLOAT16, (4096, 4096)), (FLOAT32, (65536, 5))):
        turned = Strided((columns, rows), (1, columns))
        yield _name("transpose", type, (rows, columns)), _program(type, copied, {"input": turned})
    n, h, w, c = sizes = (8, 56, 56, 64)
    first = Strided((n, c, h, w), (h * w * c, 1, w * c, c))
    yield _name("channels first", FLOAT32, sizes), _program(FLOAT32, copied, {"input": first})
    sizes = (32, 64, 56, 56)
    window = {"offsets": (0, 0, 0, 4), "sizes": (32, 64, 56, 48), "strides": (1, 1, 1, 1)}
    cut = Form("SLICE", "", {"input": sizes}, window).case(FLOAT32)
    yield _name("columns", FLOAT32, sizes), cut.program
    deep = _program(FLOAT32, "DEPTH_TO_SPACE", {"input": (8, 64, 56, 56)}, block_size=2)
    yield _name("depth to space", FLOAT32, (8, 2, 2, 16, 56, 56)), deep
    square = (1024, 1024)
    both = {"a": square, "b": Strided(square, (1, 1024))}
    yield _name("sum with a transpose", FLOAT32, square), _program(FLOAT32, "ELEMENT_WISE_ADD", both)
    for channels, size, stride in ((192, 28, 1), (960, 7, 1), (96, 112, 2)):
        filtered = convolution((1, channels, size, size), channels, 3, stride, channels)
        name = f"convolution of {channels} channels {size}x{size} alone, stride {stride}"
        yield name, filtered.case(FLOAT32).program


def _groups() -> Named:
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
        softmax = _program(FLOAT32, "ACTIVATION_SOFTMAX1", {"input": sizes}, axes=axes)
        yield _name("softmax", FLOAT32, sizes, axes), softmax
    normalized: list[tuple[str, Sizes, Sizes]] = [
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
    normalization = "MEAN_VARIANCE_NORMALIZATION1"
    for type, sizes, axes in normalized:
        yield (
            _name("normalization", type, sizes, axes),
            _program(type, normalization, {"input": sizes}, axes=axes),
        )
    sizes, axes, channels = (64, 32, 7, 7), (1, 2, 3), (1, 32, 1, 1)
    scaled = {"input": sizes, "scale": channels, "bias": channels}
    name = _name("normalization with a scale", FLOAT32, sizes, axes)
    yield name, _program(FLOAT32, normalization, scaled, axes=axes)
    reduced: list[tuple[str, ReduceFunction, Sizes, Sizes]] = [
        ("sum", ReduceFunction.SUM, (1, 4_000_000), (1,)),
        ("sum", ReduceFunction.SUM, (127, 70_000), (1,)),
        ("sum", ReduceFunction.SUM, (128, 70_000), (1,)),
        ("sum", ReduceFunction.SUM, (4096, 4096), (0,)),
        ("sum", ReduceFunction.SUM, (40, 300_000), (0,)),
        ("sum", ReduceFunction.SUM, (100_000, 70), (0,)),
        ("greatest", ReduceFunction.MAX, (1000, 512), (1,)),
        ("greatest", ReduceFunction.MAX, (1000, 513), (1,)),
        ("greatest", ReduceFunction.MAX, (32, 20_000), (1,)),
        ("greatest", ReduceFunction.MAX, (20, 300_000), (0,)),
        ("position of the greatest", ReduceFunction.ARGMAX, (64, 1000), (1,)),
    ]
    for what, function, sizes, axes in reduced:
        result = _program(FLOAT32, "REDUCE", {"input": sizes}, function=function, axes=axes)
        yield _name(what, FLOAT32, sizes, axes), result
    for lines, length in ((1000, 500), (64, 2000)):
        yield _name("greatest of padded rows", FLOAT32, (lines, length), (1,)), _padded(lines, length)
    sizes = (8, 32, 112, 112)
    seven, none = (7, 7), (0, 0)
    window = {"window_size": seven, "strides": seven, "start_padding": none, "end_padding": none}
    pooled = _program(FLOAT32, "MAX_POOLING", {"input": sizes}, **window)
    yield _name("greatest of windows", FLOAT32, sizes), pooled


def _padded(lines: int, length: int) -> Program:
    network = Network("float32")
    padded = dml.padding(network.input(lines, length), start_padding=[0, 1], end_padding=[0, 1])
    return network.program(dml.reduce(padded, function="MAX", axes=[1]))


def _scans() -> Named:
    lines = (((4096, 512), 1), ((1000, 5000), 1), ((256, 65_536), 1), ((64, 65_536), 1), ((4, 1_000_000), 1))
    abreast = (((4096, 512), 0), ((500, 40_000), 0), ((4096, 4096), 0), ((64, 131_072), 0))
    for sizes, axis in (*lines, *abreast):
        total = _program(FLOAT32, "CUMULATIVE_SUMMATION", {"input": sizes}, axis=axis)
        yield _name("running sum", FLOAT32, sizes, (axis,)), total


def _placings() -> Named:
    for sizes, axis, count in (
        ((64, 5000), 1, 1000),
        ((1000, 4096), 0, 1000),
        ((1000, 4096), 0, 400),
        ((100, 4096), 0, 1000),
        ((140, 300), 1, 200_000),
    ):
        placed = tuple(count if number == axis else size for number, size in enumerate(sizes))
        tensors = {"input": placed, "indices": sizes, "updates": sizes}
        scattered = Form("SCATTER", "", tensors, {"axis": axis}, types={"indices": "INT32"}).case(FLOAT32)
        yield _name(f"scatter to {count}", FLOAT32, sizes, (axis,)), scattered.program
    for sizes, count in (((1000, 1000), 10), ((1, 1_000_000), 100), ((3, 20_000), 20_000)):
        attributes = {"axis": 1, "k": count, "axis_direction": AxisDirection.DECREASING}
        best = _program(FLOAT32, "TOP_K1", {"input": sizes}, **attributes)
        yield _name(f"greatest {count}", FLOAT32, sizes, (1,)), best
    sizes = (300, 7000)
    yield _name("other than zero", FLOAT32, sizes), _program(FLOAT32, "NONZERO_COORDINATES", {"input": sizes})


def _products() -> Named:
    products: list[tuple[str, tuple[int, int, int]]] = [
        (FLOAT32, (512, 512, 512)),
        (FLOAT32, (2048, 2048, 2048)),
        (FLOAT32, (128, 768, 3072)),
        (FLOAT32, (1, 4096, 4096)),
        (FLOAT32, (50_176, 64, 147)),
        (FLOAT32, (16, 16, 16)),
        (FLOAT16, (4096, 4096, 4096)),
        (FLOAT16, (8, 4096, 4096)),
    ]
    for type, (m, n, k) in products:
        yield f"product {type} [{m}, {n}, {k}]", gemm(m, n, k, b_transposed=True).case(type).program
    for m, n, k in ((1, 4096, 4096), (1, 1000, 16_384), (1024, 1024, 1024), (128, 768, 3072)):
        yield f"product FLOAT32 [{m}, {n}, {k}] along rows", gemm(m, n, k).case(FLOAT32).program
    filtered = convolution((1, 64, 56, 56), 64, 3).case(FLOAT32)
    yield "convolution FLOAT32 [1, 64, 56, 56] by 64x3x3", filtered.program
    depthwise = convolution((8, 96, 56, 56), 96, 7, groups=96).case(FLOAT16)
    yield "convolution FLOAT16 [8, 96, 56, 56] by 96x7x7, depthwise", depthwise.program
    for sizes in ((8, 12, 12, 512, 64), (1, 8, 8, 1500, 128)):
        for type in (FLOAT32, FLOAT16):
            form = attention(*sizes)
            yield f"attention {type} {form.name}", form.case(type).program
    cached = attention(8, 12, 4, 4096, 64, "past")
    yield f"attention {FLOAT16} {cached.name}", cached.case(FLOAT16).program


def _name(what: str, type: str, sizes: Sizes, axes: Sizes | None = None) -> str:
    over = "" if axes is None else f" over {list(axes)}"
    return f"{what} {type} {list(sizes)}{over}"
