"""The one form of a graph: inputs, constants, views and operators, in the order in which they were added.

Every step makes tensors, which are numbered across all steps. Later steps name what they read by these
numbers. Front doors build this form through `Graph`. Saving, serializing and copying read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from opendml.errors import InvalidArgument
from opendml.late_dataclass import dataclass
from opendml.program.atoms import Relation
from opendml.program.sizes import value_at
from opendml.runtime.program import tensors_of
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.values import ScaleBias, Size2D

if TYPE_CHECKING:
    from opendml.runtime.memory.host_array import Array


@dataclass(frozen=True, slots=True)
class InputStep:
    """An input of the graph, by its position among all inputs.

    Args:
        position: the position.
        tensor: the tensor as operators read it.
        is_bfloat16: its elements are BFLOAT16 in memory; operators read FLOAT32.
    """

    position: int
    tensor: TensorDesc
    is_bfloat16: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ConstantStep:
    """A constant of the graph.

    Args:
        array: the values.
        tensor: reads the array as bytes; None: the tensor is the array.
        is_unchanging: nobody writes to the array.
        checksum: that of the values when a graph was compiled, if somebody may write to the array. Compiled
            graphs keep no copy: a model would hold its constants once more, only to save them later.
    """

    array: Array
    tensor: TensorDesc | None = None
    is_unchanging: bool = False
    checksum: int | None = None

    def values(self) -> Array:
        """Return the values that the graph was compiled with, in memory that is aligned to them.

        Raises:
            InvalidArgument: the array has other values now.
        """
        if self.checksum not in (None, _checksum(self.array)):
            raise InvalidArgument(
                f"constant: the {self.array.dtype} array of sizes {list(self.array.shape)} was written to "
                "after the graph was compiled; save the model before, or give the graph an array of its own"
            )
        return self.array if self.array.flags.aligned else self.array.copy("K")


@dataclass(frozen=True, slots=True)
class NumberStep:
    """A number, which fills the tensor that an operator reads it as."""

    value: float
    data_type: TensorDataType


@dataclass(frozen=True, slots=True)
class ViewStep:
    """A reinterpretation of a tensor.

    Args:
        of: the tensor.
        data_type: the type that its elements are read as.
        sizes: the sizes of the view.
        strides: elements from one index to the next, of any sign; None: packed.
        offset: the first element.
        of_bytes: False: strides and offset count elements of the packed tensor. True: they count in the
            memory of the tensor, laid out as its TensorDesc says.
    """

    of: int
    data_type: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    offset: int = 0
    of_bytes: bool = False


@dataclass(frozen=True, slots=True)
class RoundStep:
    """A tensor of FLOAT32 rounded to BFLOAT16, which it is stored as. Operators read it as FLOAT32."""

    of: int


@dataclass(frozen=True, slots=True)
class OperatorStep:
    """An operator of the graph, with the tensors that it reads.

    Args:
        desc: a valid desc.
        inputs: the tensor that each input of the desc reads, in the desc's order; None for an absent one. A
            tensor has the type and the sizes of the desc's, or NumPy's rules repeat it to these sizes.
        name: a name for debugging, such as "nodes[2:blur]".
    """

    desc: OperatorDesc
    inputs: tuple[int | None, ...]
    name: str = ""


Step = InputStep | ConstantStep | NumberStep | ViewStep | RoundStep | OperatorStep


@dataclass(frozen=True, slots=True)
class GraphData:
    """All that makes a graph.

    Args:
        feature_level: what its operators were checked against.
        inputs: the names of all inputs. One without a step is absent.
        steps: each after those that it reads.
        outputs: the numbers of the tensors that it computes, by name.
        dimensions: the least and the greatest size of each named dimension.
        choices: the guards that the program recorded that built the graph, and where.
    """

    feature_level: FeatureLevel
    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: Mapping[str, int]
    dimensions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    choices: Mapping[tuple[Relation, Any], str] = field(default_factory=dict)


def output_count(step: Step) -> int:
    """Return the number of tensors that a step makes."""
    if isinstance(step, OperatorStep):
        return sum(tensor is not None for tensor in tensors_of(step.desc, "OUTPUT_TENSOR"))
    return 1


def pruned(data: GraphData, keep_inputs: bool) -> GraphData:
    """Return the steps that the outputs need. Constants remember the values that they have now.

    Args:
        data: a graph.
        keep_inputs: also keep inputs that no step reads.
    """
    starts, total = list[int](), 0
    for step in data.steps:
        starts.append(total)
        total += output_count(step)
    ends = (*starts[1:], total)
    needed, kept = set(data.outputs.values()), list[tuple[range, Step]]()
    for start, end, step in reversed(list(zip(starts, ends, data.steps, strict=True))):
        if (keep_inputs and isinstance(step, InputStep)) or not needed.isdisjoint(range(start, end)):
            needed.update(_read(step))
            kept.append((range(start, end), step))
    kept.reverse()
    numbers = {old: new for new, old in enumerate(number for made, _ in kept for number in made)}
    outputs = {name: numbers[number] for name, number in data.outputs.items()}
    steps = tuple(_renumbered(step, numbers) for _, step in kept)
    return replace(data, steps=steps, outputs=outputs)


def resized(data: GraphData, sizes: Mapping[str, int]) -> GraphData:
    """Return a graph with other sizes of its dimensions, which may be of another trace. Nothing is checked.

    Args:
        data: a graph with traced sizes.
        sizes: sizes of dimensions by name.
    """

    def at(value: Any) -> Any:
        if isinstance(value, int | float):
            return value_at(value, sizes)
        if isinstance(value, tuple):
            return (
                type(value)(*map(at, value))
                if isinstance(value, Size2D | ScaleBias)
                else tuple(map(at, value))
            )
        if isinstance(value, TensorDesc):
            return TensorDesc(
                value.data_type,
                at(value.sizes),
                at(value.strides),
                value.flags,
                total_tensor_size_in_bytes=at(value.total_tensor_size_in_bytes),
                guaranteed_base_offset_alignment=value.guaranteed_base_offset_alignment,
            )
        if isinstance(value, OperatorDesc):
            return value._with(**{name: at(getattr(value, name)) for name in value.fields})
        if isinstance(value, InputStep | NumberStep | ViewStep | OperatorStep):
            return replace(value, **{each.name: at(getattr(value, each.name)) for each in fields(value)})
        return value

    return replace(data, steps=at(data.steps), dimensions={}, choices={})


def _read(step: Step) -> Iterator[int]:
    """Yield the tensors that a step reads."""
    match step:
        case ViewStep() | RoundStep():
            yield step.of
        case OperatorStep():
            yield from (number for number in step.inputs if number is not None)


def _renumbered(step: Step, numbers: Mapping[int, int]) -> Step:
    match step:
        case ViewStep() | RoundStep():
            return replace(step, of=numbers[step.of])
        case OperatorStep():
            inputs = tuple(None if number is None else numbers[number] for number in step.inputs)
            return replace(step, inputs=inputs)
        case ConstantStep(checksum=None, is_unchanging=False) if not _is_unchanging(step.array):
            return replace(step, checksum=_checksum(step.array))
        case _:
            return step


def _is_unchanging(array: Array) -> bool:
    """Return whether nobody can write to an array."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return isinstance(base, bytes)


def _checksum(array: Array) -> int:
    """Return a number that differs for arrays of different values, except for one in 2^32 by chance."""
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    return crc32(np.ascontiguousarray(array.transpose(order)).reshape(-1).view(np.uint8).data)
