"""Prints element-wise nodes as CUDA C++ expressions of one element."""

from __future__ import annotations

import math
import struct

from opendml.errors import Unsupported
from opendml.program.node import COMPARISONS, Node, Operation, Precision
from opendml.program.scalar_type import ScalarType

TYPES = {
    ScalarType.BOOLEAN: "bool",
    ScalarType.FLOAT16: "half",
    ScalarType.FLOAT32: "float",
    ScalarType.FLOAT64: "double",
    ScalarType.UINT8: "unsigned char",
    ScalarType.UINT16: "unsigned short",
    ScalarType.UINT32: "unsigned",
    ScalarType.UINT64: "unsigned long long",
    ScalarType.INT8: "signed char",
    ScalarType.INT16: "short",
    ScalarType.INT32: "int",
    ScalarType.INT64: "long long",
}

_OPERATORS = {
    Operation.ADD: "+",
    Operation.SUBTRACT: "-",
    Operation.MULTIPLY: "*",
    Operation.AND: "&",
    Operation.OR: "|",
    Operation.XOR: "^",
    Operation.SHIFT_LEFT: "<<",
    Operation.SHIFT_RIGHT: ">>",
    Operation.LESS: "<",
    Operation.LESS_EQUAL: "<=",
    Operation.EQUAL: "==",
}
"""C++ has the same meaning for these, but for what follows; comparisons with NaN are false."""

_WRAPPING = {
    Operation.ADD: "+",
    Operation.SUBTRACT: "-",
    Operation.MULTIPLY: "*",
    Operation.SHIFT_LEFT: "<<",
}
"""Integers wrap, which C++ promises for unsigned ones of 32 and 64 bits alone."""

_FUNCTIONS = {
    Operation.DIVIDE: "quotient",
    Operation.EXPONENTIAL: "exponential",
    Operation.MULTIPLY_ADD: "multiply_add",
    Operation.REMAINDER: "remainder_of",
    Operation.MINIMUM: "minimum",
    Operation.MAXIMUM: "maximum",
    Operation.ABSOLUTE: "absolute",
    Operation.SQUARE_ROOT: "square_root",
    Operation.ROUND_EVEN: "round_even",
    Operation.FLOOR: "round_down",
    Operation.TRUNCATE: "cut_off",
}
"""Functions of floats by operation; kernels/common.cuh and quotients.cuh have them."""

_INTEGER_FUNCTIONS = {
    Operation.DIVIDE: "quotient",
    Operation.REMAINDER: "remainder_of",
    Operation.MINIMUM: "minimum",
    Operation.MAXIMUM: "maximum",
    Operation.ABSOLUTE: "absolute",
    Operation.NEGATE: "negative",
    Operation.COUNT_BITS: "count_bits",
}
"""Templates, whose arguments are converted to the type that is computed in: C++ widens small integers."""


def literal(value: float, type: ScalarType) -> str:
    """A number of the given type, bit for bit."""
    if type is ScalarType.FLOAT32:
        return f"__uint_as_float(0x{_float32_bits(value):08x}u)"
    if type is ScalarType.FLOAT64:
        return f"__longlong_as_double(0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}ll)"
    if type is ScalarType.FLOAT16:
        return f"half{{0x{struct.unpack('<H', struct.pack('<e', value))[0]:04x}}}"
    if type is ScalarType.BOOLEAN:
        return "true" if value else "false"
    # The least negative number is no literal: its sign would be an operator on a number too great.
    suffix = ("" if type.is_signed else "u") + ("ll" if type.bits == 64 else "")
    return f"(-{-int(value) - 1}{suffix} - 1)" if value < 0 else f"{int(value)}{suffix}"


def parameter(word: str, type: ScalarType) -> str:
    """The number whose bits a 64-bit word of the parameters holds."""
    if type is ScalarType.FLOAT16:
        return f"half{{(unsigned short){word}}}"
    return f"__longlong_as_double({word})" if type is ScalarType.FLOAT64 else f"__int_as_float((int){word})"


def _float32_bits(value: float) -> int:
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", math.copysign(math.inf, value))
    return int(struct.unpack("<I", packed)[0])


def expression(node: Node, operands: list[str]) -> str:
    """`node` over operands that are printed already.

    Raises:
        Unsupported: an operation that the target does not have for this type.
    """
    operation, type = node.operation, node.type
    if operation is Operation.CONSTANT:
        return literal(node.attribute, type)  # type: ignore[arg-type]
    if operation is Operation.CONVERT:
        return _conversion(operands[0], node.operands[0].type, type)
    if operation in (Operation.ROUND, Operation.EXPAND):
        return operands[0]
    if operation is Operation.BITCAST:
        return f"bits_as<{TYPES[type]}>(({TYPES[node.operands[0].type]}){operands[0]})"
    if operation is Operation.SELECT:
        bound = _bound(node)
        if bound:
            return f"{bound}({operands[2]}, {operands[1]})"
        return f"{operands[0]} ? {operands[1]} : {operands[2]}"
    if operation is Operation.NOT:
        return f"!{operands[0]}" if type is ScalarType.BOOLEAN else f"({TYPES[type]})~{operands[0]}"
    computed = node.operands[0].type if operation in COMPARISONS else type
    if not computed.is_float and computed is not ScalarType.BOOLEAN:
        if operation in _INTEGER_FUNCTIONS:
            return f"{_INTEGER_FUNCTIONS[operation]}<{TYPES[type]}>({', '.join(operands)})"
        if operation in _WRAPPING:
            word = TYPES[ScalarType.UINT64 if type.bits == 64 else ScalarType.UINT32]
            return f"({TYPES[type]})(({word}){operands[0]} {_WRAPPING[operation]} ({word}){operands[1]})"
    if computed in (ScalarType.FLOAT32, ScalarType.FLOAT64):
        if operation is Operation.NEGATE:
            return f"-{operands[0]}"
        if operation in _FUNCTIONS:
            return f"{_prefix(node)}{_FUNCTIONS[operation]}({', '.join(operands)})"
    if operation in _OPERATORS and computed is not ScalarType.FLOAT16:
        return f"({TYPES[type]})({operands[0]} {_OPERATORS[operation]} {operands[1]})"
    raise Unsupported(f"{operation.name} of {type.name} on CUDA")


def _bound(node: Node) -> str:
    """The function that selects the second operand where the third is below, or above, that constant; empty
    if a selection does something else, or tells zeros apart in another way."""
    condition, bound, x = node.operands
    if node.type is not ScalarType.FLOAT32 or condition.operation is not Operation.LESS:
        return ""
    if bound.operation is not Operation.CONSTANT or not isinstance(bound.attribute, float):
        return ""
    (least, greatest), number = condition.operands, bound.attribute
    negative = math.copysign(1.0, number) < 0
    if least is x and _is_same(greatest, bound) and (number != 0 or negative):
        return "maximum"
    return "minimum" if greatest is x and _is_same(least, bound) and number != 0 else ""


def _is_same(a: Node, b: Node) -> bool:
    """Whether two nodes are the same number."""
    return a.operation is Operation.CONSTANT and (a.type, a.attribute) == (b.type, b.attribute)


def _prefix(node: Node) -> str:
    """Return the prefix of the function for a quotient or a root of some precision; empty for IEEE 754."""
    return _PREFIXES.get((node.operation, node.attribute), "")


_PREFIXES: dict[tuple[Operation, object], str] = {
    (Operation.DIVIDE, Precision.NEAR): "near_",
    (Operation.DIVIDE, Precision.ROUGH): "rough_",
    (Operation.DIVIDE, Precision.NARROW): "narrow_",
    (Operation.SQUARE_ROOT, Precision.NEAR): "near_",
    (Operation.SQUARE_ROOT, Precision.ROUGH): "rough_",
}
"""Prefixes of the functions in `kernels/quotients.cuh`."""


def _conversion(value: str, source: ScalarType, target: ScalarType) -> str:
    if source is ScalarType.FLOAT16:
        wide = f"to_float({value})"
        return wide if target is ScalarType.FLOAT32 else _conversion(wide, ScalarType.FLOAT32, target)
    if target is ScalarType.FLOAT16:
        return f"to_half({value})" if source.is_float else f"to_half((double){value})"
    if source.is_float and not target.is_float:
        return f"to_integer<{TYPES[target]}>({value})"
    return f"({TYPES[target]}){value}"
