"""Types, enumerations and ranges of attributes: each rule broken, its message read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml.spec.descs import ActivationSoftplus, ScaleBias, Size2D
from opendml.spec.enums import FeatureLevel, PaddingMode, QuantizationType, ReduceFunction
from opendml.spec.facts import operator_facts
from opendml.spec.naming import snake_case
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures
from tests.for_each import for_each
from tests.spec.valid_descs import F32, LEVELS, celu, level_name, level_of, valid_desc

TENSOR = TensorDesc(F32, [2, 3])
NEWEST = FeatureLevel.LEVEL_6_4

UINT = "must be a whole number from 0 to 4294967295"
INT = "must be a whole number from -2147483648 to 2147483647"
FLOAT = "must fit a 32-bit float"
ACTIVATION = "must be the desc of an activation, such as opendml.descs.ActivationRelu()"
ROUNDING = "must be a RoundingMode: HALVES_TO_NEAREST_EVEN, TOWARD_ZERO, TOWARD_INFINITY"

WRONG: list[tuple[str, str, Any, str]] = [
    ("ACTIVATION_CELU", "Alpha", None, ": None; must be a number"),
    ("ACTIVATION_CELU", "Alpha", "1", ": '1'; must be a number"),
    ("ACTIVATION_CELU", "Alpha", True, ": True; must be a number"),
    ("ACTIVATION_CELU", "Alpha", [1.0], ": [1.0]; must be a number"),
    ("ACTIVATION_CELU", "Alpha", 1j, ": 1j; must be a number"),
    ("ACTIVATION_CELU", "Alpha", 1e39, f": 1e+39; {FLOAT}"),
    ("ACTIVATION_CELU", "Alpha", -(10**60), f": -1{'0' * 60}; {FLOAT}"),
    ("TOP_K", "K", -1, f": -1; {UINT}"),
    ("TOP_K", "K", 2**32, f": 4294967296; {UINT}"),
    ("TOP_K", "K", 1.0, f": 1.0; {UINT}"),
    ("TOP_K", "K", False, f": False; {UINT}"),
    ("TOP_K", "K", None, f": None; {UINT}"),
    ("DIAGONAL_MATRIX", "Offset", 2**31, f": 2147483648; {INT}"),
    ("DIAGONAL_MATRIX", "Offset", -(2**31) - 1, f": -2147483649; {INT}"),
    ("RNN", "ActivationDescs", [], ": (); must be a sequence of one or more descs"),
    ("RNN", "ActivationDescs", [3], f"[0]: 3; {ACTIVATION}"),
    ("BATCH_NORMALIZATION", "Spatial", 1, ": 1; must be True or False"),
    ("BATCH_NORMALIZATION", "Spatial", None, ": None; must be True or False"),
    ("BATCH_NORMALIZATION", "FusedActivation", "relu", f": 'relu'; {ACTIVATION}"),
    ("TILE", "Repeats", [1, -2, 3.5], f"[1]: -2; {UINT}"),
    ("TILE", "Repeats", 7, ": 7; must be a sequence of numbers, such as [7]"),
    ("TILE", "Repeats", "12", ": '12'; must be a sequence of numbers"),
    ("TILE", "Repeats", None, ": None; must be a sequence of numbers"),
    ("SLICE1", "InputWindowStrides", [-(2**31) - 1], f"[0]: -2147483649; {INT}"),
    ("RESAMPLE", "Scales", [1.0, "x"], "[1]: 'x'; must be a number"),
    ("ELEMENT_WISE_IDENTITY", "ScaleBias", (1, 2), ": (1, 2); must be a ScaleBias(scale, bias)"),
    ("ELEMENT_WISE_IDENTITY", "ScaleBias", ScaleBias("a", 0), ".Scale: 'a'; must be a number"),  # type: ignore[arg-type]
    ("ELEMENT_WISE_IDENTITY", "ScaleBias", ScaleBias(1, 1e39), f".Bias: 1e+39; {FLOAT}"),
    ("UPSAMPLE_2D", "ScaleSize", None, ": None; must be a Size2D(width, height)"),
    ("UPSAMPLE_2D", "ScaleSize", Size2D(2, -1), f".Height: -1; {UINT}"),
    ("FILL_VALUE_CONSTANT", "Value", "x", ": 'x'; must be a number"),
    ("FILL_VALUE_CONSTANT", "Value", True, ": True; must be a number"),
    (
        "ELEMENT_WISE_ROUND",
        "RoundingMode",
        1,
        f": 1; {ROUNDING}",
    ),
    (
        "ELEMENT_WISE_ROUND",
        "RoundingMode",
        PaddingMode.EDGE,
        f": <PaddingMode.EDGE: 1>; {ROUNDING}",
    ),
    (
        "REDUCE",
        "Function",
        "SUMM",
        ": 'SUMM'; must be a ReduceFunction: ARGMAX, ARGMIN, AVERAGE, L1, L2, LOG_SUM, LOG_SUM_EXP, MAX, "
        "MIN, MULTIPLY, SUM, SUM_SQUARE",
    ),
]


@pytest.mark.parametrize(("operator", "field", "value", "message"), WRONG)
def test_refuses(operator: str, field: str, value: Any, message: str) -> None:
    desc = valid_desc(operator, NEWEST).replace(**{snake_case(field): value})
    assert failures(desc)[0] == f"{operator}.{field}{message}"


def test_a_number_too_long_to_print() -> None:
    assert failures(celu(TENSOR, alpha=10**5000)) == [f"ACTIVATION_CELU.Alpha: <int>; {FLOAT}"]


def test_every_item_of_an_array_is_judged() -> None:
    desc = valid_desc("TILE", NEWEST).replace(repeats=[1, -2, 3.5])
    assert failures(desc) == [f"TILE.Repeats[1]: -2; {UINT}", f"TILE.Repeats[2]: 3.5; {UINT}"]


@pytest.mark.parametrize(
    "alpha",
    [0, -1.5, 3.4028234663852886e38, float("inf"), float("nan"), np.float16(0.5), np.int32(2), np.array(1.0)],
)
def test_numbers_that_are_floats(alpha: Any) -> None:
    assert failures(celu(TENSOR, alpha=alpha)) == []


@for_each(
    ("operator", "field"),
    [
        (name, field["name"])
        for name, facts in operator_facts().items()
        for field in facts["fields"]
        if field["kind"] == "ATTRIBUTE" and "count_of" not in field
    ],
)
def test_every_attribute_is_judged(operator: str, field: str) -> None:
    """An object of no use anywhere is refused in every attribute of every operator."""
    desc = valid_desc(operator, NEWEST).replace(**{snake_case(field): object})
    assert any(
        message.startswith(f"{operator}.{field}: <class 'object'>; must") for message in failures(desc)
    )


@pytest.mark.parametrize("operator", ["PADDING", "PADDING1"])
@pytest.mark.parametrize(("mode", "since"), [(PaddingMode.SYMMETRIC, "3_0"), (PaddingMode.WRAP, "6_4")])
def test_enumeration_value_before_its_level(operator: str, mode: PaddingMode, since: str) -> None:
    first = level_of(operator_facts()[operator]["introduced"])
    for level in LEVELS:
        if level < first:
            continue
        found = failures(valid_desc(operator, level).replace(padding_mode=mode), level)
        if level >= level_of(since):
            assert found == []
        else:
            expected = f"exists from DML_FEATURE_LEVEL_{since}, not in {level_name(level)}"
            assert found == [f"{operator}.PaddingMode: {mode.name}; {expected}"]


@pytest.mark.parametrize("steepness", [0.999, 0.0, -1.0, float("nan")])
def test_softplus_steepness_is_at_least_1_below_6_4(steepness: float) -> None:
    tensor = TensorDesc(F32, [1, 2, 3, 4])
    for level in LEVELS:
        found = failures(ActivationSoftplus(tensor, tensor, steepness=steepness), level)
        if level < FeatureLevel.LEVEL_6_4:
            expected = (
                f"ACTIVATION_SOFTPLUS.Steepness: {steepness}; must be at least 1 below DML_FEATURE_LEVEL_6_4"
            )
            assert found == [expected]
        else:
            assert found == []
        assert failures(ActivationSoftplus(tensor, tensor, steepness=1), level) == []


@pytest.mark.parametrize("epsilon", [-1e-9, float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize(
    "operator",
    [n for n, facts in operator_facts().items() if any(f["name"] == "Epsilon" for f in facts["fields"])],
)
def test_epsilon_is_finite_and_not_negative(operator: str, epsilon: float) -> None:
    desc = valid_desc(operator, NEWEST)
    expected = f"{operator}.Epsilon: {epsilon}; must be finite and at least 0"
    assert failures(desc.replace(epsilon=epsilon)) == [expected]
    assert failures(desc.replace(epsilon=0)) == []


AT_LEAST_1, NONZERO = [(0, "at least 1")], [(0, "other than 0")]
SCALE = [(value, "finite and above 0") for value in (0.0, -1.0, float("inf"), float("nan"))]
OFFSET = [(value, "finite") for value in (float("inf"), float("nan"))]
NORM = [(value, "1 or 2") for value in (0, 3)]
REGION = [(ReduceFunction.SUM, "AVERAGE or MAX")]
QUANTIZED = [(QuantizationType.NONE, "SCALE or SCALE_ZERO_POINT")]
RANGES: dict[str, list[tuple[Any, str]]] = {
    "min": AT_LEAST_1,
    "nonzero": NONZERO,
    "above finite": SCALE,
    "finite": OFFSET,
    "P": NORM,
    "ReductionFunction": REGION,
    "QuantizationType": QUANTIZED,
}


@pytest.mark.parametrize(
    ("operator", "field"),
    [
        pytest.param(name, field, id=f"{name}-{field['name']}")
        for name, facts in operator_facts().items()
        for field in facts["fields"]
        if "range" in field and field["name"] not in ("Epsilon", "Steepness")
    ],
)
def test_outside_a_range(operator: str, field: dict[str, Any]) -> None:
    """Strides, windows, counts, scales, orders: the first number of an array, or of a pair, is wrong."""
    kind = field["name"] if "values" in field["range"] else " ".join(field["range"])
    name = snake_case(field["name"])
    desc = valid_desc(operator, NEWEST)
    for value, allowed in RANGES[kind]:
        before, index, wrong = getattr(desc, name), "", value
        if field["type"].endswith("ARRAY"):
            index, wrong = "[0]", (value, *before[1:])
        elif field["type"] == "SIZE_2D":
            index, wrong = ".Width", before._replace(width=value)
        shown = getattr(value, "name", value)
        expected = f"{operator}.{field['name']}{index}: {shown}; must be {allowed}"
        assert failures(desc.replace(**{name: wrong})) == [expected]


def test_unknown_reduce_function_leaves_the_level_s_limits() -> None:
    """Without a function there is no table; what no table allows is still refused."""
    desc = valid_desc("REDUCE", NEWEST).replace(function=ReduceFunction)
    assert [message.split(":")[0] for message in failures(desc)] == ["REDUCE.Function"]
    wrong = desc.replace(input_tensor=TensorDesc(F32, [1] * 9))
    assert failures(wrong)[1] == "REDUCE.InputTensor: 9 dimensions; DML_FEATURE_LEVEL_6_4 allows 1 to 8"
