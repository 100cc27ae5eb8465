"""Rules of fields and attributes, and of the activations that are fused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml.spec.descs import (
    ActivationCelu,
    ActivationRelu,
    ActivationSoftplus,
    BatchNormalization,
    ElementWiseClip1,
    ElementWisePow,
    FillValueConstant,
    Gather,
    Gemm,
    Join,
    MeanVarianceNormalization1,
    Reduce,
    Rnn,
    ScaleBias,
    Size2D,
    desc_class,
)
from opendml.spec.enums import FeatureLevel, PaddingMode, QuantizationType, ReduceFunction, TensorDataType
from opendml.spec.facts import enum_facts, operator_facts
from opendml.spec.naming import snake_case
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures
from opendml.spec.wording import counted
from tests.for_each import for_each
from tests.spec.valid_descs import (
    F16,
    F32,
    LEVELS,
    NAMES,
    celu,
    changed,
    level_name,
    level_of,
    table_at,
    tensor_of,
    valid_desc,
    with_tensor,
)

NEWEST = FeatureLevel.LEVEL_6_4
SAME = [(name, rule) for name in NAMES for rule in operator_facts()[name]["same"]]
INPUT = TensorDesc(F32, [2, 3, 4, 5])


@for_each(
    ("operator", "rule"), [pair for pair in SAME if "DataType" in pair[1]["what"] and "below" not in pair[1]]
)
def test_equal_data_types(operator: str, rule: dict[str, Any]) -> None:
    """Every tensor of the rule but the first gets another type that its table allows, where there is one."""
    for name in rule["tensors"][1:]:
        desc = valid_desc(operator, NEWEST, having=name)
        first = next(each for each in rule["tensors"] if getattr(desc, snake_case(each)) is not None)
        if name == first:
            continue
        before = tensor_of(desc, name).data_type
        for other in table_at(operator, NEWEST)[name]["types"]:
            if other == before.name:
                continue
            wrong = with_tensor(desc, name, changed(tensor_of(desc, name), data_type=TensorDataType[other]))
            expected = f": {other}; must have the data type of {first}"
            assert [m for m in failures(wrong) if m.startswith(f"{operator}.{name}") and expected in m]


@for_each(("operator", "rule"), [pair for pair in SAME if "DimensionCount" in pair[1]["what"]])
def test_equal_dimension_counts(operator: str, rule: dict[str, Any]) -> None:
    desc = valid_desc(operator, NEWEST)
    first, *others = rule["tensors"]
    for name in others:
        tensor = tensor_of(desc, name)
        rank = len(tensor.sizes) - 1
        wrong = with_tensor(desc, name, changed(tensor, sizes=[2] * rank))
        found = [message for message in failures(wrong) if message.startswith(f"{operator}.{name}")]
        fewest = table_at(operator, NEWEST)[name]["dims"][0]
        allowed = f"must have as many as {first}" if rank >= fewest else "DML_FEATURE_LEVEL_"
        assert any(f"{rank} dimension" in message and f"; {allowed}" in message for message in found), found


@for_each(("operator", "rule"), [pair for pair in SAME if "Sizes" in pair[1]["what"]])
def test_equal_sizes(operator: str, rule: dict[str, Any]) -> None:
    desc = valid_desc(operator, NEWEST)
    first, *others = rule["tensors"]
    for name in others:
        tensor = tensor_of(desc, name)
        sizes = [*tensor.sizes[:-1], tensor.sizes[-1] + 1]
        found = failures(with_tensor(desc, name, changed(tensor, sizes=sizes)))
        expected = f"{operator}.{name}: sizes {sizes}; must be those of {first}, {list(tensor.sizes)}"
        assert expected in found


@pytest.mark.parametrize("level", LEVELS)
def test_exponents_have_the_type_of_the_base_below_3_0(level: FeatureLevel) -> None:
    base = TensorDesc(F32, [1, 2, 3, 4])
    desc = ElementWisePow(base, changed(base, data_type=F16), base)
    expected = "ELEMENT_WISE_POW.ExponentTensor: FLOAT16; must have the data type of InputTensor, FLOAT32"
    assert failures(desc, level) == ([expected] if level < FeatureLevel.LEVEL_3_0 else [])


def test_absent_tensors_are_left_out_of_equality() -> None:
    desc = MeanVarianceNormalization1(None, None, INPUT, changed(INPUT, data_type=F16), axes=[2])
    assert failures(desc) == ["MEAN_VARIANCE_NORMALIZATION1.InputTensor: missing; required"]


def test_tensors_of_an_array_are_compared_one_by_one() -> None:
    desc = Join([INPUT, changed(INPUT, data_type=F16)], changed(INPUT, sizes=[4, 3, 4, 5]), axis=0)
    expected = "JOIN.InputTensors[1]: FLOAT16; must have the data type of InputTensors[0], FLOAT32"
    assert failures(desc) == [expected]


def normalization(scale: Any, bias: Any, **attributes: Any) -> MeanVarianceNormalization1:
    def tensor(sizes: Any) -> Any:
        return None if sizes is None else TensorDesc(F32, sizes)

    return MeanVarianceNormalization1(
        INPUT, tensor(scale), tensor(bias), INPUT, **({"axes": [2, 3]} | attributes)
    )


FULL = [1, 3, 1, 1]


@pytest.mark.parametrize("level", [level for level in LEVELS if level >= FeatureLevel.LEVEL_2_1])
def test_scale_and_bias_come_together_below_5_2(level: FeatureLevel) -> None:
    operator = "MEAN_VARIANCE_NORMALIZATION1"
    assert failures(normalization(None, None), level) == []
    assert failures(normalization(FULL, FULL), level) == []
    below = "below DML_FEATURE_LEVEL_5_2"
    no_scale = [f"{operator}.ScaleTensor: missing; required with BiasTensor {below}"]
    no_bias = [f"{operator}.BiasTensor: missing; required with ScaleTensor {below}"]
    independent = level >= FeatureLevel.LEVEL_5_2
    assert failures(normalization(None, FULL), level) == ([] if independent else no_scale)
    assert failures(normalization(FULL, None), level) == ([] if independent else no_bias)


@pytest.mark.parametrize("level", [level for level in LEVELS if level >= FeatureLevel.LEVEL_2_1])
def test_channels_are_not_repeated_below_4_0(level: FeatureLevel) -> None:
    expected = [
        f"MEAN_VARIANCE_NORMALIZATION1.{name}.Sizes[1]: 1; must be InputTensor's channel count 3 below "
        "DML_FEATURE_LEVEL_4_0"
        for name in ("ScaleTensor", "BiasTensor")
    ]
    found = failures(normalization([1, 1, 4, 5], [2, 1, 1, 1]), level)
    assert found == ([] if level >= FeatureLevel.LEVEL_4_0 else expected)


@pytest.mark.parametrize("sizes", [[1, 3, 1, 1], [2, 3, 4, 5], [2, 3, 1, 5], [1, 3, 4, 1]])
@pytest.mark.parametrize("level", ["2_1", "3_1", "4_0", "6_4"])
def test_other_dimensions_are_repeated_at_every_level(sizes: list[int], level: str) -> None:
    assert failures(normalization(sizes, FULL), level) == []


def test_rank_1_has_no_channels() -> None:
    tensor = TensorDesc(F32, [7])
    desc = MeanVarianceNormalization1(tensor, TensorDesc(F32, [1]), tensor, tensor, axes=[0])
    assert failures(desc, "3_1") == []


@pytest.mark.parametrize("level", ["2_1", "6_4"])
def test_sizes_that_cannot_be_repeated(level: str) -> None:
    found = failures(normalization([1, 3, 2, 1], [4, 3, 1, 5]), level)
    assert found == [
        "MEAN_VARIANCE_NORMALIZATION1.ScaleTensor.Sizes[2]: 2; must be 1 or InputTensor's 4",
        "MEAN_VARIANCE_NORMALIZATION1.BiasTensor.Sizes[0]: 4; must be 1 or InputTensor's 2",
    ]


def test_scale_of_other_rank_and_type() -> None:
    desc = normalization(FULL, FULL).replace(scale_tensor=TensorDesc(F16, [3]))
    assert failures(desc) == [
        "MEAN_VARIANCE_NORMALIZATION1.ScaleTensor: FLOAT16; must have the data type of InputTensor, FLOAT32",
        "MEAN_VARIANCE_NORMALIZATION1.ScaleTensor: 1 dimension; must have as many as InputTensor, 4",
    ]


def test_statistics_of_batch_normalization_are_repeated_too() -> None:
    one, wrong = TensorDesc(F32, [1, 1, 1, 1]), TensorDesc(F32, [1, 2, 1, 1])
    desc = BatchNormalization(INPUT, one, wrong, one, one, INPUT, epsilon=0.0)
    expected = "BATCH_NORMALIZATION.VarianceTensor.Sizes[1]: 2; must be 1 or InputTensor's 3"
    assert failures(desc) == [expected]


@pytest.mark.parametrize(
    ("axes", "messages"),
    [
        ([], []),
        ([0, 1, 2, 3], []),
        ([3, 0], []),
        ([4], ["[0]: 4; InputTensor has 4 dimensions, numbered from 0"]),
        ([1, 2**32 - 1], ["[1]: 4294967295; InputTensor has 4 dimensions, numbered from 0"]),
        ([2, 2], ["[1]: 2 is listed twice; axes must be distinct"]),
        (
            [1, 2, 2, 1],
            [
                "[2]: 2 is listed twice; axes must be distinct",
                "[3]: 1 is listed twice; axes must be distinct",
            ],
        ),
        ([0, 1, 2, 3, 3], [": 5 axes; InputTensor has 4 dimensions"]),
        ([0] * 100_000, [": 100000 axes; InputTensor has 4 dimensions"]),
    ],
)
def test_axes_are_distinct_dimensions(axes: list[int], messages: list[str]) -> None:
    expected = [f"MEAN_VARIANCE_NORMALIZATION1.Axes{message}" for message in messages]
    assert failures(normalization(None, None, axes=axes)) == expected


@pytest.mark.parametrize(
    ("operator", "field"),
    [
        (name, field)
        for name, facts in operator_facts().items()
        for field in facts["fields"]
        if "axis_of" in field
    ],
)
def test_axis_beyond_the_tensor(operator: str, field: dict[str, Any]) -> None:
    for level in (level for level in LEVELS if level >= level_of(operator_facts()[operator]["introduced"])):
        desc = valid_desc(operator, level)
        rank = len(tensor_of(desc, field["axis_of"]).sizes)
        many = field["type"].endswith("ARRAY")
        wrong = desc.replace(**{field["name"].lower(): [rank] if many else rank})
        index = "[0]" if many else ""
        allowed = f"{field['axis_of']} has {rank} dimensions, numbered from 0"
        assert failures(wrong, level) == [f"{operator}.{field['name']}{index}: {rank}; {allowed}"]


def test_an_axis_of_gather_is_one_of_its_input() -> None:
    indices = TensorDesc(TensorDataType.UINT32, [1, 1, 1, 2])
    desc = Gather(INPUT, indices, INPUT, axis=4, index_dimensions=1)
    assert failures(desc) == ["GATHER.Axis: 4; InputTensor has 4 dimensions, numbered from 0"]


COUNTED = [
    (name, field, array)
    for name, facts in operator_facts().items()
    for field in facts["fields"]
    if "rank_of" in field
    for array in field["count_of"]
]


@for_each(("operator", "count", "array"), COUNTED)
def test_arrays_have_an_element_for_each_dimension(operator: str, count: dict[str, Any], array: str) -> None:
    desc = valid_desc(operator, NEWEST)
    given = getattr(desc, snake_case(array))
    needed, tensor = len(given), count["rank_of"]
    kind = "spatial dimension" if count.get("spatial") else "dimension"
    for wrong in (given[:-1], (*given, 1), ()):
        allowed = f"must be {needed}, one for each {kind} of {tensor} ({count['name']})"
        expected = f"{operator}.{array}: {counted(len(wrong), 'element', 'elements')}; {allowed}"
        assert failures(desc.replace(**{snake_case(array): wrong})) == [expected]


@pytest.mark.parametrize(
    ("data_type", "value", "allowed"),
    [
        ("UINT8", 256, "a whole number from 0 to 255 for UINT8, the ValueDataType"),
        ("UINT8", -1, "a whole number from 0 to 255 for UINT8, the ValueDataType"),
        ("INT8", 128, "a whole number from -128 to 127 for INT8, the ValueDataType"),
        ("INT32", 1.0, "a whole number from -2147483648 to 2147483647 for INT32, the ValueDataType"),
    ],
)
def test_scalar_outside_its_integer_type(data_type: str, value: float, allowed: str) -> None:
    kind = TensorDataType[data_type]
    desc = FillValueConstant(TensorDesc(kind, [4]), value_data_type=kind, value=value)
    assert failures(desc) == [f"FILL_VALUE_CONSTANT.Value: {value}; must be {allowed}"]


@pytest.mark.parametrize(
    ("data_type", "value"), [("FLOAT16", 65505), ("FLOAT32", -1e39), ("FLOAT64", 10**309)]
)
def test_scalar_outside_its_float_type(data_type: str, value: float) -> None:
    kind = TensorDataType[data_type]
    [message] = failures(FillValueConstant(TensorDesc(kind, [4]), value_data_type=kind, value=value))
    assert message.startswith("FILL_VALUE_CONSTANT.Value: ")
    assert message.endswith(f"; must fit {data_type}, the ValueDataType")


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        ("UINT64", 2**64 - 1),
        ("INT64", -(2**63)),
        ("FLOAT16", 65504),
        ("FLOAT32", float("inf")),
        ("FLOAT64", 1e308),
    ],
)
def test_scalar_within_its_type(data_type: str, value: float) -> None:
    kind = TensorDataType[data_type]
    assert failures(FillValueConstant(TensorDesc(kind, [4]), value_data_type=kind, value=value)) == []


def test_scalar_type_is_the_tensor_s() -> None:
    desc = ElementWiseClip1(INPUT, INPUT, min_max_data_type=F16, min=0, max=1)
    expected = "ELEMENT_WISE_CLIP1.MinMaxDataType: FLOAT16; must be the type of OutputTensor, FLOAT32"
    assert failures(desc) == [expected]


def test_rules_skip_malformed_fields_and_judge_the_others() -> None:
    desc = normalization(FULL, FULL, axes="23", epsilon=-1.0).replace(scale_tensor=3)
    assert failures(desc) == [
        "MEAN_VARIANCE_NORMALIZATION1.ScaleTensor: 3; must be a TensorDesc",
        "MEAN_VARIANCE_NORMALIZATION1.Axes: '23'; must be a sequence of numbers",
        "MEAN_VARIANCE_NORMALIZATION1.Epsilon: -1.0; must be finite and at least 0",
    ]


def test_failures_come_in_the_order_of_the_fields() -> None:
    """A rule's failure stands with its field, in front of a later field's own."""
    desc = Reduce(INPUT, TensorDesc(F32, [2, 3, 4]), function=ReduceFunction.SUM, axes=[9, -1])
    assert [message.split(":")[0] for message in failures(desc)] == ["REDUCE.OutputTensor", "REDUCE.Axes[1]"]
    wrong = normalization([9, 3, 1, 1], FULL, epsilon="x").replace(output_tensor=TensorDesc(F32, [1]))
    assert [message.split(":")[0].split(".")[1] for message in failures(wrong)] == [
        "ScaleTensor",
        "OutputTensor",
        "Epsilon",
    ]


TENSOR = TensorDesc(F32, [2, 3])

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
    ("BATCH_NORMALIZATION", "Spatial", 2, ": 2; must be True or False (or 1 or 0)"),
    ("BATCH_NORMALIZATION", "Spatial", None, ": None; must be True or False (or 1 or 0)"),
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
    ("ELEMENT_WISE_ROUND", "RoundingMode", 7, f": 7; {ROUNDING}"),
    ("ELEMENT_WISE_ROUND", "RoundingMode", PaddingMode.EDGE, f": <PaddingMode.EDGE: 1>; {ROUNDING}"),
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


FUSED = enum_facts()["fused_activation"]
EXTRA = {
    (operator, extra["activation"]): extra["level"]
    for extra in FUSED["extra"]
    for operator in extra["operators"]
}
TENSOR_FUSED = TensorDesc(F32, [1, 2, 3, 4])
SQUARE = TensorDesc(F32, [1, 2, 4, 4])
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "ACTIVATION_LINEAR": {"alpha": 1.0, "beta": 0.0},
    "ACTIVATION_PARAMETRIC_SOFTPLUS": {"alpha": 1.0, "beta": 1.0},
    "ELEMENT_WISE_CLIP": {"min": 0.0, "max": 1.0},
}


def normalization_fused(activation: Any) -> MeanVarianceNormalization1:
    return MeanVarianceNormalization1(
        TENSOR_FUSED, None, None, TENSOR_FUSED, axes=[2], fused_activation=activation
    )


def test_the_operators_that_fuse_are_those_with_the_field() -> None:
    with_field = {
        name
        for name in NAMES
        if any(f["name"] == "FusedActivation" for f in operator_facts()[name]["fields"])
    }
    assert with_field == set(FUSED["operators"])


@for_each("outer", FUSED["operators"])
@for_each("activation", [*FUSED["activations"], "ELEMENT_WISE_CLIP", "ACTIVATION_SOFTMAX"])
def test_fused_from_its_level(outer: str, activation: str) -> None:
    own = operator_facts()[activation]["introduced"]
    outer_level = level_of(operator_facts()[outer]["introduced"])
    since = own if activation in FUSED["activations"] else EXTRA.get((outer, activation))
    for level in (level for level in LEVELS if level >= outer_level):
        fused = desc_class(activation)(**ATTRIBUTES.get(activation, {}))
        found = failures(valid_desc(outer, level).replace(fused_activation=fused), level)
        if since is None:
            assert [message.split(";")[0] for message in found] == [
                f"{outer}.FusedActivation: {activation} cannot be fused"
            ]
        elif level < level_of(since):
            first = max(level_of(since), outer_level)
            expected = f"{activation}; can be fused from {level_name(first)}, not in {level_name(level)}"
            assert found == [f"{outer}.FusedActivation: {expected}"]
        else:
            assert found == []


@for_each("activation", [n for n in NAMES if n not in FUSED["activations"]])
def test_nothing_else_is_fused_into_a_normalization(activation: str) -> None:
    [message] = failures(normalization_fused(valid_desc(activation, FeatureLevel.LEVEL_6_4)))
    allowed = ", ".join(FUSED["activations"])
    expected = f"{activation} cannot be fused; DML_FEATURE_LEVEL_6_4 allows {allowed}"
    assert message == f"MEAN_VARIANCE_NORMALIZATION1.FusedActivation: {expected}"


def test_the_message_lists_what_the_level_and_the_operator_allow() -> None:
    [message] = failures(normalization_fused(valid_desc("ACTIVATION_SOFTMAX", FeatureLevel.LEVEL_6_4)), "2_1")
    assert "ACTIVATION_SHRINK" in message
    assert "ACTIVATION_CELU" not in message
    [message] = failures(
        Gemm(SQUARE, SQUARE, None, SQUARE, fused_activation=valid_desc("CAST", FeatureLevel.LEVEL_6_4))
    )
    assert message.endswith("ELEMENT_WISE_CLIP, ACTIVATION_SOFTMAX, ACTIVATION_SOFTMAX1")


def test_its_tensors_are_none() -> None:
    name = "MEAN_VARIANCE_NORMALIZATION1.FusedActivation"
    given = "given; must be None in an activation that is part of another operator"
    assert failures(normalization_fused(ActivationRelu(TENSOR_FUSED, TENSOR_FUSED))) == [
        f"{name}.InputTensor: {given}",
        f"{name}.OutputTensor: {given}",
    ]
    assert failures(normalization_fused(ActivationRelu(None, TENSOR_FUSED))) == [
        f"{name}.OutputTensor: {given}"
    ]


def test_its_attributes_are_judged() -> None:
    name = "MEAN_VARIANCE_NORMALIZATION1.FusedActivation"
    wrong: Any = "1"
    assert failures(normalization_fused(ActivationCelu(alpha=wrong))) == [
        f"{name}.Alpha: '1'; must be a number"
    ]
    expected = f"{name}.Steepness: 0.5; must be at least 1 below DML_FEATURE_LEVEL_6_4"
    assert failures(normalization_fused(ActivationSoftplus(steepness=0.5)), "6_3") == [expected]
    assert failures(normalization_fused(ActivationSoftplus(steepness=0.5)), "6_4") == []


def test_a_mistake_in_it_does_not_hide_others() -> None:
    desc = normalization_fused(ActivationRelu(TENSOR_FUSED)).replace(axes=[7])
    assert [message.split(":")[0] for message in failures(desc)] == [
        "MEAN_VARIANCE_NORMALIZATION1.Axes[0]",
        "MEAN_VARIANCE_NORMALIZATION1.FusedActivation.InputTensor",
    ]


def test_activations_of_a_recurrent_network_are_judged_alike() -> None:
    desc = valid_desc("RNN", FeatureLevel.LEVEL_6_4)
    assert isinstance(desc, Rnn)
    wrong: Any = None
    found = failures(
        desc.replace(activation_descs=[ActivationRelu(TENSOR_FUSED), ActivationCelu(alpha=wrong)])
    )
    given = "given; must be None in an activation that is part of another operator"
    assert found == [
        f"RNN.ActivationDescs[0].InputTensor: {given}",
        "RNN.ActivationDescs[1].Alpha: None; must be a number",
    ]


def test_a_fused_activation_by_itself_lacks_its_tensors() -> None:
    assert failures(ActivationRelu()) == [
        "ACTIVATION_RELU.InputTensor: missing; required",
        "ACTIVATION_RELU.OutputTensor: missing; required",
    ]
