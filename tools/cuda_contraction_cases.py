"""Programs for the checks of the CUDA target that sum products: calls of public operators, and graphs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import opendml as dml
from opendml import descs
from opendml.frontends.common.attention import in_rows
from opendml.program.carriers import carried
from opendml.program.program import Program
from tools.contraction_cases import channels_last, gemm
from tools.cuda_case import Case
from tools.operator_case import Form, Sizes, Strided, graph_program

FLOATS = ("FLOAT32", "FLOAT16")
BYTES = ("INT8", "UINT8")
RELU = descs.ActivationRelu()
_ERROR = 2e-6
"""Allowed for each product that is summed, of numbers between about -6 and 6."""


def contraction_cases() -> Iterator[Case]:
    """Yield all of them."""
    yield from _matrix_products()
    yield from _tiles_of_the_copy_engine()
    yield from _windows_of_the_copy_engine()
    yield from _epilogues()
    yield from _convolutions()
    yield from _depthwise()
    yield from _short_sums()
    yield from _integers()


def _case(name: str, products: int, program: Program, **details: Any) -> Case:
    return Case(f"contraction {name}", program, absolute=_ERROR * products, **details)


def _product(type: str, *sizes: Any, **further: Any) -> Program:
    return gemm(*sizes, **further).case(type).program


def _gemm(type: str, tensors: Mapping[str, Sizes], **attributes: Any) -> Program:
    return Form("GEMM", "", tensors, attributes).case(type).program


def _matrix_products() -> Iterator[Case]:
    for type in FLOATS:
        for number, sizes in enumerate(((128, 128, 64), (65, 130, 72), (129, 67, 40), (200, 33, 19))):
            turned = [(False, False), (True, False), (False, True), (True, True)]
            for a_turned, b_turned in turned if number == 2 else turned[number : number + 1]:
                name = f"{type} {'x'.join(map(str, sizes))} {a_turned:d}{b_turned:d}"
                yield _case(name, sizes[2], _product(type, *sizes, a_turned, b_turned))
        yield _case(f"{type} large", 256, _product(type, 520, 500, 256))
        yield _case(f"{type} batched", 24, _product(type, 36, 48, 24, False, True, 5))
        for sizes in ((1, 300, 500), (300, 1, 500), (5, 120, 64), (70, 3, 33)):
            yield _case(f"{type} thin {sizes}", sizes[2], _product(type, *sizes))
        yield _case(f"{type} thin, turned", 500, _product(type, 300, 1, 500, True))
        yield _case(f"{type} long", 3000, _product(type, 48, 40, 3000))
        # Rows that lie apart, so that nothing is aligned but the first element of each.
        a, b = Strided((1, 1, 70, 50), (0, 0, 80, 1)), Strided((1, 1, 50, 80), (0, 0, 96, 1))
        strided = _gemm(type, {"a": a, "b": b})
        yield _case(f"{type} strided", 50, strided)
        yield _case(f"{type} misaligned", 50, strided, offset=1)

    for turned_a, turned_b in itertools.product((False, True), repeat=2):
        # Bits of numbers near 1, whose products have sums without rounding errors.
        program = of_bfloat16((37, 50, 33), turned_a, turned_b, batch=1 + turned_b)
        yield _case(f"BFLOAT16 odd {turned_a:d}{turned_b:d}", 33, program, mean=0x3F80, deviation=20)


def _tiles_of_the_copy_engine() -> Iterator[Case]:
    """Yield products whose rows are multiples of 16 bytes, in each order."""
    sizes = 136, 72, 152
    for type, turned_a, turned_b in itertools.product(FLOATS, (False, True), (False, True)):
        name = f"{type} copied {sizes} {turned_a:d}{turned_b:d}"
        yield _case(name, sizes[2], _product(type, *sizes, turned_a, turned_b))
    for turned_a, turned_b in itertools.product((False, True), repeat=2):
        sizes = (136, 72, 40) if turned_a else (200, 192, 64)
        program = of_bfloat16(sizes, turned_a, turned_b)
        yield _case(f"BFLOAT16 copied {turned_a:d}{turned_b:d}", 40, program, mean=0x3F80, deviation=20)
    yield _case("FLOAT32 copied, few rows", 500, _product("FLOAT32", 13, 100, 500, False, True, 2))
    for batch in (1, 3):
        yield _case(f"FLOAT16 copied, {batch} of one row", 504, _product("FLOAT16", 1, 104, 504, batch=batch))
    # The vector is the other operand.
    yield _case("FLOAT16 copied, one column", 328, _product("FLOAT16", 136, 1, 328, True))
    one_row = of_bfloat16((1, 72, 40))
    yield _case("BFLOAT16 copied, one row", 40, one_row, mean=0x3F80, deviation=20)
    type, columns = "FLOAT16", Strided((1, 1, 72, 104), (0, 0, 1, 72))
    by_columns = _gemm(type, {"a": (1, 1, 72, 80), "b": (1, 1, 80, 104), "output": columns})
    yield _case(f"{type} copied, results by columns", 80, by_columns)
    shared: dict[str, Sizes] = {"a": (2, 3, 40, 72), "b": Strided((2, 3, 56, 72), (0, 56 * 72, 72, 1))}
    name = f"{type} copied, one operand shared by some matrices"
    yield _case(name, 72, _gemm(type, shared, trans_b="TRANSPOSE"))
    heads = graph_program(_of_heads, (type, (1, 3, 40, 64)), (type, (1, 1, 72, 192)))
    yield _case(f"{type} copied from heads", 192, heads)
    for number, (m, n, k) in enumerate(((264, 200, 328), (65, 67, 200), (13, 100, 1000))):
        c = "matrix" if number else None
        yield _case(f"{type} GEMM {m}x{n}x{k}", k, _product(type, m, n, k, False, True, 2, c=c))


def of_bfloat16(
    sizes: tuple[int, int, int], a_turned: bool = False, b_turned: bool = False, batch: int = 1
) -> Program:
    """Return products of matrices of BFLOAT16 with one more that is added, rounded to BFLOAT16."""
    graph, (m, n, k) = dml.Graph(), sizes
    a = graph.input("a", "bfloat16", (1, batch, k, m) if a_turned else (1, batch, m, k))
    b = graph.input("b", "bfloat16", (1, batch, n, k) if b_turned else (1, batch, k, n))
    c = graph.input("c", "bfloat16", (1, batch, m, n))
    trans_a, trans_b = ("TRANSPOSE" if turned else "NONE" for turned in (a_turned, b_turned))
    sums = dml.gemm(a, b, trans_a=trans_a, trans_b=trans_b)
    return carried(graph.compile({"y": (sums + c).rounded()}, "reference")._program)


def _of_heads(heads: Any, table: Any) -> Any:
    """Return a product along heads and their elements, which two loops along k walk over."""
    return dml.gemm(in_rows(heads).reinterpret((1, 1, 40, 192)), table, trans_b="TRANSPOSE")


def _epilogues() -> Iterator[Case]:
    for type in FLOATS:
        sizes = (100, 90, 32)
        biased = _product(type, *sizes, alpha=0.5, c="row", fused_activation=RELU)
        yield _case(f"{type} with bias", 32, biased)
        inputs = [(type, (1, 1, *each)) for each in ((100, 32), (32, 90), (100, 90))]
        yield _case(f"{type} with residual", 32, graph_program(_with_residual, *inputs))
        yield _case(f"{type} in parts", 32, graph_program(_in_parts, *inputs[:2]))
    biased = _product("FLOAT16", 104, 88, 72, alpha=0.5, c="row", fused_activation=RELU)
    yield _case("FLOAT16 copied with bias", 72, biased)
    inputs = [("FLOAT16", (1, 1, *each)) for each in ((104, 72), (72, 88), (104, 88))]
    yield _case("FLOAT16 copied with residual", 72, graph_program(_with_residual, *inputs))
    rows, table = ("FLOAT32", (60, 48)), ("FLOAT32", (70, 48))
    gathered = graph_program(_of_gathered_rows, rows, table, ("INT32", (1, 90)))
    yield _case("of gathered rows", 48, gathered, mean=3, deviation=3)
    yield _case("of computed operands", 200, graph_program(_of_computed, rows, table))


def _with_residual(a: Any, b: Any, residual: Any) -> Any:
    return dml.gemm(a, b, alpha=0.01, fused_activation=descs.ActivationTanh()) + residual


def _in_parts(a: Any, b: Any) -> Any:
    return dml.join([dml.gemm(a, b, alpha=0.5)] * 2, axis=2)


def _of_gathered_rows(rows: Any, table: Any, chosen: Any) -> Any:
    return dml.gemm(dml.gather(rows, chosen, axis=0, index_dimensions=1), table, trans_b="TRANSPOSE")


def _of_computed(rows: Any, table: Any) -> Any:
    shifted = dml.padding(table[:, :46], padding_value=1.0, start_padding=[0, 2], end_padding=[0, 0])
    scaled = dml.activation_linear(rows, alpha=2.0, beta=1.0)
    return dml.gemm(scaled, dml.activation_relu(shifted), trans_b="TRANSPOSE")


def _convolutions() -> Iterator[Case]:
    forms: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
        ((2, 16, 14, 15), (40, 3, 3), {"before": 1, "after": 1}),
        ((2, 12, 17, 16), (24, 3, 2), {"stride": 2, "before": 1}),
        ((1, 8, 20, 20), (33, 3, 3), {"dilation": 3, "before": 2, "after": 4}),
        ((2, 32, 12, 12), (64, 3, 3), {"groups": 2, "before": 1, "after": 1}),
        ((1, 64, 16, 16), (48, 1, 1), {}),
        ((1, 24, 16, 20), (24, 3, 3), {"groups": 24, "before": 1, "after": 1}),
        ((1, 16, 30, 30), (3, 5, 5), {"before": 2, "after": 2}),
    )
    for type in FLOATS:
        for images, filters, form in forms:
            name = f"{type} convolution {images} {filters} {form}"
            program = convolved(type, images, filters, **form)
            yield _case(name, math.prod(filters[1:]) * images[1] // form.get("groups", 1), program)
    # Results lie in units along images, across them, and along channels.
    further: tuple[tuple[tuple[int, ...], int, int, int, str, bool], ...] = (
        ((12, 16), 3, 1, 1, "FORWARD", False),
        ((7, 7), 3, 1, 1, "FORWARD", False),
        ((13, 12), 3, 2, 1, "FORWARD", True),
        ((9, 9), 1, 1, 2, "FORWARD", True),
        ((6, 10), 3, 1, 2, "BACKWARD", False),
        ((70,), 5, 1, 1, "FORWARD", False),
        ((4, 5, 6), 3, 1, 1, "FORWARD", False),
    )
    for image, side, stride, groups, direction, is_last in further:
        window = (24 * groups, *[side] * len(image))
        form = {"before": side // 2, "after": side // 2, "stride": stride, "groups": groups}
        form |= {"direction": direction, "lies_last": ("input", "output") * is_last}
        program = convolved("FLOAT16", (2, 24 * groups, *image), window, **form)
        name = f"FLOAT16 CONVOLUTION {image} {side} {stride} {groups} {direction} {is_last:d}"
        yield _case(name, 24 * side ** len(image), program)


def _depthwise() -> Iterator[Case]:
    """Yield convolutions of each channel alone, with channels last."""
    forms: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
        ((3, 96, 16, 16), (7, 7), {"before": 3, "after": 3}),
        ((1, 40, 17, 16), (7, 6), {"stride": 2, "before": 2, "after": 3}),
        ((3, 10, 19, 20), (6, 7), {"dilation": 2, "before": 5, "after": 5}),
        ((3, 48, 7, 7), (3, 3), {"before": 1, "after": 1}),
        ((2, 16, 13, 12), (3, 3), {"stride": 2, "before": 1}),
        ((1, 136, 6, 9), (5, 5), {}),
        ((2, 64, 70), (9,), {"before": 4, "after": 4}),
    )
    for number, (images, window, form) in enumerate(forms):
        type, filters = FLOATS[number % 2], (images[1], *window)
        program = convolved(type, images, filters, groups=images[1], lies_last=("input", "output"), **form)
        yield Case(f"depthwise {type} {images} {window} {form}", program, absolute=_ERROR * math.prod(window))
    program = _windows_of_bfloat16((2, 40, 14, 12), (40, 7, 5), 1, 40)
    yield Case("depthwise BFLOAT16", program, mean=0x3F80, deviation=20)


def _short_sums() -> Iterator[Case]:
    """Yield convolutions of few channels, with channels last: large ones, and some for the emulator."""
    forms: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
        ((2, 3, 13, 12), (16, 3, 3), {"stride": 2, "before": 1}),
        ((1, 32, 9, 11), (96, 1, 1), {}),
        ((2, 24, 32, 32), (72, 1, 1), {}),
        ((4, 3, 64, 60), (16, 3, 3), {"stride": 2, "before": 1}),
        ((1, 4, 10, 12), (8, 2, 5), {"before": 2, "after": 3, "stride": 2, "dilation": 2}),
        ((2, 3, 16, 16), (32, 4, 4), {"stride": 4}),
        ((3, 2, 31), (8, 7), {"before": 3, "after": 3}),
    )
    for number, (images, window, form) in enumerate(forms):
        last = ("input", "filter", "output") if number % 2 else ("input", "output")
        program = convolved("FLOAT16", images, window, lies_last=last, **form)
        yield Case(f"short sums FLOAT16 {images} {window} {form}", program, absolute=48 * _ERROR)
    program = _windows_of_bfloat16((2, 3, 14, 12), (16, 3, 3), 2)
    yield Case("short sums BFLOAT16", program, mean=0x3F80, deviation=20)


def _windows_of_the_copy_engine() -> Iterator[Case]:
    """Yield convolutions whose channels lie side by side."""
    forms: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
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
    # A step along k has 64 channels of FLOAT16, or 32 of FLOAT32.
    for type, some in (("FLOAT16", forms), ("FLOAT32", (*forms[:3], *forms[5:7]))):
        for images, filters, form in some:
            name = f"{type} moved windows {images} {filters} {form}"
            program = moved_windows(images, filters, type=type, **form)
            yield _case(name, images[1] * math.prod(filters[1:]), program)
    # Of numbers near 1, too. Tensor cores add few of these products up without rounding errors.
    for images, filters, stride in (((2, 40, 9, 7), (72, 3, 1), 1), ((1, 3, 24, 30), (40, 7, 7), 2)):
        program, count = _windows_of_bfloat16(images, filters, stride), images[1] * math.prod(filters[1:])
        name = f"BFLOAT16 convolution {images} {filters} {stride}"
        yield _case(name, count, program, mean=0x3F80, deviation=20)


def _windows_of_bfloat16(
    images: tuple[int, ...], filters: tuple[int, ...], stride: int, groups: int = 1
) -> Program:
    """Return a padded convolution of BFLOAT16 with a bias, rounded to it. Channels lie innermost."""
    graph, (outputs, *window), (count, channels, *sizes) = dml.Graph(), filters, images
    padding = [size // 2 for size in window]
    x = graph.input("x", "bfloat16", (count, *sizes, channels)).permute(0, 3, 1, 2)
    w = graph.input("w", "bfloat16", (outputs, *window, channels // groups)).permute(0, 3, 1, 2)
    bias = graph.input("bias", "bfloat16", (1, outputs, 1, 1))
    sums = dml.convolution(
        x, w, strides=[stride] * 2, start_padding=padding, end_padding=padding, group_count=groups
    )
    made = carried(graph.compile({"y": (sums + bias).rounded()}, "reference")._program)
    (images_out,) = made.outputs
    _, _, lines, pixels = images_out.sizes
    strides = (lines * pixels * outputs * 2, 2, pixels * outputs * 2, outputs * 2)
    return replace(made, outputs=(replace(images_out, strides=strides),))


def moved_windows(
    images: tuple[int, ...],
    filters: tuple[int, ...],
    *,
    type: str = "FLOAT16",
    is_packed: bool = False,
    **form: Any,
) -> Program:
    """Return a convolution whose tensors have their channels innermost. If `is_packed`, the result has not.
    The other arguments are those of `convolved`."""
    lying = ("input", "filter") if is_packed else ("input", "filter", "output")
    return convolved(type, images, filters, lies_last=lying, **form)


def convolved(
    type: str,
    images: tuple[int, ...],
    filters: tuple[int, ...],
    *,
    groups: int = 1,
    stride: int = 1,
    dilation: int = 1,
    before: int = 0,
    after: int = 0,
    direction: str = "FORWARD",
    lies_last: Sequence[str] = (),
) -> Program:
    """Return a convolution with a bias and RELU.

    Args:
        type: that of all tensors.
        images: their sizes.
        filters: outputs, and the sizes of the window.
        groups, stride, dilation, before, after: in all dimensions of the window.
        direction: DirectML's name.
        lies_last: the tensors whose channels lie innermost.
    """
    outputs, *window = filters
    rank = len(window)
    pairs = zip(images[2:], window, strict=True)
    counts = [(size + before + after - (tap - 1) * dilation - 1) // stride + 1 for size, tap in pairs]
    tensors: dict[str, Any] = {
        "input": images,
        "filter": (outputs, images[1] // groups, *window),
        "output": (images[0], outputs, *counts),
    }
    tensors |= {name: channels_last(tensors[name]) for name in lies_last}
    attributes = {
        "strides": [stride] * rank,
        "dilations": [dilation] * rank,
        "start_padding": [before] * rank,
        "end_padding": [after] * rank,
        "output_padding": [0] * rank,
        "group_count": groups,
        "direction": direction,
        "fused_activation": RELU,
    }
    form = Form("CONVOLUTION", "", tensors | {"bias": (1, outputs, *[1] * rank)}, attributes)
    return form.case(type).program


def _integers() -> Iterator[Case]:
    for number, types in enumerate(itertools.product(BYTES, BYTES)):
        turned = number // 2 == 1, number % 2 == 1
        for sizes in ((128, 96, 160), (129, 67, 83)):
            name = f"contraction of bytes {types[0]} {types[1]} {sizes}"
            yield Case(name, _byte_product(types, sizes, turned), special=True)
            zeros = {"a_zero_point": (1, 1, sizes[0], 1), "b_zero_point": (1, 1, 1, sizes[1])}
            shifted = _byte_product(types, sizes, turned, zeros)
            yield Case(f"{name} less zeros", shifted, offset=number // 2, special=True)
    for number, types in enumerate(itertools.product(BYTES, BYTES)):
        # Both operands are contiguous along k.
        sizes = (133, 72, 400) if number % 2 else (200, 300, 144)
        name = f"contraction of bytes {types[0]} {types[1]} copied {sizes}"
        yield Case(name, _byte_product(types, sizes, (False, True)), special=True)
        zeros = {"a_zero_point": (1, 1, sizes[0], 1), "b_zero_point": (1, 1, 1, sizes[1])}
        for some in ({"a_zero_point"}, {"b_zero_point"}, set(zeros))[number % 2 :: 2]:
            own = {key: zeros[key] for key in zeros if key in some}
            yield Case(
                f"{name} less {sorted(some)}", _byte_product(types, sizes, (False, True), own), special=True
            )
    long = _byte_product(("UINT8", "UINT8"), (40, 48, 3000), (False, False), {"a_zero_point": (1, 1, 1, 1)})
    yield Case("contraction of bytes long", long, special=True)
    tensors = {
        "input": (2, 24, 14, 15),
        "input_zero_point": (1, 1, 1, 1),
        "filter": (40, 12, 3, 3),
        "filter_zero_point": (1, 40, 1, 1),
    }
    ones = dict.fromkeys(("strides", "dilations", "start_padding", "end_padding"), (1, 1))
    signed = {"filter": "INT8", "filter_zero_point": "INT8"}
    form = Form("CONVOLUTION_INTEGER", "", tensors, ones | {"group_count": 2}, types=signed)
    yield Case("contraction of bytes of windows", form.case("UINT8").program, special=True)
    for images, filters, padding, has_zeros in (
        ((2, 144, 9, 11), (40, 3, 3), 0, True),
        ((1, 80, 7, 13), (72, 3, 2), 1, False),
    ):
        case = byte_convolution(images, filters, padding, has_zeros, lies_last=("input", "filter"))
        yield Case(f"contraction of bytes moved windows {images} {filters}", case, special=True)


def byte_convolution(
    images: tuple[int, ...],
    filters: tuple[int, ...],
    padding: int = 0,
    zeros: bool = True,
    stride: int = 1,
    lies_last: Sequence[str] = (),
) -> Program:
    """Return a convolution of UINT8 with INT8.

    Args:
        images: their sizes.
        filters: outputs, and the sizes of the window.
        padding: in front of and behind images.
        zeros: both have zero points, the filters one for each output.
        stride: of the window.
        lies_last: the tensors whose channels lie innermost.
    """
    outputs, *window = filters
    tensors: dict[str, Any] = {"input": images, "filter": (outputs, images[1], *window)}
    tensors |= {name: channels_last(tensors[name]) for name in lies_last}
    if zeros:
        tensors |= {"input_zero_point": (1, 1, 1, 1), "filter_zero_point": (1, outputs, 1, 1)}
    signed = dict.fromkeys(("filter", *["filter_zero_point"] * zeros), "INT8")
    attributes = {"strides": (stride,) * 2, "dilations": (1, 1), "group_count": 1}
    attributes |= {"start_padding": (padding,) * 2, "end_padding": (padding,) * 2}
    form = Form("CONVOLUTION_INTEGER", "", tensors, attributes, types=signed)
    return form.case("UINT8").program


def _byte_product(
    types: tuple[str, str],
    sizes: tuple[int, int, int],
    turned: tuple[bool, bool],
    zeros: Mapping[str, Sizes] | None = None,
) -> Program:
    """Return a product of operands less zero points. Each operand may lie transposed in memory."""
    m, n, k = sizes
    a, b = (
        Strided((1, 1, rows, columns), (0, 0, 1, rows)) if is_so else (1, 1, rows, columns)
        for (rows, columns), is_so in zip(((m, k), (k, n)), turned, strict=True)
    )
    tensors = {"a": a, "b": b, **(zeros or {})}
    form = Form("MATRIX_MULTIPLY_INTEGER", "", tensors, types={"b": types[1], "b_zero_point": types[1]})
    return form.case(types[0]).program
