"""Lower the steps of a graph to programs.

All operators become one program, which the compiler fuses. A view moves elements within that program. If no
movement of elements gives the bytes that a view reads, the tensor is stored, and a second program loads it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import field

from opendml.late_dataclass import dataclass
from opendml.operators.registry import define
from opendml.program.node import Node, Operation, bitcast, convert, expanded, ordered, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import are_same, hint_of, is_unit
from opendml.program.view import permuted, repeated, reshaped, sliced, view
from opendml.runtime.graphs.steps import ViewStep
from opendml.runtime.graphs.work import Watched, Work, WorkStage
from opendml.runtime.objects.tensor_fields import tensor_fields
from opendml.runtime.program import buffer_layout_of, layout_of, loaded, stored, tensors_of
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc, packed_strides


@dataclass(frozen=True, slots=True, eq=False)
class StagedValue:
    """A tensor of a graph within its programs.

    Args:
        node: the tensor in the program of its stage.
        tensor: how its bytes lie where it is stored.
        stage: the number of the program.
        buffer: the buffer that it is loaded from; None: it is computed.
        layout: how that is loaded.
        rounded: the same numbers as BFLOAT16, which the tensor has in memory; None: memory has its own type.
    """

    node: Node
    tensor: TensorDesc
    stage: int = 0
    buffer: int | None = None
    layout: Layout | None = None
    rounded: Node | None = None


@dataclass(slots=True)
class _Stage:
    """A program under construction. Buffers of stored tensors have negative numbers."""

    inputs: list[Layout] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    """The buffers of the inputs."""
    outputs: list[Layout] = field(default_factory=list)
    results: list[Node] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    sources: dict[tuple[int, Layout], Node] = field(default_factory=dict)

    def load(self, buffer: int, layout: Layout) -> Node:
        """Return the source that reads a buffer with a layout."""
        if (buffer, layout) not in self.sources:
            self.sources[buffer, layout] = source(len(self.inputs), layout.type, layout.sizes)
            self.inputs.append(layout)
            self.read.append(buffer)
        return self.sources[buffer, layout]


class Stages:
    """The programs of a graph, extended by every step.

    Args:
        in_buffers: elements of 4 bits share bytes in memory, as in DirectML's buffers; False: each has a
            byte, as in NumPy's arrays.
    """

    def __init__(self, in_buffers: bool) -> None:
        self.in_buffers = in_buffers
        self.buffers: list[Layout] = []
        """The memory of inputs and constants."""
        self._stages = [_Stage()]
        self._stored: dict[StagedValue, int] = {}
        self._between: list[int] = []
        """The bytes of stored tensors."""

    def source(
        self, tensor: TensorDesc, layout: Layout | None = None, memory: Layout | None = None
    ) -> StagedValue:
        """Add an input or a constant.

        Args:
            tensor: the tensor.
            layout: how it is loaded; None: as the tensor says.
            memory: the layout of its buffer; None: `layout`.
        """
        layout = layout or self._layout(tensor)
        self.buffers.append(memory or layout)
        return self._load(0, len(self.buffers) - 1, layout, tensor)

    def rounded(self, value: StagedValue) -> StagedValue:
        """Return a tensor of FLOAT32 rounded to BFLOAT16."""
        if value.rounded is not None:
            return value
        rounded = _as_bfloat16(value.node)
        return StagedValue(convert(rounded, value.node.type), value.tensor, value.stage, rounded=rounded)

    def operator(
        self, desc: OperatorDesc, values: Sequence[StagedValue | None], name: str
    ) -> list[StagedValue]:
        """Add an operator, and return the outputs that are present.

        Raises:
            Unsupported: the operator cannot be run.
        """
        number = max((value.stage for value in values if value is not None), default=0)
        tensors = tensors_of(desc, "INPUT_TENSOR")
        nodes = [
            None
            if value is None or tensor is None
            else _with_rank(self._node(value, number), len(tensor.sizes))
            for value, tensor in zip(values, tensors, strict=True)
        ]
        outputs = [
            (field, field.tensor)
            for field in tensor_fields(desc, "OUTPUT_TENSOR")
            if field.tensor is not None
        ]
        results = [
            _with_sizes(node, tensor.sizes)
            for node, (_, tensor) in zip(
                define(desc, nodes, [ScalarType.of(tensor.data_type) for _, tensor in outputs]),
                outputs,
                strict=True,
            )
        ]
        prefix = f"{name}.{desc.operator}" if name else desc.operator
        self._stages[number].watched += [
            Watched(f"{prefix}.{field.name}", desc.operator, field.name, node, tensor.sizes)
            for (field, tensor), node in zip(outputs, results, strict=True)
        ]
        return [StagedValue(node, tensor, number) for (_, tensor), node in zip(outputs, results, strict=True)]

    def view(self, value: StagedValue, view: ViewStep) -> StagedValue | None:
        """Add a view. Return None if it leaves the tensor's elements."""
        given = packed(value.node.type, value.tensor.sizes)
        tensor = TensorDesc(view.data_type, view.sizes)
        if (window := window_of(given.sizes, view)) is not None:
            if not value.node.sizes:
                return StagedValue(value.node, tensor, value.stage)
            return StagedValue(sliced(value.node, window[0], view.sizes, window[1]), tensor, value.stage)
        if view.offset or any(stride < 0 for stride in view.strides or ()):
            return None
        read = tensor if view.strides is None else TensorDesc(view.data_type, view.sizes, view.strides)
        layout = layout_of(read)
        if not view.of_bytes:
            if layout.span[1] > given.element_count * given.type.bytes:
                return None
            # Every element of a number is the number.
            moved = reinterpreted(value.node, given, layout) or value.node
            return StagedValue(moved, tensor, value.stage)
        if read.size_in_bytes > value.tensor.size_in_bytes:
            return None
        if value.buffer is not None and value.rounded is None:
            layout = buffer_layout_of(read) if value.buffer < 0 else self._layout(read)
            return self._load(value.stage, value.buffer, layout, read)
        node = reinterpreted(value.node, layout_of(value.tensor), layout)
        if node is not None:
            return StagedValue(node, read, value.stage)
        if value.stage + 1 == len(self._stages):
            self._stages.append(_Stage())
        return self._load(value.stage + 1, self._store(value), buffer_layout_of(read), read)

    def _layout(self, tensor: TensorDesc) -> Layout:
        return buffer_layout_of(tensor) if self.in_buffers else layout_of(tensor)

    def _load(self, stage: int, buffer: int, layout: Layout, tensor: TensorDesc) -> StagedValue:
        node = self._stages[stage].load(buffer, layout)
        if layout.type is ScalarType.BFLOAT16:
            return StagedValue(convert(node, ScalarType.FLOAT32), tensor, stage, buffer, layout, node)
        node = loaded(tensor, node) if self.in_buffers or buffer < 0 else node
        return StagedValue(node, tensor, stage, buffer, layout)

    def _node(self, value: StagedValue, stage: int) -> Node:
        """Return a value in the program of a stage."""
        if value.stage == stage or value.node.operation is Operation.CONSTANT:
            return value.node
        if value.buffer is not None and value.layout is not None:
            return self._load(stage, value.buffer, value.layout, value.tensor).node
        return self._load(stage, self._store(value), buffer_layout_of(value.tensor), value.tensor).node

    def _store(self, value: StagedValue) -> int:
        """Return the buffer through which later stages read a value."""
        if value not in self._stored:
            self._stored[value] = ~len(self._between)
            self._between.append(value.tensor.size_in_bytes)
            stage = self._stages[value.stage]
            stage.outputs.append(buffer_layout_of(value.tensor))
            stage.results.append(stored(value.tensor, value.node))
            stage.written.append(self._stored[value])
        return self._stored[value]

    def work(self, outputs: Sequence[StagedValue], fixed: Collection[int], only_needed: bool) -> Work:
        """Return the programs that compute some tensors, packed unless the graph is over buffers.

        Args:
            outputs: the tensors.
            fixed: the buffers of inputs and constants that keep their content.
            only_needed: leave out what the outputs do not need: constants, and what is watched.
        """
        nodes = [value.node if value.rounded is None else value.rounded for value in outputs]
        layouts = [
            buffer_layout_of(value.tensor) if self.in_buffers else packed(node.type, value.tensor.sizes)
            for value, node in zip(outputs, nodes, strict=True)
        ]
        if self.in_buffers:
            nodes = [stored(value.tensor, value.node) for value in outputs]
        first = len(self.buffers)
        stages = []
        for number, stage in enumerate(self._stages):
            own = [position for position, value in enumerate(outputs) if value.stage == number]
            results = (*stage.results, *(nodes[position] for position in own))
            known = [position for position, buffer in enumerate(stage.read) if buffer in fixed]
            watched = stage.watched
            if only_needed:
                needed = ordered(results)
                read = {node.attribute for node in needed if node.operation is Operation.SOURCE}
                known = [position for position in known if position in read]
                identities = set(map(id, needed))
                watched = [each for each in watched if id(each.node) in identities]
            layouts_of_stage = (*stage.outputs, *(layouts[position] for position in own))
            program = Program(tuple(stage.inputs), layouts_of_stage, results, frozenset(known))
            buffers = [*stage.read, *stage.written, *(first + position for position in own)]
            numbers = tuple(each if each >= 0 else first + len(outputs) + ~each for each in buffers)
            stages.append(WorkStage(program, numbers, tuple(watched)))
        return Work(tuple(self.buffers), tuple(layouts), tuple(stages), tuple(self._between))


def _as_bfloat16(node: Node) -> Node:
    """Return a tensor as BFLOAT16. One that is made of BFLOAT16 by moving its elements needs no rounding."""
    if node.operation is Operation.CONVERT and node.operands[0].type is ScalarType.BFLOAT16:
        return node.operands[0]
    is_moved = node.operation in (Operation.VIEW, Operation.RESHAPE) and len(node.operands) == 1
    if is_moved or node.operation is Operation.JOIN:
        moved = tuple(map(_as_bfloat16, node.operands))
        return Node(node.operation, ScalarType.BFLOAT16, node.sizes, moved, node.attribute)
    return convert(node, ScalarType.BFLOAT16)


def _with_rank(node: Node, rank: int) -> Node:
    """Return the node with leading dimensions of size 1. A number stays one."""
    missing = rank - len(node.sizes)
    return reshaped(node, (1,) * missing + node.sizes) if node.sizes and missing else node


def _with_sizes(node: Node, sizes: tuple[int, ...]) -> Node:
    """Return the node with the sizes of its tensor.

    A result lacks them where all operands do: it is a number that fills the tensor, or all of them are
    repeated beside such a number.
    """
    return expanded(node, sizes) if are_same(node.sizes, sizes) or not node.sizes else repeated(node, sizes)


def window_of(sizes: tuple[int, ...], view: ViewStep) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the first index and the steps of a view that selects a range of indices of every dimension."""
    if view.of_bytes or view.strides is None or len(view.sizes) != len(sizes):
        return None
    first, steps, rest = list[int](), list[int](), view.offset
    for size, step, count, stride in zip(sizes, packed_strides(sizes), view.sizes, view.strides, strict=True):
        begin, rest = divmod(rest, step)
        by, gap = (1, 0) if is_unit(count) else divmod(stride, step)
        # Without a guard: a view that is none in the traced run serves sizes for which it would be one.
        if hint_of(gap) or not hint_of(by):
            return None
        if gap or not by or not 0 <= begin < size or not 0 <= begin + (count - 1) * by < size or count < 1:
            return None
        first.append(begin)
        steps.append(by)
    return tuple(first), tuple(steps)


def reinterpreted(value: Node, written: Layout, read: Layout) -> Node | None:
    """Return the tensor with the layout `read` in the bytes of a value with the layout `written`.

    Return None if no movement of elements gives it: for a number, elements of other widths, and gaps.
    """
    order = _dense_order(written)
    if not value.sizes or value.type.bits != read.type.bits or order is None:
        return None
    value = bitcast(value, read.type)
    if (own := _dense_order(read)) is not None and read.element_count == written.element_count:
        lying = reshaped(permuted(value, order), [read.sizes[dimension] for dimension in own])
        return permuted(lying, sorted(range(len(own)), key=own.__getitem__))
    if read.span[1] > written.element_count * written.type.bytes:
        return None
    flat = reshaped(permuted(value, order), [written.element_count])
    steps = [stride // read.type.bytes for stride in read.strides]
    return view(flat, read.sizes, [0], [steps])


def _dense_order(layout: Layout) -> list[int] | None:
    """Return the dimensions by falling strides, or None if elements have gaps or overlap."""
    strides = [
        math.inf if is_unit(size) else stride
        for size, stride in zip(layout.sizes, layout.strides, strict=True)
    ]
    # An order by hints needs no guard: that it is dense is checked for all sizes.
    order = sorted(range(len(strides)), key=lambda dimension: -hint_of(strides[dimension]))
    step = layout.type.bytes
    for dimension in reversed(order):
        if not is_unit(layout.sizes[dimension]):
            if layout.strides[dimension] != step:
                return None
            step *= layout.sizes[dimension]
    return order
