"""Parts that many element-wise operators share: DML_SCALE_BIAS, and integers that are computed as floats."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from opendml.operators.registry import defines
from opendml.program.functions import multiply_add
from opendml.program.node import Node, convert
from opendml.program.scalar_type import ScalarType
from opendml.spec.operator_desc import ScaleBias

Definition = Callable[..., Node]


def defines_scaled(name: str) -> Callable[[Definition], Definition]:
    """Register a definition whose first operand is x * scale + bias of ScaleBias, rounded once.

    DirectML's pages say nothing of integers here: they are mapped in FLOAT64 and truncated, and saturate.
    """

    def register(definition: Definition) -> Definition:
        @wraps(definition)
        def mapped(x: Node, *others: Node, scale_bias: ScaleBias | None = None, **attributes: object) -> Node:
            return definition(_mapped(x, scale_bias), *others, **attributes)

        return defines(name)(mapped)

    return register


def in_floats(x: Node, function: Callable[[Node], Node]) -> Node:
    """Return a function of floats, of integers in FLOAT64 with the result truncated, saturating."""
    return function(x) if x.type.is_float else convert(function(convert(x, ScalarType.FLOAT64)), x.type)


def _mapped(x: Node, scale_bias: ScaleBias | None) -> Node:
    if scale_bias is None:
        return x
    return in_floats(x, lambda value: multiply_add(value, scale_bias.scale, scale_bias.bias))
