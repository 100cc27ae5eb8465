"""Levels, types, ranks and required tensors of every operator, against the tables in the facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.facts import enum_facts, operator_facts
from opendml.spec.naming import snake_case
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.validator import failures
from tests.for_each import for_each
from tests.spec.valid_descs import (
    LEVELS,
    NAMES,
    changed,
    functions,
    level_name,
    level_of,
    table_at,
    tables,
    tensor_of,
    valid_desc,
    with_tensor,
)
from tests.spec.valid_sizes import STACKED

every_operator = for_each("operator", NAMES)


def introduced(operator: str) -> FeatureLevel:
    return level_of(operator_facts()[operator]["introduced"])


def levels(operator: str) -> list[FeatureLevel]:
    return [level for level in LEVELS if level >= introduced(operator)]


def label(operator: str, tensor: str) -> str:
    fields = {field["name"]: field for field in operator_facts()[operator]["fields"]}
    index = "[0]" if fields[tensor]["type"] == "TENSOR_DESC_ARRAY" else ""
    return f"{operator}.{tensor}{index}"


class Place(NamedTuple):
    """A tensor of an operator at a level, in a desc that is valid there."""

    operator: str
    function: str | None
    level: FeatureLevel
    desc: OperatorDesc
    tensor: str
    support: dict[str, Any]

    def failures_with(self, **changes: Any) -> Sequence[str]:
        """What the validator says when the tensor has other values."""
        wrong = changed(tensor_of(self.desc, self.tensor), **changes)
        return failures(with_tensor(self.desc, self.tensor, wrong), self.level)

    def later(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Level and row for the tensor of the tables above the place's level, oldest first."""
        for table in reversed(tables(self.operator, self.function)):
            if level_of(table["level"]) > self.level:
                yield table["level"], table["tensors"][self.tensor]


def places(operator: str) -> Iterator[Place]:
    for function in functions(operator):
        for level in levels(operator):
            desc = valid_desc(operator, level, function)
            for tensor, support in table_at(operator, level, function).items():
                if tensor in STACKED:
                    desc = valid_desc(operator, level, having=tensor)
                yield Place(operator, function, level, desc, tensor, support)


@every_operator
def test_valid_at_every_level_from_its_introduction(operator: str) -> None:
    for function in functions(operator):
        for level in levels(operator):
            assert failures(valid_desc(operator, level, function), level) == [], (function, level)


@every_operator
def test_unknown_below_its_introduction(operator: str) -> None:
    first = introduced(operator)
    for level in LEVELS:
        if level < first:
            expected = f"{operator}: not in {level_name(level)}; exists from {level_name(first)}"
            assert failures(valid_desc(operator, first), level) == [expected]


@every_operator
def test_type_outside_the_table(operator: str) -> None:
    for place in places(operator):
        for data_type in TensorDataType:
            name = data_type.name
            if name in place.support["types"]:
                continue
            start = f"{label(operator, place.tensor)}: {name}; DML_FEATURE_LEVEL_"
            message = _only(place.failures_with(data_type=data_type), start)
            later = [level for level, row in place.later() if name in row["types"]]
            allowed = f" {', '.join(place.support['types'])}"
            if later:
                assert message.endswith(f"{allowed} ({name} from DML_FEATURE_LEVEL_{later[0]})")
            else:
                assert message.endswith(allowed)


@every_operator
def test_rank_outside_the_table(operator: str) -> None:
    for place in places(operator):
        low, high = place.support["dims"]
        for rank in (low - 1, high + 1):
            count = "1 dimension" if rank == 1 else f"{rank} dimensions"
            start = f"{label(operator, place.tensor)}: {count}; DML_FEATURE_LEVEL_"
            message = _only(place.failures_with(sizes=[1] * rank), start)
            later = [
                (level, row["dims"])
                for level, row in place.later()
                if row["dims"][0] <= rank <= row["dims"][1]
            ]
            allowed = f" {_ranks(low, high)}"
            if later:
                since, dims = later[0]
                assert message.endswith(f"{allowed} ({_ranks(*dims)} from DML_FEATURE_LEVEL_{since})")
            else:
                assert message.endswith(allowed)


@every_operator
def test_required_tensor_missing(operator: str) -> None:
    for level in levels(operator):
        desc = valid_desc(operator, level)
        for field in operator_facts()[operator]["fields"]:
            if field["kind"] == "ATTRIBUTE" or field["name"] in STACKED:
                continue
            found = failures(desc.replace(**{snake_case(field["name"]): None}), level)
            name = f"{operator}.{field['name']}"
            since = field.get("optional_since")
            if field["type"] == "TENSOR_DESC_ARRAY":
                assert found == [f"{name}: None; must be a sequence of one or more descs"]
            elif not field["optional"]:
                assert found == [f"{name}: missing; required"]
            elif since and level < level_of(since):
                assert found == [f"{name}: missing; required below DML_FEATURE_LEVEL_{since}"]
            else:
                assert all(": missing" in message for message in found)


@every_operator
def test_tables_are_sound(operator: str) -> None:
    """Newer tables only add, name every tensor, and stay within the level's number of dimensions."""
    limits = enum_facts()["dimension_count_limits"]
    late_types = enum_facts()["enum_values_since_level"]["TENSOR_DATA_TYPE"]
    facts = operator_facts()[operator]
    tensors = [field["name"] for field in facts["fields"] if field["kind"] != "ATTRIBUTE"]
    for function in functions(operator):
        newest_first = tables(operator, function)
        assert newest_first[-1]["level"] == facts["introduced"]
        for table in newest_first:
            level = level_of(table["level"])
            most = max(limit["max"] for limit in limits if level_of(limit["level"]) <= level)
            assert list(table["tensors"]) == tensors
            for support in table["tensors"].values():
                assert 1 <= support["dims"][0] <= support["dims"][1] <= most
                assert support["types"]
                for name in support["types"]:
                    assert level_of(late_types.get(name, "1_0")) <= level
        for newer, older in pairwise(newest_first):
            assert level_of(newer["level"]) > level_of(older["level"])
            for name in tensors:
                new, old = newer["tensors"][name], older["tensors"][name]
                assert set(new["types"]) >= set(old["types"])
                assert new["dims"][0] <= old["dims"][0]
                assert new["dims"][1] >= old["dims"][1]


def test_allowance_names_the_first_level_that_allows_the_same() -> None:
    """RELU's ranks are the same from 3_0 on although 5_1 has a table of its own."""
    desc = valid_desc("ACTIVATION_RELU", FeatureLevel.LEVEL_6_4)
    wrong = with_tensor(desc, "InputTensor", changed(tensor_of(desc, "InputTensor"), sizes=[1] * 9))
    expected = "ACTIVATION_RELU.InputTensor: 9 dimensions; DML_FEATURE_LEVEL_3_0 and above allow 1 to 8"
    assert failures(wrong)[0] == expected


def _ranks(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _only(found: list[str], start: str) -> str:
    """The one message that begins so."""
    matching = [message for message in found if message.startswith(start)]
    assert len(matching) == 1, (start, found)
    return matching[0]
