"""The JSON files with DirectML's facts, read when first asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opendml.spec.inherit import CompleteOperators

DATA_FOLDER = Path(__file__).parent / "data"


@cache
def operator_facts() -> Mapping[str, dict[str, Any]]:
    """data/operators.json: the facts of every operator by its name, with what it shares with others."""
    return CompleteOperators(_read("operators.json"), _read("common.json"))


@cache
def enum_facts() -> dict[str, Any]:
    """data/enums.json: constants, enumerations, levels of late values, rules of fused activations."""
    return _read("enums.json")


@cache
def tolerance_facts() -> dict[str, dict[str, dict[str, Any]]]:
    """data/tolerances.json: by operator and type of floats, the greatest distance from the exact result.

    "bound" is what is promised, "measured" what was found over "measured_over", both in the "unit": "ulp",
    "greatest" or "terms", which `data/README.md` explains.
    """
    return _read("tolerances.json")


@cache
def peer_tolerance_facts() -> dict[str, dict[str, Any]]:
    """data/peer_tolerances.json: by operator, the greatest distance of a result from that of another system,
    which computes in FLOAT32 itself."""
    return _read("peer_tolerances.json")


@cache
def example_facts() -> dict[str, dict[str, list[str]]]:
    """data/examples.json: by operator, the lines of an example ("code") and of what it gives ("result").

    The last line of the code is an expression: a call, or, for an operator that cannot be run yet, the
    validation of a desc, which gives nothing.
    """
    return _read("examples.json")


@cache
def alias_facts() -> dict[str, dict[str, list[str]]]:
    """data/aliases.json: by system, the operators that compute what its operator of that name does."""
    return _read("aliases.json")


def _read(name: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((DATA_FOLDER / name).read_text(encoding="utf-8"))
    return facts
