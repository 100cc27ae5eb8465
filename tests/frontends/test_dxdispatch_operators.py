"""Models of operators from each family, with every way to write fields, from JSON to printed numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opendml import Device
from opendml.errors import InvalidArgument
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import DispatchModel, Printed
from opendml.operators.registry import implemented

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
    "elements of 4 bits": (
        _model(
            {"x": _values("FLOAT32", -9, 1.5, 3), "s": _values("FLOAT32", 0.5), "y": _zeros("INT4", 3)},
            {
                "type": "QUANTIZE",
                "desc": {
                    "InputTensor": F3,
                    "QuantizationType": "SCALE",
                    "QuantizationTensors": [_tensor("FLOAT32", 1)],
                    "OutputTensor": _tensor("INT4", 3),
                },
            },
            {"InputTensor": "x", "QuantizationTensors": ["s"], "OutputTensor": "y"},
        ),
        "-8, 3, 6",
    ),
    "a list of activations": (
        _model(
            {
                "x": _values("FLOAT32", 1, -3, 2),
                "w": _values("FLOAT32", 2),
                "r": _values("FLOAT32", 1),
                "y": _zeros("FLOAT32", 3),
            },
            {
                "type": "RNN",
                "desc": {
                    "InputTensor": _tensor("FLOAT32", 1, 3, 1, 1),
                    "WeightTensor": _tensor("FLOAT32", 1, 1, 1, 1),
                    "RecurrenceTensor": _tensor("FLOAT32", 1, 1, 1, 1),
                    "OutputSequenceTensor": _tensor("FLOAT32", 3, 1, 1, 1),
                    "ActivationDescs": [{"Type": "ACTIVATION_RELU", "Desc": {}}],
                    "Direction": "FORWARD",
                },
            },
            {"InputTensor": "x", "WeightTensor": "w", "RecurrenceTensor": "r", "OutputSequenceTensor": "y"},
        ),
        "2, 0, 4",
    ),
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
    "nested desc, beside its type": (
        _model(
            {"a": _values("FLOAT32", 1, -2, 3), "b": _values("FLOAT32", 1, 1, 1), "y": _zeros("FLOAT32", 3)},
            {
                "type": "ELEMENT_WISE_ADD1",
                "desc": {
                    "ATensor": F3,
                    "BTensor": F3,
                    "OutputTensor": F3,
                    "FusedActivation": {"Type": "ACTIVATION_LEAKY_RELU", "Alpha": 0.5},
                },
            },
            BINARY,
        ),
        "2, -0.5, 4",
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
    "scale and bias": (
        _model(
            {"x": _values("FLOAT32", 1, 4, 9), "y": _zeros("FLOAT32", 3)},
            {
                "type": "ELEMENT_WISE_SQRT",
                "desc": {"InputTensor": F3, "OutputTensor": F3, "ScaleBias": {"Scale": 4, "Bias": 0}},
            },
            UNARY,
        ),
        "2, 4, 6",
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
    "whole values of an enumeration": (
        _model(
            {"x": _values("FLOAT32", 1, 2, 3, 4, 5, 6), "y": _zeros("FLOAT32", 3)},
            {
                "type": "DML_OPERATOR_REDUCE",
                "desc": {
                    "Function": "DML_REDUCE_FUNCTION_MULTIPLY",
                    "InputTensor": _tensor("FLOAT32", 2, 3),
                    "OutputTensor": _tensor("FLOAT32", 1, 3),
                    "Axes": [0],
                },
            },
            UNARY,
        ),
        "4, 10, 18",
    ),
    "optional tensor that is absent": (
        _model(
            {
                "x": _values("FLOAT32", 1, 3),
                "scale": _values("FLOAT32", 2),
                "y": _zeros("FLOAT32", 2),
            },
            {
                "type": "MEAN_VARIANCE_NORMALIZATION1",
                "desc": {
                    "InputTensor": _tensor("FLOAT32", 1, 1, 1, 2),
                    "ScaleTensor": _tensor("FLOAT32", 1, 1, 1, 1),
                    "BiasTensor": None,
                    "OutputTensor": _tensor("FLOAT32", 1, 1, 1, 2),
                    "Axes": [3],
                    "NormalizeVariance": True,
                    "Epsilon": 0,
                },
            },
            {"InputTensor": "x", "ScaleTensor": "scale", "OutputTensor": "y"},
        ),
        "-2, 2",
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
    "part of a resource, repeated by strides": (
        _model(
            {
                "a": {
                    "initialValuesDataType": "INT32",
                    "initialValues": {"valueCount": 40, "valueStart": 0, "valueDelta": 1},
                },
                "b": _values("INT32", 100),
                "y": _zeros("INT32", 3),
            },
            {
                "type": "ELEMENT_WISE_SUBTRACT",
                "desc": {
                    "ATensor": _tensor("INT32", 3),
                    "BTensor": _tensor("INT32", 3, Strides=[0]),
                    "OutputTensor": _tensor("INT32", 3),
                },
            },
            {"ATensor": {"name": "a", "elementOffset": 16}, "BTensor": "b", "OutputTensor": "y"},
        ),
        "-84, -83, -82",
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
def test_wrong_field_is_named_with_what_is_allowed(
    name: str, field: str, value: Any, message: str, load: Load
) -> None:
    model, _ = MODELS[name]
    operator = model["dispatchables"]["op"]
    changed = {**operator, "desc": {**operator["desc"], field: value}}
    with pytest.raises(InvalidArgument) as caught:
        load({**model, "dispatchables": {"op": changed}})
    assert caught.value.failures == (message,)
