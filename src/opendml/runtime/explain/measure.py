"""Measure the kernels of compiled work, and find the operators that they compute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opendml.compiler.kernel import Access, Kernel, number_of
from opendml.errors import Unsupported
from opendml.floating_point import default_mode
from opendml.program.carriers import carried
from opendml.program.node import COLLECTIVE, FUNCTIONS, PLACINGS, Node, Operation, broadcast, claim, ordered
from opendml.program.program import Layout, Program
from opendml.runtime.explain.explanation import (
    ExplainedGraph,
    ExplainedKernel,
    ExplainedOperator,
    ExplainedTemporary,
)
from opendml.runtime.explain.rates import Rates, filled, rates_of, rounds
from opendml.runtime.graphs.compiled_work import CompiledWork
from opendml.runtime.graphs.shared import PreparedMemory
from opendml.runtime.graphs.work import Watched, Work, WorkStage
from opendml.runtime.memory.ranges import MemoryRange
from opendml.targets.backend import DeviceBackend
from opendml.targets.executable import Instance
from opendml.targets.memory import HostMemory, OwnMemory, TensorMemory
from opendml.targets.planned import Planned, on_the_clock
from opendml.targets.staged import StagedInstance

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device

SECONDS = 0.3
"""Seconds of measurement of all launches together. Each runs a few times at least."""


def explained(
    device: Device,
    compiled: CompiledWork,
    kept: MemoryRange | Sequence[PreparedMemory] | None,
    title: str,
    names: Mapping[int, str],
    given: Mapping[int, TensorMemory],
) -> ExplainedGraph:
    """Return the kernels of compiled work, with their times.

    Args:
        device: where it was compiled.
        compiled: the work.
        kept: its prepared constants; None: all of them are zeros.
        title: the inputs and the outputs.
        names: the names of inputs, constants and outputs, by their buffers.
        given: the memory of inputs and outputs that exist. Other inputs are floats between 0 and 1, the same
            every time, or integers that are 0.

    Raises:
        Unsupported: on a debug device, which runs another program; or out of memory.
    """
    if device._debug is not None:
        raise Unsupported(
            "explain: on a debug device every operator's output is computed and shown, which no other device "
            "does; compile it on a device without debug="
        )
    backend, work = device._backend, compiled.work
    memory = _Memory(backend, work, given)
    instance = compiled.instantiate(backend.place, kept or memory.zeros(compiled.persistent_bytes))
    for number, address in memory.addresses.items():
        instance.bind(number, address)
    seconds = median(rounds([on_the_clock(instance.dispatch)], SECONDS / 3)[0])
    common = (title, device.kind, device.threads, seconds)
    names = dict(names)
    for stage in work.stages:
        _claim(stage)
        written = stage.buffers[len(stage.program.inputs) :]
        for buffer, node in zip(written, stage.program.results, strict=True):
            names.setdefault(buffer, node.origin or "a number")
    operators = _Operators(work, names)
    plans = [plan for stage in work.stages if (plan := _plan(backend, stage.program)) is not None]
    if len(plans) < len(work.stages):
        return ExplainedGraph(*common, operators.explained([]), persistent_bytes=compiled.persistent_bytes)
    rates = rates_of(backend, device.threads)
    kernels: list[ExplainedKernel] = []
    temporaries: list[ExplainedTemporary] = []
    parts = instance.instances if isinstance(instance, StagedInstance) else [instance]
    for stage, plan, part in zip(work.stages, plans, parts, strict=True):
        seconds_of, numbers = _seconds(backend, part, plan), dict[int, int]()
        for run in _runs(plan):
            numbers |= dict.fromkeys(run, len(kernels))
            measured = sum(seconds_of[number] for number in run)
            tensors = _tensors(carried(stage.program), plan, run[0])
            kernels.append(_kernel(len(kernels), plan, run, measured, tensors, operators, rates))
        temporaries += _temporaries(plan, numbers)
    return ExplainedGraph(
        *common,
        operators.explained(kernels),
        tuple(kernels),
        tuple(temporaries),
        compiled.temporary_bytes,
        compiled.persistent_bytes,
        rates.copies,
        rates.operations,
    )


class _Memory:
    """Memory for all inputs, but for constants, and all outputs of some work, where programs run."""

    def __init__(self, backend: DeviceBackend, work: Work, given: Mapping[int, TensorMemory]) -> None:
        self._backend = backend
        self._held: list[object] = [given]
        self.addresses: dict[int, int] = {}
        constants = {stage.buffers[number] for stage in work.stages for number in stage.program.constants}
        for number, layout in enumerate((*work.inputs, *work.outputs)):
            if number not in constants:
                content = given.get(number) or self._made_up(layout, is_read=number < len(work.inputs))
                self.addresses[number] = self._address(content, layout)

    def zeros(self, size: int) -> MemoryRange:
        """Return memory of zeros."""
        memory = filled(self._backend, np.zeros(size, np.uint8))
        return MemoryRange(self._keep(memory), size, memory, self._backend.place)

    def _address(self, content: TensorMemory, layout: Layout) -> int:
        """Return the address of the first element, after a copy to the device if it is elsewhere."""
        if content.place == self._backend.place:
            self._held.append(content)
            return content.address
        low, high = layout.span
        memory = self._backend.allocate(high - low)
        memory.write(content.address + low, high - low)
        return self._keep(memory) - low

    def _keep(self, memory: OwnMemory) -> int:
        self._held.append(memory)
        return memory.address

    def _made_up(self, layout: Layout, is_read: bool) -> TensorMemory:
        low, high = layout.span
        memory = HostMemory(high - low)
        memory.bytes[:] = 0
        if is_read and layout.type.is_float:
            random = np.random.default_rng(0).random((high - low) // layout.type.bytes, np.float32)
            memory.bytes[:] = random.astype(layout.type.numpy).view(np.uint8)
        return TensorMemory(memory.address - low, layout, True, memory)


# Kernels


@default_mode()
def _plan(backend: DeviceBackend, program: Program) -> Planned | None:
    return backend.plan(carried(program))


def _seconds(backend: DeviceBackend, instance: Instance, plan: Planned) -> list[float]:
    """Return the time of each kernel: the sum of its launches, without that of empty launches."""
    nothing, *launches = map(median, rounds(backend.timers(instance), SECONDS))
    assert len(launches) == sum(map(len, plan.launches))
    each = iter(launches)
    return [sum(max(next(each) - nothing, 0.0) for _ in names) for names in plan.launches]


def _runs(plan: Planned) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of kernels that are equal passes: the same kernel of all steps of a recurrence."""
    done = 0
    for repeat in plan.kernels.repeats:
        yield from ((number,) for number in range(done, repeat.first))
        done = repeat.first + repeat.length * repeat.count
        for first in range(repeat.first, repeat.first + repeat.length):
            yield tuple(range(first, done, repeat.length))
    yield from ((number,) for number in range(done, len(plan.kernels.kernels)))


def _tensors(program: Program, plan: Planned, step: int) -> list[TensorBytes]:
    """Return the tensors that a kernel may read: inputs, and temporaries that hold data."""
    inputs = [TensorBytes(number, *layout.span) for number, layout in enumerate(program.inputs)]
    alive = [each for each in plan.kernels.temporaries if each.first <= step <= each.last]
    return inputs + [TensorBytes(plan.kernels.arena, each.offset, each.offset + each.size) for each in alive]


def _kernel(
    number: int,
    plan: Planned,
    run: Sequence[int],
    seconds: float,
    tensors: Sequence[TensorBytes],
    operators: _Operators,
    rates: Rates,
) -> ExplainedKernel:
    kernel, times = plan.kernels.kernels[run[0]], len(run)
    read, written, computed = bytes_read(kernel, tensors), bytes_written(kernel), operations(kernel)
    memory = (read + written) / rates.bandwidth(read + written)
    arithmetic = computed / rates.operations
    nodes = ordered(kernel.values)
    # Operators share nodes of equal numbers, so the origin of such a node tells nothing.
    computing = [
        node for node in nodes if node.sizes and (node.operands or node.operation is Operation.SOURCE)
    ]
    origins = {node.origin for node in computing} - {None} or {node.origin for node in nodes}
    labels = tuple(label for label in operators.labels if label in origins)
    return ExplainedKernel(
        number,
        labels,
        operators.sizes(labels[-1]) if labels else (),
        kernel.domain,
        kernel.axes,
        times,
        plan.launches[run[0]],
        read * times,
        written * times,
        computed * times,
        max(memory, arithmetic) * times,
        "memory" if memory >= arithmetic else "arithmetic",
        seconds,
    )


def _temporaries(plan: Planned, numbers: Mapping[int, int]) -> Iterator[ExplainedTemporary]:
    """Yield the tensors of the arena, by the numbers of the explained kernels."""
    for each in plan.kernels.temporaries:
        if each.size:
            first, last = sorted((numbers[each.first], numbers[each.last]))
            yield ExplainedTemporary(each.offset, each.size, first, last)


# Operators


def _label(name: str) -> str:
    """Return the label of an operator, given the name of one of its outputs."""
    return name.rpartition(".")[0]


def _claim(stage: WorkStage) -> None:
    """Set the origin of every node to the operator that defined it."""
    for each in stage.watched:
        claim(each.node, _label(each.name))
    for root in stage.program.results:
        # The nodes that store a result belong to its operator.
        below = [node.origin for node in ordered([root]) if node.origin is not None]
        if below:
            claim(root, below[-1])


class _Operators:
    """The operators of some work, and the names of its buffers."""

    def __init__(self, work: Work, names: Mapping[int, str]) -> None:
        self._found: dict[str, list[tuple[WorkStage, Watched]]] = {}
        for stage in work.stages:
            for each in stage.watched:
                self._found.setdefault(_label(each.name), []).append((stage, each))
        self.labels, self._names = list(self._found), names

    def explained(self, kernels: Sequence[ExplainedKernel]) -> tuple[ExplainedOperator, ...]:
        """Return the operators with their kernels."""
        return tuple(
            ExplainedOperator(
                label,
                outputs[0][1].operator,
                tuple(f"{each.output} {each.node.type.name} {list(each.sizes)}" for _, each in outputs),
                tuple(
                    dict.fromkeys(name for stage, each in outputs for name in self._reads(label, stage, each))
                ),
                tuple(kernel.number for kernel in kernels if label in kernel.operators),
            )
            for label, outputs in self._found.items()
        )

    def sizes(self, label: str) -> tuple[int, ...]:
        """Return the sizes of an operator's last output that is used."""
        return tuple(self._found[label][-1][1].sizes)

    def _reads(self, label: str, stage: WorkStage, output: Watched) -> Iterator[str]:
        """Yield the operators, inputs and constants that an output reads."""
        pending: list[Node] = [output.node]
        seen: set[int] = set()
        while pending:
            node = pending.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.operation is Operation.SOURCE and isinstance(node.attribute, int):
                yield self._names[stage.buffers[node.attribute]]
            elif node.origin not in (None, label):
                yield str(node.origin)
            else:
                pending += reversed(node.operands)


_OPERATIONS = {Operation.MULTIPLY_ADD: 2, Operation.CONTRACTION: 2} | dict.fromkeys(FUNCTIONS, 10)
"""Operations of an element; others count as one. Ten is the rounded average of functions."""
_FREE = frozenset(
    {
        Operation.SOURCE,
        Operation.CONSTANT,
        Operation.PARAMETER,
        Operation.INDEX,
        Operation.VIEW,
        Operation.RESHAPE,
        Operation.JOIN,
        Operation.MATERIALIZE,
        Operation.BITCAST,
        Operation.ROUND,
        Operation.EXPAND,
    }
)


class TensorBytes(NamedTuple):
    """The bytes of a tensor in a buffer, from `first` to before `last`."""

    buffer: int
    first: int
    last: int


def bytes_read(kernel: Kernel, tensors: Sequence[TensorBytes]) -> int:
    """Return the bytes that a kernel reads.

    A byte counts once, however often it is read. Elements at computed positions count for each access.

    Args:
        kernel: the kernel.
        tensors: the tensors that it may read.
    """
    sources = {number_of(node): node for node in ordered(kernel.values) if node.operation is Operation.SOURCE}
    plain, computed = list[Access](), 0
    for number, load in enumerate(kernel.loads):
        node = sources.get(number)
        if load.buffer is None or node is None:
            continue
        if len(node.operands) > 1:
            sizes = broadcast([node.sizes, *(operand.sizes for operand in node.operands)])
            computed += math.prod(sizes) * load.type.bytes
        else:
            plain.append(load)
    return computed + _together(plain, kernel.domain, tensors)


def bytes_written(kernel: Kernel) -> int:
    """Return the bytes that a kernel writes. Elements at computed positions count all."""
    node = kernel.values[0]
    if node.operation in PLACINGS:
        return math.prod(node.sizes) * node.type.bytes * len(kernel.stores)
    return _together(kernel.stores, kernel.domain)


def operations(kernel: Kernel) -> int:
    """Return the arithmetic operations of a kernel: for each primitive, those of every element."""
    return sum(map(_operations_of, ordered(kernel.values)))


def _operations_of(node: Node) -> int:
    if node.operation in _FREE:
        return 0
    read = [operand.sizes for operand in node.operands if operand.sizes]
    sizes = broadcast(read) if node.operation in COLLECTIVE and read else node.sizes
    return math.prod(sizes) * _OPERATIONS.get(node.operation, 1)


def _together(
    accesses: Sequence[Access], domain: tuple[int, ...], tensors: Sequence[TensorBytes] = ()
) -> int:
    """Return the bytes of several accesses. Overlapping ones count no more than their common span."""
    spans = sorted(_span(access, domain, tensors) for access in accesses if access.buffer is not None)
    total, index = 0, 0
    while index < len(spans):
        buffer, first, last, count = spans[index]
        index += 1
        while index < len(spans) and spans[index][0] == buffer and spans[index][1] < last:
            last, count = max(last, spans[index][2]), count + spans[index][3]
            index += 1
        total += min(count, last - first)
    return total


def _span(
    access: Access, domain: tuple[int, ...], tensors: Sequence[TensorBytes]
) -> tuple[int, int, int, int]:
    """Return the buffer of an access, its first byte, its end, and the bytes of its elements.

    Bytes outside of the tensor, as of padding, are not read.
    """
    buffer = access.buffer or 0
    moving = [(size, step) for size, step in zip(domain, access.strides, strict=True) if step]
    low = access.offset + sum(min((size - 1) * step, 0) for size, step in moving)
    high = access.offset + sum(max((size - 1) * step, 0) for size, step in moving) + access.type.bytes
    count = math.prod(size for size, _ in moving) * access.type.bytes
    met = [
        (min(high, tensor.last) - max(low, tensor.first), tensor)
        for tensor in tensors
        if tensor.buffer == buffer
    ]
    if met:
        most, tensor = max(met, key=lambda each: each[0])
        if most > 0:
            low, high = max(low, tensor.first), min(high, tensor.last)
    return buffer, low, high, count
