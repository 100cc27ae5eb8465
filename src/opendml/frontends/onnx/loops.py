"""Loops: `Loop`, `Scan` and `SequenceMap`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opendml.budget import meter
from opendml.errors import InvalidArgument
from opendml.frontends.onnx.element_types import dtype_of
from opendml.frontends.onnx.evaluator_limits import bytes_of
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.values import Array

_TRIP_STEPS = 1000
"""Steps of one trip beside those of its nodes: NumPy handles this many elements in the time of a trip."""

Body = Callable[[Sequence[Any]], Sequence[Any]]
"""Runs the body of a loop once, on its inputs in order."""

Loop = Callable[[Mapping[str, Any]], list[Any]]
"""Returns the outputs of a loop in order, for the contents of tensors by name."""


def is_loop(node: OnnxNode) -> bool:
    """Return whether a node is a loop."""
    return not node.domain and node.operator in ("Loop", "Scan", "SequenceMap")


def loop_of(node: OnnxNode, body: Body) -> Loop:
    """Return the function that runs a loop around its body."""

    def trip(given: Sequence[Any]) -> Sequence[Any]:
        limits = meter()
        limits.count("evaluator_steps", _TRIP_STEPS, node)
        limits.check_time()
        held = limits.held
        results = body(given)
        limits.held = held  # `_append` counts the results that stay.
        return results

    def run(contents: Mapping[str, Any]) -> list[Any]:
        given = [contents[name] if name else None for name in node.inputs]
        with meter().timed("evaluator_seconds", node):
            if node.operator == "Loop":
                return _loop(node, trip, given)
            if node.operator == "SequenceMap":
                return _mapped(node, trip, given)
            return _scan(node, trip, given) if node.version >= 9 else _scan_of_batches(node, trip, given)

    return run


def _loop(node: OnnxNode, body: Body, given: Sequence[Any]) -> list[Any]:
    """Run the body for the trip count and while the condition holds."""
    count, condition, *state = [*given, None, None][: max(2, len(given))]
    graph = node.attributes["body"]
    most = None if count is None else int(np.asarray(count).reshape(()))
    going = condition is None or bool(np.all(condition))
    stacks: list[list[Any]] = [[] for _ in graph.output[1 + len(state) :]]
    trip = 0
    while going and (most is None or trip < most):
        results = body([np.array(trip, np.int64), np.array(going), *state])
        going, state = bool(np.all(results[0])), list(results[1 : 1 + len(state)])
        _append(stacks, results[1 + len(state) :])
        trip += 1
    declared = graph.output[1 + len(state) :]
    stacked = [_stacked(stack, 0, each) for stack, each in zip(stacks, declared, strict=True)]
    return [*state, *stacked]


def _mapped(node: OnnxNode, body: Body, given: Sequence[Any]) -> list[Any]:
    """Run the body for each element of the first sequence and the same element of the others."""
    stacks: list[list[Any]] = [[] for _ in node.attributes["body"].output]
    for number in range(len(given[0])):
        _append(stacks, body([each[number] if isinstance(each, list) else each for each in given]))
    return [*stacks]


def _scan(node: OnnxNode, body: Body, given: Sequence[Any]) -> list[Any]:
    """Run the body along an axis of each scanned input."""
    state, scanned = _state_and_scanned(node, given)
    axes = node.attributes.get("scan_input_axes") or [0] * len(scanned)
    lines = [np.moveaxis(x, axis, 0) for x, axis in zip(scanned, axes, strict=True)]
    lengths = {len(line) for line in lines}
    if len(lengths) != 1:
        raise InvalidArgument(f"{node}: scanned inputs of lengths {sorted(lengths)}; must be equal")
    return _scanned(node, body, state, lines, "scan_input_directions")


def _scan_of_batches(node: OnnxNode, body: Body, given: Sequence[Any]) -> list[Any]:
    """Run `Scan` version 8, which takes each sequence of a batch up to its own length."""
    lengths, *rest = given
    state, scanned = _state_and_scanned(node, rest)
    batch, longest = scanned[0].shape[:2]
    columns: list[list[Any]] = [[] for _ in node.attributes["body"].output]
    for index in range(batch):
        lines = [x[index][: longest if lengths is None else int(lengths[index])] for x in scanned]
        results = _scanned(node, body, [each[index] for each in state], lines, "directions")
        for number, each in enumerate(results[len(state) :], len(state)):  # Zeros follow the end.
            results[number] = np.pad(each, [(0, longest - len(each)), *[(0, 0)] * (each.ndim - 1)])
        _append(columns, results)
    return [*map(np.stack, columns)]


def _state_and_scanned(node: OnnxNode, given: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    first = len(given) - int(node.attributes["num_scan_inputs"])
    return list(given[:first]), list(given[first:])


def _scanned(node: OnnxNode, body: Body, state: list[Any], lines: list[Array], directions: str) -> list[Any]:
    """Run the body along the first axis of lines, and return the last state and the stacked outputs.

    Args:
        directions: the attribute that says which lines go backwards.
    """
    attributes, declared = node.attributes, node.attributes["body"].output[len(state) :]
    backwards = attributes.get(directions) or [0] * len(lines)
    stacks: list[list[Any]] = [[] for _ in declared]
    ordered = (line[::-1] if back else line for line, back in zip(lines, backwards, strict=True))
    for elements in zip(*ordered, strict=True):
        results = body([*state, *map(np.asarray, elements)])
        state = list(results[: len(state)])
        _append(stacks, results[len(state) :])
    axes = attributes.get("scan_output_axes") or [0] * len(stacks)
    backwards = attributes.get("scan_output_directions") or [0] * len(stacks)
    outputs = zip(stacks, backwards, axes, declared, strict=True)
    return [*state, *(_stacked(stack[::-1] if back else stack, *rest) for stack, back, *rest in outputs)]


def _append(stacks: Sequence[list[Any]], elements: Sequence[Any]) -> None:
    for stack, element in zip(stacks, elements, strict=True):
        meter().hold(bytes_of(element), "what the trips of a loop give out")
        stack.append(element)


def _stacked(elements: Sequence[Array], axis: int, declared: onnx.ValueInfoProto) -> Array:
    """Stack elements along a new axis; without elements, use the declared type and sizes (0 if unknown)."""
    if elements:
        return np.stack(elements, axis)
    tensor = declared.type.tensor_type
    type = dtype_of(tensor.elem_type or onnx.TensorProto.FLOAT)
    sizes = [each.dim_value for each in tensor.shape.dim]
    sizes.insert(axis if axis >= 0 else axis + len(sizes) + 1, 0)
    return np.zeros(sizes, type)
