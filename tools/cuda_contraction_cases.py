"""Programs for the checks of the CUDA target that sum products: matrix products and convolutions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import opendml as dml
from opendml.program.functions import maximum, tanh
from opendml.program.node import Node, contraction, convert, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, joined, padded, reshaped, view, windows
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import MatrixTransform
from opendml.spec.tensor_desc import TensorDesc
from tools.cuda_case import Case
from tools.cuda_view_cases import program

FLOAT32, FLOAT16, INT32 = ScalarType.FLOAT32, ScalarType.FLOAT16, ScalarType.INT32
_ERROR = 2e-6
"""Allowed for each product that is summed, of numbers between about -6 and 6."""
Sizes = tuple[int, int, int]


def contraction_cases() -> Iterator[Case]:
    """All of them."""
    yield from _matrix_products()
    yield from _tiles_of_the_copy_engine()
    yield from _windows_of_the_copy_engine()
    yield from _epilogues()
    yield from _convolutions()
    yield from _integers()


def matrix_product(
    type: ScalarType, sizes: Sizes, a_turned: bool = False, b_turned: bool = False, batch: int = 1
) -> Node:
    """The product [batch, m, n, 1] of the sources 0 and 1, as an operator says it; turned sources lie the
    other way round.
    """
    rows, columns = operands_of((type, type), sizes, a_turned, b_turned, batch)
    return contraction(_wide(rows), _wide(columns), (3,))


def operands_of(
    types: tuple[ScalarType, ScalarType], sizes: Sizes, a_turned: bool, b_turned: bool, batch: int = 1
) -> tuple[Node, Node]:
    """What is multiplied for such a product, of two types."""
    m, n, k = sizes
    a = source(0, types[0], (batch, k, m) if a_turned else (batch, m, k))
    b = source(1, types[1], (batch, n, k) if b_turned else (batch, k, n))
    still, a_row, a_column = (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1)
    b_row, b_column = (0, 0, 0, 1), (0, 0, 1, 0)
    a_steps = (still, a_column, a_row) if a_turned else (still, a_row, a_column)
    b_steps = (still, b_column, b_row) if b_turned else (still, b_row, b_column)
    rows = view(a, (batch, m, 1, k), (0, 0, 0), a_steps)
    columns = view(b, (batch, 1, n, k), (0, 0, 0), b_steps)
    return rows, columns


def convolution(
    type: ScalarType,
    images: tuple[int, int, int, int],
    filters: tuple[int, int, int],
    *,
    groups: int = 1,
    stride: int = 1,
    dilation: int = 1,
    before: int = 0,
    after: int = 0,
) -> Node:
    """The convolution [n, groups, outputs / groups, height, width, 1, 1, 1] of the sources 0 and 1; `filters`
    are outputs, height, width.
    """
    n, channels, *image = images
    outputs, *window = filters
    counts = [
        (size + before + after - (tap - 1) * dilation - 1) // stride + 1
        for size, tap in zip(image, window, strict=True)
    ]
    per_group = channels // groups
    x = reshaped(source(0, type, images), (n, groups, per_group, *image))
    seen = windows(x, counts, window, (stride,) * 2, (dilation,) * 2, (before,) * 2)
    # From [n, g, c, out, window] to [n, g, 1, out, c, window].
    sizes = (n, groups, 1, *counts, per_group, *window)
    steps = [[0] * 8 for _ in range(7)]
    for row, column in enumerate((0, 1, 5, 3, 4, 6, 7)):
        steps[row][column] = 1
    patches = view(seen, sizes, (0,) * 7, steps)
    weights = source(1, type, (outputs, per_group, *window))
    weights = reshaped(weights, (1, groups, outputs // groups, 1, 1, per_group, *window))
    return contraction(_wide(weights), _wide(patches), (5, 6, 7))


def _wide(value: Node) -> Node:
    return convert(value, FLOAT32) if value.type is FLOAT16 else value


def _case(name: str, products: int, *results: Node, **details: float) -> Case:
    return Case(f"contraction {name}", program(*results), absolute=_ERROR * products, **details)  # type: ignore[arg-type]


def _matrix_products() -> Iterator[Case]:
    for type in (FLOAT32, FLOAT16):
        for number, sizes in enumerate(((128, 128, 64), (65, 130, 72), (129, 67, 40), (200, 33, 19))):
            turned = [(False, False), (True, False), (False, True), (True, True)]
            for a_turned, b_turned in turned if number == 2 else turned[number : number + 1]:
                result = convert(matrix_product(type, sizes, a_turned, b_turned), type)
                name = f"{type.name} {'x'.join(map(str, sizes))} {a_turned:d}{b_turned:d}"
                yield _case(name, sizes[2], result)
        yield _case(f"{type.name} large", 256, convert(matrix_product(type, (520, 500, 256)), type))
        batched = convert(matrix_product(type, (36, 48, 24), False, True, 5), type)
        yield _case(f"{type.name} batched", 24, batched)
        for sizes in ((1, 300, 500), (300, 1, 500), (5, 120, 64), (70, 3, 33)):
            yield _case(f"{type.name} thin {sizes}", sizes[2], convert(matrix_product(type, sizes), type))
        yield _case(f"{type.name} long", 3000, convert(matrix_product(type, (48, 40, 3000)), type))
        # Rows that lie apart, so that nothing is aligned but the first element of each.
        product = matrix_product(type, (70, 80, 50))
        apart = [Layout(type, (1, 70, 50), (0, 80 * type.bytes, type.bytes))]
        apart.append(Layout(type, (1, 50, 80), (0, 96 * type.bytes, type.bytes)))
        strided = Program(tuple(apart), (packed(type, product.sizes),), (convert(product, type),))
        yield Case(f"contraction {type.name} strided", strided, absolute=_ERROR * 50)
        yield Case(f"contraction {type.name} misaligned", strided, absolute=_ERROR * 50, offset=1)


def _tiles_of_the_copy_engine() -> Iterator[Case]:
    """Products of FLOAT16 whose rows are multiples of 16 bytes, in each order, and those of GEMM."""
    sizes = (136, 72, 152)
    for a_turned, b_turned in itertools.product((False, True), repeat=2):
        result = convert(matrix_product(FLOAT16, sizes, a_turned, b_turned), FLOAT16)
        yield _case(f"FLOAT16 copied {sizes} {a_turned:d}{b_turned:d}", sizes[2], result)
    product = convert(matrix_product(FLOAT16, (72, 104, 80)), FLOAT16)
    turned = Layout(FLOAT16, (1, 72, 104, 1), (0, 2, 2 * 72, 2))
    inputs = packed(FLOAT16, (1, 72, 80)), packed(FLOAT16, (1, 80, 104))
    by_columns = Program(inputs, (turned,), (product,))
    yield Case("contraction FLOAT16 copied, results by columns", by_columns, absolute=_ERROR * 80)
    rows = view(
        source(0, FLOAT16, (2, 3, 40, 72)),
        (2, 3, 40, 1, 72),
        (0,) * 4,
        ((1, 0, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 0, 0, 1)),
    )
    columns = view(
        source(1, FLOAT16, (3, 56, 72)),
        (2, 3, 1, 56, 72),
        (0,) * 3,
        ((0, 1, 0, 0, 0), (0, 0, 0, 1, 0), (0, 0, 0, 0, 1)),
    )
    product = contraction(_wide(rows), _wide(columns), (4,))
    yield _case("FLOAT16 copied, one operand shared by some matrices", 72, convert(product, FLOAT16))
    transform = MatrixTransform.TRANSPOSE
    for number, (m, n, k) in enumerate(((264, 200, 328), (65, 67, 200), (13, 100, 1000))):
        tensors = [TensorDesc(dml.FLOAT16, (1, 2, *each)) for each in ((m, k), (n, k), (m, n), (m, n))]
        c = tensors[2] if number else None
        desc = descs.Gemm(tensors[0], tensors[1], c, tensors[3], trans_b=transform, alpha=1.0, beta=1.0)
        yield Case(f"contraction FLOAT16 GEMM {m}x{n}x{k}", program_of(desc), absolute=_ERROR * k)


def channels_last(
    images: tuple[int, int, int, int], filters: tuple[int, int, int], is_packed: bool = False, **form: int
) -> Program:
    """A convolution of FLOAT16 with a bias and RELU, all tensors of which have their channels innermost, but
    for the result if that is packed; the other arguments are those of `convolution`.
    """
    product = convolution(FLOAT16, images, filters, **form)
    bias = _wide(source(2, FLOAT16, (1, *product.sizes[1:3], 1, 1, 1, 1, 1)))
    result = convert(maximum(product + bias, 0.0), FLOAT16)
    output = (images[0], filters[0], *product.sizes[3:5])
    weights = (filters[0], images[1] // form.get("groups", 1), *filters[1:])
    return Program(
        (last_channels(images), last_channels(weights), packed(FLOAT16, bias.sizes)),
        (packed(FLOAT16, output) if is_packed else last_channels(output),),
        (reshaped(result, output),),
    )


def last_channels(sizes: Sequence[int]) -> Layout:
    """A tensor of FLOAT16 with its second dimension innermost."""
    n, c, h, w = sizes
    return Layout(FLOAT16, (n, c, h, w), (2 * c * h * w, 2, 2 * c * w, 2 * c))


def _windows_of_the_copy_engine() -> Iterator[Case]:
    """Convolutions of FLOAT16 whose channels lie side by side."""
    forms: tuple[tuple[tuple[int, int, int, int], tuple[int, int, int], dict[str, int]], ...] = (
        ((2, 64, 9, 11), (40, 3, 3), {"before": 1, "after": 1}),
        ((1, 72, 8, 13), (64, 3, 3), {"before": 1, "after": 1, "stride": 2}),
        ((3, 64, 7, 10), (32, 2, 5), {"before": 2, "after": 3, "dilation": 2}),
        ((2, 64, 9, 8), (72, 3, 1), {}),
        ((1, 136, 8, 12), (48, 1, 1), {"stride": 2}),
        ((2, 64, 8, 12), (40, 3, 3), {"before": 1, "after": 1, "is_packed": True}),
        ((3, 64, 5, 9), (64, 3, 3), {"before": 1, "after": 1, "is_packed": True}),
        ((3, 64, 6, 6), (64, 3, 3), {"before": 1, "after": 1, "is_packed": True}),
        ((3, 64, 5, 6), (64, 3, 3), {"before": 1, "after": 1, "is_packed": True}),
    )
    for images, filters, form in forms:
        count = images[1] * filters[1] * filters[2]
        name = f"contraction FLOAT16 moved windows {images} {filters} {form}"
        program = channels_last(images, filters, **form)  # type: ignore[arg-type]
        yield Case(name, program, absolute=_ERROR * count)


def _epilogues() -> Iterator[Case]:
    for type in (FLOAT32, FLOAT16):
        sizes = (100, 90, 32)
        result = matrix_product(type, sizes) * 0.5 + _wide(source(2, type, (1, 1, 90, 1)))
        yield _case(f"{type.name} with bias", 32, convert(maximum(result, 0.0), type))
        residual = _wide(source(2, type, (1, 100, 90, 1)))
        yield _case(f"{type.name} with residual", 32, convert(tanh(result * 0.01) + residual, type))
        yield _case(f"{type.name} in parts", 32, joined([convert(result, type)] * 2, 1))
    result = matrix_product(FLOAT16, (104, 88, 72)) * 0.5 + _wide(source(2, FLOAT16, (1, 1, 88, 1)))
    yield _case("FLOAT16 copied with bias", 72, convert(maximum(result, 0.0), FLOAT16))
    residual = _wide(source(2, FLOAT16, (1, 104, 88, 1)))
    product = matrix_product(FLOAT16, (104, 88, 72))
    yield _case("FLOAT16 copied with residual", 72, convert(tanh(product * 0.01) + residual, FLOAT16))
    rows = source(0, FLOAT32, (60, 48))
    chosen = gathered(
        rows, (90, 1, 48), {0: source(2, ScalarType.INT32, (90, 1, 1))}, steps=((0,) * 3, (0, 0, 1))
    )
    table = reshaped(source(1, FLOAT32, (70, 48)), (1, 70, 48))
    yield _case("of gathered rows", 48, contraction(chosen, table, (2,)), mean=3, deviation=3)
    shifted = padded(table, (0, 0, 2), (0, 0, -2), 1.0)
    scaled = reshaped(rows, (60, 1, 48)) * 2.0 + 1.0
    yield _case("of computed operands", 200, contraction(scaled, maximum(shifted, 0.0), (2,)))


def _convolutions() -> Iterator[Case]:
    forms: tuple[tuple[Sequence[int], Sequence[int], dict[str, int]], ...] = (
        ((2, 16, 14, 15), (40, 3, 3), {"before": 1, "after": 1}),
        ((2, 12, 17, 16), (24, 3, 2), {"stride": 2, "before": 1}),
        ((1, 8, 20, 20), (33, 3, 3), {"dilation": 3, "before": 2, "after": 4}),
        ((2, 32, 12, 12), (64, 3, 3), {"groups": 2, "before": 1, "after": 1}),
        ((1, 64, 16, 16), (48, 1, 1), {}),
        ((1, 24, 16, 20), (24, 3, 3), {"groups": 24, "before": 1, "after": 1}),
        ((1, 16, 30, 30), (3, 5, 5), {"before": 2, "after": 2}),
    )
    for type in (FLOAT32, FLOAT16):
        for images, filters, form in forms:
            result = convolution(type, tuple(images), tuple(filters), **form)  # type: ignore[arg-type]
            bias = _wide(source(2, type, (1, *result.sizes[1:3], 1, 1, 1, 1, 1)))
            count = images[1] // form.get("groups", 1) * math.prod(filters[1:])
            activated = convert(maximum(result + bias, 0.0), type)
            name = f"{type.name} convolution {images} {filters} {form}"
            flat = (images[0], filters[0], *result.sizes[3:5])
            yield _case(name, count, reshaped(activated, flat))


def _integers() -> Iterator[Case]:
    for type in (ScalarType.INT32, ScalarType.UINT32, ScalarType.INT64):
        product = matrix_product(type, (70, 60, 90))
        yield Case(f"contraction {type.name}", program(product), special=True)
    bytes = ScalarType.INT8, ScalarType.UINT8
    for number, types in enumerate(itertools.product(bytes, bytes)):
        turned = number // 2 == 1, number % 2 == 1
        for sizes in ((128, 96, 160), (129, 67, 83)):
            name = f"contraction of bytes {types[0].name} {types[1].name} {sizes}"
            rows, columns = (convert(each, INT32) for each in operands_of(types, sizes, *turned))
            yield Case(name, program(contraction(rows, columns, (3,))), special=True)
            zeros = source(2, types[0], (1, sizes[0], 1, 1)), source(3, types[1], (1, 1, sizes[1], 1))
            p, q = (convert(each, INT32) for each in zeros)
            shifted = program(contraction(rows - p, columns - q, (3,)))
            yield Case(f"{name} less zeros", shifted, offset=number // 2, special=True)
    unsigned = ScalarType.UINT8, ScalarType.UINT8
    rows, columns = (convert(each, INT32) for each in operands_of(unsigned, (40, 48, 3000), False, False))
    yield Case("contraction of bytes long", program(contraction(rows - 3, columns, (3,))), special=True)
    x = TensorDesc(dml.UINT8, (2, 24, 14, 15))
    one, filters = TensorDesc(dml.UINT8, (1, 1, 1, 1)), TensorDesc(dml.INT8, (40, 12, 3, 3))
    zeros_of_filters = TensorDesc(dml.INT8, (1, 40, 1, 1))
    desc = descs.ConvolutionInteger(
        x,
        one,
        filters,
        zeros_of_filters,
        TensorDesc(dml.INT32, (2, 40, 14, 15)),
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
        group_count=2,
    )
    yield Case("contraction of bytes of windows", program_of(desc), special=True)
