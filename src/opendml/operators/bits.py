"""Operators on the bits of elements as they are stored, whatever their type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from opendml.operators.registry import defines, defines_each
from opendml.program.functions import logical_not, select
from opendml.program.node import Node, Operation, apply, bitcast
from opendml.program.scalar_type import ScalarType


def _of_two(operation: Operation) -> Callable[..., Node]:
    return lambda a, b: bitcast(apply(operation, _bits(a), _bits(b)), a.type)


_EXPRESSIONS: Mapping[str, tuple[Callable[..., Node], str]] = {
    "ELEMENT_WISE_BIT_AND": (_of_two(Operation.AND), "a & b"),
    "ELEMENT_WISE_BIT_OR": (_of_two(Operation.OR), "a | b"),
    "ELEMENT_WISE_BIT_XOR": (_of_two(Operation.XOR), "a ^ b"),
    "ELEMENT_WISE_BIT_NOT": (lambda x: bitcast(logical_not(_bits(x)), x.type), "~x"),
    "ELEMENT_WISE_BIT_COUNT": (lambda x: apply(Operation.COUNT_BITS, _bits(x)), "how many bits of x are one"),
}

defines_each(_EXPRESSIONS, partial(defines, stored=True))


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
