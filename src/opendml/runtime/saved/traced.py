"""Traced sizes and floats as JSON, and back.

- A size is {"size": [[coefficient, [factor, ...]], ...]}: a sum of products.
- A factor is the name of a dimension, a quotient or a maximum.
- A quotient of two sums, rounded down, is [above, below]. The maximum of a sum and 0 is [above].
- A float is {"traced": [operation, operand, ...]}.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from opendml.json_files.node import JsonNode
from opendml.program.polynomials import Polynomial
from opendml.program.sizes import Size, greatest, traced_operation
from opendml.program.trace import Trace
from opendml.program.traced_floats import FLOAT_OPERATIONS, TracedFloat

_MOST = 2**62
Sizes = Mapping[str, Size]
"""The sizes of dimensions by name."""
NO_SIZES: Sizes = {}


def traced_to_json(value: Size | TracedFloat) -> dict[str, object]:
    """Return a traced size or float as JSON."""
    if type(value) is Size:
        return {"size": _sum_to_json(value.trace, value.polynomial)}
    assert type(value) is TracedFloat
    operands = [
        traced_to_json(each) if type(each) in (Size, TracedFloat) else each for each in value.operands
    ]
    return {"traced": [value.operation, *operands]}


def _sum_to_json(trace: Trace, polynomial: Polynomial) -> list[object]:
    def factor(number: int) -> object:
        atom = trace.atoms[number]
        if atom.above is None:
            return atom.name
        parts = [atom.above] if atom.below is None else [atom.above, atom.below]
        return [_sum_to_json(trace, each) for each in parts]

    return [[coefficient, list(map(factor, monomial))] for monomial, coefficient in polynomial]


def traced_from_json(node: JsonNode, sizes: Sizes) -> Any:
    """Return a traced size or float over dimensions.

    Raises:
        InvalidArgument: it is none, or has other dimensions.
    """
    if isinstance(node.value, dict) and "size" in node.value:
        node.members(("size",))
        return _sum_from_json(node.member("size"), sizes)
    if not isinstance(node.value, dict):
        return node.number() if isinstance(node.value, float) else node.integer(-_MOST, _MOST)
    node.members(("traced",))
    operation, *operands = node.member("traced").elements()
    if operation.string() not in FLOAT_OPERATIONS:
        operation.fail(f"one of {', '.join(FLOAT_OPERATIONS)}")
    try:
        return traced_operation(operation.string())(*[traced_from_json(each, sizes) for each in operands])
    except (ArithmeticError, TypeError, ValueError) as error:
        node.fail(f"operands of {operation.string()} ({error})")


def _sum_from_json(node: JsonNode, sizes: Sizes) -> Any:
    total: int = 0
    for term in node.elements():
        coefficient, *rest = term.elements()
        if len(rest) != 1:
            term.fail("a coefficient and factors")
        factors = [_factor_from_json(each, sizes) for each in rest[0].elements()]
        total += coefficient.integer(-_MOST, _MOST) * math.prod(factors)
    return total


def _factor_from_json(node: JsonNode, sizes: Sizes) -> Any:
    if isinstance(node.value, str):
        if node.value not in sizes:
            node.fail(f"one of the dimensions {', '.join(sizes) or '(none)'}")
        return sizes[node.value]
    above, *below = [_sum_from_json(each, sizes) for each in node.elements()] or [None]
    if above is None or len(below) > 1 or (below and below[0] == 0):
        node.fail("a sum, or two that are divided")
    return above // below[0] if below else greatest(above, 0)
