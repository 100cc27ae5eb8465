"""A valid desc of any operator at any level, straight from the facts, for tests that break one thing."""

from __future__ import annotations

from typing import Any

from opendml.spec import descs, enums
from opendml.spec.descs import ActivationRelu, OperatorDesc, ScaleBias, Size2D, desc_class
from opendml.spec.enums import FeatureLevel, ReduceFunction, TensorDataType
from opendml.spec.facts import operator_facts
from opendml.spec.naming import camel_case, snake_case
from opendml.spec.tensor_desc import TensorDesc
from tests.spec.valid_sizes import RECIPES, STACKED

LEVELS = list(FeatureLevel)
NAMES = list(operator_facts())
F32 = TensorDataType.FLOAT32
F16 = TensorDataType.FLOAT16


def level_of(name: str) -> FeatureLevel:
    return FeatureLevel[f"LEVEL_{name}"]


def level_name(level: FeatureLevel) -> str:
    return f"DML_FEATURE_LEVEL_{level.name.removeprefix('LEVEL_')}"


def functions(operator: str) -> list[str | None]:
    """The reduce functions that choose between tables; [None] for an operator with one set of tables."""
    support = operator_facts()[operator]["support"]
    return list(dict.fromkeys(name for table in support for name in table.get("functions", [None])))


def tables(operator: str, function: str | None = None) -> list[dict[str, Any]]:
    """The tables of an operator, newest first."""
    support: list[dict[str, Any]] = operator_facts()[operator]["support"]
    return [table for table in support if function is None or function in table["functions"]]


def table_at(operator: str, level: FeatureLevel, function: str | None = None) -> dict[str, Any]:
    held: dict[str, Any] = next(t for t in tables(operator, function) if level_of(t["level"]) <= level)
    return held["tensors"]  # type: ignore[no-any-return]


def valid_desc(
    operator: str, level: FeatureLevel, function: str | None = None, having: str | None = None
) -> OperatorDesc:
    """A desc of the first common types and the largest common rank, with all tensors that can be together.

    Args:
        operator: its name.
        level: where it is valid.
        function: of REDUCE.
        having: a tensor that it must have, for the attentions, which take their inputs in several ways.
    """
    facts = operator_facts()[operator]
    function = function or functions(operator)[0]
    support = table_at(operator, level, function)
    rank = _common_rank(support)
    recipe = STACKED.get(having or "") or RECIPES.get(operator)
    known = recipe(rank) if recipe else {}
    known |= {name: [1] * rank for name in facts.get("one_element", ())}
    values: dict[str, Any] = {}
    for field in facts["fields"]:
        name = snake_case(field["name"])
        if field["kind"] != "ATTRIBUTE":
            sizes = known.get(field["name"], [2] * rank)
            values[name] = _tensors(facts, support, field, sizes)
    for field in facts["fields"]:
        name = snake_case(field["name"])
        if field["kind"] == "ATTRIBUTE" and "count_of" not in field:
            values[name] = known[name] if name in known else _attribute(operator, field, function, values)
    return desc_class(operator)(**values)


def _tensors(facts: dict[str, Any], support: dict[str, Any], field: dict[str, Any], sizes: Any) -> Any:
    """The tensor of a field, several for an array; None for sizes of None."""
    name = field["name"]
    if sizes is None:
        return None
    if name == "QuantizationTensors":
        sources = [name, "OutputTensor" if facts is operator_facts()["QUANTIZE"] else "InputTensor"]
        types = [_data_type(facts, support, source) for source in sources]
        return [TensorDesc(each, size) for each, size in zip(types, sizes, strict=True)]
    data_type = _data_type(facts, support, name)
    if field["type"].endswith("ARRAY"):
        return [TensorDesc(data_type, each) for each in sizes]
    return TensorDesc(data_type, sizes)


def tensor_of(desc: OperatorDesc, field: str) -> TensorDesc:
    """The tensor of that DirectML name; the first one of an array."""
    value = getattr(desc, snake_case(field))
    return value[0] if isinstance(value, tuple) else value  # type: ignore[no-any-return]


def with_tensor(desc: OperatorDesc, field: str, tensor: TensorDesc) -> OperatorDesc:
    name = snake_case(field)
    is_array = isinstance(getattr(desc, name), tuple)
    return desc.replace(**{name: (tensor,) if is_array else tensor})


def changed(tensor: TensorDesc, **changes: Any) -> TensorDesc:
    """A copy of the tensor with other values."""
    values = {
        name: getattr(tensor, name)
        for name in ("data_type", "sizes", "strides", "flags", "total_tensor_size_in_bytes")
    }
    values["guaranteed_base_offset_alignment"] = tensor.guaranteed_base_offset_alignment
    return TensorDesc(**(values | changes))


def _data_type(facts: dict[str, Any], support: dict[str, Any], name: str) -> TensorDataType:
    """The first type of the tensor that all tensors tied to it by rules of equal types have too."""
    tied = {name}
    while True:
        groups = [set(rule["tensors"]) for rule in facts["same"] if "DataType" in rule["what"]]
        grown = tied.union(*(group for group in groups if group & tied))
        if grown == tied:
            break
        tied = grown
    common = set.intersection(*(set(support[tensor]["types"]) for tensor in tied))
    return TensorDataType[next(each for each in support[sorted(tied)[0]]["types"] if each in common)]


def _common_rank(support: dict[str, Any]) -> int:
    """The largest number of dimensions that all tensors may have."""
    return min(int(tensor["dims"][1]) for tensor in support.values())


def _attribute(operator: str, field: dict[str, Any], function: str | None, tensors: dict[str, Any]) -> Any:
    if field.get("enum") == "TENSOR_DATA_TYPE":
        return tensors[snake_case(field["same_type_as"])].data_type
    if field.get("enum") == "REDUCE_FUNCTION":
        return ReduceFunction[function or "MAX"]
    if "enum" in field:
        return next(iter(getattr(enums, camel_case(field["enum"]))))
    return {
        "UINT": 1 if "range" in field else 0,
        "INT": 0,
        "BOOL": True,
        "FLOAT": 1.0,
        "UINT_ARRAY": (),
        "INT_ARRAY": (),
        "FLOAT_ARRAY": (),
        "SCALAR_UNION": 1,
        "SCALE_BIAS": ScaleBias(1.0, 0.0),
        "SIZE_2D": Size2D(1, 1),
        "OPERATOR_DESC": None,
        "OPERATOR_DESC_ARRAY": (ActivationRelu(),) * {"RNN": 1, "GRU": 2, "LSTM": 3}.get(operator, 0),
    }[field["type"]]


def celu(input_tensor: Any, output_tensor: Any = None, **attributes: Any) -> OperatorDesc:
    """An ActivationCelu whose output is its input's when not given."""
    return descs.ActivationCelu(
        input_tensor, input_tensor if output_tensor is None else output_tensor, **attributes
    )
