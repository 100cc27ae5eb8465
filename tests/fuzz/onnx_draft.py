"""A random ONNX graph that is being made, node by node, and what it has so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.fuzz.choices import Choices

Array = np.ndarray[Any, Any]

FLOATS = tuple(map(np.dtype, (np.float32, np.float16, np.float64)))
INTEGERS = tuple(map(np.dtype, (np.int64, np.int32, np.uint8, np.int8, np.uint32, np.int16, np.uint16)))
INTEGERS += (np.dtype(np.uint64),)
BOOLEAN = np.dtype(np.bool_)
ANY = (*FLOATS, *INTEGERS, BOOLEAN)
NUMBERS = (*FLOATS, *INTEGERS)


@dataclass(frozen=True)
class Tensor:
    """A tensor of the graph.

    Attributes:
        content: what the graph makes of it, or is given.
        is_exact: every evaluator computes the same bits, so where a function jumps does not matter.
    """

    name: str
    content: Array
    is_exact: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.content.shape)

    @property
    def type(self) -> np.dtype[Any]:
        return np.dtype(self.content.dtype)


@dataclass
class Draft:
    """A graph that is being made.

    Attributes:
        nodes: in their order.
        tensors: all that nodes may read.
        inputs: those that a run is given.
        stored: the initializers.
        ends: outputs that no node reads, as nobody says ahead what they are.
        names: how many there are.
    """

    choices: Choices
    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    stored: list[Tensor] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    names: int = 0

    def name(self) -> str:
        """A new name of a tensor."""
        self.names += 1
        return f"t{self.names}"

    def computed(self, operator: str, inputs: Sequence[str], content: Array, **attributes: Any) -> str:
        """The name of what a node makes of tensors, exactly so."""
        tensor = Tensor(self.name(), content, True)
        self.nodes.append(helper.make_node(operator, inputs, [tensor.name], **attributes))
        self.tensors.append(tensor)
        return tensor.name

    def given(self, content: Array) -> Tensor:
        """A tensor that is an input, an initializer, both of them, or a node's attribute."""
        tensor = Tensor(self.name(), content, True)
        kind = self.choices.of(("input", "input", "stored", "stored", "constant", "both"))
        if kind == "constant":
            value = numpy_helper.from_array(content, tensor.name)
            self.nodes.append(helper.make_node("Constant", [], [tensor.name], value=value))
        if kind in ("input", "both"):
            self.inputs.append(tensor)
        if kind in ("stored", "both"):
            self.stored.append(tensor)
        self.tensors.append(tensor)
        return tensor

    def stored_one(self, content: Array) -> Tensor:
        """A tensor that is an initializer alone."""
        tensor = Tensor(self.name(), content, True)
        self.stored.append(tensor)
        self.tensors.append(tensor)
        return tensor

    def stored_list(self, values: Sequence[float] | Array, type: Any = np.int64) -> str:
        """The name of a tensor that says sizes, axes or the like."""
        return self.given(np.asarray(values, type)).name

    def pick(
        self, types: Sequence[np.dtype[Any]] = FLOATS, least: int = 0, most: int = 5, exact: bool = False
    ) -> Tensor:
        """A tensor of one of the types and of so many dimensions: mostly one that is there."""
        fitting = [
            each
            for each in self.tensors
            if each.type in types and least <= len(each.sizes) <= most and (each.is_exact or not exact)
        ]
        if fitting and not self.choices.rarely(4):
            return fitting[-1 - self.choices.below(min(len(fitting), 6))]
        type = self.choices.of(types) if self.choices.rarely(3) else types[0]
        return self.new([self.size() for _ in range(self.choices.between(max(least, 1), max(most, 1)))], type)

    def new(self, sizes: Sequence[int], type: Any = np.float32, least: int = -8, most: int = 8) -> Tensor:
        """A tensor of small numbers; of floats quarters, and rarely what is no number."""
        random = np.random.default_rng(self.choices.below(1 << 16))
        type = np.dtype(type)
        if type == BOOLEAN:
            return self.given(random.integers(0, 2, sizes).astype(bool))
        if type.kind == "u":
            least = max(least, 0)
        content = np.asarray(random.integers(least, most, sizes, endpoint=True))
        if type.kind != "f":
            return self.given(content.astype(type))
        content = np.asarray(content / 4, type)
        if content.size and self.choices.rarely(24):
            content.flat[random.integers(content.size)] = self.choices.of((np.inf, -np.inf, np.nan, -0.0))
        return self.given(content)

    def size(self) -> int:
        """Of a dimension."""
        return self.choices.of((2, 3, 1, 4, 5, 7, 1, 17) if not self.choices.rarely(60) else (0,))

    def axis(self, rank: int) -> int:
        """An axis, counted from either end."""
        return self.choices.between(-rank, rank - 1) if rank else 0

    def like(self, sizes: Sequence[int], type: Any) -> Tensor:
        """A tensor that is broadcast to these sizes: one that is there, or one of them with some of 1."""
        fitting = [
            each for each in self.tensors if each.type == type and _is_broadcast(each.sizes, tuple(sizes))
        ]
        if fitting and self.choices.below(2):
            return self.choices.of(fitting[::-1])
        some = [1 if self.choices.rarely(4) else size for size in sizes]
        return self.new(some[self.choices.below(len(some) + 1) :], type)


def _is_broadcast(sizes: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(sizes, to) == to
    except ValueError:
        return False


@dataclass(frozen=True)
class Made:
    """A node to be.

    Attributes:
        operator: ONNX's name of it.
        inputs: the names of tensors.
        attributes: by name.
        is_exact: all evaluators agree on each bit.
        outputs: how many.
        domain: of the operator.
    """

    operator: str
    inputs: Sequence[str]
    attributes: dict[str, Any]
    is_exact: bool = False
    outputs: int = 1
    domain: str = ""
