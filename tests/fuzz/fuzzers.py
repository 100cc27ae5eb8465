"""The fuzzers by name, each a module whose `make` is a function from choices to a case."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz import (
    aliasing,
    calls,
    descs,
    expressions,
    faults,
    graphs,
    growth,
    large,
    models,
    neighbours,
    onnx_graphs,
    onnx_models,
    onnx_sizes,
    peers,
    samples,
    saved,
    serialized,
)
from tests.fuzz.case import Case, vocabulary
from tests.fuzz.choices import Choices

FUZZERS: dict[str, Callable[[Choices], Case]] = {
    "descs": descs.make,
    "large": large.make,
    "aliasing": aliasing.make,
    "expressions": expressions.make,
    "graphs": graphs.make,
    "growth": growth.make,
    "neighbours": neighbours.make,
    "calls": calls.make,
    "models": models.make,
    "nodes": onnx_graphs.make,
    "onnx": onnx_models.make,
    "peers": peers.make,
    "sizes": onnx_sizes.make,
    "saved": saved.make,
    "serialized": serialized.make,
    "faults": faults.make,
}
_MODULES = (
    aliasing,
    calls,
    descs,
    expressions,
    faults,
    graphs,
    growth,
    large,
    models,
    neighbours,
    onnx_graphs,
    onnx_models,
    onnx_sizes,
    peers,
    samples,
    saved,
    serialized,
)


def made(fuzzer: str, choices: Choices) -> Case:
    """A case of a fuzzer, or of the samples that its machinery is tried with."""
    make = samples.make if fuzzer == "samples" else FUZZERS[fuzzer]
    return make(choices)


def evaluated(expression: str) -> Case:
    """The case that its repr shows."""
    names = vocabulary()
    for module in _MODULES:
        names |= vars(module)
    case = eval(expression, names)
    assert isinstance(case, Case)
    return case
