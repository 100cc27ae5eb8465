"""Constant operands of products that stay in a narrow type in memory, and are widened where they are
multiplied.

Such an operand has numbers of 4, 8 or 16 bits. Neighbours along k share parameters, which are scales and zero
points. An element is computed from its number and its parameters, in the order of the program.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

import numpy as np

from opendml.compiler.kernel import Kernel, number_of
from opendml.late_dataclass import dataclass
from opendml.program.carriers import has_four_bits
from opendml.program.node import FUNCTIONS, Node, Operation, convert, ordered, source, with_operands
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import is_traced
from opendml.targets.cpu.contraction.arithmetic import has_bytes
from opendml.targets.cpu.machine import machine

_F32 = ScalarType.FLOAT32
_NUMBERS = {
    *(ScalarType.FLOAT16, ScalarType.INT8, ScalarType.UINT8),
    *(ScalarType.INT16, ScalarType.UINT16),
}
"""The types of numbers and narrow parameters, whose values FLOAT32 holds. BFLOAT16 is carried as UINT16."""
PART = 256
"""Steps along k that are packed together. The blocks of parameters and the parts of tiles divide it."""
_LEAST_BLOCK = 16
"""The fewest neighbours along k that share parameters. With smaller blocks, parameters take much of the
memory."""
_LEAST_NUMBERS = 1 << 14
"""The fewest numbers of a narrow operand. A smaller one takes little memory as FLOAT32, too."""


GROUP = 4
"""The neighbours along k that share 32 bits where an instruction adds the products of four bytes."""
_DOT_STEP = 32
"""The neighbours along k of one step of the micro-kernel that multiplies groups, unless a block has fewer."""


@dataclass(frozen=True, slots=True)
class Affine:
    """The parts of an element (number - zero point) * scale.

    Args:
        zero: the zero point if it is the same for all elements.
        zero_source: the source that is the zero point; None: there is none.
        scale_source: the source that is the scale; None: there is none.
    """

    zero: int
    zero_source: int | None
    scale_source: int | None


@dataclass(frozen=True, slots=True)
class Narrow:
    """The form of a narrow operand.

    Args:
        type: the type of numbers.
        bits: the bits of a packed number.
        parameters: the types of the parameters.
        block: the neighbours along k that share parameters.
        values: the element. SOURCE 0 is its number, and the other sources are its parameters.
        affine: the parts of the element if it is a difference of integers, times a scale.
        is_grouped: True if GROUP neighbours along k share 32 bits. Few rows then multiply integers.
    """

    type: ScalarType
    bits: int
    parameters: tuple[ScalarType, ...]
    block: int
    values: tuple[Node, ...]
    affine: Affine | None = None
    is_grouped: bool = False

    @property
    def step(self) -> int:
        """The neighbours along k of one step of a micro-kernel that multiplies groups."""
        return min(self.block, _DOT_STEP)

    @property
    def rows_together(self) -> int:
        """The rows whose numbers share bytes of memory."""
        return GROUP if self.is_grouped else 1

    def row_bytes(self, columns: int) -> int:
        """Return the bytes of the numbers of a row of `columns` columns."""
        return columns * self.bits // 8

    def parameter_bytes(self, columns: int) -> int:
        """Return the bytes of the parameters of a block of `columns` columns."""
        return sum(columns * type.bytes for type in self.parameters)


def narrow_of(part: Kernel, columns: Sequence[int], depth: Sequence[int]) -> tuple[Narrow, Kernel] | None:
    """Return the form of a constant operand, and the kernel that computes its numbers and its parameters as
    FLOAT32. None: the operand is not narrow.

    Args:
        part: the kernel that computes the operand.
        columns: the dimensions of its columns.
        depth: the dimensions that are summed, outermost first.
    """
    domain, root = part.domain, part.values[0]
    sizes = [domain[each] for each in (*columns, *depth)]
    if (
        len(part.values) > 1
        or root.type is not _F32
        or any(map(is_traced, sizes))
        or math.prod(sizes) < _LEAST_NUMBERS
    ):
        return None
    if not part.loads or not all(load.fixed and load.buffer is not None for load in part.loads):
        return None
    nodes = ordered([root])
    sources = [node for node in nodes if node.operation is Operation.SOURCE]
    found = _number_of(part, nodes, depth)
    if found is None or any(node.operands for node in sources):
        return None
    number, own = found
    block = _block_of(part, depth, own)
    if number.type not in _NUMBERS or (block % PART and (block < _LEAST_BLOCK or PART % block)):
        return None
    depending = {id(number)}
    for node in nodes:
        if not depending.isdisjoint(map(id, node.operands)):
            depending.add(id(node))
    above = [node for node in nodes if id(node) in depending and node is not number]
    if any(node.operation in FUNCTIONS or node.operation in _OTHERS for node in above):
        return None
    parameters = list(_parameters(above, depending))
    if any(each.type is not _F32 and each.type not in _NUMBERS for each in parameters):
        return None
    below = {number_of(node) for node in ordered(parameters) if node.operation is Operation.SOURCE}
    if not own.isdisjoint(below):
        return None
    is_half = number.operation is not Operation.SOURCE or part.loads[number_of(number)].four_bit
    bits = 4 if is_half else number.type.bits
    types = tuple([each.type for each in parameters])
    value = _over_sources(root, number, parameters)
    packed = Kernel(
        domain, (), part.loads, (), tuple(convert(each, _F32) for each in (number, *parameters)), part.numbers
    )
    block, count = min(block, PART), math.prod(domain[each] for each in depth)
    narrow = Narrow(number.type, bits, types, block, (value,), _affine(value, number.type, bits))
    is_grouped = narrow.affine is not None and count % narrow.step == 0 and has_bytes(machine())
    return replace(narrow, is_grouped=is_grouped), packed


def _affine(root: Node, type: ScalarType, bits: int) -> Affine | None:
    """Return the parts of an element. None: it is another expression, or numbers have 16 bits."""
    if bits > ScalarType.UINT8.bits:
        return None
    scaled, scale = scaled_by(root, bits)
    if scale is not None and (scale.operation is not Operation.SOURCE or not scale.type.is_float):
        return None
    scale_source = None if scale is None else number_of(scale)
    difference = _unconverted(scaled, bits)
    if _is_number(difference):
        return Affine(0, None, scale_source)
    if difference.operation is not Operation.SUBTRACT or difference.type not in _EXACT:
        return None
    number, zero = (_unconverted(each, bits) for each in difference.operands)
    if not _is_number(number):
        return None
    if zero.operation is Operation.CONSTANT:
        limits, constant = np.iinfo(type.numpy.name), zero.number
        # A difference of 4 bits and a constant fits 8 bits, if the constant has 4 bits, too.
        fits = difference.type is not ScalarType.INT8 or (bits == 4 and abs(constant) < 1 << bits)
        is_number = limits.min <= constant <= limits.max and constant == int(constant)
        return Affine(int(constant), None, scale_source) if is_number and fits else None
    is_source = zero.operation is Operation.SOURCE and zero.type is type
    if not is_source or difference.type is ScalarType.INT8:
        return None
    return Affine(0, number_of(zero), scale_source)


def scaled_by(root: Node, bits: int) -> tuple[Node, Node | None]:
    """Return what a scale multiplies in an element, and the scale if there is one."""
    while root.operation is Operation.ROUND:
        (root,) = root.operands
    if root.operation is not Operation.MULTIPLY or root.type is not _F32:
        return root, None
    first, second = (_unconverted(each, bits) for each in root.operands)
    is_second = second.operation is Operation.SOURCE and not _is_number(second)
    return (root.operands[0], second) if is_second else (root.operands[1], first)


_EXACT = {ScalarType.INT8, ScalarType.INT16, ScalarType.INT32, _F32}
"""The types in which the difference of a number and a zero point is exact; INT8 in some cases."""


def _unconverted(node: Node, bits: int) -> Node:
    """Return the node before conversions that keep the value of a number of 4 or 8 bits, or of a scale."""
    while node.operation is Operation.CONVERT and node.type in _EXACT:
        (before,) = node.operands
        fits = before.type is node.type or (bits == 4 and _is_number(before))
        if (before.type.is_float and node.type is not _F32) or (node.type is ScalarType.INT8 and not fits):
            break
        node = before
    return node


def _is_number(node: Node) -> bool:
    return node.operation is Operation.SOURCE and number_of(node) == 0


_OTHERS = {Operation.PARAMETER, Operation.VIEW, Operation.RESHAPE, Operation.LOOKUP}
"""Operations beside functions that are not computed where numbers are widened."""


def _number_of(part: Kernel, nodes: Sequence[Node], depth: Sequence[int]) -> tuple[Node, set[int]] | None:
    """Return the node that is the number of an element, and the loads that it is made of.

    It is half of a byte that the kernel unpacks, or the only load that moves with each step along k.
    """
    halves = [node for node in nodes if has_four_bits(node)]
    if len(halves) == 1:
        below = (node for node in ordered(halves) if node.operation is Operation.SOURCE)
        return halves[0], set(map(number_of, below))
    moving = [number for number in depth if part.domain[number] > 1]
    loads = [number for number, load in enumerate(part.loads) if moving and load.strides[moving[-1]]]
    numbers = [node for node in nodes if node.operation is Operation.SOURCE and number_of(node) in loads]
    return (numbers[0], set(loads)) if len(loads) == len(numbers) == 1 else None


def _block_of(part: Kernel, depth: Sequence[int], own: Container[int]) -> int:
    """Return the steps along k in which only the loads of the number (`own`) move."""
    others, block = [load for place, load in enumerate(part.loads) if place not in own], 1
    for number in reversed([each for each in depth if part.domain[each] > 1]):
        if any(load.strides[number] for load in others):
            return block
        block *= part.domain[number]
    # One block for all of k is one for each part of it.
    return PART


def _parameters(above: Sequence[Node], depending: set[int]) -> Iterator[Node]:
    """Yield the parameters, each once: operands that do not depend on the number, in the type before a
    conversion if that is narrow."""
    seen = set[int]()
    for node in above:
        for operand in node.operands:
            if id(operand) in depending or operand.operation is Operation.CONSTANT:
                continue
            chosen = _before_conversion(operand)
            if id(chosen) not in seen:
                seen.add(id(chosen))
                yield chosen


def _before_conversion(operand: Node) -> Node:
    is_conversion = operand.operation is Operation.CONVERT
    return operand.operands[0] if is_conversion and operand.operands[0].type in _NUMBERS else operand


def _over_sources(root: Node, number: Node, parameters: Sequence[Node]) -> Node:
    """Return the element, made of sources."""
    leaves = (number, *parameters)
    copies = {id(leaf): source(place, leaf.type, leaf.sizes) for place, leaf in enumerate(leaves)}
    for node in ordered([root], copies):
        copies[id(node)] = with_operands(node, tuple(copies[id(operand)] for operand in node.operands))
    return copies[id(root)]
