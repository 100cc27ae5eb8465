"""CUDA C++ as a language of expressions of one element."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from opendml.program.carriers import rounded_to_bfloat16
from opendml.program.node import Node, Operation, Precision
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.language import (
    BOOLEANS,
    INTEGERS,
    SINGLES,
    Statements,
    Syntax,
    TextLanguage,
    Writer,
)
from opendml.targets.common.language import TYPES as ALL

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


def literal(value: float, type: ScalarType) -> str:
    """Return a number of the given type, bit for bit."""
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
    """Return the number whose bits a 64-bit word of the parameters holds."""
    if type is ScalarType.FLOAT16:
        return f"half{{(unsigned short){word}}}"
    return f"__longlong_as_double({word})" if type is ScalarType.FLOAT64 else f"__int_as_float((int){word})"


def _float32_bits(value: float) -> int:
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", math.copysign(math.inf, value))
    return int(struct.unpack("<I", packed)[0])


def _selection(_: None, node: Node, operands: Sequence[str]) -> str:
    condition, if_true, if_false = operands
    bound = _bound(node)
    return f"{bound}({if_false}, {if_true})" if bound else f"{condition} ? {if_true} : {if_false}"


def _bound(node: Node) -> str:
    """Return the function that selects the second operand where the third is below, or above, that constant;
    empty if a selection does something else, or tells zeros apart in another way."""
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
    """Return whether two nodes are the same number."""
    return a.operation is Operation.CONSTANT and (a.type, a.attribute) == (b.type, b.attribute)


def _with_precision(name: str) -> Writer[None, str]:
    """Return the writer of a quotient or a root, whose function's name begins with the precision."""

    def write(_: None, node: Node, operands: Sequence[str]) -> str:
        prefix = _PREFIXES.get((node.operation, node.attribute), "")
        return f"{prefix}{name}({', '.join(operands)})"

    return write


def _wrapping(operator: str) -> Writer[None, str]:
    """Return the writer of an operator on integers. C++ wraps only unsigned ones of 32 and 64 bits."""

    def write(_: None, node: Node, operands: Sequence[str]) -> str:
        word = TYPES[ScalarType.UINT64 if node.type.bits == 64 else ScalarType.UINT32]
        return f"({TYPES[node.type]})(({word}){operands[0]} {operator} ({word}){operands[1]})"

    return write


_PREFIXES: dict[tuple[Operation, object], str] = {
    (Operation.DIVIDE, Precision.NEAR): "near_",
    (Operation.DIVIDE, Precision.ROUGH): "rough_",
    (Operation.DIVIDE, Precision.NARROW): "narrow_",
    (Operation.SQUARE_ROOT, Precision.NEAR): "near_",
    (Operation.SQUARE_ROOT, Precision.ROUGH): "rough_",
}
"""Prefixes of the functions in `kernels/quotients.cuh`."""


def converted(value: str, source: ScalarType, target: ScalarType) -> str:
    """Return the expression of a value in another type."""
    if source is ScalarType.FLOAT16:
        wide = f"to_float({value})"
        return wide if target is ScalarType.FLOAT32 else converted(wide, ScalarType.FLOAT32, target)
    if target is ScalarType.FLOAT16:
        return f"to_half({value})" if source.is_float else f"to_half((double){value})"
    if source.is_float and not target.is_float:
        return f"to_integer<{TYPES[target]}>({value})"
    return f"({TYPES[target]}){value}"


_ARITHMETIC = {Operation.ADD: "+", Operation.SUBTRACT: "-", Operation.MULTIPLY: "*"}
_BITS = {Operation.AND: "&", Operation.OR: "|", Operation.XOR: "^", Operation.SHIFT_RIGHT: ">>"}
_COMPARISONS = {Operation.LESS: "<", Operation.LESS_EQUAL: "<=", Operation.EQUAL: "=="}
_OPERATOR = "({{type}})({{0}} {} {{1}})"

CUDA = TextLanguage(
    "CUDA",
    TYPES,
    Syntax(
        constant="const {type} {name} = {value};",
        variable="{type} {name} = {value};",
        assignment="{name} = {value};",
        branch="if ({condition}) {{",
        end="}",
    ),
    [
        (
            ALL,
            {
                Operation.CONSTANT: lambda _, node, operands: literal(node.number, node.type),
                Operation.CONVERT: lambda _, node, operands: converted(
                    operands[0], node.operands[0].type, node.type
                ),
                Operation.BITCAST: "bits_as<{type}>(({source}){0})",
                Operation.ROUND: "{0}",
                Operation.EXPAND: "{0}",
                Operation.SELECT: _selection,
            },
        ),
        (
            SINGLES + INTEGERS + BOOLEANS,
            {key: _OPERATOR.format(sign) for key, sign in (_ARITHMETIC | _COMPARISONS).items()},
        ),
        (BOOLEANS, {key: _OPERATOR.format(sign) for key, sign in _BITS.items()} | {Operation.NOT: "!{0}"}),
        (
            SINGLES,
            {
                Operation.DIVIDE: _with_precision("quotient"),
                Operation.SQUARE_ROOT: _with_precision("square_root"),
                Operation.NEGATE: "-{0}",
                Operation.EXPONENTIAL: "exponential({0})",
                Operation.MULTIPLY_ADD: "multiply_add({0}, {1}, {2})",
                Operation.REMAINDER: "remainder_of({0}, {1})",
                Operation.MINIMUM: "minimum({0}, {1})",
                Operation.MAXIMUM: "maximum({0}, {1})",
                Operation.ABSOLUTE: "absolute({0})",
                Operation.ROUND_EVEN: "round_even({0})",
                Operation.FLOOR: "round_down({0})",
                Operation.TRUNCATE: "cut_off({0})",
            },
        ),
        (
            INTEGERS,
            {key: _wrapping(sign) for key, sign in _ARITHMETIC.items()}
            | {key: _OPERATOR.format(sign) for key, sign in _BITS.items()}
            | {
                Operation.SHIFT_LEFT: _wrapping("<<"),
                Operation.NOT: "({type})~{0}",
                # Templates convert their arguments to the type: C++ widens small integers.
                Operation.DIVIDE: "quotient<{type}>({0}, {1})",
                Operation.REMAINDER: "remainder_of<{type}>({0}, {1})",
                Operation.MINIMUM: "minimum<{type}>({0}, {1})",
                Operation.MAXIMUM: "maximum<{type}>({0}, {1})",
                Operation.ABSOLUTE: "absolute<{type}>({0})",
                Operation.NEGATE: "negative<{type}>({0})",
                Operation.COUNT_BITS: "count_bits<{type}>({0})",
            },
        ),
    ],
)
"""The functions are in `kernels/common.cuh` and `kernels/quotients.cuh`. FLOAT16 is only converted and moved.
Comparisons with NaN are false in C++, too."""


class CudaStatements(Statements):
    """Statements of CUDA C++."""

    def write(self, node: Node, operands: list[str]) -> str:
        """Declare the value of an operation. 1 / sqrt(x) in FLOAT64, as groups need it, is one function;
        rounding to BFLOAT16 is another."""
        value = rounded_to_bfloat16(node)
        if value is not None:
            return self.declared(node, f"to_bfloat16({self.name(value)})")
        if _is_reciprocal_root(node):
            return self.declared(node, f"reciprocal_root({self.name(node.operands[1].operands[0])})")
        return super().write(node, operands)


def _is_reciprocal_root(node: Node) -> bool:
    if node.operation is not Operation.DIVIDE or node.type is not ScalarType.FLOAT64:
        return False
    one, root = node.operands
    return (
        one.operation is Operation.CONSTANT and one.attribute == 1 and root.operation is Operation.SQUARE_ROOT
    )
