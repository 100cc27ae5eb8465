"""The fuzzers by name, each a function from choices to a case."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from tests.fuzz.case import Case, vocabulary
from tests.fuzz.choices import Choices

FUZZERS = ("descs", "large", "aliasing", "graphs", "calls", "models", "peers")


def maker(name: str) -> Callable[[Choices], Case]:
    """The function that makes the cases of a fuzzer."""
    make: Callable[[Choices], Case] = import_module(f"tests.fuzz.{name}").make
    return make


def evaluated(expression: str) -> Case:
    """The case that its repr shows."""
    names = vocabulary()
    for name in (*FUZZERS, "samples"):
        names |= vars(import_module(f"tests.fuzz.{name}"))
    case = eval(expression, names)
    assert isinstance(case, Case)
    return case
