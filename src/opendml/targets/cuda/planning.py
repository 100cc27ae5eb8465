"""Plans of programs for a CUDA device: kernels, schedules, machine code, and the parts of executables."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.kernel import Kernel, KernelProgram
from opendml.compiler.prices import Prices
from opendml.compiler.simplify import simplify
from opendml.compiler.sized import numbers_in, with_numbers
from opendml.compiler.stored_kernels import (
    kernels_from_json,
    kernels_to_json,
)
from opendml.program.program import Program
from opendml.program.sizes import is_traced
from opendml.program.traced_floats import TracedFloat, TracedWord
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cuda.channels_last import with_channels_last
from opendml.targets.cuda.compile import cubins_of
from opendml.targets.cuda.cubins import Cubin
from opendml.targets.cuda.driver import device
from opendml.targets.cuda.executable import CudaExecutable, CudaParts
from opendml.targets.cuda.image_layouts import with_images_channels_last
from opendml.targets.cuda.launch import CudaLaunch, alignments_of
from opendml.targets.cuda.launch_groups import launch_groups, launch_of_group
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.pattern import EARLY_MODES
from opendml.targets.cuda.planned_launch import VECTOR_BYTES, PlannedLaunch
from opendml.targets.cuda.rolled_windows import with_windows_rolled
from opendml.targets.cuda.schedule import schedule
from opendml.targets.cuda.schedule_chain import is_chained
from opendml.targets.cuda.stored_operands import stored_operands
from opendml.targets.cuda.traced_launches import TracedLaunches
from opendml.targets.kept import Kept, KeptConstants
from opendml.targets.planned import Planned

_FLOAT = "<d"
"""The format of the bits of floats that follow from sizes."""
_FLOAT_MARK = "f"
Scheduler = Callable[[Kernel, CudaMachine, Sequence[int]], CudaLaunch]
"""The function that finds the launch of a kernel."""


def compiled_program(
    program: Program,
    device_index: int = 0,
    scheduler: Scheduler = schedule,
) -> CudaExecutable:
    """Compile a program. Errors are those of CudaExecutable."""
    machine = device(device_index).machine
    kernels = fused(program, machine)
    every = (*kernels.kernels, *kernels.initializers)
    # Kernels of a recurrence have the launches of the first step.
    first = {
        number: repeat.first + (number - repeat.first) % repeat.length
        for repeat in kernels.repeats
        for number in range(repeat.first, repeat.first + repeat.count * repeat.length)
    }
    groups: list[tuple[int, ...]] = [(number,) for number in range(len(kernels.kernels))]
    if scheduler is schedule:
        groups = launch_groups(kernels.kernels, first, machine)
    groups += [(number,) for number in range(len(kernels.kernels), len(every))]
    made, numbers = dict[Hashable, int](), list[int]()
    own = list[tuple[Kernel, int, tuple[int, ...]]]()
    for group in groups:
        alignments = alignments_of([every[number] for number in group])
        number = made.setdefault((first.get(group[0], group[0]), alignments), len(own))
        if number == len(own):
            own.append((every[group[0]], len(group), alignments))
        numbers.append(number)
    others = _KernelsHere([each[:2] for each in own], machine, scheduler)
    launches = [(others.scheduled(number, each[2]), each[2]) for number, each in enumerate(own)]
    parts = _parts(
        program, kernels, _planned(launches, machine), list(zip(numbers, groups, strict=True)), others
    )
    return CudaExecutable(parts, device_index)


class CudaTracedProgram:
    """A program with traced sizes, as kernels. It is compiled for one bucket of sizes after another.

    Args:
        program: the program.
        device_index: the number of its device.
        kernels: the kernels that another process has cut it into; then only the layouts of the program and
            its constants count. None: it is cut now.
    """

    def __init__(self, program: Program, device_index: int = 0, kernels: KernelProgram | None = None) -> None:
        self.program, self._index = program, device_index
        machine = device(device_index).machine
        self.kernels = fused(program, machine) if kernels is None else kernels
        self._launches = TracedLaunches(machine)
        self._made: dict[Hashable, tuple[CudaLaunch, PlannedLaunch]] = {}
        """The launches of all buckets so far."""

    image_dimensions: frozenset[str] = frozenset()
    """Empty, since sizes of images cost nothing as launch parameters."""

    def at(self, sizes: Mapping[str, int]) -> CudaTracedProgram:
        """Return the program itself: its plans serve all sizes."""
        return self

    def compile(self) -> CudaExecutable | None:
        """Choose launches for the hints of the trace, and construct them with traced sizes.

        Return None for recurrences, and if prepared constants depend on traced sizes.
        """
        kernels, machine = self.kernels, device(self._index).machine
        if not all(_is_computed(kernel, machine) for kernel in kernels.kernels):
            # Attention that was fused for other hints has more queries now than one kernel computes.
            if not self.program.results:
                return None
            kernels = fused(self.program, machine)
        prepared = tuple([each.size for each in kernels.prepared])
        if kernels.repeats or numbers_in((kernels.initializers, prepared, kernels.initializer_arena_bytes)):
            return None
        found = self._launches.of((*kernels.kernels, *kernels.initializers))
        keys = [(id(kernel), id(launch), alignments) for kernel, launch, alignments in found]
        new = {key: each for key, each in zip(keys, found, strict=True) if key not in self._made}
        bound = [(launch.bound(kernel.binding), alignments) for kernel, launch, alignments in new.values()]
        for key, each, made in zip(new, new.values(), _planned(bound, machine), strict=True):
            # The launch is kept, because another one could get its number.
            self._made[key] = each[1], made
        known, numbers = dict[Hashable, int](), list[int]()
        planned, own = list[PlannedLaunch](), list[tuple[Kernel, int]]()
        for key, (kernel, _, _) in zip(keys, found, strict=True):
            launch = self._made[key][1]
            number = known.setdefault(launch.identity, len(planned))
            if number == len(planned):
                planned.append(launch)
                own.append((kernel.kernel, 1))
            numbers.append(number)
        groups = [(number, (kernel,)) for kernel, number in enumerate(numbers)]
        others = _KernelsHere(own, machine, schedule)
        return CudaExecutable(_parts(self.program, kernels, planned, groups, others), self._index)


def _planned(
    launches: Sequence[tuple[CudaLaunch, tuple[int, ...]]], machine: CudaMachine
) -> list[PlannedLaunch]:
    """Compile the code of launches for accesses with some alignments."""
    codes = cubins_of([launch.pattern for launch, _ in launches], machine.architecture)
    return [_with_code(*each, code) for each, code in zip(launches, codes, strict=True)]


def _with_code(launch: CudaLaunch, alignments: tuple[int, ...], cubin: Cubin) -> PlannedLaunch:
    struct = ParameterStruct(launch.pattern)
    numbers = [
        *struct.numbers(launch.values),
        launch.grid,
        launch.shared_bytes,
        launch.counters_bytes,
        launch.scratch_bytes,
        *chain.from_iterable(each.numbers for each in launch.maps),
    ]
    return PlannedLaunch(
        cubin,
        launch.pattern.mode.value,
        launch.pattern.mode in EARLY_MODES,
        alignments,
        launch.block,
        launch.cooperative,
        launch.kernels,
        struct.layout,
        launch.maps,
        tuple([each if is_traced(each) else int(each) for each in numbers]),
    )


def _parts(
    program: Program,
    kernels: KernelProgram,
    launches: Sequence[PlannedLaunch],
    groups: Sequence[tuple[int, Sequence[int]]],
    others: _KernelsHere,
) -> CudaParts:
    """Return the parts of an executable. The arguments are as of CudaParts."""
    read = {load.buffer for kernel in kernels.kernels for load in kernel.loads if load.fixed}
    copied = {number: program.inputs[number] for number in sorted(program.constants & read)}
    tensors = list[tuple[int, int, int, int]]()
    for number, layout in enumerate((*program.inputs, *program.outputs)):
        if number not in program.constants:
            low, high = layout.span
            tensors.append((number, low, high - low, layout.element_count * layout.type.bytes))
    return CudaParts(
        launches,
        groups,
        len(groups) - len(kernels.initializers),
        [
            [(access.buffer, access.offset) for access in kernel.accesses]
            for kernel in (*kernels.kernels, *kernels.initializers)
        ],
        kernels.buffer_count,
        kernels.arena,
        kernels.arena_bytes,
        kernels.initializer_arena_bytes,
        kernels.first_prepared,
        [Kept(each.size, each.recipe, 0) for each in kernels.prepared],
        KeptConstants(copied, min(len(kernels.prepared), 1)),
        len(program.inputs),
        tensors,
        others,
    )


class _KernelsHere:
    """The kernels of launches, perhaps with traced numbers.

    Args:
        kernels: for each launch, its first kernel, and how many it runs.
        machine: the device.
        scheduler: finds the launches of kernels alone.

    Attributes:
        numbers: the traced numbers of the kernels. Those of floats are their bits.
    """

    def __init__(
        self, kernels: Sequence[tuple[Kernel, int]], machine: CudaMachine, scheduler: Scheduler
    ) -> None:
        self._kernels, self._machine, self._scheduler = kernels, machine, scheduler
        self.numbers, self._originals = list[int](), list[Any]()
        self._places = list[list[int]]()
        """For each kernel, the places of its traced numbers in `numbers`."""
        places = dict[int, int]()
        for kernel, _ in kernels:
            found: list[Any] = numbers_in(kernel)
            for each in found:
                # Equal expressions are one object. Comparing them would guard their values.
                if places.setdefault(id(each), len(self.numbers)) == len(self.numbers):
                    self._originals.append(each)
                    self.numbers.append(TracedWord(each, _FLOAT) if type(each) is TracedFloat else each)
            self._places.append([places[id(each)] for each in found])

    def scheduled(self, number: int, alignments: Sequence[int], values: Sequence[int] = ()) -> CudaLaunch:
        """Return a launch as `launch` does, without its code."""
        (kernel, count), places = self._kernels[number], self._places[number]
        if places:
            floats = [type(self._originals[place]) is TracedFloat for place in places]
            given = zip(places, floats, strict=True)
            numbers: list[Any] = [
                _float_of(values[each]) if is_float else values[each] for each, is_float in given
            ]
            kernel = with_numbers(kernel, numbers)
        if count > 1:
            return launch_of_group(kernel, count, self._machine, alignments)
        return self._scheduler(kernel, self._machine, alignments)

    def launch(self, number: int, alignments: Sequence[int], values: Sequence[int]) -> PlannedLaunch:
        """See OtherLaunches."""
        launch = self.scheduled(number, alignments, values)
        return _planned([(launch, tuple(alignments))], self._machine)[0]

    def to_json(self) -> str:
        """See OtherLaunches. Traced numbers are the texts of their places in `numbers`, with a mark of
        floats."""
        places = {
            id(each): f"{_FLOAT_MARK if type(each) is TracedFloat else ''}{place}"
            for place, each in enumerate(self._originals)
        }
        program = KernelProgram(tuple([kernel for kernel, _ in self._kernels]), 0, 0, 0)
        data = kernels_to_json(program, lambda each: places.get(id(each), each))
        return json.dumps([data, [count for _, count in self._kernels]], separators=(",", ":"))


def kernels_from_text(text: str, values: Sequence[int], machine: CudaMachine) -> _KernelsHere:
    """Return the kernels that `_KernelsHere.to_json` has made JSON of, for values of their numbers."""
    data, counts = json.loads(text)

    def number(each: Any) -> Any:
        if not isinstance(each, str):
            return each
        value = values[int(each.removeprefix(_FLOAT_MARK))]
        return _float_of(value) if each.startswith(_FLOAT_MARK) else value

    kernels = kernels_from_json(data, number)
    return _KernelsHere(list(zip(kernels.kernels, counts, strict=True)), machine, schedule)


def _float_of(bits: int) -> float:
    """Return the float of bits in the format of `_FLOAT`."""
    (value,) = struct.unpack(_FLOAT, bits.to_bytes(8, "little", signed=True))
    return float(value)


def _is_computed(kernel: Kernel, machine: CudaMachine) -> bool:
    """Return whether one launch computes a kernel: all but some attention."""
    return kind_of(kernel) is not KernelKind.ATTENTION or is_chained(kernel, machine)


def plan(program: Program, machine: CudaMachine) -> Planned:
    """Return the kernels of a program, and the modes in which they are run where all tensors are aligned."""
    kernels = fused(program, machine)

    def mode(kernel: Kernel) -> str:
        aligned = (VECTOR_BYTES,) * (len(kernel.loads) + len(kernel.stores))
        return schedule(kernel, machine, aligned).pattern.mode.name.lower()

    return Planned(kernels, tuple((mode(kernel),) for kernel in kernels.kernels))


def fused(program: Program, machine: CudaMachine) -> KernelProgram:
    """Return the kernels of a program for a device. Costs are those for the hints of traced sizes."""
    simple = replace(program, results=simplify(program.results))
    abilities = Abilities(
        computes_attention=partial(is_chained, machine=machine),
        stored_operands=partial(stored_operands, machine),
        # Layouts of images that change are not compared with each other.
        arranged=None if numbers_in(program.inputs) else partial(with_images_channels_last, machine=machine),
        prices=Prices(machine.operations_per_byte),
    )
    return with_windows_rolled(with_channels_last(fuse(simple, abilities), machine), machine)
