"""Operators of JSON models: every way to write fields, from JSON to printed numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opendml import Device
from opendml.errors import InvalidArgument
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import DispatchModel, Printed
from opendml.frontends.dxdispatch.descs import parse_operator_desc
from opendml.json_files.node import JsonNode
from opendml.operators.registry import implemented
from opendml.spec import descs, enums
from opendml.spec.descs import desc_class
from opendml.spec.enums import ExecutionFlags, TensorDataType, TensorFlags
from opendml.spec.naming import camel_case
from opendml.spec.operator_desc import OperatorDesc, ScaleBias, Size2D
from opendml.spec.schema import Field, operators
from opendml.spec.tensor_desc import TensorDesc
from tests.for_each import for_each

Load = Callable[[Any], DispatchModel]


def _tensor(data_type: str, *sizes: int, **more: Any) -> dict[str, Any]:
    return {"DataType": data_type, "Sizes": sizes, **more}


def _values(data_type: str, *values: Any) -> dict[str, Any]:
    return {"initialValuesDataType": data_type, "initialValues": values}


def _zeros(data_type: str, count: int) -> dict[str, Any]:
    return {"initialValuesDataType": data_type, "initialValues": {"valueCount": count, "value": 0}}


def _model(resources: dict[str, Any], operator: dict[str, Any], *bindings: dict[str, Any]) -> dict[str, Any]:
    """Dispatches the operator with each of the bindings in turn, then prints the resource "y"."""
    dispatches = [{"type": "dispatch", "dispatchable": "op", "bindings": each} for each in bindings]
    return {
        "resources": resources,
        "dispatchables": {"op": operator},
        "commands": [*dispatches, {"type": "print", "resource": "y"}],
    }


F3, H3 = _tensor("FLOAT32", 3), _tensor("FLOAT16", 3)
UNARY = {"InputTensor": "x", "OutputTensor": "y"}
BINARY = {"ATensor": "a", "BTensor": "b", "OutputTensor": "y"}

MODELS: dict[str, tuple[dict[str, Any], str]] = {
    "scalar of the type that is named": (
        _model(
            {"y": _zeros("INT64", 3)},
            {
                "type": "FILL_VALUE_CONSTANT",
                "desc": {
                    "OutputTensor": _tensor("INT64", 3),
                    "ValueDataType": "INT64",
                    "Value": {"Int64": -(2**63)},
                },
            },
            {"OutputTensor": "y"},
        ),
        ", ".join(["-9223372036854775808"] * 3),
    ),
    "scalar as a number": (
        _model(
            {"x": _values("UINT8", 0, 100, 255), "y": _zeros("UINT8", 3)},
            {
                "type": "DML_OPERATOR_ELEMENT_WISE_CLIP1",
                "InputTensor": _tensor("UINT8", 3),
                "OutputTensor": _tensor("UINT8", 3),
                "MinMaxDataType": "DML_TENSOR_DATA_TYPE_UINT8",
                "Min": 7,
                "Max": {"UInt8": 200},
            },
            UNARY,
        ),
        "7, 100, 200",
    ),
    "bits of a half": (
        _model(
            {"y": _zeros("FLOAT16", 3)},
            {
                "type": "FILL_VALUE_SEQUENCE",
                "desc": {
                    "OutputTensor": H3,
                    "ValueDataType": "FLOAT16",
                    "ValueStart": {"UInt16": 0x3C00},
                    "ValueDelta": 0.5,
                },
            },
            {"OutputTensor": "y"},
        ),
        "1, 1.5, 2",
    ),
    "nested desc, in its own object": (
        _model(
            {"a": _values("FLOAT32", 1, -2, 3), "b": _values("FLOAT32", 1, 1, 1), "y": _zeros("FLOAT32", 3)},
            {
                "type": "ELEMENT_WISE_ADD1",
                "desc": {
                    "ATensor": F3,
                    "BTensor": F3,
                    "OutputTensor": F3,
                    "FusedActivation": {
                        "Type": "DML_OPERATOR_ACTIVATION_LINEAR",
                        "Desc": {"Alpha": 2, "Beta": 1},
                    },
                },
            },
            BINARY,
        ),
        "5, -1, 9",
    ),
    "abbreviated values of an enumeration": (
        _model(
            {"x": _values("FLOAT32", 3, 9, 9, 1, 2, 8), "y": _zeros("UINT32", 2)},
            {
                "type": "ARGMAX",
                "desc": {
                    "InputTensor": _tensor("FLOAT32", 2, 3),
                    "OutputTensor": _tensor("UINT32", 2, 1),
                    "AxisCount": 1,
                    "Axes": [1],
                    "AxisDirection": "DECREASING",
                },
            },
            UNARY,
        ),
        "2, 2",
    ),
    "tensor bound at initialization": (
        _model(
            {"a": _values("FLOAT32", 1, 2, 3), "y": _values("FLOAT32", 10, 20, 30)},
            {
                "type": "ELEMENT_WISE_ADD",
                "desc": {
                    "ATensor": F3,
                    "BTensor": _tensor("FLOAT32", 3, Flags="DML_TENSOR_FLAG_OWNED_BY_DML"),
                    "OutputTensor": F3,
                },
                "executionFlags": ["ALLOW_HALF_PRECISION_COMPUTATION", "DISABLE_META_COMMANDS"],
                "dmlCompileType": "DmlCompileGraph",
                "bindings": {"BTensor": "y"},
            },
            # The second dispatch sees the values of before the first.
            {"ATensor": "a", "OutputTensor": "y"},
            {"ATensor": "a", "OutputTensor": "y"},
        ),
        "11, 22, 33",
    ),
    "list of values of several types": (
        _model(
            {
                "x": {
                    "initialValuesDataType": "UNKNOWN",
                    "initialValues": [
                        {"name": "first", "type": "FLOAT32", "value": 1.5},
                        {"type": "UINT32", "value": 0x40000000},
                        {"type": "INT32", "value": -(2**31)},
                    ],
                },
                "y": _zeros("INT8", 3),
            },
            {"type": "CAST", "desc": {"InputTensor": F3, "OutputTensor": _tensor("INT8", 3)}},
            UNARY,
        ),
        "1, 2, 0",
    ),
}


@pytest.mark.parametrize("kind", ["cpu", "reference"])
@pytest.mark.parametrize("name", MODELS)
def test_model_prints(name: str, kind: str, load: Load) -> None:
    model, expected = MODELS[name]
    read = load(model)
    desc: Any = read.dispatchables["op"].desc
    operator = desc.operator
    if operator not in implemented():
        pytest.skip(f"{operator} cannot be run yet")
    events = list(dxdispatch.prepare(read, Device(kind)).run())
    assert [event.text for event in events if isinstance(event, Printed)] == [expected]


@pytest.mark.parametrize(
    ("name", "field", "value", "message"),
    [
        (
            "scalar of the type that is named",
            "Value",
            2**63,
            f"$.dispatchables.op.desc.Value: expected an integer from {-(2**63)} to {2**63 - 1}, got {2**63}",
        ),
        (
            "scalar of the type that is named",
            "Value",
            {"Float32": 1},
            '$.dispatchables.op.desc.Value.Float32: unknown field; expected one of "Int64"',
        ),
        (
            "abbreviated values of an enumeration",
            "AxisDirection",
            "DOWN",
            "$.dispatchables.op.desc.AxisDirection: expected a value of DML_AXIS_DIRECTION, "
            'got "DOWN"; expected one of "INCREASING", "DECREASING"',
        ),
        (
            "nested desc, in its own object",
            "FusedActivation",
            {"Type": "ACTIVATION_LINEAR", "Desc": {"Alpha": 2}},
            "$.dispatchables.op.desc.FusedActivation.Desc.Beta: missing; ACTIVATION_LINEAR requires it",
        ),
    ],
)
def test_wrong_field_is_named_with_allowed(
    name: str, field: str, value: Any, message: str, load: Load
) -> None:
    model, _ = MODELS[name]
    operator = model["dispatchables"]["op"]
    changed = {**operator, "desc": {**operator["desc"], field: value}}
    with pytest.raises(InvalidArgument) as caught:
        load({**model, "dispatchables": {"op": changed}})
    assert caught.value.failures == (message,)


TENSOR = TensorDesc(TensorDataType.FLOAT16, [1, 2])
TENSOR_JSON = {"DataType": "FLOAT16", "Sizes": [1, 2]}
ACTIVATION = descs.ActivationElu(alpha=0.5)
ACTIVATION_JSON = {"Type": "ACTIVATION_ELU", "Alpha": 0.5}

# A value of each type of field: in JSON, and as the desc holds it.
EXAMPLES: dict[str, tuple[Any, Any]] = {
    "TENSOR_DESC": (TENSOR_JSON, TENSOR),
    "TENSOR_DESC_ARRAY": ([TENSOR_JSON, TENSOR_JSON], (TENSOR, TENSOR)),
    "OPERATOR_DESC": (ACTIVATION_JSON, ACTIVATION),
    "OPERATOR_DESC_ARRAY": ([ACTIVATION_JSON, ACTIVATION_JSON], (ACTIVATION, ACTIVATION)),
    "UINT": (2**32 - 1, 2**32 - 1),
    "INT": (-(2**31), -(2**31)),
    "BOOL": (True, True),
    "FLOAT": (-0.75, -0.75),
    "UINT_ARRAY": ([3, 2], (3, 2)),
    "INT_ARRAY": ([-3, 2], (-3, 2)),
    "FLOAT_ARRAY": ([0.5, 2], (0.5, 2.0)),
    "SCALE_BIAS": ({"Scale": 2, "Bias": 0.5}, ScaleBias(2.0, 0.5)),
    "SIZE_2D": ({"Width": 4, "Height": 3}, Size2D(4, 3)),
    "SCALAR_UNION": (7, 7),
}


def _example(field: Field) -> tuple[Any, Any]:
    if field.is_count:
        return 2, None
    if field.enum == "TENSOR_DATA_TYPE":
        return "INT32", TensorDataType.INT32
    if field.enum is not None:
        member = list(getattr(enums, camel_case(field.enum)))[-1]
        return member.name, member
    return EXAMPLES[field.type]


def _parse(value: Any) -> OperatorDesc:
    return parse_operator_desc(JsonNode(value), beside=())


@for_each("name", operators())
def test_every_field_of_every_operator_is_read(name: str) -> None:
    fields = operators()[name].fields
    given = {field.name: _example(field)[0] for field in fields}
    expected = {field.python_name: _example(field)[1] for field in fields if not field.is_count}
    assert _parse({"type": name, "desc": given}) == desc_class(name)(**expected)


@for_each("name", operators())
def test_optional_fields_may_be_absent_or_null_and_counts_absent(name: str) -> None:
    fields = operators()[name].fields
    required = [field for field in fields if not field.optional and not field.is_count]
    given = {field.name: _example(field)[0] for field in required}
    expected = desc_class(name)(**{field.python_name: _example(field)[1] for field in required})
    assert _parse({"type": name, "desc": given}) == expected
    nulls: dict[str, Any] = {field.name: None for field in fields if field.optional}
    assert _parse({"type": name, "desc": given | nulls}) == expected


@for_each("name", operators())
def test_each_missing_field_is_named(name: str) -> None:
    fields = operators()[name].fields
    with pytest.raises(InvalidArgument) as caught:
        _parse({"type": name, "desc": {}})
    missing = [f"$.desc.{field.name}" for field in fields if not field.optional and not field.is_count]
    assert [failure.split(":")[0] for failure in caught.value.failures] == missing


@pytest.mark.parametrize(
    "name", [name for name, operator in operators().items() if any(f.is_count for f in operator.fields)]
)
def test_counts_are_checked(name: str) -> None:
    fields = operators()[name].fields
    given = {field.name: 3 if field.is_count else _example(field)[0] for field in fields}
    with pytest.raises(InvalidArgument) as caught:
        _parse({"type": name, "desc": given})
    assert all("expected 2, the number of elements in" in failure for failure in caught.value.failures)
    assert len(caught.value.failures) == sum(field.is_count for field in fields)


CELU = descs.ActivationCelu(TENSOR, TENSOR, alpha=2.0)
CELU_FIELDS = {"InputTensor": TENSOR_JSON, "OutputTensor": TENSOR_JSON, "Alpha": 2}


@pytest.mark.parametrize(
    "value",
    [
        {"type": "DML_OPERATOR_ACTIVATION_CELU", "desc": CELU_FIELDS},
        {"Type": "ACTIVATION_CELU", "Desc": CELU_FIELDS},
        {"type": "ACTIVATION_CELU", **CELU_FIELDS},
        {"Type": "DML_OPERATOR_ACTIVATION_CELU", **CELU_FIELDS},
    ],
)
def test_desc_may_stand_in_its_own_object_or_beside_its_type(value: Any) -> None:
    assert _parse(value) == CELU


def test_operator_with_a_field_named_type_stands_in_its_own_object() -> None:
    desc = {"InputStateTensor": TENSOR_JSON, "OutputTensor": TENSOR_JSON, "Type": "PHILOX_4X32_10"}
    parsed = _parse({"Type": "RANDOM_GENERATOR", "Desc": desc})
    assert parsed == descs.RandomGenerator(TENSOR, TENSOR, type=enums.RandomGeneratorType.PHILOX_4X32_10)


@pytest.mark.parametrize("value", ["SUM", "DML_REDUCE_FUNCTION_SUM"])
def test_enum_values_may_have_their_prefix(value: str) -> None:
    fields = {"Function": value, "InputTensor": TENSOR_JSON, "OutputTensor": TENSOR_JSON, "Axes": [1]}
    assert _parse({"type": "REDUCE", "desc": fields}) == descs.Reduce(
        input_tensor=TENSOR, output_tensor=TENSOR, function=enums.ReduceFunction.SUM, axes=(1,)
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"DataType": "DML_TENSOR_DATA_TYPE_INT8", "Sizes": [2]}, TensorDesc(TensorDataType.INT8, [2])),
        ({"Type": "BUFFER", "Desc": TENSOR_JSON}, TENSOR),
        ({"Type": "DML_TENSOR_TYPE_BUFFER", **TENSOR_JSON}, TENSOR),
        ({**TENSOR_JSON, "Strides": [], "DimensionCount": 2, "TotalTensorSizeInBytes": 0}, TENSOR),
        ({**TENSOR_JSON, "Strides": None, "Flags": None}, TENSOR),
        (
            {
                **TENSOR_JSON,
                "Strides": [0, 1],
                "Flags": ["NONE", "DML_TENSOR_FLAG_OWNED_BY_DML"],
                "TotalTensorSizeInBytes": 2**40,
                "GuaranteedBaseOffsetAlignment": 64,
            },
            TensorDesc(
                TensorDataType.FLOAT16,
                [1, 2],
                [0, 1],
                TensorFlags.OWNED_BY_DML,
                total_tensor_size_in_bytes=2**40,
                guaranteed_base_offset_alignment=64,
            ),
        ),
    ],
)
def test_tensor_descs(value: Any, expected: TensorDesc) -> None:
    assert _parse({"type": "ACTIVATION_RELU", "desc": {"InputTensor": value, "OutputTensor": value}}) == (
        descs.ActivationRelu(expected, expected)
    )


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        ("FLOAT32", 0.1, 0.10000000149011612),
        ("FLOAT32", {"Float32": "inf"}, float("inf")),
        ("FLOAT16", 2.5, 2.5),
        ("FLOAT16", {"UInt16": 0x4100}, 2.5),
        ("FLOAT64", {"Float64": 0.1}, 0.1),
        ("UINT8", {"UInt8": 255}, 255),
        ("INT64", -(2**63), -(2**63)),
        ("INT64", {"Int64": 5}, 5),
    ],
)
def test_scalar_unions_have_the_type_beside_them(data_type: str, value: Any, expected: float) -> None:
    fields = {"OutputTensor": TENSOR_JSON, "ValueDataType": data_type, "Value": value}
    assert _parse({"type": "FILL_VALUE_CONSTANT", "desc": fields}) == descs.FillValueConstant(
        TENSOR, value_data_type=TensorDataType[data_type], value=expected
    )


@pytest.mark.parametrize(
    ("data_type", "value", "message"),
    [
        ("UINT8", 256, r"^\$\.desc\.Value: expected an integer from 0 to 255, got 256$"),
        ("INT8", {"UInt8": 1}, r'^\$\.desc\.Value\.UInt8: unknown field; did you mean "Int8"\?$'),
        ("UNKNOWN", 1, r"^\$\.desc\.ValueDataType: expected a data type other than UNKNOWN"),
    ],
)
def test_wrong_scalar_unions_are_refused(data_type: str, value: Any, message: str) -> None:
    fields = {"OutputTensor": TENSOR_JSON, "ValueDataType": data_type, "Value": value}
    with pytest.raises(InvalidArgument, match=message):
        _parse({"type": "FILL_VALUE_CONSTANT", "desc": fields})


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        (None, ExecutionFlags.NONE),
        ("DML_EXECUTION_FLAG_DISABLE_META_COMMANDS", ExecutionFlags.DISABLE_META_COMMANDS),
        (
            ["ALLOW_HALF_PRECISION_COMPUTATION", "DESCRIPTORS_VOLATILE"],
            ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION | ExecutionFlags.DESCRIPTORS_VOLATILE,
        ),
    ],
)
def test_flags(
    given: Any, flags: ExecutionFlags, model: dict[str, Any], load: Callable[[Any], DispatchModel]
) -> None:
    model["dispatchables"]["celu"]["executionFlags"] = given
    assert load(model).dispatchables["celu"].flags == flags
