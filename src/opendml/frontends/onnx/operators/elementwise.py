"""Element-wise operators: of one tensor, of two with common sizes, of any number."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.broadcasting import broadcast, broadcast_sizes
from opendml.frontends.onnx.operators.shapes import reshaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import BOOLEAN, data_type_of
from opendml.runtime.graphs.tensor import GraphTensor

Binary = Callable[[GraphTensor, GraphTensor], GraphTensor]

_UNARY: dict[str, Callable[[GraphTensor], GraphTensor]] = {
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
    "Round": dml.element_wise_round,
    "Sign": dml.element_wise_sign,
    "Sin": dml.element_wise_sin,
    "Sinh": dml.element_wise_sinh,
    "Sqrt": dml.element_wise_sqrt,
    "Tan": dml.element_wise_tan,
}

_BINARY: dict[str, Binary] = {
    "Add": dml.element_wise_add,
    "BitwiseAnd": dml.element_wise_bit_and,
    "BitwiseOr": dml.element_wise_bit_or,
    "BitwiseXor": dml.element_wise_bit_xor,
    "Div": dml.element_wise_divide,
    "Mul": dml.element_wise_multiply,
    "Sub": dml.element_wise_subtract,
}

_COMPARISONS: dict[str, Binary] = {
    "And": dml.element_wise_logical_and,
    "Equal": dml.element_wise_logical_equals,
    "Greater": dml.element_wise_logical_greater_than,
    "GreaterOrEqual": dml.element_wise_logical_greater_than_or_equal,
    "Less": dml.element_wise_logical_less_than,
    "LessOrEqual": dml.element_wise_logical_less_than_or_equal,
    "Or": dml.element_wise_logical_or,
    "Xor": dml.element_wise_logical_xor,
}

_VARIADIC: dict[str, Binary] = {
    "Max": dml.element_wise_max,
    "Min": dml.element_wise_min,
    "Sum": dml.element_wise_add,
}


def _unary(function: Callable[[GraphTensor], GraphTensor]) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        return node.result(function(node.tensor(0)), node.sizes(0))

    return convert


def _binary(function: Binary) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        sizes = broadcast_sizes(node, (0, 1))
        if 0 in sizes:
            return node.empty(sizes, node.type(0))
        return node.result(function(*broadcast(node, (0, 1))), sizes)

    return convert


def _comparison(function: Binary) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        sizes = broadcast_sizes(node, (0, 1))
        if 0 in sizes:
            return node.empty(sizes, BOOLEAN)
        return node.truth(function(*broadcast(node, (0, 1))), sizes)

    return convert


def _variadic(function: Binary) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        numbers = range(node.input_count)
        sizes = broadcast_sizes(node, numbers)
        if 0 in sizes:
            return node.empty(sizes, node.type(0))
        return node.result(reduce(function, broadcast(node, numbers)), sizes)

    return convert


for _name, _function in _UNARY.items():
    converts(_name)(_unary(_function))
for _name, _pair in _BINARY.items():
    converts(_name, since=7)(_binary(_pair))
for _name, _pair in _COMPARISONS.items():
    converts(_name, since=7)(_comparison(_pair))
for _name, _pair in _VARIADIC.items():
    converts(_name, since=6)(_variadic(_pair))


@converts("Mean", since=6)
def mean(node: Conversion) -> Result:
    """The sum, divided by how many there are."""
    numbers = range(node.input_count)
    sizes = broadcast_sizes(node, numbers)
    if 0 in sizes:
        return node.empty(sizes, node.type(0))
    total = reduce(dml.element_wise_add, broadcast(node, numbers))
    return node.result(dml.element_wise_divide(total, float(node.input_count)), sizes)


@converts("Abs")
def absolute(node: Conversion) -> Result:
    """What is unsigned stays as it is: DirectML's ABS does not take it."""
    if node.type(0).kind == "u":
        return reshaped(node, node.sizes(0))
    return node.result(dml.element_wise_abs(node.tensor(0)), node.sizes(0))


@converts("Not")
def logical_not(node: Conversion) -> Result:
    """The other truth value."""
    return node.truth(dml.element_wise_logical_not(node.tensor(0)), node.sizes(0))


@converts("IsNaN")
def is_nan(node: Conversion) -> Result:
    """Whether an element is no number."""
    return node.truth(dml.element_wise_is_nan(node.tensor(0), output_type=dml.UINT8), node.sizes(0))


@converts("IsInf")
def is_infinity(node: Conversion) -> Result:
    """Whether an element is one of the infinities that the attributes name; with none of them nothing is."""
    negative, positive = node.attribute("detect_negative", 1), node.attribute("detect_positive", 1)
    if not negative and not positive:
        require_float(node, 0)
        return node.truth(node.constant(np.zeros(node.sizes(0), np.uint8)), node.sizes(0))
    mode = "EITHER" if negative and positive else "NEGATIVE" if negative else "POSITIVE"
    return node.truth(dml.element_wise_is_infinity(node.tensor(0), infinity_mode=mode), node.sizes(0))


@converts("Mod", since=10)
def modulus(node: Conversion) -> Result:
    """`fmod` takes the sign of the dividend; floats know no other way."""
    truncates = bool(node.attribute("fmod", 0))
    if node.type(0).kind == "f" and not truncates:
        raise NotExpressible("fmod is 0; of floats it must be 1")
    function = dml.element_wise_modulus_truncate if truncates else dml.element_wise_modulus_floor
    return _binary(function)(node)


@converts("Mod", since=28)
def modulus_of_any_type(node: Conversion) -> Result:
    """Floats too may take the sign of the divisor, zeros included, whose sign DirectML does not say."""
    if node.type(0).kind == "f" and not node.attribute("fmod", 0):
        return _binary(_floored)(node)
    return modulus(node)


def _floored(a: GraphTensor, b: GraphTensor) -> GraphTensor:
    remainder = dml.element_wise_modulus_floor(a, b)
    zero = dml.element_wise_multiply(dml.element_wise_sign(b), 0.0)
    is_zero = dml.element_wise_logical_equals(remainder, 0.0, output_type=dml.UINT8)
    return dml.element_wise_if(is_zero, zero, remainder)


@converts("BitShift")
def bit_shift(node: Conversion) -> Result:
    """DirectML shifts unsigned numbers. Signed ones are their bits; to the right they keep their sign: where
    they are negative, the inverse of their inverse is shifted."""
    sizes, type = broadcast_sizes(node, (0, 1)), node.type(0)
    if 0 in sizes:
        return node.empty(sizes, type)
    x, count = broadcast(node, (0, 1))
    left = node.required("direction") == "LEFT"
    shift = dml.element_wise_bit_shift_left if left else dml.element_wise_bit_shift_right
    if type.kind == "u":
        return node.result(shift(x, count), sizes)
    unsigned, signed = (data_type_of(np.dtype(f"{kind}{type.itemsize}")) for kind in "ui")
    bits, count = (dml.cast(each, output_type=unsigned) for each in (x, count))
    if left:
        return node.result(dml.cast(shift(bits, count), output_type=signed), sizes)
    is_negative = dml.element_wise_logical_less_than(x, 0, output_type=dml.UINT8)
    bits = dml.element_wise_if(is_negative, dml.element_wise_bit_not(bits), bits)
    shifted = shift(bits, count)
    kept = dml.element_wise_if(is_negative, dml.element_wise_bit_not(shifted), shifted)
    return node.result(dml.cast(kept, output_type=signed), sizes)


@converts("Where")
def where(node: Conversion) -> Result:
    """Elements of either of two tensors."""
    sizes, type = broadcast_sizes(node, (0, 1, 2)), node.type(1)
    if 0 in sizes:
        return node.empty(sizes, type)
    rank = max(1, len(sizes))
    chosen = dml.element_wise_if(node.tensor(0, rank), node.moved(1, rank), node.moved(2, rank))
    return node.result(chosen, sizes, type)


@converts("Clip", since=6)
def clip_by_attributes(node: Conversion) -> Result:
    """Bounds that the file gives."""
    least, most = node.attribute("min", None), node.attribute("max", None)
    return node.result(_clipped(node.tensor(0), least, most), node.sizes(0))


@converts("Clip", since=11)
def clip(node: Conversion) -> Result:
    """Bounds that may be absent, or computed; where they cross, the upper one holds."""
    return node.result(_clipped(node.tensor(0), _bound(node, 1), _bound(node, 2)), node.sizes(0))


def _clipped(
    x: GraphTensor, least: GraphTensor | float | None, most: GraphTensor | float | None
) -> GraphTensor:
    if least is not None:
        x = dml.element_wise_max(x, least)
    if most is not None:
        x = dml.element_wise_min(x, most)
    return x


def _bound(node: Conversion, number: int) -> GraphTensor | float | None:
    """A bound of Clip: a number if it is known."""
    if not node.has(number):
        return None
    if int(np.prod(node.sizes(number))) != 1:
        raise NotExpressible(f"input {number} has sizes {list(node.sizes(number))}; must be one number")
    if node.is_known(number) and node.type(number) == node.type(0):
        value: float = node.known(number).reshape(()).item()
        return value
    return node.tensor(number).reinterpret([1] * max(1, len(node.sizes(0))))


def require_float(node: Conversion, number: int) -> None:
    """Checks that an input is of one of the floats that DirectML computes with.

    Raises:
        NotExpressible: it is not.
    """
    if node.type(number) not in (np.float32, np.float16):
        raise NotExpressible(f"input {number} is of type {node.type(number).name}")
