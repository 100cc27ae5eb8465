"""The fuzzers by name, each a module whose `make` is a function from choices to a case."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tests.fuzz import samples
from tests.fuzz.case import Case, vocabulary
from tests.fuzz.choices import Choices

FUZZERS = {
    "descs": "descs",
    "large": "large",
    "aliasing": "aliasing",
    "expressions": "expressions",
    "graphs": "graphs",
    "growth": "growth",
    "neighbours": "neighbours",
    "calls": "calls",
    "models": "models",
    "nodes": "onnx_graphs",
    "onnx": "onnx_models",
    "peers": "peers",
    "sizes": "onnx_sizes",
    "saved": "saved",
    "serialized": "serialized",
    "faults": "faults",
}
"""The modules of fuzzers, which a process imports when it needs them: all take longer than most cases."""


def made(fuzzer: str, choices: Choices) -> Case:
    """A case of a fuzzer, or of the samples that its machinery is tried with."""
    module = samples if fuzzer == "samples" else _module(FUZZERS[fuzzer])
    case = module.make(choices)
    assert isinstance(case, Case)
    return case


def evaluated(expression: str) -> Case:
    """The case that its repr shows."""
    names = vocabulary() | vars(samples)
    if not expression.startswith("Sample("):
        for name in FUZZERS.values():
            names |= vars(_module(name))
    case = eval(expression, names)
    assert isinstance(case, Case)
    return case


def _module(name: str) -> ModuleType:
    return import_module(f"tests.fuzz.{name}")
