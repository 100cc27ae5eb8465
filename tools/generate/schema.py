"""The schema of the JSON files with DirectML's facts: every key that is known, and what its value may be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, TypeAlias

from opendml.spec.facts import DATA_FOLDER, enum_facts, operator_facts
from opendml.spec.kinds import CODECS

_Shape: TypeAlias = "type[Any] | UnionType | frozenset[str] | list[Any] | Record | Named | NameOr"
"""A type; one of some texts; a list of what its one item says; or one of the classes below."""

_NUMBER = int | float


@dataclass(frozen=True)
class Record:
    """An object with these keys, of which `optional` may be absent."""

    required: Mapping[str, _Shape]
    optional: Mapping[str, _Shape] = field(default_factory=dict)

    @property
    def partial(self) -> Record:
        """The record where something else has what it leaves out."""
        return Record({}, {**self.required, **self.optional})


@dataclass(frozen=True)
class Named:
    """An object with any names, each of which has such a value."""

    value: _Shape


@dataclass(frozen=True)
class NameOr:
    """A name that stands for something written elsewhere, or that itself."""

    value: _Shape


def problems(value: Any, shape: _Shape, where: str) -> Iterator[str]:
    """Yield what is wrong with a value, each problem with its place."""
    if isinstance(shape, NameOr):
        if not isinstance(value, str):
            yield from problems(value, shape.value, where)
    elif isinstance(shape, list):
        yield from _unless(isinstance(value, list), value, where, "a list")
        for i, item in enumerate(value if isinstance(value, list) else ()):
            yield from problems(item, shape[0], f"{where}[{i}]")
    elif isinstance(shape, Record | Named):
        yield from _unless(isinstance(value, dict), value, where, "an object")
        if isinstance(value, dict):
            yield from _problems_of_object(value, shape, where)
    elif isinstance(shape, frozenset):
        yield from _unless(
            isinstance(value, str) and value in shape, value, where, f"one of {', '.join(sorted(shape))}"
        )
    else:
        truth = isinstance(value, bool) and shape in (int, _NUMBER)
        words = getattr(shape, "__name__", str(shape))
        yield from _unless(isinstance(value, shape) and not truth, value, where, words)


def problems_of_files() -> list[str]:
    """Return what is wrong with the files, or else with the completed facts of the operators."""
    found: list[str] = []
    for name, shape in FILES.items():
        found += problems(json.loads((DATA_FOLDER / name).read_text("utf-8")), shape, name)
    return found or list(problems(dict(operator_facts()), Named(OPERATOR), "operators.json, completed"))


def _problems_of_object(value: dict[str, Any], shape: Record | Named, where: str) -> Iterator[str]:
    known = dict.fromkeys(value, shape.value) if isinstance(shape, Named) else shape.partial.optional
    for key, each in value.items():
        if key in known:
            yield from problems(each, known[key], f"{where}: {key}")
        else:
            yield f"{where}: unknown key {key!r}; known are {', '.join(known)}"
    if isinstance(shape, Record):
        yield from (f"{where}: no {key!r}" for key in shape.required if key not in value)


def _unless(right: bool, value: Any, where: str, words: str) -> Iterator[str]:
    if not right:
        yield f"{where}: {value!r}; must be {words}"


_KINDS = frozenset({"INPUT_TENSOR", "OUTPUT_TENSOR", "ATTRIBUTE"})
_TYPES = frozenset(CODECS)
_DATA_TYPES = frozenset(enum_facts()["data_type_bits"])
_WHAT = frozenset({"DataType", "DimensionCount", "Sizes"})

RANGE = Record(
    {},
    {"min": _NUMBER, "above": _NUMBER, "finite": bool, "nonzero": bool, "values": [int | str], "below": str},
)
FIELD = Record(
    {
        "name": str,
        "kind": _KINDS,
        "type": _TYPES,
        "optional": bool,
        "description": str,
    },
    {
        "usual": _NUMBER | str,
        "type_of": [str | int],
        "optional_since": str,
        "enum": str,
        "default": bool | int | float | str,
        "default_source": frozenset({"page", "opendml"}),
        "call_type": str | None,
        "count_of": [str],
        "data_type_field": str,
        "same_type_as": str,
        "axis_of": str,
        "rank_of": str,
        "spatial": bool,
        "range": RANGE,
        "owned_by_dml": bool,
    },
)
CHANGED_FIELD = Record({"name": str}, dict.fromkeys(FIELD.partial.optional, object))
CORRECTION = Record({"what": str, "why": str})
ROW = Record({"names": [str], "dims": [int], "types": [_DATA_TYPES]}, {"sizes": str})
STATED_ROW = Record({"names": [str], "dims": [int], "types": str}, {"sizes": str})
EXAMPLE = Record(
    {"inputs": Named(object), "outputs": Named(object)},
    {"attributes": Named(object), "types": Named(str), "undefined": str, "why": str},
)
OPERATOR = Record(
    {
        "introduced": str,
        "family": str,
        "summary": str,
        "formula": str,
        "fields": [FIELD],
        "in_place": [str],
        "constraints": [str],
        "same": [Record({"tensors": [str], "what": [_WHAT]}, {"below": str})],
        "support": [Record({"level": str, "tensors": Named(ROW)}, {"functions": [str]})],
        "corrections": [CORRECTION],
    },
    {
        "semantics": str,
        "broadcast": [Record({"tensors": [str], "to": str}, {"channel_below": str})],
        "together": [Record({"tensors": [str]}, {"below": str})],
        "one_element": [str],
        "sizes": frozenset({"required"}),
        "examples": [EXAMPLE],
        "flawed_examples": [EXAMPLE],
        "notes": str,
    },
)
"""An operator with what it shares with others."""

STATED = Record(
    {},
    {
        **OPERATOR.partial.optional,
        "extends": [str],
        "fields": [NameOr(CHANGED_FIELD)],
        "support": [Record({"level": str, "tensors": [STATED_ROW]}, {"functions": [str]})],
        "corrections": [NameOr(CORRECTION)],
    },
)
"""The entry of an operator in the file."""

FILES: dict[str, _Shape] = {
    "operators.json": Named(STATED),
    "common.json": Record(
        {
            "forms": Named(STATED),
            "fields": Named(FIELD),
            "constraints": Named(str),
            "types": Named([_DATA_TYPES]),
            "corrections": Named(CORRECTION),
        }
    ),
    "enums.json": Record(
        {
            "constants": Named(int),
            "enums": Named(Named(int)),
            "flags": [str],
            "enum_values_since_level": Named(Named(str)),
            "methods_since_level": Named(str),
            "data_type_bits": Named(int),
            "dimension_count_limits": [Record({"level": str, "max": int})],
            "fused_activation": Record(
                {
                    "operators": [str],
                    "activations": [str],
                    "extra": [Record({"activation": str, "operators": [str], "level": str})],
                    "rule": str,
                }
            ),
            "calc_buffer_tensor_size": str,
            "corrections": [CORRECTION],
        }
    ),
    "tolerances.json": Named(
        Named(Record({"unit": str, "bound": _NUMBER, "measured": _NUMBER, "measured_over": str}))
    ),
    "peer_tolerances.json": Named(Record({"unit": str, "bound": _NUMBER, "measured": _NUMBER})),
    "examples.json": Named(Record({"code": [str]}, {"result": [str]})),
    "aliases.json": Named(Named([str])),
}
