"""Changes of the type, copies, and tensors that are the same in every run."""

from __future__ import annotations

from typing import Any

import numpy as np

from opendml.frontends.common.types import NotExpressible
from opendml.frontends.torch.registry import Converter, Tensor, TorchNode, converts
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import is_traced
from opendml.runtime.graphs.repeat import repeated


@converts(
    "_to_copy", "alias", "clone", "detach", "lift_fresh_copy", "prims.convert_element_type.default", to="CAST"
)
def copied(node: TorchNode, x: Tensor, *given: Any, **options: Any) -> Tensor:
    """Convert copies in another type or another order in memory, both of which the output states."""
    return node.truth(x, 0) if node.is_truth else node.cast(x)


@converts("copy")
def written_over(node: TorchNode, x: Tensor, source: Tensor, *given: Any) -> Tensor:
    """Convert a copy of a source, repeated, in the type of what it is written to."""
    source = node.truth(source, 1) if node.is_truth else source
    return repeated(node.cast(source), node.sizes or (1,))


@converts("full", "full_like", "new_full", to="FILL_VALUE_CONSTANT")
def full(node: TorchNode, like: Any, *values: Any, **options: Any) -> Tensor:
    """Convert a number in all elements."""
    return node.filled(values[-1], node.sizes, node.data_type)


@converts("scalar_tensor")
def scalar_tensor(node: TorchNode, value: float, **options: Any) -> Tensor:
    """Convert a number to a tensor without dimensions."""
    return node.filled(value, (), node.data_type)


def _filling(value: int) -> Converter:
    def convert(node: TorchNode, *given: Any, **options: Any) -> Tensor:
        return node.filled(value, node.sizes, node.data_type)

    return convert


converts("zeros", "zeros_like", "new_zeros", to="FILL_VALUE_CONSTANT")(_filling(0))
converts("ones", "ones_like", "new_ones", to="FILL_VALUE_CONSTANT")(_filling(1))


@converts("arange.start_step", to="FILL_VALUE_SEQUENCE")
def arange(node: TorchNode, start: float, end: float, step: float = 1, **options: Any) -> Tensor:
    """Convert numbers in equal steps."""
    count, type = node.sizes[0], ScalarType.of(node.data_type).numpy
    if not any(map(is_traced, (count, start))):
        return node.constant((start + np.arange(count) * step).astype(type))
    if not all(isinstance(each, int) or each.is_integer() for each in (start, step)):
        raise NotExpressible("floats in equal steps, in a number that changes")
    sequence = node.sequence(count, np.int64 if node.is_float else type, step=int(step))
    return node.cast(sequence + start if is_traced(start) or start else sequence)
