"""Convert operators between nodes of serialized graphs and descs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from opendml.errors import InvalidArgument
from opendml.runtime.program import tensors_of
from opendml.spec import enums
from opendml.spec.descs import desc_class
from opendml.spec.enums import TensorDataType
from opendml.spec.four_bit import numpy_type
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rank_defaults import with_rank_defaults
from opendml.spec.schema import Field, OperatorSchema, operator, operators
from opendml.spec.tensor_desc import TensorDesc, calc_buffer_tensor_size
from opendml.spec.wording import shown

_OPERATOR, _DATA_TYPE = "DML_OPERATOR_", "DML_TENSOR_DATA_TYPE_"


def operator_of(name: Any, where: str) -> OperatorSchema:
    """Return the operator that a node names.

    Raises:
        InvalidArgument: there is none of that name.
    """
    if not isinstance(name, str) or name.removeprefix(_OPERATOR) not in operators():
        raise InvalidArgument(f"{where}.type: {shown(name)}; the name of an operator of DirectML is needed")
    return operator(name.removeprefix(_OPERATOR))


def read_operator(
    node: Mapping[str, Any], inputs: Sequence[str], outputs: Sequence[str], where: str
) -> OperatorDesc:
    """Return the desc of a node.

    Args:
        node: its OperatorNodeDesc.
        inputs: the names of its inputs in DirectML's order, "" for an absent one.
        outputs: those of its outputs.
        where: what messages call it.

    Raises:
        InvalidArgument: what the node says is not what its operator has; whether it is valid is not judged.
    """
    facts = operator_of(node["type"], where)
    where = f"{where}.{facts.name}"
    values = _read_attributes(facts, node["attributes"] or [], where)
    kinds = (("inputs", inputs, facts.inputs), ("outputs", outputs, facts.outputs))
    for kind, names, fields in kinds:
        tensors = [_read_tensor(each, f"{where}.{kind}[{i}]") for i, each in enumerate(node[kind] or [])]
        if len(tensors) != sum(map(bool, names)):
            _fail(f"{where}.{kind}", f"{len(tensors)} tensors, {sum(map(bool, names))} names of tensors")
        rest = iter(tensors)
        flat = [next(rest) if name else None for name in names]
        values |= _by_field(fields, flat, f"{where}.{kind}")
    return _desc(facts, values, where)


def _fail(where: str, problem: str) -> NoReturn:
    raise InvalidArgument(f"{where}: {problem}")


def _by_field(fields: Sequence[Field], tensors: Sequence[TensorDesc | None], where: str) -> dict[str, Any]:
    """Return the tensors of a node by the fields of its desc. An array of tensors takes all that others
    leave."""
    single = sum(not field.is_array for field in fields)
    several = len(tensors) - single
    if several < 0 or (several and single == len(fields)):
        least = "" if single == len(fields) else " or more"
        _fail(where, f"{len(tensors)} names; {single}{least} are needed, empty ones for absent tensors")
    values, rest = dict[str, Any](), iter(tensors)
    for field in fields:
        values[field.name] = tuple(next(rest) for _ in range(several)) if field.is_array else next(rest)
    return values


def _read_tensor(tensor: Mapping[str, Any], where: str) -> TensorDesc:
    name = tensor["dataType"]
    if not isinstance(name, str) or name.removeprefix(_DATA_TYPE) not in TensorDataType.__members__:
        _fail(f"{where}.dataType", f"{shown(name)}; the name of a DML_TENSOR_DATA_TYPE is needed")
    if tensor["sizes"] is None or not 1 <= len(tensor["sizes"]) <= enums.TENSOR_DIMENSION_COUNT_MAX1:
        given = 0 if tensor["sizes"] is None else len(tensor["sizes"])
        _fail(f"{where}.sizes", f"{given} sizes; 1 to {enums.TENSOR_DIMENSION_COUNT_MAX1} are needed")
    data_type, sizes = TensorDataType[name.removeprefix(_DATA_TYPE)], tuple(tensor["sizes"].tolist())
    strides = None if tensor["strides"] is None else tuple(tensor["strides"].tolist())
    total = tensor["totalTensorSizeInBytes"] or None
    try:
        implied = calc_buffer_tensor_size(data_type, sizes, strides)
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}.{failure}" for failure in error.failures) from error
    return TensorDesc(
        data_type, sizes, strides, total_tensor_size_in_bytes=None if total == implied else total
    )


def _read_attributes(facts: OperatorSchema, given: Sequence[Mapping[str, Any]], where: str) -> dict[str, Any]:
    """Return the attributes and counts of an operator by name. Nodes have them in DirectML's order."""
    fields = [field for field in facts.fields if not field.is_tensor]
    if len(given) != len(fields):
        _fail(f"{where}.attributes", f"{len(given)}; there are {len(fields)}")
    values: dict[str, Any] = {}
    for field, attribute in zip(fields, given, strict=True):
        values[field.name] = _read_attribute(field, attribute["val"], f"{where}.{field.name}")
    for field in fields:
        if field.data_type_field and values[field.name] is not None:
            data_type = values[field.data_type_field]
            values[field.name] = _scalar(values[field.name], data_type, f"{where}.{field.name}")
    return values


def _read_attribute(field: Field, variant: tuple[str, Any] | None, where: str) -> Any:
    if variant is None:
        if not field.optional:
            _fail(where, "missing; the operator requires it")
        return None
    kind, value = variant
    if kind not in field.codec.variants:
        _fail(where, f"{kind}; {field.codec.variants[0]} is needed")
    content = field.codec.read(value, where, _read_activation)
    return None if field.optional and content == () else content


def _read_activation(activation: Mapping[str, Any], where: str) -> OperatorDesc:
    """Return an activation within an operator, which has no tensors of its own."""
    facts = operator_of(activation["type"], where)
    values = _read_attributes(facts, activation["attributes"] or [], f"{where}.{facts.name}")
    return _desc(facts, values, f"{where}.{facts.name}")


def _scalar(variant: tuple[str, Any], data_type: TensorDataType, where: str) -> int | float:
    """Return the number of a scalar union, which is 8 bytes or a number of its type."""
    kind, value = variant
    if data_type is TensorDataType.UNKNOWN:
        _fail(where, "a value of type UNKNOWN")
    if kind == "ByteArray":
        number: int | float = np.frombuffer(bytes(value), numpy_type(data_type), 1)[0].item()
        return number
    if kind.upper() != data_type.name:
        _fail(where, f"{kind}; a value of type {data_type.name} is needed")
    found: int | float = value
    return found


def _desc(facts: OperatorSchema, values: Mapping[str, Any], where: str) -> OperatorDesc:
    """Return the desc with these values. Counts must be the lengths of the arrays that are present."""
    for field in facts.fields:
        for array in field.count_of:
            given = values.get(array)
            if field.name in values and given and len(given) != values[field.name]:
                _fail(f"{where}.{field.name}", f"{values[field.name]}, but {array} has {len(given)}")
    given_fields = [field for field in facts.fields if field.name in values and not field.is_count]
    return desc_class(facts.name)(**{field.python_name: values[field.name] for field in given_fields})


def written_operator(desc: OperatorDesc) -> dict[str, Any]:
    """Return the OperatorNodeDesc of a desc, with the defaults that depend on numbers of dimensions."""
    desc = with_rank_defaults(desc)
    facts = operator(desc.operator)
    return {
        "type": _OPERATOR + facts.name,
        "inputs": [_written_tensor(each) for each in tensors_of(desc, "INPUT_TENSOR") if each is not None],
        "outputs": [_written_tensor(each) for each in tensors_of(desc, "OUTPUT_TENSOR") if each is not None],
        "attributes": list(_written_attributes(desc)),
    }


def _written_tensor(tensor: TensorDesc) -> dict[str, Any]:
    return {
        "dataType": _DATA_TYPE + tensor.data_type.name,
        "sizes": tensor.sizes,
        "strides": tensor.strides,
        "totalTensorSizeInBytes": tensor.size_in_bytes,
    }


def _written_attributes(desc: OperatorDesc) -> Iterator[dict[str, Any]]:
    facts = operator(desc.operator)
    for field in facts.fields:
        if field.is_tensor:
            continue
        value = _count(desc, facts, field) if field.is_count else getattr(desc, field.python_name)
        kind = field.codec.variants[0]
        if value is None:
            yield {"name": None, "val": (kind, None)}
        else:
            of = field.data_type_field
            data_type = getattr(desc, facts.field(of).python_name) if of else None
            content = field.codec.written(value, data_type, _written_activation)
            yield {"name": field.name, "val": (kind, content)}


def _count(desc: OperatorDesc, facts: OperatorSchema, field: Field) -> int:
    arrays = (getattr(desc, facts.field(name).python_name) for name in field.count_of)
    return max(0 if array is None else len(array) for array in arrays)


def _written_activation(desc: OperatorDesc) -> dict[str, Any]:
    return {"type": _OPERATOR + desc.operator, "attributes": list(_written_attributes(desc))}
