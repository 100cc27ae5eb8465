"""Changes of the type, and copies."""

from __future__ import annotations

from typing import Any

import torch

from opendml.frontends.torch.conversion import Conversion
from opendml.frontends.torch.operators.elementwise import truth
from opendml.frontends.torch.registry import converts
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor

_aten = torch.ops.aten


@converts(
    _aten._to_copy.default,
    _aten.alias.default,
    _aten.clone.default,
    _aten.detach.default,
    _aten.lift_fresh_copy.default,
    torch.ops.prims.convert_element_type.default,
)
def copied(node: Conversion, x: GraphTensor, *given: Any, **options: Any) -> GraphTensor:
    """The elements in another type or another order in memory, both of which the output says."""
    if node.dtype is torch.bool:
        return truth(node, x, node.given(0).dtype)
    return node.cast(x, node.dtype)


@converts(_aten.copy.default)
def written_over(node: Conversion, x: GraphTensor, source: GraphTensor, *given: Any) -> GraphTensor:
    """The elements of the source, repeated, in the type of what they are written to."""
    if node.dtype is torch.bool:
        source = truth(node, source, node.given(1).dtype)
    return repeated(node.cast(source, node.dtype), node.sizes or (1,))
