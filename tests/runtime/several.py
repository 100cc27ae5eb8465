"""Small definitions of operators with several outputs or lists of tensors, in place of the real ones: they
show that such calls are made right, whatever the operators compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opendml.operators import registry
from opendml.program.functions import equal, reduce_sum, select
from opendml.program.node import Node, constant, convert, element_number, position
from opendml.program.scalar_type import ScalarType
from opendml.runtime.calls import immediate
from opendml.runtime.calls.plans import Plans
from opendml.spec.tensor_desc import TensorDesc


def split(x: Node, *, axis: int, output: tuple[TensorDesc, ...]) -> tuple[Node, ...]:
    """Parts of size 1."""
    assert all(part.sizes[axis] == 1 for part in output)
    index = position(x.sizes, [axis])
    return tuple(reduce_sum(select(equal(index, i), x, 0), [axis]) for i in range(len(output)))


def join(parts: tuple[Node, ...], *, axis: int) -> Node:
    """Parts of size 1."""
    sizes = [len(parts) if i == axis else size for i, size in enumerate(parts[0].sizes)]
    index, result = position(sizes, [axis]), parts[0]
    for number, part in enumerate(parts[1:], 1):
        result = select(equal(index, number), part, result)
    return result


def top_k1(x: Node, **attributes: Any) -> tuple[Node, Node]:
    """All of a line that is sorted already."""
    return x, position(x.sizes, [attributes["axis"]])


def max_pooling2(x: Node, *, output: tuple[TensorDesc | None, ...], **attributes: Any) -> tuple[Node, ...]:
    """With windows of one element."""
    number = convert(element_number(x.sizes), ScalarType.UINT32)
    return (x, number) if output[1] else (x,)


def rnn(
    *inputs: Node | None, output: tuple[TensorDesc | None, TensorDesc | None], **attributes: Any
) -> tuple[Node, ...]:
    """The number of each output that is there."""
    return tuple(constant(number, ScalarType.FLOAT32) for number, tensor in enumerate(output) if tensor)


def adam_optimizer(p: Node, m: Node, v: Node, g: Node, step: Node, **attributes: Any) -> tuple[Node, ...]:
    """Each output of its own input and the gradient."""
    return p - g, m + g, v + g * g


def dequantize(x: Node, quantization: tuple[Node, ...], **attributes: Any) -> Node:
    """(x - zero point) * scale"""
    scale, *zero_point = quantization
    numbers = [convert(each, ScalarType.FLOAT32) for each in (x, *zero_point)]
    return (numbers[0] - numbers[1] if zero_point else numbers[0]) * scale


def resample3(x: Node, *, output: TensorDesc, **attributes: Any) -> Node:
    """The number of each element."""
    return convert(element_number(output.sizes), ScalarType.FLOAT32)


DEFINITIONS: dict[str, tuple[Callable[..., Any], bool]] = {
    "SPLIT": (split, True),
    "JOIN": (join, False),
    "TOP_K1": (top_k1, False),
    "MAX_POOLING2": (max_pooling2, True),
    "RNN": (rnn, True),
    "ADAM_OPTIMIZER": (adam_optimizer, False),
    "DEQUANTIZE": (dequantize, False),
    "RESAMPLE3": (resample3, True),
}
"""Definitions, and whether they ask for the outputs."""


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defines these operators, and forgets what calls of them compiled to."""
    registry.implemented()
    for name, (function, output) in DEFINITIONS.items():
        registered = registry._Registered(function, stored=False, output=output)
        monkeypatch.setitem(registry._definitions, name, registered)
    monkeypatch.setattr(immediate, "_plans", Plans())
