"""Measures the kernels of an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opendml.errors import Unsupported
from opendml.frontends.onnx.values import carrier_of
from opendml.logs import warn_caller
from opendml.runtime.explain.explanation import ExplainedGraph, joined
from opendml.runtime.graphs.model import Model

Array = np.ndarray[Any, Any]


def explained(parts: Sequence[Model | str], given: Mapping[str, Array]) -> ExplainedGraph:
    """Measure the graphs of a model, and return them as one. Warn of what is not measured.

    Args:
        parts: the graphs and the names of nodes outside of them, in order.
        given: the inputs that the caller has given. Others are made up, as by `Model.explain`.

    Raises:
        Unsupported: there are no graphs.
    """
    found = []
    for part in parts:
        if isinstance(part, str):
            problem = f"{part} runs outside of DirectML's operators, and is not measured"
            warn_caller(problem, UserWarning)
            continue
        inputs = {name: given[name] for name in part.input_names if name in given}
        found.append(part.explain(**{name: _as_graph_input(each) for name, each in inputs.items()}))
    if not found:
        raise Unsupported("explain: nothing of the model becomes a graph of DirectML's operators")
    return joined(found)


def _as_graph_input(array: Array) -> Array:
    """Return an array in the form of a DirectML tensor, a packed copy if need be."""
    return np.atleast_1d(np.ascontiguousarray(array)).view(carrier_of(array.dtype))
