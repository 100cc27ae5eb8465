"""The worked examples of Microsoft's pages are valid, but for those that the facts call slips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml.spec import enums
from opendml.spec.enums import TensorDataType
from opendml.spec.facts import operator_facts
from opendml.spec.naming import camel_case, snake_case
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures
from tests.spec.made_outputs import check_made_outputs
from tests.spec.rules.test_rules import NEWEST
from tests.spec.valid_descs import NAMES, tensor_of, valid_desc

EXAMPLES = [
    pytest.param(name, example, id=f"{name}-{i}")
    for name in NAMES
    for i, example in enumerate(operator_facts()[name].get("examples", ()))
]

SLIPS = {
    # One number of dimensions is meant for all tensors (the notes of the facts say how).
    "SCATTER_ND-0": "SCATTER_ND.IndicesTensor: 2 dimensions; must have as many as InputTensor, 1",
    # As UINT8, -2 is 254, which the sum wraps with.
    "FILL_VALUE_SEQUENCE-1": "FILL_VALUE_SEQUENCE.ValueDelta: -2; must be a whole number from 0 to 255 "
    "for UINT8, the ValueDataType",
    # IndexDimensions 1 is meant.
    "GATHER-2": "GATHER.InputTensor: 2 dimensions; must have 3, as the gathered [3, 1, 2], by leading ones",
}


def described(name: str, example: dict[str, Any]) -> OperatorDesc:
    """The desc of an example: its tensors' sizes and types, its attributes, and those of a valid desc."""
    function = example["attributes"].get("Function", "").removeprefix("DML_REDUCE_FUNCTION_")
    base = valid_desc(name, NEWEST, function or None)
    arrays = example["inputs"] | example["outputs"]
    values: dict[str, Any] = {}
    for field in operator_facts()[name]["fields"]:
        key = field["name"]
        if key in arrays:
            values[snake_case(key)] = tensors(base, field, example, arrays[key])
        elif key in example["attributes"] and "count_of" not in field:
            values[snake_case(key)] = attribute(field, example["attributes"][key])
        elif "same_type_as" in field:
            values[snake_case(key)] = values[snake_case(field["same_type_as"])].data_type
    return base.replace(**values)


def tensors(base: OperatorDesc, field: dict[str, Any], example: dict[str, Any], array: Any) -> Any:
    if array is None:
        return None
    given = example.get("types", {}).get(field["name"], "")
    data_type = TensorDataType.__members__.get(given) or tensor_of(base, field["name"]).data_type
    if data_type is TensorDataType.FLOAT64:  # the pages mean FLOAT32 where they name no type
        data_type = TensorDataType.FLOAT32
    if field["type"] == "TENSOR_DESC_ARRAY":
        return [TensorDesc(data_type, np.shape(each)) for each in array]
    return TensorDesc(data_type, np.shape(array))


def attribute(field: dict[str, Any], value: Any) -> Any:
    if "enum" not in field:
        return value
    return getattr(enums, camel_case(field["enum"]))[value.removeprefix(f"DML_{field['enum']}_")]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_examples_are_valid(name: str, example: dict[str, Any], request: pytest.FixtureRequest) -> None:
    slip = SLIPS.get(request.node.callspec.id)
    assert failures(described(name, example)) == ([slip] if slip else [])


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_outputs_follow_the_rest(name: str, example: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if request.node.callspec.id not in SLIPS:
        check_made_outputs(described(name, example))
