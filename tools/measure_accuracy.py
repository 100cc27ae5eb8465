"""Measures how exact point-wise operators are on the CPU and writes it to opendml/spec/data/tolerances.json.

    python -m tools.measure_accuracy                          all of them
    python -m tools.measure_accuracy ACTIVATION_CELU ...      some of them

An accuracy is the greatest distance of a result from the exact one in units of the last place (ULP):
|result - exact| over the distance of neighbouring numbers of the result's type around the exact result, which
comes from the same definition in float64. Every float16 is measured; of the float32 values, evenly over their
bits, every `STEP`th, and every `DENSE_STEP`th in `DENSE_RANGE`, where most functions bend. Further operands
are the same values in another order.

Attributes are those of `CASES`, which the tests use too, and the worst of `DRAWS` random ones: errors depend
on the mantissa of an attribute, so powers of two and round numbers alone show too little. The draws are
compared over a `SPARSER`th of the values, and the worst one is measured over all of them. Around the worst
float32 all neighbours are measured, too. The table's bounds ("bound") are set by hand and not changed here; a
measured value above its bound is an error.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from opendml import Device, TensorDataType, TensorDesc
from opendml.operators.registry import define
from opendml.program.node import source
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.spec.descs import desc_class
from opendml.spec.enums import RoundingMode
from opendml.spec.operator_desc import OperatorDesc, ScaleBias
from opendml.spec.schema import operator
from opendml.targets.reference.evaluate import evaluate
from tools.distances import ulp_distance

TABLE = Path(str(resources.files("opendml.spec"))) / "data" / "tolerances.json"

STEP, DENSE_STEP = 211, 31
DENSE_RANGE = (2.0**-10, 2.0**7)
NEIGHBOURS = 1 << 18
CHUNK = 1 << 20
DRAWS, SPARSER = 256, 64
DRAWN_RANGE = (2.0**-5, 2.0**5)
"""Magnitudes of random attributes, evenly over their logarithms; both signs."""

F32, F16 = ScalarType.FLOAT32, ScalarType.FLOAT16

Attributes = Mapping[str, Any]

CASES: dict[str, tuple[Attributes, ...]] = {
    "ACTIVATION_CELU": tuple({"alpha": alpha} for alpha in (1.0, 0.5, 2.0, 0.7, -1.0, 3.7, 1.87)),
    "ACTIVATION_ELU": tuple({"alpha": alpha} for alpha in (1.0, 0.5, 2.0, 0.7, -1.0)),
    "ACTIVATION_GELU": ({},),
    "ACTIVATION_HARD_SIGMOID": (
        {"alpha": 0.2, "beta": 0.5},
        {"alpha": 1.0 / 6.0, "beta": 0.5},
        {"alpha": -1.0, "beta": 0.7},
    ),
    "ACTIVATION_HARD_SWISH": ({"alpha": 1.0 / 6.0, "beta": 0.5}, {"alpha": 0.7, "beta": -0.3}),
    "ACTIVATION_IDENTITY": ({},),
    "ACTIVATION_LEAKY_RELU": ({"alpha": 0.01}, {"alpha": 0.5}, {"alpha": 2.0}, {"alpha": -1.0}),
    "ACTIVATION_LINEAR": (
        {"alpha": 1.0, "beta": 0.0},
        {"alpha": 0.7, "beta": -1.3},
        {"alpha": -2.0, "beta": 0.5},
        {"alpha": 0.0, "beta": 3.0},
    ),
    "ACTIVATION_PARAMETERIZED_RELU": ({},),
    "ACTIVATION_PARAMETRIC_SOFTPLUS": (
        {"alpha": 1.0, "beta": 1.0},
        {"alpha": 0.7, "beta": 0.3},
        {"alpha": 2.0, "beta": -1.7},
    ),
    "ACTIVATION_RELU": ({},),
    "ACTIVATION_RELU_GRAD": ({},),
    "ACTIVATION_SCALED_ELU": (
        {"alpha": 1.6732, "gamma": 1.0507},
        {"alpha": 1.0, "gamma": 1.0},
        {"alpha": 0.7, "gamma": 2.0},
        {"alpha": -1.0, "gamma": 0.3},
    ),
    "ACTIVATION_SCALED_TANH": (
        {"alpha": 1.0, "beta": 0.5},
        {"alpha": 1.7159, "beta": 0.6667},
        {"alpha": -0.7, "beta": 2.0},
    ),
    "ACTIVATION_SHRINK": (
        {"bias": 0.0, "threshold": 0.5},
        {"bias": 0.7, "threshold": 0.3},
        {"bias": -1.0, "threshold": 2.0},
    ),
    "ACTIVATION_SIGMOID": ({},),
    "ACTIVATION_SOFTPLUS": tuple({"steepness": steepness} for steepness in (1.0, 2.0, 1.7, 20.0)),
    "ACTIVATION_SOFTSIGN": ({},),
    "ACTIVATION_SWISH": tuple({"sigmoid_input_scale": scale} for scale in (1.0, 1.702, -0.3)),
    "ACTIVATION_TANH": ({},),
    "ACTIVATION_THRESHOLDED_RELU": ({"alpha": 1.0}, {"alpha": 0.7}, {"alpha": -1.0}),
    "ELEMENT_WISE_ABS": ({},),
    "ELEMENT_WISE_ACOS": ({},),
    "ELEMENT_WISE_ACOSH": ({},),
    "ELEMENT_WISE_ADD": ({},),
    "ELEMENT_WISE_ADD1": ({},),
    "ELEMENT_WISE_ASIN": ({},),
    "ELEMENT_WISE_ASINH": ({},),
    "ELEMENT_WISE_ATAN": ({},),
    "ELEMENT_WISE_ATANH": ({},),
    "ELEMENT_WISE_ATAN_YX": ({},),
    "ELEMENT_WISE_CEIL": ({},),
    "ELEMENT_WISE_CLIP": ({"min": -0.7, "max": 1.3},),
    "ELEMENT_WISE_CLIP_GRAD": ({"min": -0.7, "max": 1.3},),
    "ELEMENT_WISE_CONSTANT_POW": tuple({"exponent": e} for e in (0.5, -1.0, 2.0, 3.0, 2.7, -0.33, 0.0)),
    "ELEMENT_WISE_COS": ({},),
    "ELEMENT_WISE_COSH": ({},),
    "ELEMENT_WISE_DIFFERENCE_SQUARE": ({},),
    "ELEMENT_WISE_DIVIDE": ({},),
    "ELEMENT_WISE_ERF": ({},),
    "ELEMENT_WISE_EXP": ({},),
    "ELEMENT_WISE_FLOOR": ({},),
    "ELEMENT_WISE_IDENTITY": ({}, {"scale_bias": ScaleBias(0.7, -1.3)}),
    "ELEMENT_WISE_LOG": ({},),
    "ELEMENT_WISE_MAX": ({},),
    "ELEMENT_WISE_MEAN": ({},),
    "ELEMENT_WISE_MIN": ({},),
    "ELEMENT_WISE_MODULUS_FLOOR": ({},),
    "ELEMENT_WISE_MODULUS_TRUNCATE": ({},),
    "ELEMENT_WISE_MULTIPLY": ({},),
    "ELEMENT_WISE_NEGATE": ({},),
    "ELEMENT_WISE_POW": ({},),
    "ELEMENT_WISE_RECIP": ({},),
    "ELEMENT_WISE_ROUND": tuple({"rounding_mode": mode} for mode in RoundingMode),
    "ELEMENT_WISE_SIGN": ({},),
    "ELEMENT_WISE_SIN": ({},),
    "ELEMENT_WISE_SINH": ({},),
    "ELEMENT_WISE_SQRT": ({},),
    "ELEMENT_WISE_SUBTRACT": ({},),
    "ELEMENT_WISE_TAN": ({},),
    "ELEMENT_WISE_TANH": ({},),
    "ELEMENT_WISE_THRESHOLD": ({"min": -0.7},),
}
"""The attributes that each operator is measured, and tested, with."""


class Worst(NamedTuple):
    """The greatest distance found, the input and the attributes that show it."""

    distance: float
    input: float
    attributes: Attributes


def activation(name: str, attributes: Attributes, type: ScalarType, count: int) -> OperatorDesc:
    """The desc of an activation, or of another element-wise operator, over `count` elements."""
    tensor = TensorDesc(TensorDataType[type.name], [count])
    make: Any = desc_class(name)
    made: OperatorDesc = make(*[tensor] * len(operator(name).tensors), **attributes)
    return made


def operands(desc: OperatorDesc, x: Array) -> list[Array]:
    """`x` for the first input of an operator, and for each further one `x` in another order."""
    count = len(operator(desc.operator).tensors) - 1
    generator = np.random.default_rng(0)
    return [x, *(generator.permutation(x) for _ in range(count - 1))]


def computed(desc: OperatorDesc, x: Array, device: Device | str = "cpu") -> Array:
    """The operator over `operands(desc, x)` on a device."""
    where = device if isinstance(device, Device) else Device(device)
    result = np.empty_like(x)
    where.compile_operator(where.create_operator(desc)).bind(operands(desc, x), [result]).dispatch()
    return result


def exact(desc: OperatorDesc, x: Array) -> Array:
    """The operator over `operands(desc, x)` in float64, not rounded."""
    values = operands(desc, x)
    nodes = [source(index, ScalarType[x.dtype.name.upper()], x.shape) for index in range(len(values))]
    return evaluate(define(desc, nodes, [ScalarType.FLOAT64]), values)[0]


def every_float16() -> Array:
    """All 65536 values."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def float32_values(step: int) -> Array:
    """Every `step`th float32 by its bits (both signs, denormals and NaN too), and the ends of the ranges."""
    bits = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32)
    ends = [
        sign | end
        for sign in (0, 1 << 31)
        for end in (0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000)
    ]
    return np.concatenate([bits, np.array(ends, np.uint32)]).view(np.float32)


def dense_float32_values(step: int, low: float, high: float) -> Array:
    """Every `step`th float32 from `low` up to `high`, and their negatives."""
    first, last = np.array([low, high], np.float32).view(np.uint32)
    values = np.arange(first, last, step, dtype=np.uint32).view(np.float32)
    return np.concatenate([values, -values])


def neighbours(x: float) -> Array:
    """Return every float32 within `NEIGHBOURS` of `x`, counted by their bits."""
    center = int(np.array([x], np.float32).view(np.uint32)[0])
    bits = np.arange(center - NEIGHBOURS, center + NEIGHBOURS, dtype=np.int64)
    return bits.astype(np.uint32).view(np.float32)


def worst(name: str, type: ScalarType, inputs: Array, cases: Iterable[Attributes]) -> Worst:
    """The greatest distance of an operator over the inputs and the cases."""
    found = Worst(-1.0, math.nan, {})
    for attributes in cases:
        for x in _chunks(inputs):
            desc = activation(name, attributes, type, x.size)
            distances = ulp_distance(computed(desc, x), exact(desc, x))
            index = int(np.argmax(distances))
            if distances[index] > found.distance:
                found = Worst(float(distances[index]), float(x[index]), attributes)
    return found


def drawn(name: str) -> list[Attributes]:
    """Return random attributes for an operator whose attributes are floats, and none for others.

    The names and the signs that are allowed are those of the operator's cases.
    """
    first = CASES[name][0]
    if not first or not all(isinstance(value, float) for value in first.values()):
        return []
    generator = np.random.default_rng(0)
    low, high = np.log2(DRAWN_RANGE)
    found: list[Attributes] = []
    for _ in range(DRAWS):
        signs, exponents = generator.choice([-1.0, 1.0], len(first)), generator.uniform(low, high, len(first))
        values = [float(np.float32(sign * 2.0**each)) for sign, each in zip(signs, exponents, strict=True)]
        attributes = dict(zip(first, values, strict=True))
        if "steepness" in attributes:  # must be positive
            attributes["steepness"] = abs(attributes["steepness"])
        if "min" in attributes and "max" in attributes:
            attributes["min"], attributes["max"] = sorted(values)
        found.append(attributes)
    return found


def read_table() -> dict[str, dict[str, dict[str, Any]]]:
    """The table as it is."""
    table: dict[str, dict[str, dict[str, Any]]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


_BOUNDS = (0.5625, *(2.0**power for power in range(20)))
"""Bounds that the tool promises for a new operator: the least one that holds. A person may lower it."""


def main(names: Sequence[str]) -> int:
    """Measures, prints, rewrites the table; returns 1 if a bound is not met."""
    table = read_table()
    float32 = np.concatenate([float32_values(STEP), dense_float32_values(DENSE_STEP, *DENSE_RANGE)])
    samples = {F16: every_float16(), F32: float32}
    failed = False
    for name in names or CASES:
        for type, inputs in samples.items():
            cases = list(CASES[name])
            if others := drawn(name):
                fewer = inputs if type is F16 else inputs[::SPARSER].copy()
                cases.append(worst(name, type, fewer, others).attributes)
            found = worst(name, type, inputs, cases)
            if type is F32:
                closer = worst(name, type, neighbours(found.input), [found.attributes])
                found = max(found, closer, key=lambda each: each.distance)
            new = {"unit": "ulp", "bound": next(each for each in _BOUNDS if each >= found.distance)}
            row = table.setdefault(name, {}).setdefault(type.name, new)
            row["measured"] = _rounded_up(found.distance)
            row["measured_over"] = _described(type, inputs.size, cases, len(others))
            exceeds = found.distance > row["bound"]
            failed |= exceeds
            where = f"{found.input!r} {dict(found.attributes) or ''}{' EXCEEDED' if exceeds else ''}"
            print(f"{name:32} {type.name} {found.distance:9.5f} of {row['bound']:<5} at {where}")
    TABLE.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    return int(failed)


def _chunks(inputs: Array) -> Iterator[Array]:
    for start in range(0, inputs.size, CHUNK):
        yield inputs[start : start + CHUNK]


def _rounded_up(distance: float) -> float:
    """Three decimals that are not below what was measured."""
    return math.ceil(distance * 1000) / 1000


def _described(type: ScalarType, count: int, cases: Sequence[Attributes], draws: int) -> str:
    low, high = (f"2^{math.frexp(bound)[1] - 1}" for bound in DENSE_RANGE)
    values = (
        "every float16"
        if type is F16
        else f"{count / 1e6:.1f} million float32: one in {STEP}, and one in {DENSE_STEP} from {low} to {high}"
    )
    attributes = "; ".join(
        ", ".join(f"{key} {_shown(value)}" for key, value in case.items()) or "no attributes"
        for case in cases
    )
    if not any(cases):
        attributes = ""
    if draws:
        attributes += f" (the worst of {draws} random ones)"
    return f"{values}; {attributes}" if attributes else values


def _shown(value: Any) -> str:
    if isinstance(value, ScaleBias):
        return f"{value.scale:g} {value.bias:g}"
    return value.name if isinstance(value, RoundingMode) else f"{value:.4g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
