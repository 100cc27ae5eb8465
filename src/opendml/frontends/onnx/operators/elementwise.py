"""Element-wise operators, of one or several tensors, and changes of types."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.functions import SAME_NAME
from opendml.frontends.common.types import NotExpressible, computed_type_of, data_type_of
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.registry import OWN, Converter, converts
from opendml.frontends.onnx.values import BOOLEAN, Known, Type
from opendml.runtime.graphs.tensor import GraphTensor

Function = Callable[..., Any]

_ONE_TENSOR: dict[str, Function] = {
    **{name.capitalize(): function for name, function in SAME_NAME.items()},
    "BitwiseNot": dml.element_wise_bit_not,
    "IsNaN": dml.element_wise_is_nan,
    "Neg": dml.element_wise_negate,
    "Not": dml.element_wise_logical_not,
    "Reciprocal": dml.element_wise_recip,
}

_SEVERAL_TENSORS: dict[str, Function] = {
    "Add": dml.element_wise_add,
    "And": dml.element_wise_logical_and,
    "BitwiseAnd": dml.element_wise_bit_and,
    "BitwiseOr": dml.element_wise_bit_or,
    "BitwiseXor": dml.element_wise_bit_xor,
    "Div": dml.element_wise_divide,
    "Equal": dml.element_wise_logical_equals,
    "Greater": dml.element_wise_logical_greater_than,
    "GreaterOrEqual": dml.element_wise_logical_greater_than_or_equal,
    "Less": dml.element_wise_logical_less_than,
    "LessOrEqual": dml.element_wise_logical_less_than_or_equal,
    "Max": dml.element_wise_max,
    "Min": dml.element_wise_min,
    "Mul": dml.element_wise_multiply,
    "Or": dml.element_wise_logical_or,
    "Sub": dml.element_wise_subtract,
    "Sum": dml.element_wise_add,
    "Xor": dml.element_wise_logical_xor,
}

_TRUTH = frozenset(
    ["IsNaN", "Not", "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor"]
)
"""Operators whose results are truth values."""

_VARIADIC = frozenset(("Max", "Min", "Sum"))


def _of_one(function: Function, is_truth: bool) -> Converter:
    def convert(node: OnnxConversion) -> Result:
        return node.result(function(node.tensor(0)), node.sizes(0), BOOLEAN if is_truth else None)

    return convert


def _of_several(function: Function, is_truth: bool = False) -> Converter:
    """Return a converter that applies a function of two tensors from the first input to the last."""

    def convert(node: OnnxConversion) -> Result:
        numbers = range(node.input_count)
        sizes, type = node.common_sizes(*numbers), BOOLEAN if is_truth else None
        return node.result(reduce(function, node.operands(*numbers)), sizes, type)

    return convert


for _name, _function in _ONE_TENSOR.items():
    converts(_name, to=_function)(_of_one(_function, _name in _TRUTH))
for _name, _function in _SEVERAL_TENSORS.items():
    _since = 6 if _name in _VARIADIC else 7
    converts(_name, since=_since, to=_function)(_of_several(_function, _name in _TRUTH))


@converts("Mean", since=6, to="ELEMENT_WISE_MEAN")
def mean(node: OnnxConversion) -> Result:
    """Convert Mean to a sum and a division by the number of inputs."""
    numbers = range(node.input_count)
    sizes = node.common_sizes(*numbers)
    total = reduce(dml.element_wise_add, node.operands(*numbers))
    return node.result(dml.element_wise_divide(total, float(node.input_count)), sizes)


@converts("Abs", to="ELEMENT_WISE_ABS")
def absolute(node: OnnxConversion) -> Result:
    """Convert Abs. Unsigned elements, which ABS does not take, stay as they are."""
    if node.type(0).kind == "u":
        return node.reshaped(node.sizes(0))
    return node.result(dml.element_wise_abs(node.tensor(0)), node.sizes(0))


@converts("IsInf", to="ELEMENT_WISE_IS_INFINITY")
def is_infinity(node: OnnxConversion) -> Result:
    """Convert IsInf, which finds the infinities that its attributes name, or none."""
    sizes = node.sizes(0)
    negative, positive = node.flag("detect_negative"), node.flag("detect_positive")
    if not negative and not positive:
        if node.type(0) not in (np.float32, np.float16):
            raise NotExpressible(f"input 0 is of type {node.type(0).name}")
        return node.truth(node.constant(np.zeros(sizes, np.uint8)), sizes)
    mode = "EITHER" if negative and positive else "NEGATIVE" if negative else "POSITIVE"
    return node.truth(dml.element_wise_is_infinity(node.tensor(0), infinity_mode=mode), sizes)


@converts("Mod", since=10, to="ELEMENT_WISE_MODULUS_TRUNCATE ELEMENT_WISE_MODULUS_FLOOR")
def modulus(node: OnnxConversion) -> Result:
    """Convert Mod. The result has the sign of the dividend if `fmod` is set, else of the divisor.

    From version 28 on that holds for floats and their zeros too, which MODULUS_FLOOR leaves open.
    """
    is_float = node.type(0).kind == "f"
    if node.flag("fmod"):
        return _of_several(dml.element_wise_modulus_truncate)(node)
    if is_float and node.version < 28:
        raise NotExpressible("fmod is 0; of floats it must be 1")
    return _of_several(_floored if is_float else dml.element_wise_modulus_floor)(node)


def _floored(a: GraphTensor, b: GraphTensor) -> GraphTensor:
    remainder = dml.element_wise_modulus_floor(a, b)
    return dml.element_wise_if(remainder == 0.0, dml.element_wise_sign(b) * 0.0, remainder)


@converts("BitShift", to="ELEMENT_WISE_BIT_SHIFT_LEFT ELEMENT_WISE_BIT_SHIFT_RIGHT")
def bit_shift(node: OnnxConversion) -> Result:
    """Convert BitShift. DirectML shifts unsigned numbers, so the bits of signed ones are shifted as such.

    A shift to the right keeps the sign: of a negative number the inverse of its inverse is shifted.
    """
    sizes, type = node.common_sizes(0, 1), node.type(0)
    x, count = node.operands(0, 1)
    left = node.required("direction") == "LEFT"
    shift = dml.element_wise_bit_shift_left if left else dml.element_wise_bit_shift_right
    if type.kind == "u":
        return node.result(shift(x, count), sizes)
    unsigned, signed = (data_type_of(np.dtype(f"{kind}{type.itemsize}")) for kind in "ui")
    bits, count = (dml.cast(each, output_type=unsigned) for each in (x, count))
    if left:
        return node.result(dml.cast(shift(bits, count), output_type=signed), sizes)
    is_negative = x < 0
    bits = dml.element_wise_if(is_negative, dml.element_wise_bit_not(bits), bits)
    shifted = shift(bits, count)
    kept = dml.element_wise_if(is_negative, dml.element_wise_bit_not(shifted), shifted)
    return node.result(dml.cast(kept, output_type=signed), sizes)


@converts("Where", to="ELEMENT_WISE_IF")
def where(node: OnnxConversion) -> Result:
    """Convert Where. Its elements are only moved, so they have any type."""
    sizes, type = node.common_sizes(0, 1, 2), node.type(1)
    rank = max(1, len(sizes))
    chosen = dml.element_wise_if(node.tensor(0, rank), node.moved(1, rank), node.moved(2, rank))
    return node.result(chosen, sizes, type)


@converts("Clip", since=6, to="ELEMENT_WISE_CLIP1")
def clip(node: OnnxConversion) -> Result:
    """Convert Clip with bounds that may be absent or computed. Where they cross, the upper one holds.

    Before version 11 they are attributes, whose defaults bound nothing but infinities.
    """
    x = node.tensor(0)
    if node.version < 11:
        least, most = node.attribute("min"), node.attribute("max")
    else:
        least, most = _bound(node, 1), _bound(node, 2)
    x = x if least is None else dml.element_wise_max(x, least)
    return node.result(x if most is None else dml.element_wise_min(x, most), node.sizes(0))


def _bound(node: OnnxConversion, number: int) -> GraphTensor | float | None:
    """Return a bound of Clip: a number if it is known."""
    if not node.has(number):
        return None
    if math.prod(node.sizes(number)) != 1:
        raise NotExpressible(f"input {number} has sizes {list(node.sizes(number))}; must be one number")
    if node.is_known(number) and node.type(number) == node.type(0):
        value: float = node.known(number).reshape(()).item()
        return value
    return node.tensor(number).reinterpret([1] * max(1, len(node.sizes(0))))


_ODD = 2**24
"""Below it FLOAT32 tells odd numbers from even ones."""
_MOST_MULTIPLIED = 64
"""Greater powers of integers do not fit into 64 bits, except those of 0, 1 and -1."""
_GREATEST_EVEN = 2**31 - 2
"""The greatest even INT32."""


@converts("Pow", since=7, to="ELEMENT_WISE_POW ELEMENT_WISE_CONSTANT_POW")
def power(node: OnnxConversion) -> Result:
    """Convert Pow. The result has the type of the base; the exponent may have another one."""
    sizes = node.common_sizes(0, 1)
    rank = max(1, len(sizes))
    base, number = node.tensor(0, rank), _one_number(node)
    if number is not None and node.type(0).kind == "f":
        return node.result(dml.element_wise_constant_pow(base, exponent=number), sizes)
    if number is not None and node.type(1).kind in "iu" and 0 < number <= _MOST_MULTIPLIED:
        return node.result(_multiplied(base, int(number)), sizes)
    return node.result(dml.element_wise_pow(base, _exponent(node, rank)), sizes)


def _multiplied(base: GraphTensor, exponent: int) -> GraphTensor:
    """Return a power of integers by products, which wrap around."""
    if exponent == 1:
        return base
    half = _multiplied(base, exponent // 2)
    return half * half * base if exponent % 2 else half * half


def _one_number(node: OnnxConversion) -> float | None:
    """Return a known exponent of one element that FLOAT32 holds exactly; None if there is none."""
    if not node.is_known(1) or math.prod(node.sizes(1)) != 1 or len(node.sizes(1)) > len(node.sizes(0)):
        return None
    value: float = node.known(1).reshape(()).item()
    return float(value) if abs(value) < _ODD and float(np.float32(value)) == value else None


def _exponent(node: OnnxConversion, rank: int) -> GraphTensor:
    """Return the exponent in a type that POW takes.

    One of 64 bits is clipped to 32 bits: powers of floats beyond differ in their sign at most, so odd
    numbers stay odd.
    """
    type, exponent = node.type(1), node.tensor(1, rank)
    if type.kind not in "iu" or type.itemsize < 8:
        return exponent
    if node.type(0).kind != "f":
        raise NotExpressible(f"an integer to the power of {type.name}")
    least = -_GREATEST_EVEN if type.kind == "i" else 0
    within = dml.element_wise_clip1(exponent, min=least, max=_GREATEST_EVEN)
    odd = dml.element_wise_bit_and(exponent, 1)
    return dml.cast(dml.element_wise_bit_or(within, odd), output_type="INT32")


_MOST_WIDENED = 1024
"""The most elements of a weight that is stored as float32 rather than converted in every run."""


@converts("Cast", since=6, to="CAST")
def cast(node: OnnxConversion) -> Result:
    """Convert Cast, to the type of its attribute."""
    node.required("to")
    type = node.type_attribute("to")
    if type is None:
        raise NotExpressible(f"to: {node.attribute('to')} is no type")
    return _cast(node, type)


@converts("CastLike", to="CAST")
def cast_like(node: OnnxConversion) -> Result:
    """Convert CastLike, to the type of its second input."""
    return _cast(node, node.type(1))


def _cast(node: OnnxConversion, type: Type) -> Result:
    """Cast input 0. A number is true if it is not 0, and so is 0.5, which CAST truncates."""
    sizes = node.sizes(0)
    if type == node.type(0):
        return node.reshaped(sizes)
    data_type = computed_type_of(type, "the result")
    if type == BOOLEAN:
        return node.truth(node.tensor(0) != 0, sizes)
    return node.result(dml.cast(node.tensor(0), output_type=data_type), sizes, type)


@converts("Widen", "Narrow", domain=OWN)
def widen(node: OnnxConversion) -> Result:
    """Convert float16 to float32 or back, for `wide_nodes`. Large weights are widened where they are read."""
    is_wider = node.node.operator == "Widen"
    type = np.dtype(np.float32 if is_wider else np.float16)
    if node.is_known(0) and (not is_wider or node.known(0).size <= _MOST_WIDENED):
        return Known(node.known(0).astype(type))
    return node.empty(node.sizes(0), type) if 0 in node.sizes(0) else _cast(node, type)
