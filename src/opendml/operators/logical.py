"""Comparisons and logic: 1 for true, 0 for false. Comparisons with NaN are false."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from opendml.operators.registry import defines, defines_each
from opendml.program.functions import equal, logical_not
from opendml.program.node import Node, Operation, apply
from opendml.spec.enums import IsInfinityMode

_EXPRESSIONS: Mapping[str, tuple[Callable[..., Node], str]] = {
    "ELEMENT_WISE_LOGICAL_EQUALS": (lambda a, b: equal(a, b), "a == b"),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN": (lambda a, b: a > b, "a > b"),
    "ELEMENT_WISE_LOGICAL_LESS_THAN": (lambda a, b: a < b, "a < b"),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL": (lambda a, b: a >= b, "a >= b"),
    "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL": (lambda a, b: a <= b, "a <= b"),
    "ELEMENT_WISE_LOGICAL_AND": (
        lambda a, b: apply(Operation.AND, _holds(a), _holds(b)),
        "whether neither a nor b is 0",
    ),
    "ELEMENT_WISE_LOGICAL_OR": (
        lambda a, b: apply(Operation.OR, _holds(a), _holds(b)),
        "whether a and b are not both 0",
    ),
    "ELEMENT_WISE_LOGICAL_XOR": (
        lambda a, b: apply(Operation.XOR, _holds(a), _holds(b)),
        "whether one of a and b is 0, and one is not",
    ),
    "ELEMENT_WISE_LOGICAL_NOT": (lambda x: equal(x, 0), "whether x is 0"),
    "ELEMENT_WISE_IS_NAN": (lambda x: logical_not(equal(x, x)), "whether x is no number"),
}

defines_each(_EXPRESSIONS)


@defines("ELEMENT_WISE_IS_INFINITY")
def is_infinity(x: Node, *, infinity_mode: IsInfinityMode) -> Node:
    """whether x is infinite (EITHER), infinity (POSITIVE) or -infinity (NEGATIVE)"""
    value = abs(x) if infinity_mode is IsInfinityMode.EITHER else x
    return equal(value, -math.inf if infinity_mode is IsInfinityMode.NEGATIVE else math.inf)


def _holds(x: Node) -> Node:
    return logical_not(equal(x, 0))
