"""Limits on nodes outside of DirectML, checked before anything allocates or computes.

A number in a tensor may ask for any size. Systems hand out memory that they do not have, and kill a process
that writes to it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from opendml.budget import meter
from opendml.frontends.onnx.element_types import dtype_of
from opendml.frontends.onnx.evaluator_facts import (
    POINTER_BYTES,
    ResultSize,
    facts_of,
    sizes_of,
    weights_input,
)
from opendml.frontends.onnx.inference import inferred_outputs
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.values import Known, KnownSizes, Value, sizes_of_type
from opendml.program.sizes import hint_of

Results = Mapping[str, ResultSize]
"""Sizes of results and bytes of each of their elements, by name."""

_PYTHON_STEPS = 1000  # Steps of an element that Python loops over, relative to NumPy's loops.
_BROADCASTING = frozenset(
    ("Add", "And", "Div", "Equal", "Greater", "Less", "Max", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum")
) | {"Where", "Xor"}
_LIKE_FIRST = frozenset({"BatchNormalization", "InstanceNormalization", "LayerNormalization"})
_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
_WINDOWED = frozenset({"AveragePool", "Conv", "MaxPool"})
_COPIED_BYTES = 8  # Bytes of an element that the evaluator copies on the way to a result.


def require_memory(node: OnnxNode, values: Mapping[str, Value]) -> None:
    """Check the sizes of a node's results, where they are known.

    Raises:
        LimitExceeded: a result has more elements or bytes than the model may have.
    """
    if node.domain or not _may_exceed(node, values):
        return
    for name, (sizes, width) in results_of(node, values).items():
        meter().require_tensor(sizes, width, f"{node}: output {name!r} of sizes {list(sizes)}")


def results_of(
    node: OnnxNode, values: Mapping[str, Value], inferred: Mapping[str, onnx.TypeProto] | None = None
) -> Results:
    """Return the sizes of a node's results and the bytes of their elements, as far as they are known.

    Args:
        values: the values of the tensors that it reads.
        inferred: the results of ONNX's inference; None: it is called.
    """
    types = inferred_outputs(node, values) if inferred is None else inferred
    found = {name: known for name, type in types.items() if (known := _inferred(type)) is not None}
    name, known = next(iter(node.outputs), ""), _size_by_rule(node, values)
    if known is not None and name:
        sizes, width = known
        found[name] = sizes, width or found.get(name, ((), POINTER_BYTES))[1]
    return found


def _size_by_rule(node: OnnxNode, values: Mapping[str, Value]) -> ResultSize | None:
    """Return the size of the first result by the rule of its operator; None: unknown, or there is no rule."""
    rule = None if node.domain else facts_of(node).size
    if rule is None:
        return None
    given = [values.get(each) if each else None for each in node.inputs]
    try:
        return rule(
            node, [None if each is None else each.sizes for each in given], [_content(each) for each in given]
        )
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None  # The inputs do not have the types and sizes that the operator takes.


def _content(value: Value | None) -> Any:
    """Return a known content, with sizes that change as they are."""
    if isinstance(value, KnownSizes):
        return value.elements
    return value.content if isinstance(value, Known) else None


def _inferred(type: onnx.TypeProto) -> ResultSize | None:
    element, sizes = type.tensor_type.elem_type, sizes_of_type(type)
    if not element or sizes is None:
        return None
    is_text = element == onnx.TensorProto.STRING
    width = POINTER_BYTES if is_text else dtype_of(element).itemsize
    numbers = tuple(size for size in sizes if isinstance(size, int))
    return (numbers, width) if len(numbers) == len(sizes) else None


def _may_exceed(node: OnnxNode, values: Mapping[str, Value]) -> bool:
    """Return whether a result may exceed a limit, by a bound that needs no inference."""
    given = [values.get(name) for name in node.inputs if name]
    sizes = [
        None if value is None or value.sizes is None else tuple(map(hint_of, value.sizes)) for value in given
    ]
    bound, limits = _bound_of(node, sizes), meter()
    if bound is None and facts_of(node).grows:
        known = _size_by_rule(node, values)
        if known is None:
            return True
        bound = math.prod(map(hint_of, known[0]))
    count = _product(sizes) if bound is None else bound
    return count > limits.limits.tensor_elements or 8 * count + limits.held > limits.limits.memory_bytes


def most_elements(node: OnnxNode, sizes: Sequence[tuple[int, ...] | None]) -> int:
    """Return a bound of the elements of each result of a node that makes no more than it reads, but for
    broadcasting.

    Args:
        sizes: those of the inputs; None: unknown.
    """
    found = _bound_of(node, sizes)
    return _product(sizes) if found is None else found


def _product(sizes: Sequence[tuple[int, ...] | None]) -> int:
    """Return the product of the elements of all tensors that have some."""
    return math.prod(count for each in sizes if each is not None and (count := math.prod(each)))


def _bound_of(node: OnnxNode, sizes: Sequence[tuple[int, ...] | None]) -> int | None:
    """Return what `_bound` does; None: a size is unknown, too."""
    known = [each for each in sizes if each is not None]
    try:
        return _bound(node, *known) if len(known) == len(sizes) > 0 else None
    except (LookupError, TypeError, ValueError):  # The node does not fit its operator.
        return None


def _bound(node: OnnxNode, first: tuple[int, ...], *others: tuple[int, ...]) -> int | None:
    """Return a bound of the elements of each result for common operators; None: another operator."""
    operator = node.operator
    if operator in _BROADCASTING:
        return _broadcast_count(first, *others)
    if operator in _LIKE_FIRST:
        return math.prod(first)
    if operator == "MatMul":
        rows, columns = first[-2:-1] or (1,), others[0][-1:] if len(others[0]) > 1 else (1,)
        return _broadcast_count(first[:-2], others[0][:-2]) * rows[0] * columns[0]
    if operator == "Gemm":
        return max(first) * max(others[0])
    if operator == "Gather":
        axis: int = node.attributes.get("axis", 0)
        return math.prod(first) // max(1, first[axis]) * math.prod(others[0])
    if operator == "Concat":
        return sum(map(math.prod, (first, *others)))
    if operator in _RECURRENT:
        return math.prod((*first[:2], *others[0][:2]))
    if operator in _WINDOWED:
        pads: Sequence[int] = node.attributes.get("pads", ())
        margin = 1 + sum(max(0, each) for each in pads)
        channels = others[0][0] if operator == "Conv" else first[1]
        return first[0] * channels * math.prod(size + margin for size in first[2:])
    return None


def _broadcast_count(*sizes: tuple[int, ...]) -> int:
    return math.prod(max(each) for each in zip_longest(*(reversed(each) for each in sizes), fillvalue=1))


def require_work(node: OnnxNode, contents: Mapping[str, Any], results: Results) -> None:
    """Check the memory and count the steps of a node on the evaluator.

    Args:
        contents: the contents of the tensors that it reads, by name.
        results: the known sizes of its results.

    Raises:
        LimitExceeded: the node takes more than the model may.
    """
    facts, given = facts_of(node), [contents.get(name) if name else None for name in node.inputs]
    read, written = sum(elements_of(each) for each in given), 0
    for name, (sizes, width) in results.items():
        meter().require_tensor(sizes, width, f"{node}: output {name!r} of sizes {list(sizes)}")
        written += math.prod(sizes)
    factor = 1 if facts.steps is None else facts.steps(node, given)
    if facts.copies_windows:
        windows = written // max(1, sizes_of(given[weights_input(node)])[0])
        meter().require_memory(windows * factor * _COPIED_BYTES, f"{node} on onnx's evaluator")
    steps = (read + max(written, 1) * factor) * (_PYTHON_STEPS if facts.in_python else 1)
    meter().count("evaluator_steps", steps, f"{node} on onnx's evaluator")


def elements_of(content: Any) -> int:
    """Return the elements of a tensor, or of all tensors of a sequence."""
    if isinstance(content, list):
        return len(content) + sum(map(elements_of, content))
    return int(np.size(content)) if isinstance(content, np.ndarray) else 1


def bytes_of(content: Any) -> int:
    """Return the bytes of a tensor with its strings, or of all tensors of a sequence."""
    if isinstance(content, list):
        return 8 * len(content) + sum(map(bytes_of, content))
    if not isinstance(content, np.ndarray):
        return sys.getsizeof(content)
    if not content.dtype.hasobject:
        return content.nbytes
    strings = {id(each): each for each in content.flat}
    return content.nbytes + sum(map(sys.getsizeof, strings.values()))
