"""Rules that the facts of operators state: equal tensors, repeated sizes, axes, array lengths, scalars."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf

from opendml.spec.enums import DATA_TYPE_BITS, FeatureLevel, TensorDataType
from opendml.spec.fault import Fault, path_text, wrong_rank, wrong_sizes, wrong_type
from opendml.spec.feature_level import full_name
from opendml.spec.kinds import FLOAT32_MAX, ArrayCodec
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule, given_tensors
from opendml.spec.schema import Broadcast, Field, GivenTogether, OperatorSchema, Same
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.values import integer_range
from opendml.spec.wording import counted, dimensions

Faults = Iterator[tuple[Field, Fault]]

_LARGEST_FLOAT = {
    TensorDataType.FLOAT16: 65504.0,
    TensorDataType.FLOAT32: FLOAT32_MAX,
    TensorDataType.FLOAT64: float.fromhex("0x1.fffffffffffffp1023"),
}


def shared_rules(operator: OperatorSchema, level: FeatureLevel) -> Iterator[Rule]:
    """Yield the rules that the operator's facts state for that level, those of types first."""
    for what in ("DataType", "DimensionCount", "Sizes"):
        for same in operator.same:
            if what in same.what and (what != "DataType" or same.below is None or level < same.below):
                yield _equal_tensors(operator, same, what)
    for together in operator.together:
        if together.below is None or level < together.below:
            yield _given_together(operator, together)
    for broadcast in operator.broadcast:
        for name in broadcast.tensors:
            yield _broadcastable(operator, name, broadcast, level)
    for name in operator.one_element:
        yield _one_element(operator, name)
    for field in operator.fields:
        if field.rank_of:
            yield _counted_dimensions(operator, field, field.rank_of)
        if field.axis_of:
            yield _valid_axes(operator, field, field.axis_of)
        if field.same_type_as:
            yield _type_of_tensor(operator, field, field.same_type_as)
        if field.data_type_field:
            yield _fitting_scalar(operator, field, field.data_type_field)


def _equal_tensors(operator: OperatorSchema, same: Same, what: str) -> Rule:
    """Make the rule that tensors agree in `what` with the first of them that is given."""
    fields = tuple(operator.field(name) for name in same.tensors)
    rule_name = {"DataType": "equal_types", "DimensionCount": "equal_ranks", "Sizes": "equal_sizes"}[what]

    def check(desc: OperatorDesc) -> Faults:
        first: TensorDesc | None = None
        place: tuple[str, tuple[int, ...]] = ("", ())
        for field in fields:
            for path, tensor in given_tensors(desc, field):
                if first is None:
                    first, place = tensor, (field.name, path)
                elif fault := _difference(tensor, first, place, what):
                    yield field, fault.within(*path)

    return Rule(rule_name, fields, check, basic=what == "DimensionCount")


def _difference(
    tensor: TensorDesc, other: TensorDesc, place: tuple[str, tuple[int, ...]], what: str
) -> Fault | None:
    """Return the fault of a tensor that differs from another one, which has that place: field and path."""
    if what == "DataType":
        given, needed = tensor.data_type, other.data_type
        if given is needed:
            return None
        return wrong_type(given, f"must have the data type of {_reference(*place)}, {needed.name}", needed)
    if what == "DimensionCount":
        rank, wanted = len(tensor.sizes), len(other.sizes)
        if rank == wanted:
            return None
        return wrong_rank(rank, f"must have as many as {_reference(*place)}, {wanted}")
    if tensor.sizes == other.sizes:
        return None
    return wrong_sizes(tensor.sizes, f"must be those of {_reference(*place)}, {list(other.sizes)}")


def _reference(field: str, path: tuple[int, ...]) -> str:
    """Return a tensor in the text of a fault."""
    return f"{{{field}}}{path_text(path)}"


def _broadcastable(operator: OperatorSchema, name: str, rule: Broadcast, level: FeatureLevel) -> Rule:
    """Make the rule that every size of a tensor is 1 or that of the tensor it is repeated to.

    Below `rule.channel_below` the channels (dimension 1, where there is one) are not repeated.
    """
    field, target = operator.field(name), operator.field(rule.to)
    channels = rule.channel_below if rule.channel_below and level < rule.channel_below else None

    def check(desc: OperatorDesc) -> Faults:
        tensor: TensorDesc | None = getattr(desc, field.python_name)
        to: TensorDesc | None = getattr(desc, target.python_name)
        if tensor is None or to is None or len(tensor.sizes) != len(to.sizes):
            return
        for i, (size, full) in enumerate(zip(tensor.sizes, to.sizes, strict=True)):
            limited = channels if i == 1 else None
            if size is full or (type(size) is int and size == 1 and not limited) or size == full:
                continue  # A traced size may be 1, too.
            if limited:
                allowed = f"must be {{{target.name}}}'s channel count {full} below {full_name(limited)}"
                yield field, Fault(size, allowed, ("Sizes", 1), limited)
            elif size != 1:
                yield field, Fault(size, f"must be 1 or {{{target.name}}}'s {full}", ("Sizes", i))

    return Rule("broadcastable", (field, target), check)


def _given_together(operator: OperatorSchema, rule: GivenTogether) -> Rule:
    """Make the rule that optional tensors are all given or all missing."""
    below = f" below {full_name(rule.below)}" if rule.below else ""
    fields = tuple(operator.field(name) for name in rule.tensors)

    def check(desc: OperatorDesc) -> Faults:
        given = [field.name for field in fields if getattr(desc, field.python_name) is not None]
        for field in fields:
            if given and field.name not in given:
                yield field, Fault("missing", f"required with {{{given[0]}}}{below}", since=rule.below)

    return Rule("given_together", fields, check, basic=True)


def _one_element(operator: OperatorSchema, name: str) -> Rule:
    """Make the rule that all sizes of a tensor are 1."""
    field = operator.field(name)

    def check(desc: OperatorDesc) -> Faults:
        tensor: TensorDesc | None = getattr(desc, field.python_name)
        if tensor is not None and any(size != 1 for size in tensor.sizes):
            yield field, wrong_sizes(tensor.sizes, f"must be one element, {[1] * len(tensor.sizes)}")

    return Rule("one_element", (field,), check)


def _counted_dimensions(operator: OperatorSchema, count: Field, tensor_name: str) -> Rule:
    """Make the rule that counted arrays have an element for each (spatial) dimension of a tensor."""
    tensor_field = operator.field(tensor_name)
    arrays = tuple(operator.field(name) for name in count.count_of)
    kind, others = ("spatial dimension", 2) if count.spatial else ("dimension", 0)

    def check(desc: OperatorDesc) -> Faults:
        for _, tensor in given_tensors(desc, tensor_field):
            needed = len(tensor.sizes) - others
            for array in arrays:
                length = len(getattr(desc, array.python_name))
                if length != needed:
                    allowed = f"must be {needed}, one for each {kind} of {{{tensor_name}}}{{{count.name}}}"
                    yield array, Fault(counted(length, "element", "elements"), allowed)

    return Rule("counted_dimensions", (*arrays, tensor_field), check, basic=True)


def _valid_axes(operator: OperatorSchema, field: Field, tensor_name: str) -> Rule:
    """Make the rule that axes are dimensions of a tensor, and that none is listed twice."""
    tensor_field = operator.field(tensor_name)
    is_array = isinstance(field.codec, ArrayCodec)

    def check(desc: OperatorDesc) -> Faults:
        value = getattr(desc, field.python_name)
        axes: tuple[int, ...] = value if is_array else (value,)
        for _, tensor in given_tensors(desc, tensor_field):
            rank = len(tensor.sizes)
            if len(axes) > rank:
                yield field, Fault(f"{len(axes)} axes", f"{{{tensor_name}}} has {dimensions(rank)}")
                continue
            for i, axis in enumerate(axes):
                path = (i,) if is_array else ()
                if axis >= rank:
                    allowed = f"{{{tensor_name}}} has {dimensions(rank)}, numbered from 0"
                    yield field, Fault(axis, allowed, path)
                elif axis in axes[:i]:
                    yield field, Fault(f"{axis} is listed twice", "axes must be distinct", path)

    return Rule("valid_axes", (field, tensor_field), check, basic=True)


def _type_of_tensor(operator: OperatorSchema, field: Field, tensor_name: str) -> Rule:
    """Make the rule that a data type attribute is the type of a tensor."""
    tensor_field = operator.field(tensor_name)

    def check(desc: OperatorDesc) -> Faults:
        data_type: TensorDataType = getattr(desc, field.python_name)
        for _, tensor in given_tensors(desc, tensor_field):
            if tensor.data_type is not data_type:
                allowed = f"must be the type of {{{tensor_name}}}, {tensor.data_type.name}"
                yield field, Fault(data_type.name, allowed)

    return Rule("type_of_tensor", (field, tensor_field), check)


def _fitting_scalar(operator: OperatorSchema, field: Field, type_name: str) -> Rule:
    """Make the rule that a DML_SCALAR_UNION holds a value of the type that another attribute says."""
    type_field = operator.field(type_name)

    def check(desc: OperatorDesc) -> Faults:
        value: int | float = getattr(desc, field.python_name)
        data_type: TensorDataType = getattr(desc, type_field.python_name)
        largest = _LARGEST_FLOAT.get(data_type)
        if largest is not None:
            if abs(value) > largest and not (isinstance(value, float) and isinf(value)):
                yield field, Fault(value, f"must fit {data_type.name}, the {{{type_name}}}")
        elif data_type in DATA_TYPE_BITS:
            low, high = integer_range(data_type)
            if not isinstance(value, int) or not low <= value <= high:
                allowed = f"must be a whole number from {low} to {high} for {data_type.name}"
                yield field, Fault(value, f"{allowed}, the {{{type_name}}}")

    return Rule("fitting_scalar", (field, type_field), check)
