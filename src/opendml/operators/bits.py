"""Operators on the bits of elements as they are stored, whatever their type."""

from __future__ import annotations

from opendml.operators.registry import defines
from opendml.program.functions import logical_not, select
from opendml.program.node import Node, Operation, apply, bitcast
from opendml.program.scalar_type import ScalarType


@defines("ELEMENT_WISE_BIT_AND", stored=True)
def bit_and(a: Node, b: Node) -> Node:
    """a & b"""
    return bitcast(apply(Operation.AND, _bits(a), _bits(b)), a.type)


@defines("ELEMENT_WISE_BIT_OR", stored=True)
def bit_or(a: Node, b: Node) -> Node:
    """a | b"""
    return bitcast(apply(Operation.OR, _bits(a), _bits(b)), a.type)


@defines("ELEMENT_WISE_BIT_XOR", stored=True)
def bit_xor(a: Node, b: Node) -> Node:
    """a ^ b"""
    return bitcast(apply(Operation.XOR, _bits(a), _bits(b)), a.type)


@defines("ELEMENT_WISE_BIT_NOT", stored=True)
def bit_not(x: Node) -> Node:
    """~x"""
    return bitcast(logical_not(_bits(x)), x.type)


@defines("ELEMENT_WISE_BIT_COUNT", stored=True)
def bit_count(x: Node) -> Node:
    """how many bits of x are one"""
    return apply(Operation.COUNT_BITS, _bits(x))


@defines("ELEMENT_WISE_BIT_SHIFT_LEFT")
def bit_shift_left(a: Node, b: Node) -> Node:
    """a << b; 0 where b is the width of the type or more"""
    return _shifted(Operation.SHIFT_LEFT, a, b)


@defines("ELEMENT_WISE_BIT_SHIFT_RIGHT")
def bit_shift_right(a: Node, b: Node) -> Node:
    """a >> b, filled with zeros; 0 where b is the width of the type or more"""
    return _shifted(Operation.SHIFT_RIGHT, a, b)


def _shifted(operation: Operation, a: Node, b: Node) -> Node:
    width = a.type.bits
    return select(b < width, apply(operation, a, apply(Operation.AND, b, width - 1)), 0)


def _bits(x: Node) -> Node:
    return bitcast(x, ScalarType[f"UINT{x.type.bits}"])
