"""Types that kernels do not have, in the bits of types that they have.

An element of 4 bits is a number in a byte. A BFLOAT16 is the upper half of a FLOAT32, as a UINT16.
"""

from __future__ import annotations

from dataclasses import replace

from opendml.program.functions import maximum, minimum, select
from opendml.program.node import (
    Node,
    Operation,
    Precision,
    apply,
    bitcast,
    convert,
    is_rare,
    ordered,
    rebuild,
)
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType

_CARRIERS = {
    ScalarType.INT4: ScalarType.INT8,
    ScalarType.UINT4: ScalarType.UINT8,
    ScalarType.BFLOAT16: ScalarType.UINT16,
}
_FOUR_BITS = 4
_HALF_BITS = 16
"""The bits of a BFLOAT16, and of the half of a FLOAT32 that it lacks."""
_ALMOST_HALF = 2 ** (_HALF_BITS - 1) - 1
"""Half of the last place of a BFLOAT16 in a FLOAT32, less one."""
_QUIET = 1 << 6
"""The bit of a BFLOAT16 that makes a NaN a quiet one, whatever the bits that it loses."""

_LEAST_EXPONENT = -87
"""The exponential of greater numbers is a normal FLOAT32."""


def carried(program: Program) -> Program:
    """Return the program without elements of 4 bits and BFLOAT16, which have their carriers instead."""
    layouts = (*program.inputs, *program.outputs)
    types = {*(each.type for each in layouts), *(node.type for node in ordered(program.results))}
    if types.isdisjoint(_CARRIERS):
        return program
    inputs, outputs = (
        tuple(replace(each, type=_CARRIERS.get(each.type, each.type)) for each in some)
        for some in (program.inputs, program.outputs)
    )
    results = rebuild(rebuild(program.results, _with_explicit_bits), _carried)
    return replace(program, inputs=inputs, outputs=outputs, results=results)


def _with_explicit_bits(node: Node) -> Node:
    """Return a conversion from or to BFLOAT16 as arithmetic on bits; other nodes as they are."""
    if node.operation is not Operation.CONVERT:
        return node
    (operand,) = node.operands
    if operand.type is ScalarType.BFLOAT16:
        return convert(float32_of_bits(bitcast(operand, ScalarType.UINT16)), node.type)
    if node.type is not ScalarType.BFLOAT16:
        return node
    moved = _moved_alone(operand)
    if moved is not None:
        return moved
    value = convert(_with_fewer_digits(operand), ScalarType.FLOAT32)
    bits = bitcast(value, ScalarType.UINT32)
    upper = apply(Operation.SHIFT_RIGHT, bits, _HALF_BITS)
    nearest = bits + _ALMOST_HALF + apply(Operation.AND, upper, 1)  # to the even one of two that are as near
    rounded = apply(Operation.SHIFT_RIGHT, nearest, _HALF_BITS)
    is_number = apply(Operation.EQUAL, value, value)
    kept = select(is_number, rounded, apply(Operation.OR, upper, _QUIET))
    return bitcast(convert(kept, ScalarType.UINT16), ScalarType.BFLOAT16)


def _with_fewer_digits(value: Node) -> Node:
    """Return a value that is rounded to BFLOAT16, as cheap as the rounding allows.

    GELU and SWISH alone are marked. The polynomials of GELU take a product of BERT-base a third of its time
    (H100).
    """
    inner = value.operands[0] if value.operation is Operation.ROUND else value  # to FLOAT32
    if inner.type is not ScalarType.FLOAT32:
        return value
    if inner.operation is Operation.GAUSSIAN_ERROR_LINEAR_UNIT:
        return _marked(inner, inner.operands, Precision.BFLOAT16)
    if is_rare(inner):
        condition, far, weighted = inner.operands
        cheap = _with_cheap_weight(weighted)
        if cheap is not None:
            return _marked(inner, (condition, far, cheap))
    return value


def _with_cheap_weight(quotient: Node) -> Node | None:
    """Return SWISH with a cheap exponential and a cheap quotient; None for other values.

    It is x / (1 + exp(-|y|)), or x exp(-|y|) / (1 + exp(-|y|)). No sum has a negative term, so relative
    errors do not grow.
    """
    if quotient.operation is not Operation.DIVIDE or quotient.operands[1].operation is not Operation.ADD:
        return None
    numerator, (one, power) = quotient.operands[0], quotient.operands[1].operands
    if one.operation is not Operation.CONSTANT or one.number != 1 or not _is_power_below_one(power):
        return None
    if (
        numerator.operation is not Operation.SELECT
        or numerator.operands[2].operation is not Operation.MULTIPLY
    ):
        return None
    is_positive, x, product = numerator.operands
    if product.operands != (x, power):
        return None
    cheap = _marked(power, power.operands, Precision.BFLOAT16)
    operands = _marked(numerator, (is_positive, x, x * cheap)), one + cheap
    return _marked(quotient, operands, Precision.NARROW)


def _is_power_below_one(power: Node) -> bool:
    """Return whether a value is the exponential of -|y|, with a lower bound above which it is no denormal
    number."""
    if power.operation is not Operation.EXPONENTIAL or power.operands[0].operation is not Operation.SELECT:
        return False
    is_below, bound, decay = power.operands[0].operands
    is_bounded = is_below.operation is Operation.LESS and is_below.operands == (decay, bound)
    is_number = bound.operation is Operation.CONSTANT and bound.number > _LEAST_EXPONENT
    is_negative = decay.operation is Operation.NEGATE and decay.operands[0].operation is Operation.ABSOLUTE
    return is_bounded and is_number and is_negative


def _marked(node: Node, operands: tuple[Node, ...], precision: Precision | None = None) -> Node:
    """Return a node with other operands, and with a precision where it has none."""
    return Node(node.operation, node.type, node.sizes, operands, node.attribute or precision, node.origin)


def _moved_alone(value: Node) -> Node | None:
    """Return a FLOAT32 value in BFLOAT16 if only elements of BFLOAT16 were moved since it was widened."""
    if value.operation is Operation.ROUND:
        return _moved_alone(value.operands[0])
    if value.operation in (Operation.VIEW, Operation.RESHAPE):
        moved, *others = value.operands
        narrow = _moved_alone(moved)
        if narrow is None:
            return None
        operands = (narrow, *others)
        return Node(
            value.operation, ScalarType.BFLOAT16, value.sizes, operands, value.attribute, value.origin
        )
    # Explicit bits took the place of a conversion.
    bits = bits_of_bfloat16(value)
    if bits is None or bits.operation is not Operation.BITCAST:
        return None
    (given,) = bits.operands
    return given if given.type is ScalarType.BFLOAT16 else None


def _carried(node: Node) -> Node:
    """Return a node in the carrier of its type."""
    if node.operation is Operation.BITCAST and node.operands[0].type is _CARRIERS.get(node.type, node.type):
        return node.operands[0]
    if node.type not in _CARRIERS:
        return node
    carrier = _CARRIERS[node.type]
    if not node.type.is_four_bit:
        return Node(node.operation, carrier, node.sizes, node.operands, node.attribute)
    if node.operation is Operation.CONVERT and node.operands[0].type.is_float:
        least, most = (-8, 7) if carrier.is_signed else (0, 15)
        return convert(maximum(minimum(node.operands[0], most), least), carrier)
    same = Node(node.operation, carrier, node.sizes, node.operands, node.attribute)
    if node.operation is Operation.CONVERT:
        return _low_half(convert(node.operands[0], carrier))
    return _low_half(same) if node.operation is Operation.SOURCE else same


def _low_half(byte: Node) -> Node:
    """Return the number in the low half of a byte."""
    if not byte.type.is_signed:
        return apply(Operation.AND, byte, 15)
    return apply(Operation.SHIFT_RIGHT, apply(Operation.SHIFT_LEFT, byte, _FOUR_BITS), _FOUR_BITS)


def float32_of_bits(bits: Node) -> Node:
    """Return the FLOAT32 numbers of the bits of BFLOAT16, which are UINT16."""
    upper = apply(Operation.SHIFT_LEFT, convert(bits, ScalarType.UINT32), _HALF_BITS)
    return bitcast(upper, ScalarType.FLOAT32)


def bits_of_bfloat16(value: Node) -> Node | None:
    """Return the UINT16 node with the bits of a BFLOAT16, if a value is its conversion to FLOAT32, as kernels
    see it."""
    if value.operation is Operation.SELECT:
        condition, inside, outside = value.operands
        bits = bits_of_bfloat16(inside)
        is_zero = outside.operation is Operation.CONSTANT and outside.number == 0
        # A guarded source is zero outside by itself.
        is_guarded = bits is not None and bits.operation is Operation.SOURCE and bits.operands == (condition,)
        return bits if is_zero and is_guarded else None
    is_cast = value.operation is Operation.BITCAST and value.type is ScalarType.FLOAT32
    shifted = value.operands[0] if is_cast else value
    if not is_cast or not _is_by(shifted, Operation.SHIFT_LEFT, _HALF_BITS):
        return None
    wide = shifted.operands[0]
    is_wide = wide.operation is Operation.CONVERT and wide.operands[0].type is ScalarType.UINT16
    return wide.operands[0] if is_wide else None


def rounded_to_bfloat16(bits: Node) -> Node | None:
    """Return the FLOAT32 node that a UINT16 node holds rounded to BFLOAT16, as kernels see it; None: its
    value is another one."""
    (kept,) = bits.operands if bits.operation is Operation.CONVERT else (None,)
    if bits.type is not ScalarType.UINT16 or kept is None or kept.operation is not Operation.SELECT:
        return None
    is_number, rounded, quiet = kept.operands
    if is_number.operation is not Operation.EQUAL or not _is_by(quiet, Operation.OR, _QUIET):
        return None
    if not _is_by(rounded, Operation.SHIFT_RIGHT, _HALF_BITS):
        return None
    value, nearest, upper = is_number.operands[0], rounded.operands[0], quiet.operands[0]
    if nearest.operation is not Operation.ADD or not _is_by(upper, Operation.SHIFT_RIGHT, _HALF_BITS):
        return None
    (almost, odd), whole = nearest.operands, upper.operands[0]
    is_rounding = (
        is_number.operands[1] is value
        and _is_by(odd, Operation.AND, 1)
        and odd.operands[0] is upper
        and _is_by(almost, Operation.ADD, _ALMOST_HALF)
        and almost.operands[0] is whole
        and whole.operation is Operation.BITCAST
        and whole.operands[0] is value
    )
    return value if is_rounding else None


def has_four_bits(byte: Node) -> bool:
    """Return whether a node is the number in the low half of a byte, as kernels read elements of 4 bits."""
    if byte.type is ScalarType.UINT8:
        return _is_by(byte, Operation.AND, 15)
    shifted = byte.type is ScalarType.INT8 and _is_by(byte, Operation.SHIFT_RIGHT, _FOUR_BITS)
    return shifted and _is_by(byte.operands[0], Operation.SHIFT_LEFT, _FOUR_BITS)


def _is_by(node: Node, operation: Operation, number: int) -> bool:
    """Return whether a node is an operation of two operands, of which the second is a number."""
    if node.operation is not operation:
        return False
    second = node.operands[1]
    return second.operation is Operation.CONSTANT and second.number == number
