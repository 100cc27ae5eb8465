"""Comparisons and logic: 1 for true, 0 for false. Comparisons with NaN are false."""

from __future__ import annotations

import math

from opendml.operators.registry import defines
from opendml.program.functions import equal, logical_not
from opendml.program.node import Node, Operation, apply
from opendml.spec.enums import IsInfinityMode


@defines("ELEMENT_WISE_LOGICAL_EQUALS")
def equals(a: Node, b: Node) -> Node:
    """a == b"""
    return equal(a, b)


@defines("ELEMENT_WISE_LOGICAL_GREATER_THAN")
def greater_than(a: Node, b: Node) -> Node:
    """a > b"""
    return a > b


@defines("ELEMENT_WISE_LOGICAL_LESS_THAN")
def less_than(a: Node, b: Node) -> Node:
    """a < b"""
    return a < b


@defines("ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL")
def greater_than_or_equal(a: Node, b: Node) -> Node:
    """a >= b"""
    return a >= b


@defines("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL")
def less_than_or_equal(a: Node, b: Node) -> Node:
    """a <= b"""
    return a <= b


@defines("ELEMENT_WISE_LOGICAL_AND")
def logical_and(a: Node, b: Node) -> Node:
    """whether neither a nor b is 0"""
    return apply(Operation.AND, _holds(a), _holds(b))


@defines("ELEMENT_WISE_LOGICAL_OR")
def logical_or(a: Node, b: Node) -> Node:
    """whether a and b are not both 0"""
    return apply(Operation.OR, _holds(a), _holds(b))


@defines("ELEMENT_WISE_LOGICAL_XOR")
def logical_xor(a: Node, b: Node) -> Node:
    """whether one of a and b is 0, and one is not"""
    return apply(Operation.XOR, _holds(a), _holds(b))


@defines("ELEMENT_WISE_LOGICAL_NOT")
def logical_not_(x: Node) -> Node:
    """whether x is 0"""
    return equal(x, 0)


@defines("ELEMENT_WISE_IS_NAN")
def is_nan(x: Node) -> Node:
    """whether x is no number"""
    return logical_not(equal(x, x))


@defines("ELEMENT_WISE_IS_INFINITY")
def is_infinity(x: Node, *, infinity_mode: IsInfinityMode) -> Node:
    """whether x is infinite (EITHER), infinity (POSITIVE) or -infinity (NEGATIVE)"""
    value = abs(x) if infinity_mode is IsInfinityMode.EITHER else x
    return equal(value, -math.inf if infinity_mode is IsInfinityMode.NEGATIVE else math.inf)


def _holds(x: Node) -> Node:
    return logical_not(equal(x, 0))
