"""Products, convolutions and attention in the sizes that networks have, as calls of public operators.

The table of kernels (`tools.kernel_table`), the printed schedules (`tools.schedules`) and the benchmark on
GPUs (`benchmarks.cuda_contractions`) take their cases from here, so that users run what is timed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opendml import descs
from opendml.spec.enums import ConvolutionDirection, MatrixTransform, MultiheadAttentionMaskType
from tools.operator_case import Form, Strided

PRODUCTS = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (1536, 1536, 1536),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (128, 768, 768),
    (128, 768, 3072),
    (1, 4096, 4096),
    (8, 4096, 4096),
    (4096, 64, 64),
    (50176, 64, 147),
)
"""m, n, k of matrix products."""
TRANSPOSED_PRODUCTS = (
    *((2048, 2048, 2048), (4096, 4096, 4096), (256, 4096, 4096), (1576, 3072, 768)),
    *((8, 4096, 4096), (64, 4096, 4096), (128, 768, 3072)),
)
"""m, n, k of products with either operand, or both, transposed."""
BATCHED_PRODUCTS = ((96, 512, 512, 64), (16, 512, 512, 512))
"""Number of matrices, m, n, k of batched products."""
CONVOLUTIONS: tuple[tuple[tuple[int, int, int, int], tuple[int, int], int, int], ...] = (
    ((32, 3, 224, 224), (64, 7), 2, 1),
    ((8, 64, 56, 56), (64, 3), 1, 1),
    ((32, 64, 56, 56), (64, 3), 1, 1),
    ((32, 256, 56, 56), (64, 1), 1, 1),
    ((32, 256, 56, 56), (128, 1), 2, 1),
    ((32, 128, 28, 28), (128, 3), 1, 1),
    ((32, 512, 7, 7), (512, 3), 1, 1),
    ((1, 256, 14, 14), (256, 3), 1, 1),
    ((32, 144, 56, 56), (144, 3), 1, 144),
    ((32, 96, 112, 112), (96, 3), 2, 96),
    ((1, 32, 720, 720), (3, 9), 1, 1),
)
"""Images; outputs and side of the window; stride, groups. Padding keeps the size."""
RESNET = (
    *((64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1), (256, 56, 128, 1, 1)),
    *((128, 56, 128, 3, 2), (128, 28, 512, 1, 1), (512, 28, 128, 1, 1), (128, 28, 128, 3, 1)),
    *((256, 56, 512, 1, 2), (512, 28, 256, 1, 1), (256, 28, 256, 3, 2), (256, 14, 1024, 1, 1)),
    *((1024, 14, 256, 1, 1), (256, 14, 256, 3, 1), (512, 28, 1024, 1, 2), (1024, 14, 512, 1, 1)),
    *((512, 14, 512, 3, 2), (512, 7, 2048, 1, 1), (2048, 7, 512, 1, 1), (512, 7, 512, 3, 1)),
    (1024, 14, 2048, 1, 2),
)
"""Channels, side of the image, outputs, side of the window, stride: ResNet-50 without its first layer."""
UNET = (
    *((320, 64, 320, 3, 1), (640, 32, 640, 3, 1), (1280, 16, 1280, 3, 1), (1280, 8, 1280, 3, 1)),
    *((320, 32, 640, 3, 1), (2560, 16, 1280, 3, 1), (1920, 32, 640, 3, 1), (960, 64, 320, 3, 1)),
    *((320, 64, 320, 3, 2), (640, 32, 640, 3, 2), (320, 64, 4, 3, 1), (320, 64, 320, 1, 1)),
    *((640, 32, 640, 1, 1), (1280, 16, 1280, 1, 1)),
)
"""The convolutions of a diffusion model's UNet, in the form of `RESNET`."""
MOBILENET = (
    *((3, 224, 32, 3, 2), (32, 112, 32, 3, 1, 32), (32, 112, 16, 1, 1), (16, 112, 96, 1, 1)),
    *((96, 112, 96, 3, 2, 96), (96, 56, 24, 1, 1), (24, 56, 144, 1, 1), (144, 56, 144, 3, 1, 144)),
    *((144, 56, 24, 1, 1), (144, 56, 144, 3, 2, 144), (144, 28, 32, 1, 1), (32, 28, 192, 1, 1)),
    *((192, 28, 192, 3, 1, 192), (192, 28, 32, 1, 1), (192, 28, 192, 3, 2, 192), (192, 14, 64, 1, 1)),
    *((64, 14, 384, 1, 1), (384, 14, 384, 3, 1, 384), (384, 14, 64, 1, 1), (384, 14, 96, 1, 1)),
    *((96, 14, 576, 1, 1), (576, 14, 576, 3, 1, 576), (576, 14, 96, 1, 1), (576, 14, 576, 3, 2, 576)),
    *((576, 7, 160, 1, 1), (160, 7, 960, 1, 1), (960, 7, 960, 3, 1, 960), (960, 7, 160, 1, 1)),
    *((960, 7, 320, 1, 1), (320, 7, 1280, 1, 1)),
)
"""The convolutions of MobileNetV2, in the form of `RESNET`; then the groups, if there are several."""
CONVNEXT = (
    *((3, 224, 96, 4, 4), (96, 56, 96, 7, 1, 96), (96, 56, 384, 1, 1), (384, 56, 96, 1, 1)),
    *((96, 56, 192, 2, 2), (192, 28, 192, 7, 1, 192), (192, 28, 768, 1, 1), (768, 28, 192, 1, 1)),
    *((192, 28, 384, 2, 2), (384, 14, 384, 7, 1, 384), (384, 14, 1536, 1, 1), (1536, 14, 384, 1, 1)),
    *((384, 14, 768, 2, 2), (768, 7, 768, 7, 1, 768), (768, 7, 3072, 1, 1), (3072, 7, 768, 1, 1)),
)
"""The convolutions of ConvNeXt-T, in the form of `MOBILENET`."""
NETWORKS: tuple[tuple[str, int, tuple[tuple[int, ...], ...]], ...] = (
    *(("ResNet-50", 1, RESNET), ("ResNet-50", 32, RESNET), ("UNet", 2, UNET)),
    *(("MobileNetV2", 1, MOBILENET), ("MobileNetV2", 32, MOBILENET)),
    *(("ConvNeXt-T", 1, CONVNEXT), ("ConvNeXt-T", 32, CONVNEXT)),
)
"""Name, batch and convolutions of whole networks."""
ATTENTIONS = ((1, 12, 12, 128, 64), (1, 12, 12, 1024, 64), (8, 12, 12, 1024, 64), (4, 16, 4, 4096, 128))
"""Batch, heads of queries, heads of keys and values, tokens, elements of a head."""
INTEGER_PRODUCTS = (512, 1024, 4096)
"""m, n and k of products of INT8."""


def contraction_forms() -> Iterator[Form]:
    """Yield the forms of contractions that the table of kernels has."""
    yield from _gemms()
    for images, (outputs, side), stride, groups in CONVOLUTIONS:
        yield convolution(images, outputs, side, stride, groups)
    yield from _other_convolutions()
    yield from _attentions()
    yield from _integers()


def network_convolutions() -> Iterator[Form]:
    """Yield the convolutions of whole networks, with channels last and packed. Only the benchmark
    has them: they would double the table of kernels."""
    for network, batch, layers in NETWORKS:
        for is_channels_last in (True, False):
            for channels, size, outputs, side, stride, *groups in layers:
                images = batch, channels, size, size
                form = convolution(images, outputs, side, stride, *groups, is_channels_last=is_channels_last)
                layout = "" if is_channels_last else ", packed"
                yield replace(form, name=f"{form.name}{layout}, of {network}", only=("FLOAT32", "FLOAT16"))


def gemm(
    m: int,
    n: int,
    k: int,
    a_transposed: bool = False,
    b_transposed: bool = False,
    batch: int = 1,
    **attributes: Any,
) -> Form:
    """Return a product of matrices. `c` is the addend: "matrix", "row", or None."""
    c = attributes.pop("c", None)
    a, b = ((k, m) if a_transposed else (m, k)), ((n, k) if b_transposed else (k, n))
    tensors: dict[str, Any] = {"a": (1, batch, *a), "b": (1, batch, *b)}
    if c is not None:
        sizes = (1, batch, m, n)
        tensors["c"] = Strided(sizes, (0, 0, 0, 1)) if c == "row" else sizes
    transposed = {
        name: MatrixTransform.TRANSPOSE for name, is_so in _sides(a_transposed, b_transposed) if is_so
    }
    words = [f"{batch} of {m}x{n}x{k}" if batch > 1 else f"{m}x{n}x{k}"]
    words += [f"{'NT'[a_transposed]}{'NT'[b_transposed]}"] * (a_transposed or b_transposed)
    words += [f"{name} {attributes[name]}" for name in ("alpha", "beta") if name in attributes]
    words += [f"plus a {c}"] * (c is not None) + _fused(attributes)
    return Form("GEMM", ", ".join(words), tensors, {**transposed, **attributes})


def _sides(a_transposed: bool, b_transposed: bool) -> tuple[tuple[str, bool], ...]:
    return ("trans_a", a_transposed), ("trans_b", b_transposed)


def _fused(attributes: Mapping[str, Any]) -> list[str]:
    """Return the name of the fused activation, if there is one."""
    fused = attributes.get("fused_activation")
    return [] if fused is None else [fused.operator.removeprefix("ACTIVATION_").lower()]


def convolution(
    images: tuple[int, int, int, int],
    outputs: int,
    side: int,
    stride: int = 1,
    groups: int = 1,
    *,
    bias: bool = False,
    is_channels_last: bool = False,
    **attributes: Any,
) -> Form:
    """Return a convolution of images that pads by half its window, or not if windows lie side by side. If
    `is_channels_last`, channels are the innermost dimension of input, filters and output."""
    batch, channels, *image = images
    tensors: dict[str, Any] = {"input": images, "filter": (outputs, channels // groups, side, side)}
    if is_channels_last:
        counts = [(size + 2 * _margin(side, stride) - side) // stride + 1 for size in image]
        tensors["output"] = (batch, outputs, *counts)
        tensors = {name: channels_last(sizes) for name, sizes in tensors.items()}
    if bias:
        tensors["bias"] = (1, outputs, 1, 1)
    kind = "depthwise" if groups == channels else f"to {outputs}"
    words = [f"{side}x{side}", f"{channels} {kind} of {'x'.join(map(str, image))}", f"batch {batch}"]
    words += [f"stride {stride}"] * (stride > 1)
    words += [f"{groups} groups"] * (1 < groups < channels)
    words += ["channels last"] * is_channels_last + ["bias"] * bias
    dilation = attributes.get("dilations", (1, 1))[0]
    words += [f"dilation {dilation}"] * (dilation > 1)
    words += _fused(attributes)
    given = windows(side, stride, dilation) | {"output_padding": (0, 0), "group_count": groups} | attributes
    return Form("CONVOLUTION", ", ".join(words), tensors, given)


def channels_last(sizes: Sequence[int]) -> Strided:
    """Return the layout in which the second dimension is innermost."""
    strides, step = [1] * len(sizes), sizes[1]
    for dimension in reversed(range(2, len(sizes))):
        strides[dimension], step = step, step * sizes[dimension]
    strides[0] = step
    return Strided(sizes, strides)


def _margin(side: int, stride: int) -> int:
    return 0 if side == stride else side // 2


def windows(side: int, stride: int, dilation: int = 1) -> dict[str, Any]:
    """Return the attributes of windows that are padded by half of their extent, or not if they lie side by
    side."""
    margin = _margin(side, stride) * dilation
    return {
        "strides": (stride, stride),
        "dilations": (dilation, dilation),
        "start_padding": (margin, margin),
        "end_padding": (margin, margin),
    }


def attention(batch: int, heads: int, key_heads: int, tokens: int, size: int, more: str = "") -> Form:
    """Return attention with `heads` heads of queries and `key_heads` of keys. `more` is what it reads
    besides: "", "bias", "mask", "past", or "bias of operands", which may be "stacked" in one tensor."""
    q, k = (batch, tokens, heads * size), (batch, tokens, key_heads * size)
    tensors: dict[str, Any] = {"query": q, "key": k, "value": k}
    mask, wanted = MultiheadAttentionMaskType.NONE, frozenset[str]()
    if more == "bias":
        tensors["relative_position_bias"] = (batch, heads, tokens, tokens)
    elif more == "mask":
        tensors["mask"], mask = (batch, heads, tokens, tokens), MultiheadAttentionMaskType.BOOLEAN
    elif more == "past":
        tensors |= {"query": (batch, 1, heads * size), "key": (batch, 1, key_heads * size)}
        tensors |= {"value": (batch, 1, key_heads * size)}
        tensors |= dict.fromkeys(("past_key", "past_value"), (batch, key_heads, tokens, size))
        wanted = frozenset(("output_present_key_tensor", "output_present_value_tensor"))
    if more.endswith("bias of operands"):
        if more.startswith("stacked"):
            tensors = {"stacked_query_key_value": (batch, tokens, heads, 3, size)}
        tensors["bias"] = ((heads + 2 * key_heads) * size,)
    attributes: dict[str, Any] = {"scale": size**-0.5, "mask_type": mask}
    name = f"{batch}x{tokens}, {heads} heads of {size}" + f", {key_heads} of keys" * (key_heads != heads)
    name += f", {more}" * bool(more)
    if key_heads == heads:
        return Form("MULTIHEAD_ATTENTION", name, tensors, attributes | {"head_count": heads}, wanted=wanted)
    counts = {"query_head_count": heads, "key_value_head_count": key_heads}
    return Form("MULTIHEAD_ATTENTION1", name, tensors, attributes | counts, wanted=wanted)


def integer_product(size: int, *, transposed: bool = False) -> Form:
    """Return a product of square matrices of bytes. If `transposed`, the second lies transposed in memory."""
    sizes = (1, 1, size, size)
    b = Strided(sizes, (size * size, size * size, 1, size)) if transposed else sizes
    name = f"{size}x{size}x{size}" + ", NT" * transposed
    return Form("MATRIX_MULTIPLY_INTEGER", name, {"a": sizes, "b": b}, types={"b": "INT8"})


def _gemms() -> Iterator[Form]:
    for m, n, k in PRODUCTS:
        yield gemm(m, n, k)
    for m, n, k in TRANSPOSED_PRODUCTS:
        for a_transposed, b_transposed in ((False, True), (True, False), (True, True)):
            yield gemm(m, n, k, a_transposed, b_transposed)
    for batch, m, n, k in BATCHED_PRODUCTS:
        yield gemm(m, n, k, False, True, batch)
    yield gemm(2048, 2048, 2048, c="row", fused_activation=descs.ActivationRelu())
    yield gemm(512, 768, 3072, alpha=0.5)
    yield gemm(512, 768, 3072, c="matrix")
    yield gemm(512, 768, 3072, alpha=0.5, c="matrix")
    yield gemm(512, 768, 3072, alpha=0.5, c="row", beta=2.0)
    yield gemm(512, 3072, 768, c="row", fused_activation=descs.ActivationGelu())


def _other_convolutions() -> Iterator[Form]:
    relu = descs.ActivationRelu()
    yield convolution((8, 64, 56, 56), 64, 3, bias=True, fused_activation=relu)
    yield convolution((8, 64, 56, 56), 256, 1, bias=True, fused_activation=relu)
    yield convolution((8, 144, 56, 56), 144, 3, groups=144, bias=True, fused_activation=relu)
    yield convolution((8, 256, 28, 28), 256, 3, groups=32)
    for images, outputs, side, stride in (
        ((32, 64, 56, 56), 64, 3, 1),
        ((32, 256, 56, 56), 64, 1, 1),
        ((32, 128, 56, 56), 128, 3, 2),
    ):
        yield convolution(
            images, outputs, side, stride, bias=True, is_channels_last=True, fused_activation=relu
        )
    yield convolution((8, 256, 28, 28), 256, 3, dilations=(2, 2), start_padding=(2, 2), end_padding=(2, 2))
    backward = {"strides": (2, 2), "dilations": (1, 1), "start_padding": (1, 1), "end_padding": (1, 1)}
    yield Form(
        "CONVOLUTION",
        "backward 4x4, 128 to 64 of 28x28, batch 8, stride 2",
        {"input": (8, 128, 28, 28), "filter": (128, 64, 4, 4)},
        backward | {"output_padding": (0, 0), "direction": ConvolutionDirection.BACKWARD},
    )
    signal = {"strides": (1,), "dilations": (1,), "start_padding": (4,), "end_padding": (4,)}
    yield Form(
        "CONVOLUTION",
        "9, 128 to 128 of 4000, batch 8",
        {"input": (8, 128, 4000), "filter": (128, 128, 9)},
        signal | {"output_padding": (0,)},
    )
    ones = dict.fromkeys(("strides", "dilations", "start_padding", "end_padding"), (1, 1, 1))
    yield Form(
        "CONVOLUTION",
        "3x3x3, 32 to 64 of 16x56x56, batch 2",
        {"input": (2, 32, 16, 56, 56), "filter": (64, 32, 3, 3, 3)},
        ones | {"output_padding": (0, 0, 0)},
    )


def _attentions() -> Iterator[Form]:
    for sizes in ATTENTIONS:
        yield attention(*sizes)
    for more in ("bias", "mask", "past"):
        yield attention(8, 12, 12, 512, 64, more)
        yield attention(8, 12, 4, 512, 64, more)
    for sizes in ((8, 12, 12, 512, 64), (2, 16, 4, 4096, 128)):
        yield attention(*sizes, "bias of operands")
    yield attention(8, 12, 12, 512, 64, "stacked, bias of operands")


def _integers() -> Iterator[Form]:
    for size in INTEGER_PRODUCTS:
        for transposed in (False, True):
            yield integer_product(size, transposed=transposed)
    a, b, one = (1, 1, 512, 768), (1, 1, 768, 3072), (1, 1, 1, 1)
    columns = (1, 1, 1, 3072)
    zeros = {"a": a, "a_zero_point": one, "b": b, "b_zero_point": one}
    scaled = zeros | {"a_scale": one, "b_scale": columns, "b_zero_point": columns}
    weights = {"b": "INT8", "b_zero_point": "INT8"}
    name = "512x3072x768, zero points"
    yield Form("MATRIX_MULTIPLY_INTEGER", name, zeros, types=weights)
    for type in ("FLOAT32", "FLOAT16"):
        yield Form(
            "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
            f"{name}, scale of columns, bias, to {type}",
            scaled | {"bias": Strided((1, 1, 512, 3072), (0, 0, 0, 1))},
            types=dict.fromkeys(("a_scale", "b_scale", "bias", "output"), type),
        )
    quantized = scaled | {"output_scale": one, "output_zero_point": one}
    yield Form("QUANTIZED_LINEAR_MATRIX_MULTIPLY", name, quantized, types=weights)
    for images, (outputs, side), stride, groups in CONVOLUTIONS[1:2] + CONVOLUTIONS[3:5] + CONVOLUTIONS[8:9]:
        plain = convolution(images, outputs, side, stride, groups)
        given = {name: value for name, value in plain.attributes.items() if name != "output_padding"}
        filters = (1, outputs, 1, 1)
        zeros = {**plain.tensors, "input_zero_point": one, "filter_zero_point": filters}
        types = {"filter": "INT8", "filter_zero_point": "INT8"}
        yield Form("CONVOLUTION_INTEGER", plain.name, zeros, given, types=types)
        tensors = zeros | {"input_scale": one, "filter_scale": filters, "bias": filters}
        tensors |= {"output_scale": one, "output_zero_point": one}
        yield Form("QUANTIZED_LINEAR_CONVOLUTION", plain.name, tensors, given, types=types)
