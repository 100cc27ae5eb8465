"""The element-wise operators of `directml`. Operands have the same sizes and types; `broadcast` repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from opendml.frontends.directml.call import output
from opendml.frontends.directml.tensors import Expression, require_alike, tensor
from opendml.frontends.pydirectml.activations import FusedActivation, activation_desc
from opendml.frontends.pydirectml.data_types import DataType
from opendml.frontends.pydirectml.enumerations import IsInfinityMode, RoundingMode, TensorDataType
from opendml.frontends.pydirectml.errors import Refused
from opendml.spec.schema import operator

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan_yx",
    "atanh",
    "bit_and",
    "bit_count",
    "bit_not",
    "bit_or",
    "bit_shift_left",
    "bit_shift_right",
    "bit_xor",
    "cast",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "dequantize_linear",
    "difference_square",
    "divide",
    "equals",
    "erf",
    "exp",
    "floor",
    "greater_than",
    "greater_than_or_equal",
    "identity",
    "is_infinity",
    "is_nan",
    "less_than",
    "less_than_or_equal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "max",
    "mean",
    "min",
    "modulus_floor",
    "modulus_truncate",
    "multiply",
    "negate",
    "pow",
    "quantize_linear",
    "recip",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "threshold",
    "where",
]

ScaleBias = tuple[float, float]
"""Of an operator of one tensor: it reads input * scale + bias."""


class _Scaled(Protocol):
    def __call__(self, input: Expression, *, scale_bias: ScaleBias | None = None) -> Expression: ...


class _Plain(Protocol):
    def __call__(self, input: Expression) -> Expression: ...


class _Binary(Protocol):
    def __call__(self, a: Expression, b: Expression) -> Expression: ...


class _Comparison(Protocol):
    def __call__(
        self, a: Expression, b: Expression, *, output_dtype: DataType = TensorDataType.UINT8
    ) -> Expression: ...


_Function = TypeVar("_Function", bound=Callable[..., Expression])


def _named(function: _Function, name: str, of: str) -> _Function:
    """The function with the name that it has in the module, and the formula of its operator."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{of}: {operator(of).formula}"
    return function


def _scaled(name: str) -> _Scaled:
    """An operator of one tensor, of which it reads input * scale + bias."""
    of = f"ELEMENT_WISE_{name.upper()}"

    def function(input: Expression, *, scale_bias: ScaleBias | None = None) -> Expression:
        return output(of, {"input": input, "scale_bias": scale_bias})

    return _named(function, name, of)


def _plain(name: str) -> _Plain:
    """An operator of one tensor."""
    of = f"ELEMENT_WISE_{name.upper()}"

    def function(input: Expression) -> Expression:
        return output(of, {"input": input})

    return _named(function, name, of)


def _binary(name: str) -> _Binary:
    """An operator of two tensors."""
    of = f"ELEMENT_WISE_{name.upper()}"

    def function(a: Expression, b: Expression) -> Expression:
        require_alike(name, a, b)
        return output(of, {"a": a, "b": b})

    return _named(function, name, of)


def _comparison(name: str) -> _Comparison:
    """A comparison of two tensors, which gives 1 or 0."""
    of = f"ELEMENT_WISE_LOGICAL_{name.upper()}"

    def function(
        a: Expression, b: Expression, *, output_dtype: DataType = TensorDataType.UINT8
    ) -> Expression:
        require_alike(name, a, b)
        return output(of, {"a": a, "b": b}, dtype=output_dtype)

    return _named(function, name, of)


identity = _scaled("identity")
abs = _scaled("abs")
acos = _scaled("acos")
asin = _scaled("asin")
atan = _scaled("atan")
ceil = _scaled("ceil")
cos = _scaled("cos")
exp = _scaled("exp")
floor = _scaled("floor")
log = _scaled("log")
recip = _scaled("recip")
sin = _scaled("sin")
sqrt = _scaled("sqrt")
tan = _scaled("tan")
erf = _scaled("erf")
sinh = _scaled("sinh")
cosh = _scaled("cosh")
tanh = _scaled("tanh")
asinh = _scaled("asinh")
acosh = _scaled("acosh")
atanh = _scaled("atanh")

sign = _plain("sign")
negate = _plain("negate")
logical_not = _plain("logical_not")
bit_not = _plain("bit_not")

subtract = _binary("subtract")
multiply = _binary("multiply")
divide = _binary("divide")
max = _binary("max")
min = _binary("min")
mean = _binary("mean")
atan_yx = _binary("atan_yx")
difference_square = _binary("difference_square")
logical_and = _binary("logical_and")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
bit_and = _binary("bit_and")
bit_or = _binary("bit_or")
bit_xor = _binary("bit_xor")
bit_shift_left = _binary("bit_shift_left")
bit_shift_right = _binary("bit_shift_right")
modulus_truncate = _binary("modulus_truncate")
modulus_floor = _binary("modulus_floor")

equals = _comparison("equals")
greater_than = _comparison("greater_than")
greater_than_or_equal = _comparison("greater_than_or_equal")
less_than = _comparison("less_than")
less_than_or_equal = _comparison("less_than_or_equal")


def add(a: Expression, b: Expression, fused_activation: FusedActivation | None = None) -> Expression:
    """ELEMENT_WISE_ADD1: a + b, then the activation."""
    require_alike("add", a, b)
    if activation_desc(fused_activation) is None:
        return output("ELEMENT_WISE_ADD", locals())
    return output("ELEMENT_WISE_ADD1", locals())


def pow(
    input: Expression, exponent: Expression | float, *, scale_bias: ScaleBias | None = None
) -> Expression:
    """ELEMENT_WISE_POW: input to the power of a tensor; of a number, ELEMENT_WISE_CONSTANT_POW."""
    if not isinstance(exponent, Expression):
        return output("ELEMENT_WISE_CONSTANT_POW", locals())
    require_alike("pow", input, exponent)
    return output("ELEMENT_WISE_POW", locals())


def where(condition: Expression, a: Expression, b: Expression) -> Expression:
    """ELEMENT_WISE_IF: a where the condition, of UINT8, is not 0, b elsewhere."""
    require_alike("where", a, b)
    sizes, wanted = tensor(condition, "where.condition").desc.sizes, tensor(a, "where.a").desc.sizes
    if sizes != wanted:
        raise Refused(f"where.condition: {list(sizes)}; shapes differ: a and b have {list(wanted)}")
    return output("ELEMENT_WISE_IF", locals())


def clip(input: Expression, *, min: float, max: float, scale_bias: ScaleBias | None = None) -> Expression:
    """ELEMENT_WISE_CLIP: the nearest number from min to max."""
    return output("ELEMENT_WISE_CLIP", locals())


def threshold(input: Expression, *, min: float, scale_bias: ScaleBias | None = None) -> Expression:
    """ELEMENT_WISE_THRESHOLD: max(input, min)."""
    return output("ELEMENT_WISE_THRESHOLD", locals())


def round(
    input: Expression, *, rounding_mode: RoundingMode = RoundingMode.HALVES_TO_NEAREST_EVEN
) -> Expression:
    """ELEMENT_WISE_ROUND: a whole number near the input."""
    return output("ELEMENT_WISE_ROUND", locals())


def is_nan(input: Expression, *, output_dtype: DataType = TensorDataType.UINT8) -> Expression:
    """ELEMENT_WISE_IS_NAN: 1 for a NaN, 0 otherwise."""
    return output("ELEMENT_WISE_IS_NAN", locals(), dtype=output_dtype)


def is_infinity(
    input: Expression,
    *,
    infinity_mode: IsInfinityMode = IsInfinityMode.EITHER,
    output_dtype: DataType = TensorDataType.UINT8,
) -> Expression:
    """ELEMENT_WISE_IS_INFINITY: 1 for an infinity of that sign, 0 otherwise."""
    return output("ELEMENT_WISE_IS_INFINITY", locals(), dtype=output_dtype)


def bit_count(input: Expression, *, output_dtype: DataType = TensorDataType.UINT8) -> Expression:
    """ELEMENT_WISE_BIT_COUNT: how many bits are 1."""
    return output("ELEMENT_WISE_BIT_COUNT", locals(), dtype=output_dtype)


def cast(input: Expression, *, dtype: DataType) -> Expression:
    """CAST: the numbers as those of another type."""
    return output("CAST", locals(), dtype=dtype)


def quantize_linear(
    input: Expression,
    scale: Expression,
    zero_point: Expression,
    *,
    output_dtype: DataType = TensorDataType.UINT8,
) -> Expression:
    """ELEMENT_WISE_QUANTIZE_LINEAR: round(input / scale) + zero_point, which has the type of the output."""
    return output("ELEMENT_WISE_QUANTIZE_LINEAR", locals(), dtype=output_dtype)


def dequantize_linear(input: Expression, scale: Expression, zero_point: Expression) -> Expression:
    """ELEMENT_WISE_DEQUANTIZE_LINEAR: (input - zero_point) * scale."""
    return output("ELEMENT_WISE_DEQUANTIZE_LINEAR", locals())
