"""Operands that are repeated to common sizes: no operators of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opendml.frontends.onnx.conversion import Conversion, NotExpressible
from opendml.frontends.onnx.values import most_dimensions
from opendml.runtime.graphs.tensor import GraphTensor


def broadcast_sizes(conversion: Conversion, numbers: Sequence[int]) -> tuple[int, ...]:
    """The common sizes of some inputs.

    Raises:
        NotExpressible: they have none, or more dimensions than DirectML's tensors.
    """
    sizes = [conversion.sizes(number) for number in numbers]
    most = max(map(len, sizes))
    if most > most_dimensions():
        raise NotExpressible(f"{most} dimensions")
    try:
        common = np.broadcast_shapes(*sizes)
    except ValueError as error:
        raise NotExpressible(f"sizes {', '.join(map(str, map(list, sizes)))} do not broadcast") from error
    return common


def broadcast(conversion: Conversion, numbers: Sequence[int]) -> list[GraphTensor]:
    """Some inputs with the number of dimensions of their common sizes; calls repeat what has size 1."""
    rank = max(1, len(broadcast_sizes(conversion, numbers)))
    return [conversion.tensor(number, rank) for number in numbers]
