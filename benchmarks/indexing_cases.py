"""The cases of `indexing`: what indices choose and place, gradients of pooling, random numbers and recurrent
networks, and the words of other libraries for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
GENERATOR = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """Inputs, and what is made of them: `opendml` of tensors of a graph, the others of arrays of their own.

    `onnx` are an operator's name, attributes and number of outputs; it has the arrays `onnx_inputs` where
    they differ. Constants follow the inputs, in all.
    """

    name: str
    inputs: tuple[Array, ...]
    opendml: Callable[..., Any]
    torch: Callable[..., Any] | None = None
    onnx: tuple[str, Mapping[str, Any], int] | None = None
    onnx_inputs: tuple[Array, ...] | None = None
    onnx_constants: tuple[Array, ...] = ()
    numpy: Callable[..., Any] | None = None
    constants: tuple[Array, ...] = ()
    moved: int | None = None
    """Bytes that must be read and written, where they are not those of inputs and results."""


def cases() -> Iterator[Case]:
    """All cases."""
    yield from _gathers()
    yield from _scatters()
    yield from _others()
    yield from _greatest()
    yield from _gradients()
    for name in ("LSTM", "GRU"):
        for batch in (1, 32):
            for hidden in (128, 512):
                yield _recurrent(name, 100, batch, hidden)


def _normal(*sizes: int) -> Array:
    return GENERATOR.standard_normal(sizes, np.float32)


def _indices(limit: int, *sizes: int) -> Array:
    return GENERATOR.integers(0, limit, sizes, np.int64)


def _gathers() -> Iterator[Case]:
    import opendml as dml

    table = _normal(20_000, 256)
    for width in (16, 64, 256):
        x, chosen = np.ascontiguousarray(table[:, :width]), _indices(len(table), 32_768)
        yield Case(
            f"gather rows of {width}",
            (x, chosen[None]),
            lambda x, at: dml.gather(x, at, axis=0, index_dimensions=1),
            lambda x, at: x.index_select(0, at[0]),
            ("Gather", {"axis": 0}, 1),
            (x, chosen),
            numpy=lambda x, at: np.take(x, at[0], 0),
            moved=2 * 32_768 * 4 * width + chosen.nbytes,
        )
    x, chosen = _normal(1000, 4096), _indices(4096, 1, 1024)
    yield Case(
        "gather columns",
        (x, chosen),
        lambda x, at: dml.gather(x, at, axis=1, index_dimensions=1),
        lambda x, at: x.index_select(1, at[0]),
        ("Gather", {"axis": 1}, 1),
        (x, chosen[0]),
        numpy=lambda x, at: np.take(x, at[0], 1),
        moved=2 * 1000 * 1024 * 4,
    )
    x = _normal(1000, 1000)
    for axis in (0, 1):
        yield Case(
            f"gather elements axis {axis}",
            (x, _indices(1000, 1000, 1000)),
            lambda x, at, axis=axis: dml.gather_elements(x, at, axis=axis),
            lambda x, at, axis=axis: x.gather(axis, at),
            ("GatherElements", {"axis": axis}, 1),
            numpy=lambda x, at, axis=axis: np.take_along_axis(x, at, axis),
        )
    x, chosen = _normal(64, 64, 128), _indices(64, 1, 16_384, 2)
    yield Case(
        "gather tuples, rows of 128",
        (x, chosen),
        lambda x, at: dml.gather_nd(x, at, input_dimension_count=3, indices_dimension_count=2),
        lambda x, at: x[at[0, :, 0], at[0, :, 1]],
        ("GatherND", {}, 1),
        (x, chosen[0]),
        numpy=lambda x, at: x[at[0, :, 0], at[0, :, 1]],
        moved=2 * 16_384 * 512 + chosen.nbytes,
    )


def _scatters() -> Iterator[Case]:
    import opendml as dml

    x, updates = _normal(1000, 1000), _normal(1000, 1000)
    for axis in (0, 1):
        yield Case(
            f"scatter axis {axis}",
            (x, _indices(1000, 1000, 1000), updates),
            lambda x, at, updates, axis=axis: dml.scatter(x, at, updates, axis=axis),
            lambda x, at, updates, axis=axis: x.scatter(axis, at, updates),
            ("ScatterElements", {"axis": axis}, 1),
        )
    x, updates, chosen = _normal(20_000, 256), _normal(8_192, 256), _indices(20_000, 8_192, 1)
    yield Case(
        "scatter tuples, rows of 256",
        (x, chosen, updates),
        lambda x, at, updates: dml.scatter_nd(
            x, at, updates, input_dimension_count=2, indices_dimension_count=2
        ),
        lambda x, at, updates: x.index_copy(0, at[:, 0], updates),
        ("ScatterND", {}, 1),
    )


def _others() -> Iterator[Case]:
    import torch

    import opendml as dml

    chosen, values = _indices(1000, 4096, 1), np.array([[0, 1]], np.float32)
    yield Case(
        "one hot",
        (chosen, values),
        lambda at, values: dml.one_hot(at, values, axis=1, sizes=(4096, 1000)),
        lambda at, values: torch.nn.functional.one_hot(at[:, 0], 1000),
        ("OneHot", {"axis": 1}, 1),
        (chosen[:, 0], np.array(1000, np.int64), values[0]),
    )
    for share in (0.01, 0.5):
        x = _normal(1000, 1000) * (GENERATOR.random((1000, 1000)) < share)
        yield Case(
            f"nonzero, {share:.0%} of a million",
            (x.astype(np.float32),),
            lambda x: dml.nonzero_coordinates(x),
            torch.nonzero,
            ("NonZero", {}, 1),
            numpy=np.nonzero,
        )
    x, lengths = _normal(8192, 256), GENERATOR.integers(1, 257, (8192, 1)).astype(np.uint32)
    yield Case(
        "reverse sequences",
        (x, lengths),
        lambda x, lengths: dml.reverse_subsequences(x, lengths, axis=1),
        onnx=("ReverseSequence", {"batch_axis": 0, "time_axis": 1}, 1),
        onnx_inputs=(x, lengths[:, 0].astype(np.int64)),
    )
    gradient = _normal(8, 64, 48, 48)
    yield Case(
        "slice grad",
        (gradient,),
        lambda g: dml.slice_grad(
            g,
            input_window_offsets=(0, 0, 4, 4),
            input_window_sizes=(8, 64, 48, 48),
            input_window_strides=(1, 1, 1, 1),
            sizes=(8, 64, 56, 56),
        ),
        lambda g: torch.nn.functional.pad(g, (4, 4, 4, 4)),
    )
    image = _normal(4, 64, 56, 56)
    ones = (1, 1)
    columns_of: dict[str, Any] = {
        "window_sizes": (3, 3),
        "strides": ones,
        "dilations": ones,
        "start_padding": ones,
        "end_padding": ones,
    }
    yield Case(
        "unfold 3x3",
        (image,),
        lambda x: dml.unfold(x, **columns_of),
        lambda x: torch.nn.functional.unfold(x, 3, padding=1),
    )
    columns = _normal(4, 576, 56 * 56)
    yield Case(
        "fold 3x3",
        (columns,),
        lambda x: dml.fold(x, **columns_of, sizes=(4, 64, 56, 56)),
        lambda x: torch.nn.functional.fold(x, (56, 56), 3, padding=1),
    )


def _greatest() -> Iterator[Case]:
    import opendml as dml

    million, lines = _normal(1, 1_000_000), _normal(1000, 1000)
    integers = GENERATOR.integers(-(2**62), 2**62, (1, 1_000_000), np.int64)
    for x, k in ((million, 1), (million, 64), (lines, 5), (lines, 64), (integers, 300_000)):
        yield Case(
            f"top {k} of {x.shape[0]}x{x.shape[1]} {x.dtype}",
            (x,),
            lambda x, k=k: dml.top_k1(x, axis=1, k=k),
            lambda x, k=k: x.topk(k, 1),
            ("TopK", {"axis": 1}, 2),
            onnx_constants=(np.array([k], np.int64),),
        )


def _gradients() -> Iterator[Case]:
    import torch

    import opendml as dml

    x, gradient = _normal(8, 64, 56, 56), _normal(8, 64, 28, 28)
    pooled = torch.from_numpy(x)
    window: dict[str, Any] = {
        "strides": (2, 2),
        "window_size": (3, 3),
        "start_padding": (1, 1),
        "end_padding": (0, 0),
    }
    _, places = torch.nn.functional.max_pool2d(pooled, 3, 2, 1, return_indices=True)
    backward = torch.ops.aten.max_pool2d_with_indices_backward
    yield Case(
        "max pooling grad 3x3/2 (peer has the indices)",
        (x, gradient),
        lambda x, g: dml.max_pooling_grad(x, g, **window),
        lambda x, g: backward(g, x, [3, 3], [2, 2], [1, 1], [1, 1], False, places),
    )
    yield Case(
        "average pooling grad 3x3/2",
        (gradient,),
        lambda g: dml.average_pooling_grad(g, **window, include_padding=True, sizes=x.shape),
        lambda g: torch.ops.aten.avg_pool2d_backward(g, pooled, [3, 3], [2, 2], [1, 1], False, True, None),
    )
    large = _normal(4, 64, 56, 56)
    for mode, peer in (
        ("NEAREST_NEIGHBOR", torch.ops.aten.upsample_nearest2d_backward),
        ("LINEAR", torch.ops.aten.upsample_bilinear2d_backward),
    ):
        further = [False] if mode == "LINEAR" else []
        yield Case(
            f"resample grad {mode.lower()} 2x",
            (large,),
            lambda g, mode=mode: dml.resample_grad(
                g, interpolation_mode=mode, scales=(1, 1, 2, 2), sizes=(4, 64, 28, 28)
            ),
            lambda g, peer=peer, further=further: peer(g, [56, 56], [4, 64, 28, 28], *further),
        )
    state = np.array([[1, 2, 3, 4, 5, 6]], np.uint32)
    words, philox = torch.empty(1_000_000, dtype=torch.int32), np.random.Generator(np.random.Philox(0))
    yield Case(
        "random, a million words",
        (state,),
        lambda state: dml.random_generator(state, sizes=(1, 1_000_000)),
        lambda state: words.random_(),
        numpy=lambda state: philox.integers(0, 2**32, 1_000_000, np.uint32),
    )


def _recurrent(name: str, steps: int, batch: int, hidden: int) -> Case:
    import torch

    import opendml as dml

    gates = {"LSTM": 4, "GRU": 3}[name]
    x = _normal(1, steps, batch, hidden)
    weights = [_normal(1, gates * hidden, hidden) * 0.05 for _ in range(2)]
    bias = _normal(1, 2 * gates * hidden) * 0.1
    activations = [dml.descs.ActivationSigmoid(), *[dml.descs.ActivationTanh()] * (gates - 2)]
    layer = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU}[name](hidden, hidden)
    attributes: dict[str, Any] = {"hidden_size": hidden}
    if name == "GRU":
        attributes["linear_before_reset"] = 1

    def ours(x: Any, w: Any, r: Any, b: Any) -> Any:
        further: dict[str, Any] = {"linear_before_reset": True} if name == "GRU" else {}
        function: Callable[..., Any] = dml.lstm if name == "LSTM" else dml.gru
        return function(x, w, r, b, activation_descs=activations, output_sequence=True, **further)[0]

    return Case(
        f"{name} of {steps} steps, batch {batch}, hidden {hidden}",
        (x,),
        ours,
        partial(_without_gradients, layer),
        (name, attributes, 1),
        (x[0],),
        (*weights, bias),
        constants=(weights[0][None], weights[1][None], bias[None, None]),
    )


def _without_gradients(layer: Any, x: Any) -> Any:
    import torch

    with torch.no_grad():
        return layer(x[0])[0]
