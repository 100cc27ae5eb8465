"""The comparisons with PyTorch, NumPy and ONNX of tests/peers, on other random arrays. What is not installed
is skipped."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.peers.peer import Random

FOLDER = Path(__file__).parents[1] / "peers"


@dataclass(frozen=True, repr=False)
class OnPeer(Case):
    """A comparison.

    Attributes:
        module: where it stands.
        function: the test.
        number: which of the test's parameters, in their order.
        seed: of the arrays.
    """

    module: str
    function: str
    number: int
    seed: int

    @property
    def subject(self) -> str:
        return self.function

    def check(self) -> None:
        test = getattr(import_module(f"tests.peers.{self.module}"), self.function)
        parameters = _parameters(test)[self.number]
        try:
            test.hypothesis.inner_test(**parameters, random=Random(self.seed))
        except pytest.skip.Exception:
            return


def make(choices: Choices) -> OnPeer:
    """Any comparison."""
    module, function, count = choices.of(_tests())
    return OnPeer(module, function, choices.below(count), choices.below(1 << 32))


@cache
def _tests() -> list[tuple[str, str, int]]:
    """The tests that take random arrays and nothing that only pytest has, with the number of parameters."""
    found = []
    for path in sorted(FOLDER.glob("test_*.py")):
        for name, test in vars(import_module(f"tests.peers.{path.stem}")).items():
            if name.startswith("test_") and hasattr(test, "hypothesis"):
                parameters = _parameters(test)
                wanted = set(inspect.signature(test.hypothesis.inner_test).parameters)
                if parameters and {*parameters[0], "random"} == wanted:
                    found.append((path.stem, name, len(parameters)))
    return found


def _parameters(test: Callable[..., Any]) -> list[dict[str, Any]]:
    """All combinations of what the test is parametrized with."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    choices = []
    for mark in marks:
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        rows = [each.values if hasattr(each, "marks") else each for each in mark.args[1]]
        rows = [
            row if len(names) > 1 or hasattr(each, "marks") else (row,)
            for row, each in zip(rows, mark.args[1], strict=True)
        ]
        choices.append([dict(zip((name.strip() for name in names), row, strict=True)) for row in rows])
    return [{key: value for part in parts for key, value in part.items()} for parts in product(*choices)]
