"""How far a result may be from WebNN's expectation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from opendml import TensorDataType
from opendml.runtime.memory.host_array import Array

_COMPARISONS = ("equal", "greater", "greaterOrEqual", "lesser", "lesserOrEqual")
_GROUPS = dict.fromkeys(_COMPARISONS, "comparisons") | {"logicalNot": "logical", "gather": "gather*"}
_FLOATS = (TensorDataType.FLOAT32, TensorDataType.FLOAT16)


class Tolerances:
    """The table of WebNN's tolerances, which were set with DirectML."""

    def __init__(self, path: Path) -> None:
        self._table = json.loads(path.read_text(encoding="utf-8"))

    def check(
        self,
        operator: str,
        result: Array,
        expected: Array,
        data_type: TensorDataType,
        lengths: Mapping[str, int],
    ) -> None:
        """Fails when an element of `result` is too far from that of `expected`. Integers must be equal.

        Args:
            operator: WebNN's name.
            result: the elements.
            expected: likewise.
            data_type: their type.
            lengths: how many elements went into one result, for operators whose tolerance depends on it.
        """
        if data_type not in _FLOATS:
            np.testing.assert_array_equal(result, expected)
            return
        absolute = self._absolute(operator, data_type)
        if absolute is not None:
            np.testing.assert_allclose(result, expected, rtol=0, atol=absolute)
            return
        limit = self._ulp(operator, data_type, lengths)
        distances = ulp_steps(result, expected)
        worst = int(distances.argmax())
        assert distances[worst] <= limit, (
            f"{result[worst]!r} instead of {expected[worst]!r} at {worst}: "
            f"{distances[worst]:g} ULP, {limit:g} allowed"
        )

    def _absolute(self, operator: str, data_type: TensorDataType) -> float | None:
        table: dict[str, list[float]] = self._table["absolute (float32, float16)"]
        return next(
            (_pick(pair, data_type) for names, pair in table.items() if _names(operator, names)), None
        )

    def _ulp(self, operator: str, data_type: TensorDataType, lengths: Mapping[str, int]) -> float:
        table = self._table["ulp"]
        group = "cast to float" if operator == "cast" else _GROUPS.get(operator, operator)
        if group in table["exact (0)"]:
            return 0
        if group in table["float32/float16"]:
            return _pick(table["float32/float16"][group], data_type)
        for names, formula in table["by length"].items():
            if _names(operator, names):
                return float(eval(formula, {"__builtins__": {}}, dict(lengths)))
        raise KeyError(f"no tolerance for {operator}")


@cache
def tolerances(path: Path) -> Tolerances:
    """The table in a file."""
    return Tolerances(path)


def ulp_steps(a: Array, b: Array) -> Array:
    """How many floating-point numbers lie from `a` to `b`, both zeros being one number, of the same type.

    Infinite where only one is NaN; 0 where both are.
    """
    steps = np.abs(_ordered(a) - _ordered(b))
    only_one = np.isnan(a) != np.isnan(b)
    both = np.isnan(a) & np.isnan(b)
    return np.where(only_one, inf, np.where(both, 0.0, steps.astype(np.float64)))


def _ordered(values: Array) -> Any:
    """Integers in the order of the floats that have their bits: negative ones count down from zero."""
    signed = np.dtype(f"i{values.itemsize}")
    bits = np.ascontiguousarray(values).view(signed).astype(np.int64)
    return np.where(bits < 0, np.int64(np.iinfo(signed).min) - bits, bits)


def _names(operator: str, names: str) -> bool:
    return operator in names.split(", ")


def _pick(pair: list[float], data_type: TensorDataType) -> float:
    return pair[_FLOATS.index(data_type)]
