"""LLVM IR as a language of element-wise nodes: of scalars, or of vectors with the lanes of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from opendml.program.node import LookupTable, Node, Operation, Precision
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.language import (
    BOOLEANS,
    FLOATS,
    INTEGERS,
    SIGNED,
    TYPES,
    UNSIGNED,
    Language,
    Row,
    Writer,
)
from opendml.targets.cpu import ir
from opendml.targets.cpu.conversion import conversion
from opendml.targets.cpu.division import quotient, remainder
from opendml.targets.cpu.exponents import EXPONENT_OPERATIONS, exponent_operation
from opendml.targets.cpu.tables import table_entries
from opendml.targets.cpu.values import llvm_type, number, overloaded, splat


class Lanes(NamedTuple):
    """The builder that instructions are appended to, and the lanes of their vectors."""

    builder: ir.IRBuilder
    lanes: int


def emit(builder: ir.IRBuilder, node: Node, lanes: int, operands: list[ir.Value]) -> ir.Value:
    """Return `node` over operands that are emitted already, each a scalar or a vector of `lanes`."""
    values = [splat(builder, operand, lanes) for operand in operands]
    return LLVM.write(Lanes(builder, lanes), node, values)


Values = Sequence[ir.Value]
_Writer = Writer[Lanes, ir.Value]


def _looked_up(at: Lanes, node: Node, values: Values) -> ir.Value:
    assert isinstance(node.attribute, LookupTable)
    return table_entries(at.builder, node.attribute.entries, values[0], at.lanes)


def _compared(operator: str, comparison: Callable[..., ir.Value]) -> _Writer:
    return lambda at, node, values: comparison(at.builder, operator, *values)


def _instruction(instruction: Callable[..., ir.Value]) -> _Writer:
    return lambda at, node, values: instruction(at.builder, *values)


def _intrinsic(name: str) -> _Writer:
    return lambda at, node, values: overloaded(at.builder, name, node.type, at.lanes, list(values))


def _extreme(name: str, operator: str) -> _Writer:
    """Return the writer of the minimum or maximum of floats."""

    def write(at: Lanes, node: Node, values: Values) -> ir.Value:
        if any(each.operation is Operation.PARAMETER for each in node.operands):
            # LLVM does not know that a parameter is no NaN: this is one instruction rather than three.
            is_first = node.operands[0].operation is Operation.PARAMETER
            bound, value = values if is_first else reversed(values)
            return at.builder.select(at.builder.fcmp_ordered(operator, bound, value), bound, value)
        # Which of two zeros a minimum is, is left open: its order costs three instructions.
        return overloaded(at.builder, name, node.type, at.lanes, list(values), ("nsz",))

    return write


def _rounding(name: str) -> _Writer:
    """Return the writer of a rounding to whole numbers."""

    def write(at: Lanes, node: Node, values: Values) -> ir.Value:
        # LLVM would round in FLOAT16 what comes from there, which processors can't.
        fenced = overloaded(at.builder, "arithmetic.fence", node.type, at.lanes, list(values))
        return overloaded(at.builder, name, node.type, at.lanes, [fenced])

    return write


def _quotient(at: Lanes, node: Node, values: Values) -> ir.Value:
    if node.attribute is Precision.BY_RECIPROCAL:
        # The reciprocal of a number is made once, before all loops.
        reciprocal = at.builder.fdiv(number(node.type, at.lanes, 1.0), values[1])
        return at.builder.fmul(values[0], reciprocal)
    return quotient(at.builder, node.type, at.lanes, *values)


_COMPARISONS = {Operation.LESS: "<", Operation.LESS_EQUAL: "<=", Operation.EQUAL: "=="}


def _comparisons(types: Sequence[ScalarType], comparison: Callable[..., ir.Value]) -> Row[Lanes, ir.Value]:
    return types, {operation: _compared(sign, comparison) for operation, sign in _COMPARISONS.items()}


LLVM = Language[Lanes, ir.Value](
    "the CPU",
    [
        (
            TYPES,
            {
                Operation.CONSTANT: lambda at, node, values: number(node.type, at.lanes, node.number),
                Operation.CONVERT: lambda at, node, values: conversion(
                    at.builder, values[0], node.operands[0].type, node.type, at.lanes
                ),
                Operation.BITCAST: lambda at, node, values: at.builder.bitcast(
                    values[0], llvm_type(node.type, at.lanes)
                ),
                Operation.ROUND: lambda at, node, values: values[0],
                Operation.EXPAND: lambda at, node, values: values[0],
                Operation.SELECT: _instruction(ir.IRBuilder.select),
                Operation.DIVIDE: _quotient,
                Operation.REMAINDER: lambda at, node, values: remainder(
                    at.builder, node.type, at.lanes, *values
                ),
                **dict.fromkeys(
                    EXPONENT_OPERATIONS,
                    lambda at, node, values: exponent_operation(
                        at.builder, node.operation, at.lanes, list(values)
                    ),
                ),
            },
        ),
        ([ScalarType.FLOAT32], {Operation.LOOKUP: _looked_up}),
        _comparisons(FLOATS, ir.IRBuilder.fcmp_ordered),
        _comparisons(SIGNED, ir.IRBuilder.icmp_signed),
        _comparisons(UNSIGNED + BOOLEANS, ir.IRBuilder.icmp_unsigned),
        (
            FLOATS,
            {
                Operation.ADD: _instruction(ir.IRBuilder.fadd),
                Operation.SUBTRACT: _instruction(ir.IRBuilder.fsub),
                Operation.MULTIPLY: _instruction(ir.IRBuilder.fmul),
                Operation.NEGATE: _instruction(ir.IRBuilder.fneg),
                Operation.MULTIPLY_ADD: _intrinsic("fma"),
                Operation.ABSOLUTE: _intrinsic("fabs"),
                Operation.SQUARE_ROOT: _intrinsic("sqrt"),
                Operation.MINIMUM: _extreme("minimum", "<"),
                Operation.MAXIMUM: _extreme("maximum", ">"),
                Operation.ROUND_EVEN: _rounding("roundeven"),
                Operation.FLOOR: _rounding("floor"),
                Operation.TRUNCATE: _rounding("trunc"),
            },
        ),
        (
            INTEGERS + BOOLEANS,
            {
                Operation.ADD: _instruction(ir.IRBuilder.add),
                Operation.SUBTRACT: _instruction(ir.IRBuilder.sub),
                Operation.MULTIPLY: _instruction(ir.IRBuilder.mul),
                Operation.NEGATE: _instruction(ir.IRBuilder.neg),
                Operation.AND: _instruction(ir.IRBuilder.and_),
                Operation.OR: _instruction(ir.IRBuilder.or_),
                Operation.XOR: _instruction(ir.IRBuilder.xor),
                Operation.NOT: _instruction(ir.IRBuilder.not_),
                Operation.SHIFT_LEFT: _instruction(ir.IRBuilder.shl),
                Operation.COUNT_BITS: _intrinsic("ctpop"),
                Operation.ABSOLUTE: lambda at, node, values: at.builder.select(
                    at.builder.icmp_signed("<", values[0], number(node.type, at.lanes, 0)),
                    at.builder.neg(values[0]),
                    values[0],
                ),
            },
        ),
        (
            SIGNED,
            {
                Operation.SHIFT_RIGHT: _instruction(ir.IRBuilder.ashr),
                Operation.MINIMUM: _intrinsic("smin"),
                Operation.MAXIMUM: _intrinsic("smax"),
            },
        ),
        (
            UNSIGNED + BOOLEANS,
            {
                Operation.SHIFT_RIGHT: _instruction(ir.IRBuilder.lshr),
                Operation.MINIMUM: _intrinsic("umin"),
                Operation.MAXIMUM: _intrinsic("umax"),
            },
        ),
    ],
)
