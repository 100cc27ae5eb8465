"""Makes numbers of kernels parameters, so that one code serves attributes of any value.

Some numbers stay in the code: integers, numbers that are part of a formula (0, 1, -1, infinities and NaN),
and those that expansions of functions look at.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence

from opendml.program.node import FUNCTIONS, Node, Operation, ordered, with_operands
from opendml.program.scalar_type import ScalarType, number_in
from opendml.program.traced_floats import TracedFloat, TracedWord, bits_in
from opendml.program.vector_math import KNOWN_ERRORS, changes_of_sign, is_bounded, is_power_of_two

_FORMATS = {ScalarType.FLOAT16: "<e6x", ScalarType.FLOAT32: "<f4x", ScalarType.FLOAT64: "<d"}


MOST_NUMBERS = 128
"""Parameters of a kernel, at most: its launches have words for these."""

Shared = dict[tuple[object, ...], Node]
"""Nodes by what they are made of."""


def with_parameters(values: Sequence[Node], shared: Shared) -> tuple[tuple[Node, ...], tuple[int, ...]]:
    """Return the values with PARAMETERs for free numbers, and the bits of these as 64-bit words.

    Every use of a number is a parameter of its own, so that the values do not tell which numbers are equal.
    Equal nodes of all calls with the same `shared` are one, so that caches know the values of kernels that
    differ in numbers alone.
    """
    nodes = ordered(values)
    kept = _looked_at(nodes)
    words: list[int] = []
    changed: dict[int, Node] = {}

    def given(node: Node) -> Node:
        if len(words) == MOST_NUMBERS or id(node) in kept or not _is_free(node):
            return changed[id(node)]
        words.append(word_of(node))
        return one(Node(Operation.PARAMETER, node.type, attribute=len(words) - 1))

    def one(node: Node) -> Node:
        attribute = node.attribute if node.attribute is None else repr(node.attribute)
        key = (node.operation, node.type, node.sizes, attribute, node.origin, *map(id, node.operands))
        return shared.setdefault(key, node)

    for node in nodes:
        operands = tuple(map(given, node.operands))
        changed[id(node)] = one(with_operands(node, operands) if operands else node)
    return tuple(map(given, values)), tuple(words)


def word_of(node: Node) -> int:
    """Return the bits of a CONSTANT in its type, as a signed 64-bit word."""
    number = number_in(node.number, node.type)
    format = _FORMATS[node.type]
    return TracedWord(number, format) if type(number) is TracedFloat else bits_in(format, number)


def value_of_word(word: int, type: ScalarType) -> float:
    """Return the number of a float type whose bits a word has, as `word_of` gives them."""
    if isinstance(word, TracedWord):
        return word.number
    (value,) = struct.unpack(_FORMATS[type], word.to_bytes(8, "little", signed=True))
    return float(value)


def _is_free(node: Node) -> bool:
    if node.operation is not Operation.CONSTANT or not node.type.is_float:
        return False
    value = number_in(node.number, node.type)
    return -math.inf < value < math.inf and value not in (0.0, 1.0, -1.0)


def _looked_at(nodes: Iterable[Node]) -> set[int]:
    """Return the identities of the constants that expansions look at.

    They are whole exponents, bounds of arguments of functions, and powers of two in products and quotients
    that are arguments: these have no rounding error.
    """
    found: set[int] = set()
    for node in nodes:
        if node.operation in FUNCTIONS:
            for operand in node.operands:
                while is_bounded(operand):
                    _, bound, operand = operand.operands
                    found.add(id(bound))
            for operand in map(_magnitude, node.operands):
                if operand.operation in KNOWN_ERRORS:
                    found |= {id(each) for each in operand.operands if is_power_of_two(each)}
        if node.operation is Operation.POWER and _is_whole(node.operands[1]):
            found.add(id(node.operands[1]))
    return found


def _magnitude(node: Node) -> Node:
    """Return the node below changes of sign."""
    *_, last = (None, *changes_of_sign(node))
    return node if last is None else last.operands[0]


def _is_whole(node: Node) -> bool:
    return node.operation is Operation.CONSTANT and float(node.number).is_integer()
