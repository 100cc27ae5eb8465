"""Binds ONNX models to NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx.segment import CompiledSegment
from opendml.frontends.onnx.trace import Tracer
from opendml.frontends.onnx.values import carrier_of
from opendml.runtime.objects.bound import BoundModel

Array = np.ndarray[Any, Any]


def bound(
    tracer: Tracer, given: Mapping[str, Any], checked: Mapping[str, Array], outputs: Mapping[str, Any]
) -> BoundModel:
    """Trace a model for arrays, and bind its graph to them.

    Args:
        tracer: traces the model.
        given: the inputs of the caller by name.
        checked: the inputs as the model takes them. Those that are copies cannot be bound.
        outputs: all outputs by name.

    Raises:
        InvalidArgument: an array of another type, size or layout.
        Unsupported: the model is more than one graph, an output is not computed by it, or numbers of an input
            decide what runs.
    """
    for name, array in checked.items():
        if array is not given[name]:
            type = "objects" if array.dtype == object else array.dtype.name
            raise InvalidArgument(
                f"bind: input {name!r}: {_described(given[name])}; a NumPy array of {type} is needed"
            )
    dimensions, contents = dict[str, int](), dict(checked)
    steps = list(tracer.steps(contents, dimensions))
    segment = steps[0].work
    if len(steps) != 1 or not isinstance(segment, CompiledSegment):
        raise Unsupported("bind: the model is more than one graph of DirectML's operators; `run` runs it")
    if decisive := [name for name in tracer.decisive if name in checked]:
        raise Unsupported(f"bind: numbers of input {decisive[0]!r} decide what runs; `run` reads them")
    computed = {name for name, _ in segment.results}
    others = [name for name in tracer.outputs if name not in computed]
    if others:
        raise Unsupported(f"bind: output {others[0]!r} is an input or a constant; `run` copies it")
    graph = segment.model_at(dimensions)
    assert graph is not None
    content_of = {**checked, **segment.known(dimensions)}
    inputs = {name: _as_bound(f"input {name!r}", content_of[name]) for name in segment.inputs}
    for name in tracer.outputs:
        array, wanted = outputs[name], contents[name]
        if not isinstance(array, np.ndarray) or (array.dtype, array.shape) != (wanted.dtype, wanted.shape):
            needed = f"an array of {wanted.dtype.name} of sizes {list(wanted.shape)} is needed"
            raise InvalidArgument(f"bind: output {name!r}: {_described(array)}; {needed}")
    return graph.bind(inputs, {name: _as_bound(f"output {name!r}", outputs[name]) for name in tracer.outputs})


def _described(given: Any) -> str:
    """Return what the caller has given in words, for an error."""
    if isinstance(given, np.ndarray):
        return f"{given.dtype} of sizes {list(given.shape)}"
    return f"a {type(given).__name__}"


def _as_bound(label: str, array: Array) -> Array:
    """Return an array in the form of a DirectML tensor, over the same memory.

    Raises:
        InvalidArgument: the array is not packed.
    """
    if not array.flags.c_contiguous:
        raise InvalidArgument(f"bind: {label}: strides {list(array.strides)}; a packed array is needed")
    return np.atleast_1d(array).view(carrier_of(array.dtype))
