"""A typed view of the operators' facts (data/operators.json), built per operator when asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from opendml.across_forks import cached_property
from opendml.errors import InvalidArgument
from opendml.late_dataclass import dataclass
from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import operator_facts
from opendml.spec.feature_level import level_named
from opendml.spec.kinds import CODECS, Codec, ValueRange, member_codec
from opendml.spec.naming import camel_case, operator_name, snake_case


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of an operator's struct.

    Attributes:
        name: DirectML's name, such as "InputTensor".
        kind: "INPUT_TENSOR", "OUTPUT_TENSOR" or "ATTRIBUTE".
        type: "TENSOR_DESC", "TENSOR_DESC_ARRAY", "OPERATOR_DESC", "OPERATOR_DESC_ARRAY", "UINT", "INT",
            "BOOL", "FLOAT", "UINT_ARRAY", "INT_ARRAY", "FLOAT_ARRAY", "SCALE_BIAS", "SIZE_2D" or
            "SCALAR_UNION".
        optional: it may be null (from `optional_since`, when that is given; required below).
        enum: key of the enumeration in enums.json that a UINT is, or None.
        has_default: the desc class has a default for this attribute.
        default: that default; an enumeration's member by its name.
        default_source: "page" when Microsoft documents it, "opendml" when the choice is ours.
        count_of: for a count, the arrays whose length it is (such a field is no argument of the desc class).
        data_type_field: for a SCALAR_UNION, the attribute that says its type.
        has_call_type: the immediate function takes the type of this output as an argument.
        call_type: the default of that argument; None when it has none.
        owned_by_dml: an input may carry TensorFlags.OWNED_BY_DML.
        axis_of: the tensor whose dimensions this attribute numbers.
        same_type_as: for an attribute that is a data type, the tensor whose type it must be.
        rank_of: for a count, the tensor whose dimensions it counts: all, or from the third on (`spatial`).
        range: the values that a number, or the numbers of an array, may have.
        usual: what a call takes for an attribute that it is not given: the number for each dimension, or
            "last axis"; None where this does not depend on the tensors.
        type_of: for an output, the array of tensors and the index of the one whose type it has.
        description: meaning, sizes, ranges.
    """

    name: str
    kind: str
    type: str
    optional: bool
    enum: str | None = None
    has_default: bool
    default: Any = None
    default_source: str | None = None
    count_of: tuple[str, ...] = ()
    data_type_field: str | None = None
    has_call_type: bool
    call_type: str | None = None
    optional_since: FeatureLevel | None = None
    owned_by_dml: bool
    axis_of: str | None = None
    same_type_as: str | None = None
    rank_of: str | None = None
    spatial: bool = False
    range: ValueRange | None = None
    usual: float | str | None = None
    type_of: tuple[str, int] | None = None
    description: str

    @cached_property
    def python_name(self) -> str:
        """The field's name in the desc class, such as "input_tensor"."""
        return snake_case(self.name)

    @cached_property
    def codec(self) -> Codec:
        """The codec of the field's values."""
        return member_codec(self.enum) if self.enum else CODECS[self.type]

    @cached_property
    def argument_name(self) -> str:
        """The name in the immediate function: a tensor is `input`, an array of tensors `inputs`."""
        if not self.is_tensor:
            return self.python_name
        name = self.python_name.removesuffix("_tensor")
        return f"{name.removesuffix('_tensors')}s" if self.is_array else name

    @property
    def is_tensor(self) -> bool:
        """An input or output tensor, or an array of them."""
        return self.kind != "ATTRIBUTE"

    @property
    def is_array(self) -> bool:
        """An array of tensors."""
        return self.type == "TENSOR_DESC_ARRAY"

    @property
    def is_count(self) -> bool:
        """A length of arrays, which the desc classes derive."""
        return bool(self.count_of)

    @property
    def is_attribute(self) -> bool:
        """An attribute that the desc class takes: neither a tensor nor a count."""
        return not self.is_tensor and not self.is_count

    def range_at(self, level: FeatureLevel) -> ValueRange | None:
        """Return the range of the field's numbers at that level."""
        is_gone = self.range is None or (self.range.below is not None and level >= self.range.below)
        return None if is_gone else self.range

    def optional_at(self, level: FeatureLevel) -> bool:
        """Return whether the field may be null at that level."""
        return self.optional and (self.optional_since is None or level >= self.optional_since)


class TensorSupport(NamedTuple):
    """The allowance of one tensor: dimension counts (smallest, largest) and data types by name."""

    dims: tuple[int, int]
    types: tuple[str, ...]


class Support(NamedTuple):
    """One table: what the tensors may be from `level` on, for REDUCE only with one of `functions`."""

    level: FeatureLevel
    tensors: Mapping[str, TensorSupport]
    functions: tuple[str, ...] | None = None


class Same(NamedTuple):
    """Tensors that must agree in `what`: "DataType", "DimensionCount" or "Sizes".

    With `below`, they must agree only below that level.
    """

    tensors: tuple[str, ...]
    what: tuple[str, ...]
    below: FeatureLevel | None = None


class Broadcast(NamedTuple):
    """Tensors whose sizes are 1 or those of `to`; below `channel_below` dimension 1 is that of `to`."""

    tensors: tuple[str, ...]
    to: str
    channel_below: FeatureLevel | None = None


class GivenTogether(NamedTuple):
    """Optional tensors that are all given or all absent; with `below`, below that level."""

    tensors: tuple[str, ...]
    below: FeatureLevel | None = None


@dataclass(frozen=True, kw_only=True)
class OperatorSchema:
    """The facts of one operator; the texts are as in operators.json.

    `sizes` is "required" where a call must say the sizes of the first output: none are usual.
    """

    name: str
    introduced: FeatureLevel
    family: str
    summary: str
    formula: str
    semantics: str = ""
    fields: tuple[Field, ...]
    in_place: tuple[str, ...]
    constraints: tuple[str, ...]
    same: tuple[Same, ...]
    broadcast: tuple[Broadcast, ...]
    together: tuple[GivenTogether, ...]
    one_element: tuple[str, ...] = ()
    sizes: str = ""
    support: tuple[Support, ...]
    examples: tuple[Mapping[str, Any], ...] = ()
    notes: str = ""
    corrections: tuple[Mapping[str, str], ...]

    @property
    def class_name(self) -> str:
        """The name of the desc class in `opendml.spec.descs`."""
        return camel_case(self.name)

    @property
    def function_name(self) -> str:
        """The name of the immediate function."""
        return self.name.lower()

    @cached_property
    def tensors(self) -> tuple[Field, ...]:
        """The tensor fields, inputs and outputs, in DirectML's order."""
        return tuple(field for field in self.fields if field.is_tensor)

    @cached_property
    def inputs(self) -> tuple[Field, ...]:
        """The input tensors, in DirectML's order."""
        return tuple(field for field in self.tensors if field.kind == "INPUT_TENSOR")

    @cached_property
    def outputs(self) -> tuple[Field, ...]:
        """The output tensors, in DirectML's order."""
        return tuple(field for field in self.tensors if field.kind == "OUTPUT_TENSOR")

    @cached_property
    def attributes(self) -> tuple[Field, ...]:
        """The attributes that the desc class takes, in DirectML's order: all but the counts."""
        return tuple(field for field in self.fields if field.is_attribute)

    def field(self, name: str) -> Field:
        """Return the field of that DirectML name.

        Raises:
            KeyError: no such field.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.name} has no field {name}")

    def support_at(self, level: FeatureLevel, function: str | None = None) -> Support | None:
        """Return the table that holds at `level`, for REDUCE with `function`; None below its introduction."""
        if level < self.introduced:
            return None
        return next((table for table in self.tables(function) if table.level <= level), None)

    def tables(self, function: str | None = None) -> Iterator[Support]:
        """Return the tables, newest first; with `function` only those for that reduce function."""
        for table in self.support:
            if function is None or table.functions is None or function in table.functions:
                yield table


@cache
def operator(name: str) -> OperatorSchema:
    """Return the operator of that name: ACTIVATION_CELU, DML_OPERATOR_ACTIVATION_CELU or
    DML_ACTIVATION_CELU_OPERATOR_DESC.

    Raises:
        InvalidArgument: no such operator.
    """
    plain = operator_name(name)
    facts = operator_facts().get(plain)
    if facts is None:
        raise InvalidArgument(f"{name} is no operator of DirectML")
    return operator(plain) if plain != name else _operator(plain, facts)


@cache
def operators() -> Mapping[str, OperatorSchema]:
    """Return all operators by name, in DirectML's order."""
    return {name: operator(name) for name in operator_facts()}


@cache
def attribute_keys(name: str) -> dict[str, Callable[[Any], Hashable]]:
    """Return the functions that make the keys of an operator's attributes, by Python names in their order."""
    if name not in operator_facts():
        return {}
    return {field.python_name: field.codec.key for field in operator(name).attributes}


def append_keys(keys: list[Hashable], name: str, attributes: Mapping[str, Any]) -> None:
    """Append the keys of an operator's attributes, given by their Python names.

    Every immediate call needs them, so those of texts and of plain whole numbers in sequences are kept.
    """
    for attribute, value in attributes.items():
        kind = type(value)
        # A float other than zero and NaN is its own key.
        if value is None or (kind is float and value and value == value):
            keys.append(value)
        elif kind is str:
            keys.append(_kept_key(name, attribute, value))
        elif (kind is list or kind is tuple) and all(type(each) is int for each in value):
            keys.append(_kept_key(name, attribute, tuple(value)))
        else:
            keys.append(attribute_keys(name)[attribute](value))


@lru_cache(4096)
def _kept_key(name: str, attribute: str, value: str | tuple[int, ...]) -> Hashable:
    """Return the key of an attribute. Among other values, equal ones may have different keys: 1 and True."""
    return attribute_keys(name)[attribute](value)


def _operator(name: str, facts: Mapping[str, Any]) -> OperatorSchema:
    values = _typed(facts) | {"fields": tuple(map(_field, facts["fields"]))}
    values["support"] = tuple(map(_support, facts["support"]))
    for key, record in (("same", Same), ("broadcast", Broadcast), ("together", GivenTogether)):
        values[key] = tuple(record(**_typed(each)) for each in facts.get(key, ()))
    values.pop("flawed_examples", None)
    return OperatorSchema(name=name, **values)


def _field(facts: Mapping[str, Any]) -> Field:
    values = _typed(facts)
    if "range" in facts:
        values["range"] = ValueRange(**_typed(facts["range"]))
    values["owned_by_dml"] = facts["kind"] == "INPUT_TENSOR" and facts.get("owned_by_dml", True)
    return Field(**values, has_default="default" in facts, has_call_type="call_type" in facts)


def _support(facts: Mapping[str, Any]) -> Support:
    tensors = {
        name: TensorSupport((tensor["dims"][0], tensor["dims"][1]), tuple(tensor["types"]))
        for name, tensor in facts["tensors"].items()
    }
    return Support(**_typed(facts) | {"tensors": tensors})


def _typed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts with feature levels as members, and lists as tuples."""
    return {
        key: level_named(value) if key in _LEVELS else tuple(value) if isinstance(value, list) else value
        for key, value in facts.items()
    }


_LEVELS = frozenset(("introduced", "level", "below", "channel_below", "optional_since"))
