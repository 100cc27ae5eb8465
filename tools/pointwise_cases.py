"""Descs of every point-wise operator on every combination of types in its table, and values for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from opendml import TensorDataType, TensorDesc
from opendml.operators.registry import implemented
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.spec.descs import desc_class
from opendml.spec.enums import IsInfinityMode, RoundingMode
from opendml.spec.operator_desc import OperatorDesc, ScaleBias
from opendml.spec.schema import Field, operator

OTHERS = (
    "ACTIVATION_PARAMETERIZED_RELU",
    "ACTIVATION_RELU",
    "ACTIVATION_RELU_GRAD",
    "ACTIVATION_SHRINK",
    "CAST",
)
OPERATORS = sorted(
    name for name in implemented() if name.startswith(("ELEMENT_WISE_", "FILL_VALUE_")) or name in OTHERS
)

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "ACTIVATION_SHRINK": {"bias": 1.5, "threshold": 2.5},
    "ELEMENT_WISE_CLIP": {"min": 1.75, "max": 40.5},
    "ELEMENT_WISE_CLIP1": {"min": 2, "max": 40},
    "ELEMENT_WISE_CLIP_GRAD": {"min": 1.0, "max": 40.0},
    "ELEMENT_WISE_CLIP_GRAD1": {"min": 2, "max": 40},
    "ELEMENT_WISE_CONSTANT_POW": {"exponent": 2.5},
    "ELEMENT_WISE_IDENTITY": {"scale_bias": ScaleBias(0.5, 2.0)},
    "ELEMENT_WISE_IS_INFINITY": {"infinity_mode": IsInfinityMode.NEGATIVE},
    "ELEMENT_WISE_ROUND": {"rounding_mode": RoundingMode.TOWARD_INFINITY},
    "ELEMENT_WISE_THRESHOLD": {"min": 3.5},
    "FILL_VALUE_CONSTANT": {"value": 77},
    "FILL_VALUE_SEQUENCE": {"value_start": 7, "value_delta": 3},
}

Types = Mapping[str, str]
"""A type for each tensor, by DirectML's names."""


def type_combinations(name: str) -> Iterator[Types]:
    """All that the newest table and the rules of equal types allow."""
    facts = operator(name)
    fields = [field.name for field in facts.tensors]
    groups = [same.tensors for same in facts.same if "DataType" in same.what]
    for chosen in product(*(facts.support[0].tensors[field].types for field in fields)):
        types = dict(zip(fields, chosen, strict=True))
        if all(len({types[tensor] for tensor in group}) == 1 for group in groups) and _is_allowed(
            name, types
        ):
            yield types


def _is_allowed(name: str, types: Types) -> bool:
    """The rule of QUANTIZE_LINEAR: a scale of the input's type, for INT32 FLOAT32."""
    if name != "ELEMENT_WISE_QUANTIZE_LINEAR":
        return True
    return types["ScaleTensor"] == types["InputTensor"].replace("INT32", "FLOAT32")


def desc_of(name: str, types: Types, count: int) -> OperatorDesc:
    """The operator over vectors of `count` elements (scales and zero points of one, where they must be)."""
    facts = operator(name)
    values: dict[str, Any] = {
        field.python_name: TensorDesc(TensorDataType[types[field.name]], [_count(name, field, count)])
        for field in facts.tensors
    }
    for field in facts.attributes:
        if field.same_type_as:
            values[field.python_name] = TensorDataType[types[field.same_type_as]]
    return desc_class(name)(**values, **ATTRIBUTES.get(name, {}))


def inputs_of(name: str, types: Types, count: int) -> list[Array]:
    """Random values for the inputs, the special ones of each type among them."""
    generator = np.random.default_rng(7)
    inputs = []
    for field in operator(name).tensors:
        if field.kind == "INPUT_TENSOR":
            values = random_values(generator, ScalarType[types[field.name]], count)
            if _count(name, field, count) == 1:
                values = np.abs(values[:1]) + values.dtype.type(1)
            inputs.append(values)
    return inputs


def random_values(generator: np.random.Generator, type: ScalarType, count: int) -> Array:
    """Small and large numbers in any order."""
    if type.is_float:
        values = generator.normal(0, 3, count) * 10.0 ** generator.integers(-3, 3, count)
        values[:8] = [0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 2.5]
    else:
        limits = np.iinfo(type.numpy.name)
        values = generator.integers(limits.min, limits.max, count, type.name.lower(), endpoint=True)
        values[count // 2 :] = generator.integers(max(limits.min, -4), 9, count - count // 2)
        values[:5] = [0, 1, limits.max, limits.min, limits.max - 1]
    with np.errstate(over="ignore"):
        return generator.permutation(values).astype(type.numpy)


def _count(name: str, field: Field, count: int) -> int:
    is_single = name == "ELEMENT_WISE_QUANTIZED_LINEAR_ADD" and (
        "Scale" in field.name or "Zero" in field.name
    )
    return 1 if is_single else count
