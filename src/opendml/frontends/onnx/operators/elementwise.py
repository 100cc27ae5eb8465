"""Element-wise operators."""

from __future__ import annotations

from collections.abc import Callable

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, Result
from opendml.frontends.onnx.operators.broadcasting import broadcast, broadcast_sizes
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.graph import GraphTensor

_UNARY: dict[str, Callable[[GraphTensor], GraphTensor]] = {
    "Abs": dml.element_wise_abs,
    "Acos": dml.element_wise_acos,
    "Acosh": dml.element_wise_acosh,
    "Asin": dml.element_wise_asin,
    "Asinh": dml.element_wise_asinh,
    "Atan": dml.element_wise_atan,
    "Atanh": dml.element_wise_atanh,
    "BitwiseNot": dml.element_wise_bit_not,
    "Ceil": dml.element_wise_ceil,
    "Cos": dml.element_wise_cos,
    "Cosh": dml.element_wise_cosh,
    "Erf": dml.element_wise_erf,
    "Exp": dml.element_wise_exp,
    "Floor": dml.element_wise_floor,
    "Log": dml.element_wise_log,
    "Neg": dml.element_wise_negate,
    "Reciprocal": dml.element_wise_recip,
    "Relu": dml.activation_relu,
    "Sigmoid": dml.activation_sigmoid,
    "Sign": dml.element_wise_sign,
    "Sin": dml.element_wise_sin,
    "Sinh": dml.element_wise_sinh,
    "Softsign": dml.activation_softsign,
    "Sqrt": dml.element_wise_sqrt,
    "Tan": dml.element_wise_tan,
    "Tanh": dml.activation_tanh,
}

_BINARY: dict[str, Callable[[GraphTensor, GraphTensor], GraphTensor]] = {
    "Add": dml.element_wise_add,
    "BitwiseAnd": dml.element_wise_bit_and,
    "BitwiseOr": dml.element_wise_bit_or,
    "BitwiseXor": dml.element_wise_bit_xor,
    "Div": dml.element_wise_divide,
    "Mul": dml.element_wise_multiply,
    "Sub": dml.element_wise_subtract,
}

_COMPARISONS: dict[str, Callable[[GraphTensor, GraphTensor], GraphTensor]] = {
    "And": dml.element_wise_logical_and,
    "Equal": dml.element_wise_logical_equals,
    "Greater": dml.element_wise_logical_greater_than,
    "GreaterOrEqual": dml.element_wise_logical_greater_than_or_equal,
    "Less": dml.element_wise_logical_less_than,
    "LessOrEqual": dml.element_wise_logical_less_than_or_equal,
    "Or": dml.element_wise_logical_or,
    "Xor": dml.element_wise_logical_xor,
}


def _unary(function: Callable[[GraphTensor], GraphTensor]) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        return node.result(function(node.tensor(0)), node.sizes(0))

    return convert


def _binary(function: Callable[[GraphTensor, GraphTensor], GraphTensor]) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        return node.result(function(*broadcast(node, (0, 1))), broadcast_sizes(node, (0, 1)))

    return convert


def _comparison(
    function: Callable[[GraphTensor, GraphTensor], GraphTensor],
) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        return node.truth(function(*broadcast(node, (0, 1))), broadcast_sizes(node, (0, 1)))

    return convert


for _name, _function in _UNARY.items():
    converts(_name)(_unary(_function))
for _name, _pair in _BINARY.items():
    converts(_name, since=7)(_binary(_pair))
for _name, _pair in _COMPARISONS.items():
    converts(_name, since=7)(_comparison(_pair))
