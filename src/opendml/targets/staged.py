"""Several programs as one, run in their order, with tensors between them in a common arena.

A program reads every tensor in one layout. Where one is written in one layout and read in another, it must
lie in memory between two programs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise

from opendml.compiler.memory import place
from opendml.compiler.recipe import Recipe
from opendml.late_dataclass import dataclass
from opendml.targets.arenas import Arenas
from opendml.targets.executable import Executable, Instance
from opendml.targets.kept import Kept
from opendml.targets.memory import OwnMemory


@dataclass(frozen=True, slots=True)
class Stage:
    """One program of several: buffer `i` of it is buffer `buffers[i]` of the whole."""

    executable: Executable
    buffers: tuple[int, ...]


class StagedExecutable:
    """Stages over a common table of buffers: the inputs, the outputs, then tensors of `between` bytes.
    `allocate` makes memory where they run."""

    def __init__(
        self,
        stages: Sequence[Stage],
        tensor_count: int,
        between: Sequence[int],
        allocate: Callable[[int], OwnMemory],
    ) -> None:
        self.stages, self.tensor_count, self._allocate = stages, tensor_count, allocate
        users = [
            [step for step, stage in enumerate(stages) if tensor_count + number in stage.buffers]
            for number in range(len(between))
        ]
        self.offsets, self.stage_arena = place(between, [(steps[0], steps[-1]) for steps in users])
        self._first_kept = list(accumulate((len(each.executable.kept) for each in stages), initial=0))
        self._steps: list[tuple[int, int]] = []
        """The steps of all stages: the number of the stage, and that of the step there."""
        self.kept: list[Kept] = []
        """The memory made of constants that the stages read, one stage after the other."""
        for number, stage in enumerate(stages):
            first = len(self._steps)
            count = max((each.step + 1 for each in stage.executable.kept), default=0)
            self._steps += [(number, step) for step in range(count)]
            for each in stage.executable.kept:
                constants = tuple(stage.buffers[number] for number in each.recipe.constants)
                recipe = Recipe(each.recipe.text, constants)
                self.kept.append(replace(each, recipe=recipe, step=first + each.step))

    @property
    def temporary_bytes(self) -> int:
        """The tensors between the stages, and the largest arena of a stage."""
        return self.stage_arena + max(stage.executable.temporary_bytes for stage in self.stages)

    def constants_of(self, step: int) -> Collection[int]:
        """Return the numbers of the constants that a step of the initialization reads."""
        number, own_step = self._steps[step]
        stage = self.stages[number]
        return {stage.buffers[constant] for constant in stage.executable.constants_of(own_step)}

    def initialize(self, step: int, constants: Mapping[int, int], addresses: Mapping[int, int]) -> None:
        """Run a step of a stage."""
        number, own_step = self._steps[step]
        stage, first = self.stages[number], self._first_kept[number]
        own = {place: constants[buffer] for place, buffer in enumerate(stage.buffers) if buffer in constants}
        stage.executable.initialize(
            own_step, own, {place - first: address for place, address in addresses.items()}
        )

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> StagedInstance:
        """Return a new instance, with nothing bound but its constants."""
        own = self._allocate(self.temporary_bytes) if arena is None else None
        address = own.address if own else arena or 0
        instances = [
            stage.executable.instantiate(address + self.stage_arena, kept[first:last])
            for stage, (first, last) in zip(self.stages, pairwise(self._first_kept), strict=True)
        ]
        return StagedInstance(self, instances, address, own)


class StagedInstance:
    """Stages with their buffers."""

    def __init__(
        self, executable: StagedExecutable, instances: Sequence[Instance], arena: int, own: OwnMemory | None
    ) -> None:
        self.instances, self._own = instances, own
        self._users: dict[int, list[tuple[Instance, int]]] = {}
        for instance, stage in zip(instances, executable.stages, strict=True):
            for position, buffer in enumerate(stage.buffers):
                self._users.setdefault(buffer, []).append((instance, position))
        for number, offset in enumerate(executable.offsets):
            self.bind(executable.tensor_count + number, arena + offset)
        self._memory: object = None

    def bind(self, buffer: int, address: int) -> None:
        """Set the address of a tensor's first element: inputs first, then outputs."""
        for instance, position in self._users[buffer]:
            instance.bind(position, address)

    def keep(self, memory: object) -> None:
        """Keep an object alive as long as this one."""
        self._memory = memory

    def dispatch(self) -> None:
        """Run all stages, to the end."""
        for instance in self.instances:
            instance.dispatch()

    @property
    def enqueue(self) -> Callable[[int], object] | None:
        """Adds all stages to a stream; None where they run over host memory."""
        stages = [stage for instance in self.instances if (stage := instance.enqueue) is not None]
        return partial(_enqueue, stages) if len(stages) == len(self.instances) else None


def _enqueue(stages: Sequence[Callable[[int], object]], stream: int) -> None:
    for stage in stages:
        stage(stream)
