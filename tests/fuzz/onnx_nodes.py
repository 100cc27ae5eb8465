"""The random nodes that `onnx_graphs` and `onnx_models` are made of."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz import onnx_bodies, onnx_elementwise, onnx_indexing, onnx_microsoft, onnx_movement, onnx_sums
from tests.fuzz.onnx_draft import Draft, Made

Maker = Callable[[Draft], Made]

MAKERS: tuple[Maker, ...] = (
    onnx_elementwise.smooth,
    onnx_elementwise.sign,
    onnx_elementwise.binary,
    onnx_elementwise.binary,
    onnx_elementwise.variadic,
    onnx_elementwise.comparison,
    onnx_elementwise.logical,
    onnx_elementwise.bitwise,
    onnx_elementwise.where,
    onnx_elementwise.clip,
    onnx_elementwise.cast,
    onnx_elementwise.step,
    onnx_movement.transpose,
    onnx_movement.reshape,
    onnx_movement.reshape_like,
    onnx_movement.flatten,
    onnx_movement.squeeze,
    onnx_movement.unsqueeze,
    onnx_movement.concat,
    onnx_movement.split,
    onnx_movement.slice,
    onnx_movement.slice,
    onnx_movement.expand,
    onnx_movement.pad,
    onnx_movement.blocks,
    onnx_movement.triangle,
    onnx_indexing.gather,
    onnx_indexing.gather_nd,
    onnx_indexing.scatter,
    onnx_indexing.made_of_numbers,
    onnx_indexing.choosing,
    onnx_indexing.searching,
    onnx_sums.running_sum,
    onnx_sums.reduction,
    onnx_sums.reduction,
    onnx_sums.softmax,
    onnx_sums.product,
    onnx_sums.product,
    onnx_sums.einsum,
    onnx_sums.window,
    onnx_sums.window,
    onnx_sums.normalization,
    onnx_sums.resize,
    onnx_sums.quantized,
    onnx_sums.recurrent,
    onnx_sums.attention,
    onnx_sums.sampling,
    onnx_microsoft.activation,
    onnx_microsoft.product,
    onnx_microsoft.normalization,
    onnx_microsoft.attention,
    onnx_microsoft.quantized,
    onnx_bodies.branch,
    onnx_bodies.loop,
    onnx_bodies.scan,
)
