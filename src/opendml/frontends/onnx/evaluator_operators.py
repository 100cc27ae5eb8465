"""Replacements of operators that onnx's evaluator computes wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from opendml.frontends.onnx.operators.movement import slice_range
from opendml.frontends.onnx.regular_expressions import full_matches
from opendml.frontends.onnx.values import strings_of


class Unique(OpRun):  # type: ignore[misc,unused-ignore]
    """Unique slices or elements, sorted or in order of appearance.

    Onnx's orders them only along the first axis, and only if more than one output is requested.
    """

    op_domain = ""

    def _run(self, x: Any, axis: int | None = None, sorted: int = 1) -> tuple[Any, ...]:
        given, along = (x.reshape(-1), 0) if axis is None else (x, axis)
        _, first, which, counts = np.unique(given, True, True, True, axis=along)
        order = np.arange(len(first)) if sorted else np.argsort(first)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        numbers = (first[order], places[which.reshape(-1)], counts[order])
        results = (np.take(given, first[order], along), *(each.astype(np.int64) for each in numbers))
        return results[: len(self.onnx_node.output)]


class Slice(OpRun):  # type: ignore[misc,unused-ignore]
    """Slices between starts and ends.

    Onnx's finds no element if a backward slice begins before all elements; it must begin at the first.
    """

    op_domain = ""

    def _run(
        self, data: Any, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None
    ) -> tuple[Any, ...]:
        count = np.size(starts)
        axes = range(count) if axes is None else np.ravel(axes)
        steps = [1] * count if steps is None else np.ravel(steps)
        for start, end, axis, step in zip(np.ravel(starts), np.ravel(ends), axes, steps, strict=True):
            places = slice_range(int(start), int(end), int(step), data.shape[axis]).indices
            data = data.take(list(places), axis)
        return (data,)


class BatchNormalization(OpRun):  # type: ignore[misc,unused-ignore]
    """Batch normalization. Before version 14, onnx's mixes in the statistics of the batch."""

    op_domain = ""

    def _run(
        self,
        x: Any,
        scale: Any,
        bias: Any,
        mean: Any,
        variance: Any,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        training_mode: int = 0,
        spatial: int = 1,
    ) -> tuple[Any, ...]:
        count = len(self.onnx_node.output)
        if spatial != 1 or (count > 1 and not training_mode):
            raise NotImplementedError("means of elements, or outputs of training before version 14")
        running: tuple[Any, ...] = ()
        if training_mode:
            axes = tuple(axis for axis in range(x.ndim) if axis != 1)
            own = x.mean(axes), x.var(axes)
            each = zip((mean, variance), own, strict=True)
            running = tuple((a * momentum + b * (1 - momentum)).astype(mean.dtype) for a, b in each)
            mean, variance = own
        scale, bias, mean, variance = (
            each.reshape(-1, *[1] * (x.ndim - 2)) for each in (scale, bias, mean, variance)
        )
        y = scale * (x - mean) / np.sqrt(variance + epsilon) + bias
        return (y.astype(x.dtype), *running)[:count]


class RegexFullMatch(OpRun):  # type: ignore[misc,unused-ignore]
    """A full match of each string with a pattern. Onnx's search may never end."""

    op_domain = ""

    def _run(self, x: Any, pattern: str | None = None) -> tuple[Any, ...]:
        if x.dtype.kind not in "OU":
            raise TypeError(f"elements of type {x.dtype.name}; must be strings")
        if pattern is None:
            raise ValueError("attribute pattern is missing")
        matches = full_matches(pattern, strings_of(x), f"node {self.onnx_node.output[0]!r}")
        return (np.array(matches, np.bool_).reshape(x.shape),)


MENDED = [BatchNormalization, RegexFullMatch, Slice, Unique]
