"""Rules between fields: each broken, its message read."""

from __future__ import annotations

from typing import Any

import pytest

from opendml.spec.descs import (
    BatchNormalization,
    ElementWiseClip1,
    ElementWisePow,
    FillValueConstant,
    Gather,
    Join,
    MeanVarianceNormalization1,
    Reduce,
)
from opendml.spec.enums import FeatureLevel, ReduceFunction, TensorDataType
from opendml.spec.facts import operator_facts
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
    changed,
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
    assert failures(desc) == [
        "MEAN_VARIANCE_NORMALIZATION1.InputTensor: missing; required",
    ]


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
