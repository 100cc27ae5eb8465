"""The limits of an operator's tensors at a feature level, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opendml.errors import InvalidArgument
from opendml.late_dataclass import dataclass
from opendml.spec.enums import FeatureLevel, ReduceFunction, TensorDataType
from opendml.spec.feature_level import as_feature_level, full_name
from opendml.spec.naming import compared_part, nearest, operator_name
from opendml.spec.schema import Field, OperatorSchema, Support, operator, operators
from opendml.spec.values import as_member
from opendml.spec.wording import member_words, shown


@dataclass(frozen=True, slots=True)
class TensorLimits:
    """The limits of one tensor.

    Attributes:
        data_types: the types of its elements.
        dimension_counts: the numbers of dimensions, such as range(4, 6).
        optional: whether it may be left out.
        is_array: whether it is a list of such tensors.
        owned_by_dml: whether it may be handed over at initialization (DML_TENSOR_FLAG_OWNED_BY_DML).
    """

    data_types: tuple[TensorDataType, ...]
    dimension_counts: range
    optional: bool
    is_array: bool
    owned_by_dml: bool


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """The limits of an operator's tensors at a feature level.

    Attributes:
        operator: DirectML's name, without DML_OPERATOR_.
        feature_level: the level.
        introduced: the level from which the operator exists.
        since: the level from which these limits hold.
        inputs: the input tensors by DirectML's names, in DirectML's order.
        outputs: the output tensors by DirectML's names, in DirectML's order.
    """

    operator: str
    feature_level: FeatureLevel
    introduced: FeatureLevel
    since: FeatureLevel
    inputs: Mapping[str, TensorLimits]
    outputs: Mapping[str, TensorLimits]


def limits(
    name: str,
    feature_level: FeatureLevel | str | None = None,
    *,
    function: ReduceFunction | str | None = None,
) -> OperatorLimits:
    """Return what the tensors of an operator may be at a feature level: types and numbers of dimensions.

    >>> import opendml as dml
    >>> found = dml.limits("CONVOLUTION", "2_0")
    >>> [type.name for type in found.inputs["InputTensor"].data_types]
    ['FLOAT32', 'FLOAT16']
    >>> found.inputs["FilterTensor"].dimension_counts, found.inputs["BiasTensor"].optional
    (range(4, 6), True)

    Rules between fields, as of equal sizes, are what `validate` checks.

    Args:
        name: DirectML's name of the operator, of its desc in C, or of its function, such as "convolution".
        feature_level: None is the newest.
        function: of REDUCE, whose types depend on it; None: what any function allows.

    Raises:
        InvalidArgument: no such operator, level or function, or an operator that the level does not have.
    """
    level, facts = as_feature_level(feature_level), _facts(name)
    if level < facts.introduced:
        exists = f"exists from {full_name(facts.introduced)}"
        raise InvalidArgument(f"{facts.name}: not in {full_name(level)}; {exists}")
    tables = list(_tables(facts, level, function))
    found = {field.name: _limits(field, tables, level) for field in facts.tensors}
    return OperatorLimits(
        facts.name,
        level,
        facts.introduced,
        max(table.level for table in tables),
        {field.name: found[field.name] for field in facts.inputs},
        {field.name: found[field.name] for field in facts.outputs},
    )


def _facts(name: str) -> OperatorSchema:
    if not isinstance(name, str):
        raise InvalidArgument(f"limits: {shown(name)}; the name of an operator is needed")
    known = operators()
    plain = operator_name(name.upper())
    if plain in known:
        return operator(plain)
    near = nearest(compared_part(plain), known)
    raise InvalidArgument(f"{name} is no operator of DirectML" + (f"; did you mean {near}?" if near else ""))


def _tables(
    facts: OperatorSchema, level: FeatureLevel, function: ReduceFunction | str | None
) -> Iterator[Support]:
    """Return the tables that hold at a level: one, but for an operator whose functions have their own."""
    by_function = facts.support[0].functions is not None
    if function is None:
        names: list[str | None] = [each.name for each in ReduceFunction] if by_function else [None]
    else:
        member = as_member(ReduceFunction, function)
        if not by_function or not isinstance(member, ReduceFunction):
            problem = member_words(ReduceFunction, ReduceFunction.__members__) if by_function else "has none"
            raise InvalidArgument(f"{facts.name}: function {shown(function)}; {problem}")
        names = [member.name]
    for name in names:
        if (table := facts.support_at(level, name)) is not None:
            yield table


def _limits(field: Field, tables: list[Support], level: FeatureLevel) -> TensorLimits:
    each = [table.tensors[field.name] for table in tables]
    types = dict.fromkeys(TensorDataType[name] for support in each for name in support.types)
    counts = range(min(support.dims[0] for support in each), max(support.dims[1] for support in each) + 1)
    return TensorLimits(tuple(types), counts, field.optional_at(level), field.is_array, field.owned_by_dml)
