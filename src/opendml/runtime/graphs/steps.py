"""The steps by which a graph was built, which build it again: what a model is saved as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.runtime.graphs.indexing import Window
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.operator_desc import OperatorDesc

if TYPE_CHECKING:
    from opendml.runtime.memory.host_array import Array


@dataclass(frozen=True, slots=True)
class Reference:
    """A tensor of the graph, by its number: the steps make them in their order."""

    number: int


@dataclass(frozen=True, slots=True)
class InputStep:
    """An input of the graph. Strides count elements."""

    name: str
    data_type: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class ConstantStep:
    """A tensor whose values are known. `is_unchanging`: nobody writes to the array."""

    array: Array
    is_unchanging: bool = False

    @property
    def aligned(self) -> Array:
        """The values in memory that is aligned to them; in files they may lie anywhere."""
        return self.array if self.array.flags.aligned else self.array.copy("K")


@dataclass(frozen=True, slots=True)
class Reinterpretation:
    """The elements of a tensor in other sizes (`GraphTensor.reinterpret`)."""

    of: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Slicing:
    """A window of a tensor."""

    of: int
    window: Window


@dataclass(frozen=True, slots=True)
class OperatorStep:
    """A call of an operator.

    Args:
        name: DirectML's name of the operator.
        tensors: for each input field what was given: a tensor, a number, None, or a tuple of such.
        attributes: in the desc's order, without counts.
        output_type: as of `call`.
        sizes: as of `call`.
        wanted: the optional outputs that the call asks for, by their Python names.
        count: the outputs that it has.
        desc: what the call means, over packed tensors.
    """

    name: str
    tensors: tuple[Any, ...]
    attributes: tuple[Any, ...]
    output_type: TensorDataType | None
    sizes: Any
    wanted: frozenset[str]
    count: int
    desc: OperatorDesc


Step = InputStep | ConstantStep | Reinterpretation | Slicing | OperatorStep


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that builds a graph: the steps, and the numbers of the tensors that it computes, by name."""

    feature_level: FeatureLevel
    steps: tuple[Step, ...]
    outputs: Mapping[str, int]


def recipe_of(feature_level: FeatureLevel, steps: Sequence[Step], outputs: Mapping[str, int]) -> Recipe:
    """The recipe of the tensors with these numbers: all inputs, and what else leads to them. Constants keep
    the values that they have now."""
    starts, total = list[int](), 0
    for step in steps:
        starts.append(total)
        total += _count(step)
    needed = set(outputs.values())
    kept = list[tuple[int, Step]]()
    for start, step in reversed(list(zip(starts, steps, strict=True))):
        if isinstance(step, InputStep) or not needed.isdisjoint(range(start, start + _count(step))):
            needed.update(_read(step))
            kept.append((start, step))
    numbers = dict[int, int]()
    for start, step in reversed(kept):
        for position in range(_count(step)):
            numbers[start + position] = len(numbers)
    renumbered = tuple(_renumbered(step, numbers) for _, step in reversed(kept))
    return Recipe(feature_level, renumbered, {name: numbers[number] for name, number in outputs.items()})


def _count(step: Step) -> int:
    return step.count if isinstance(step, OperatorStep) else 1


def _read(step: Step) -> Iterator[int]:
    """The tensors that a step needs."""
    if isinstance(step, Reinterpretation | Slicing):
        yield step.of
    elif isinstance(step, OperatorStep):
        for given in step.tensors:
            for each in given if isinstance(given, tuple) else (given,):
                if isinstance(each, Reference):
                    yield each.number


def _renumbered(step: Step, numbers: Mapping[int, int]) -> Step:
    def of(given: Any) -> Any:
        if isinstance(given, tuple):
            return tuple(map(of, given))
        return Reference(numbers[given.number]) if isinstance(given, Reference) else given

    match step:
        case Reinterpretation() | Slicing():
            return replace(step, of=numbers[step.of])
        case OperatorStep():
            return replace(step, tensors=tuple(map(of, step.tensors)))
        case ConstantStep():
            return step if step.is_unchanging else ConstantStep(_kept(step.array))
        case _:
            return step


def _kept(array: Array) -> Array:
    """The array, or a copy in the same order of dimensions where somebody could still write to it."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return array.copy("K")
        base = base.base
    return array if isinstance(base, bytes) else array.copy("K")
