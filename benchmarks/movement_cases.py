"""The cases of `movement`: what moves, pools and resamples, and the words of other libraries for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
IMAGES = ((1, 64, 112, 112), (8, 64, 56, 56), (1, 3, 1080, 1920))


@dataclass(frozen=True)
class OnnxOperator:
    """ONNX's operator: its attributes, and the inputs that follow the case's own ("" leaves one out)."""

    name: str
    attributes: Mapping[str, Any]
    constants: tuple[Array | str, ...] = ()
    outputs: int = 1


@dataclass(frozen=True)
class Case:
    """Inputs, and what is made of them: `opendml` of tensors of a graph, NumPy into given arrays, others of
    arrays of their own. Results are one, or a sequence."""

    name: str
    inputs: tuple[Array, ...]
    opendml: Callable[..., Any]
    torch: Callable[..., Any] | None = None
    onnx: OnnxOperator | None = None
    jax: Callable[..., Any] | None = None
    numpy: Callable[..., Any] | None = None
    read: int | None = None
    """Bytes that must be read, where they are not those of the inputs."""


def cases() -> Iterator[Case]:
    """All cases."""
    for sizes in IMAGES:
        yield from _movements(_normal(sizes))
    for dtype in ("float32", "float16"):
        yield from _matrices(dtype)
    for dtype, images in (("float32", IMAGES), ("float16", IMAGES[1:2])):
        for sizes in images:
            yield from _windows(_normal(sizes, dtype))


def image_cases(sizes: Sequence[int]) -> Iterator[Case]:
    """What is done to one image of FLOAT32."""
    x = _normal(sizes)
    yield from _movements(x)
    yield from _windows(x)


def _windows(x: Array) -> Iterator[Case]:
    yield from _poolings(x)
    yield from _resamplings(x)


def _normal(sizes: Sequence[int], dtype: str = "float32") -> Array:
    return np.random.default_rng(0).standard_normal(sizes, np.float32).astype(dtype)


def _named(name: str, x: Array) -> str:
    return f"{name} {'x'.join(map(str, x.shape))} {x.dtype}"


def _int64(*values: int) -> Array:
    return np.array(values, np.int64)


def _movements(x: Array) -> Iterator[Case]:
    import torch

    import opendml as dml

    n, c, h, w = x.shape
    sizes = (n, c, h - 8, w)
    yield Case(
        _named("slice rows", x),
        (x,),
        lambda x: dml.slice(x, offsets=(0, 0, 4, 0), sizes=sizes, strides=(1, 1, 1, 1)),
        lambda x: x[:, :, 4:-4].contiguous(),
        OnnxOperator("Slice", {}, (_int64(4), _int64(h - 4), _int64(2))),
        lambda x: x[:, :, 4:-4],
        lambda x, out: np.copyto(out, x[:, :, 4:-4]),
        read=x.nbytes * (h - 8) // h,
    )
    inner = (n, c, h - 8, w - 8)
    yield Case(
        _named("slice inner", x),
        (x,),
        lambda x: dml.slice(x, offsets=(0, 0, 4, 4), sizes=inner, strides=(1, 1, 1, 1)),
        lambda x: x[:, :, 4:-4, 4:-4].contiguous(),
        OnnxOperator("Slice", {}, (_int64(4, 4), _int64(h - 4, w - 4), _int64(2, 3))),
        lambda x: x[:, :, 4:-4, 4:-4],
        lambda x, out: np.copyto(out, x[:, :, 4:-4, 4:-4]),
        read=x.nbytes * (h - 8) * (w - 8) // (h * w),
    )
    yield Case(
        _named("slice every other", x),
        (x,),
        lambda x: dml.slice(x, sizes=(n, c, h // 2, w // 2), strides=(1, 1, 2, 2)),
        lambda x: x[:, :, ::2, ::2].contiguous(),
        OnnxOperator("Slice", {}, (_int64(0, 0), _int64(h, w), _int64(2, 3), _int64(2, 2))),
        lambda x: x[:, :, ::2, ::2],
        lambda x, out: np.copyto(out, x[:, :, ::2, ::2]),
        read=x.nbytes // 2,
    )
    yield Case(
        _named("slice1 backwards", x),
        (x,),
        lambda x: dml.slice1(x, input_window_sizes=x.sizes, input_window_strides=(1, 1, 1, -1)),
        lambda x: x.flip(3),
        OnnxOperator("Slice", {}, (_int64(-1), _int64(-w - 1), _int64(3), _int64(-1))),
        lambda x: x[..., ::-1],
        lambda x, out: np.copyto(out, x[..., ::-1]),
    )
    for axis in (1, 3):
        parts = (x, x + np.float32(1), x + np.float32(2))
        yield Case(
            _named(f"join axis {axis}", x),
            parts,
            lambda *parts, axis=axis: dml.join(parts, axis=axis),
            lambda *parts, axis=axis: torch.cat(parts, axis),
            OnnxOperator("Concat", {"axis": axis}),
            lambda *parts, axis=axis: _jnp().concatenate(parts, axis),
            lambda *parts, out, axis=axis: np.concatenate(parts, axis, out=out),
        )
    for axis in (2, 3):
        half = x.shape[axis] // 2
        yield Case(
            _named(f"split axis {axis}", x),
            (x,),
            lambda x, axis=axis, half=half: dml.split(x, axis=axis, sizes=(half, half)),
            lambda x, axis=axis, half=half: [part.contiguous() for part in x.split(half, axis)],
            OnnxOperator("Split", {"axis": axis, "num_outputs": 2}, outputs=2),
            lambda x, axis=axis: _jnp().split(x, 2, axis),
        )
    for order in ((0, 2, 3, 1), (0, 3, 1, 2)):
        strides = (c * h * w, h * w, w, 1)
        turned, along = [x.shape[d] for d in order], [strides[d] for d in order]
        yield Case(
            _named(f"transpose {''.join(map(str, order))}", x),
            (x,),
            lambda x, turned=turned, along=along: x.reinterpret(turned, strides=along),
            lambda x, order=order: x.permute(order).contiguous(),
            OnnxOperator("Transpose", {"perm": order}),
            lambda x, order=order: _jnp().transpose(x, order),
            lambda x, out, order=order: np.copyto(out, x.transpose(order)),
        )
    margins = ((0, 0), (0, 0), (3, 3), (3, 3))
    onnx_margins = _int64(*(before for before, _ in margins), *(after for _, after in margins))
    for mode, torch_mode, other in (
        ("CONSTANT", "constant", "constant"),
        ("REFLECTION", "reflect", "reflect"),
        ("EDGE", "replicate", "edge"),
        ("SYMMETRIC", None, "symmetric"),
    ):
        yield Case(
            _named(f"padding {mode.lower()}", x),
            (x,),
            lambda x, mode=mode: dml.padding(
                x, padding_mode=mode, start_padding=(0, 0, 3, 3), end_padding=(0, 0, 3, 3)
            ),
            (lambda x, mode=torch_mode: torch.nn.functional.pad(x, (3, 3, 3, 3), mode))
            if torch_mode
            else None,
            OnnxOperator("Pad", {"mode": other}, (onnx_margins,)) if torch_mode else None,
            lambda x, mode=other: _jnp().pad(x, margins, mode),
        )
    yield Case(
        _named("tile", x),
        (x,),
        lambda x: dml.tile(x, repeats=(1, 1, 2, 2)),
        lambda x: x.tile(1, 1, 2, 2),
        OnnxOperator("Tile", {}, (_int64(1, 1, 2, 2),)),
        lambda x: _jnp().tile(x, (1, 1, 2, 2)),
    )
    if c % 4 == 0:
        yield Case(
            _named("depth to space", x),
            (x,),
            lambda x: dml.depth_to_space(x, block_size=2),
            None,
            OnnxOperator("DepthToSpace", {"blocksize": 2}),
        )
    yield Case(
        _named("space to depth", x),
        (x,),
        lambda x: dml.space_to_depth(x, block_size=2),
        None,
        OnnxOperator("SpaceToDepth", {"blocksize": 2}),
    )


def _matrices(dtype: str) -> Iterator[Case]:
    import torch

    import opendml as dml

    x = _normal((2048, 1024), dtype)
    yield Case(
        _named("transpose", x),
        (x,),
        lambda x: x.reinterpret((1024, 2048), strides=(1, 1024)),
        lambda x: x.T.contiguous(),
        OnnxOperator("Transpose", {"perm": (1, 0)}),
        lambda x: x.T,
        lambda x, out: np.copyto(out, x.T),
    )
    indices = np.random.default_rng(1).integers(0, 2048, (4096, 1), np.int32)
    yield Case(
        _named("gather rows", x),
        (x, indices),
        lambda x, i: dml.gather(x, i.reinterpret((1, 4096)), axis=0, index_dimensions=1),
        lambda x, i: torch.index_select(x, 0, i[:, 0]),
        None,
        lambda x, i: _jnp().take(x, i[:, 0], 0, mode="clip"),
        lambda x, i, out: np.take(x, i[:, 0], 0, out=out, mode="clip"),
        read=4096 * 1024 * x.itemsize,
    )


def _poolings(x: Array) -> Iterator[Case]:
    import torch

    import opendml as dml

    height, width = x.shape[2:]
    functional = torch.nn.functional
    forms = (
        ("2x2", (2, 2), (2, 2), 0),
        ("3x3 stride 2", (3, 3), (2, 2), 1),
        ("global", (height, width), (1, 1), 0),
    )
    for name, window, strides, margin in forms:
        attributes: dict[str, Any] = {
            "window_size": window,
            "strides": strides,
            "start_padding": (margin,) * 2,
            "end_padding": (margin,) * 2,
        }
        onnx = {"kernel_shape": window, "strides": strides, "pads": (margin,) * 4}
        yield Case(
            _named(f"max pooling {name}", x),
            (x,),
            lambda x, a=attributes: dml.max_pooling(x, **a),
            lambda x, a=(window, strides, margin): functional.max_pool2d(x, *a),
            OnnxOperator("MaxPool", onnx),
            lambda x, a=(window, strides, margin): _reduced(x, "max", *a),
        )
        yield Case(
            _named(f"average pooling {name}", x),
            (x,),
            lambda x, a=attributes: dml.average_pooling(x, **a, include_padding=True),
            lambda x, a=(window, strides, margin): functional.avg_pool2d(x, *a),
            OnnxOperator("AveragePool", onnx | {"count_include_pad": 1}),
            lambda x, a=(window, strides, margin): _reduced(x, "add", *a) / (a[0][0] * a[0][1]),
        )
        yield Case(
            _named(f"Lp pooling {name}", x),
            (x,),
            lambda x, a=attributes: dml.lp_pooling(x, **a, p=2),
            (lambda x, a=(window, strides): functional.lp_pool2d(x, 2, *a)) if margin == 0 else None,
            OnnxOperator("LpPool", onnx | {"p": 2}),
            lambda x, a=(window, strides, margin): _jnp().sqrt(_reduced(x * x, "add", *a)),
        )


def _reduced(x: Any, function: str, window: Sequence[int], strides: Sequence[int], margin: int) -> Any:
    from jax import lax

    start = -np.inf if function == "max" else 0.0
    padding = ((0, 0), (0, 0), (margin, margin), (margin, margin))
    combine = getattr(lax, function)
    return lax.reduce_window(x, np.array(start, x.dtype), combine, (1, 1, *window), (1, 1, *strides), padding)


def _resamplings(x: Array) -> Iterator[Case]:
    import torch

    import opendml as dml

    height, width = x.shape[2:]
    functional = torch.nn.functional
    for direction, scale in (("up", 2.0), ("down", 0.5)):
        sizes = (int(height * scale), int(width * scale))
        for mode, torch_mode, onnx in (
            ("NEAREST_NEIGHBOR", "nearest-exact", {"mode": "nearest", "nearest_mode": "round_prefer_ceil"}),
            ("LINEAR", "bilinear", {"mode": "linear"}),
        ):
            factors = np.array([1, 1, scale, scale], np.float32)
            yield Case(
                _named(f"{mode.split('_')[0].lower()} {direction}", x),
                (x,),
                lambda x, mode=mode, scale=scale: dml.resample(
                    x, interpolation_mode=mode, scales=(1.0, 1.0, scale, scale)
                ),
                lambda x, sizes=sizes, mode=torch_mode: functional.interpolate(x, sizes, mode=mode),
                OnnxOperator(
                    "Resize", {**onnx, "coordinate_transformation_mode": "half_pixel"}, ("", factors)
                ),
                lambda x, sizes=sizes, mode=mode: _resized(x, sizes, mode),
                read=None if scale > 1 or mode == "LINEAR" else x.nbytes // 2,
            )


def _resized(x: Any, sizes: Sequence[int], mode: str) -> Any:
    import jax

    method = "linear" if mode == "LINEAR" else "nearest"
    return jax.image.resize(x, (*x.shape[:2], *sizes), method, antialias=False)


def _jnp() -> Any:
    import jax.numpy

    return jax.numpy
