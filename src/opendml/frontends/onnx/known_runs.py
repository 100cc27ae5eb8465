"""Plans of ONNX models that another process has made, and the runs that they serve.

A plan has all that a run of one graph needs: keys of machine code, and launches and sizes as expressions over
the open dimensions of the inputs. Its guards say for which sizes these are right. They are checked for the
sizes of each new run, as in the process that made the plan.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.budget import meter
from opendml.frontends.onnx.tensor_info import type_of, type_text
from opendml.locked import Locked
from opendml.program.program import packed
from opendml.program.scalar_type import ScalarType
from opendml.program.size_values import Conditions
from opendml.program.sizes import is_traced, value_at
from opendml.program.stored_sizes import ReadSizes, WrittenSizes
from opendml.runtime.graphs.shared import Footprint, PreparedMemory
from opendml.runtime.graphs.work import require_tensors
from opendml.targets.memory import aligned_bytes

if TYPE_CHECKING:
    from opendml.program.program import Layout
    from opendml.targets.arenas import Arenas
    from opendml.targets.backend import DeviceBackend
    from opendml.targets.executable import Executable, Instance, TracedExecutable

Array = np.ndarray[Any, Any]
Guards = Sequence[tuple[Any, Any]]


@dataclass(frozen=True)
class PlanToWrite:
    """A plan of this process, which other processes may read.

    Args:
        executable: the code and the launches, perhaps with traced sizes.
        guards: those of the sizes.
        others: guards over other traces, each with dimensions that must have certain values.
        inputs: the name, the number of the buffer, and the layout of each tensor that the graph reads.
        outputs: the same of each tensor that it computes, with the type and the sizes of the model's tensor.
        numbers: the name, the sizes, the type and the elements of inputs that follow from sizes.
        kernel_steps: the kernel steps of a dispatch.
        own_bytes: bytes that a run holds beside constants and temporaries.
    """

    executable: Executable
    guards: Guards
    others: Sequence[tuple[Mapping[str, int], Guards]]
    inputs: Sequence[tuple[str, int, Layout]]
    outputs: Sequence[tuple[str, int, Layout, np.dtype[Any], Sequence[int]]]
    numbers: Sequence[tuple[str, Sequence[int], np.dtype[Any], Sequence[float]]]
    kernel_steps: int
    own_bytes: int

    def to_json(self, backend: DeviceBackend) -> dict[str, Any] | None:
        """Return the plan as JSON. None: its executable cannot be stored."""
        written = WrittenSizes()
        plan = backend.stored(self.executable, written)
        if plan is None:
            return None
        others = []
        for exact, guards in self.others:
            own = WrittenSizes()
            listed = own.guards(guards)
            others.append([exact, own.table(), listed])

        def sizes(of: Sequence[int]) -> list[Any]:
            return [written(each) for each in of]

        data = {
            "plan": plan,
            "guards": written.guards(self.guards),
            "others": others,
            "inputs": [
                [name, buffer, layout.type.name, sizes(layout.sizes)] for name, buffer, layout in self.inputs
            ],
            "outputs": [
                [name, buffer, layout.type.name, sizes(layout.sizes), type_text(type), sizes(shape)]
                for name, buffer, layout, type, shape in self.outputs
            ],
            "numbers": [
                [name, shape, type_text(type), [written(each) for each in elements]]
                for name, shape, type, elements in self.numbers
            ],
            "kernel_steps": written(self.kernel_steps),
            "own_bytes": self.own_bytes,
        }
        return {**data, "sizes": written.table()}


class KnownPlan:
    """A plan that another process has made.

    Args:
        data: its JSON.

    Raises:
        LookupError, TypeError, ValueError: it is damaged.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data, self.read = data, (read := ReadSizes(data["sizes"]))
        self._conditions = Conditions(read.guards(data["guards"]))
        self._others = [
            (exact, Conditions(ReadSizes(table).guards(guards))) for exact, table, guards in data["others"]
        ]
        self.own_bytes = int(data["own_bytes"])
        self._inputs = [(name, buffer, ScalarType[type]) for name, buffer, type, _ in data["inputs"]]
        self._outputs = [
            (name, buffer, ScalarType[type], type_of(final))
            for name, buffer, type, _, final, _ in data["outputs"]
        ]
        self._numbers = [
            (name, sizes, type_of(type), [read(each) for each in elements])
            for name, sizes, type, elements in data["numbers"]
        ]
        groups = [sizes for *_, sizes in data["inputs"]]
        groups += [sizes for _, _, _, inner, _, outer in data["outputs"] for sizes in (inner, outer)]
        self._ranks = [len(each) for each in groups]
        self._sizes = [read(data["kernel_steps"]), *[read(each) for group in groups for each in group]]
        self.kept: Sequence[PreparedMemory] | None = None
        """The prepared constants, once the plan is started."""
        self.on_forget: Callable[[], object] = lambda: None
        """Is called when the plan is dropped."""

    def serves(self, dimensions: Mapping[str, int]) -> bool:
        """Return whether some sizes meet the guards."""
        return self._conditions(dimensions) and self._serves_others(dimensions)

    def _serves_others(self, dimensions: Mapping[str, int]) -> bool:
        return all(
            conditions(dimensions) and all(dimensions.get(name) == size for name, size in exact.items())
            for exact, conditions in self._others
        )

    def start(self, executable: TracedExecutable, kept: Sequence[PreparedMemory], arenas: Arenas) -> None:
        """Make runs possible.

        Args:
            executable: the executable of the plan.
            kept: its prepared constants.
            arenas: the arenas of its runs.
        """
        self._executable, self.kept, self.arenas = executable, kept, arenas
        own = list(executable.sizes)
        self._count, self._is_traced = len(own), any(map(is_traced, (*own, *self._sizes)))
        self._conditions = Conditions(self.read.guards(self.data["guards"]), [*own, *self._sizes])
        self.data = {}  # The executable has what is large.

    def at(self, dimensions: Mapping[str, int]) -> KnownRun | None:
        """Return the run of a started plan for some sizes. None: they do not meet the guards.

        Raises:
            LimitExceeded: the model may not take so much.
        """
        values = self._conditions.values(dimensions)
        if values is None or not self._serves_others(dimensions):
            return None
        executable = self._executable.at(values[: self._count]) if self._is_traced else self._executable
        steps, *numbers = values[self._count :].tolist()
        groups = []
        for rank in self._ranks:
            groups.append(tuple(numbers[:rank]))
            numbers = numbers[rank:]
        count = len(self._inputs)
        inputs = [
            (name, buffer, packed(type, sizes))
            for (name, buffer, type), sizes in zip(self._inputs, groups, strict=False)
        ]
        outputs = [
            (name, buffer, packed(type, inner), final, outer)
            for (name, buffer, type, final), inner, outer in zip(
                self._outputs, groups[count::2], groups[count + 1 :: 2], strict=True
            )
        ]
        require_tensors([*[each[2] for each in inputs], *[each[2] for each in outputs]], steps)
        meter().require_memory(executable.temporary_bytes, "the temporary tensors of a graph")
        contents = {
            name: np.array([value_at(each, dimensions) for each in elements], type).reshape(sizes)
            for name, sizes, type, elements in self._numbers
        }
        return KnownRun(self, executable, inputs, outputs, contents, steps)

    @property
    def footprint(self) -> Footprint:
        """The memory of the runs."""
        return Footprint(self.own_bytes, frozenset(self.kept or ()), self.arenas.most)

    def forget(self) -> None:
        """Drop the plan and its runs."""
        self.on_forget()


class KnownRun(Locked):
    """A graph that runs over the inputs of some sizes.

    Args:
        plan: the plan that it is of.
        executable: its executable for these sizes.
        inputs: the name, the number of the buffer, and the layout of each tensor that it reads.
        outputs: the same of each tensor that it computes, with the type and the sizes of the model's tensor.
        numbers: contents of inputs that follow from sizes.
        kernel_steps: the kernel steps of a run.
    """

    def __init__(
        self,
        plan: KnownPlan,
        executable: Executable,
        inputs: Sequence[tuple[str, int, Layout]],
        outputs: Sequence[tuple[str, int, Layout, np.dtype[Any], tuple[int, ...]]],
        numbers: Mapping[str, Array],
        kernel_steps: int,
    ) -> None:
        super().__init__()
        self.plan, self._executable = plan, executable
        given = [(name, buffer, layout.type.numpy, layout.sizes) for name, buffer, layout in inputs]
        self._inputs = [each for each in given if each[0] not in numbers]
        self._numbers = [
            (buffer, _packed(numbers[name], type, sizes))
            for name, buffer, type, sizes in given
            if name in numbers
        ]
        self._outputs = [
            (name, buffer, _maker(layout.type.numpy, layout.sizes), final, sizes)
            for name, buffer, layout, final, sizes in outputs
        ]
        self._kernel_steps = kernel_steps
        self._idle: list[Instance] = []

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs by name."""
        meter().count("kernel_steps", self._kernel_steps, "one run")
        given = [(buffer, _packed(inputs[name], type, sizes)) for name, buffer, type, sizes in self._inputs]
        made = [(buffer, make()) for _, buffer, make, _, _ in self._outputs]
        with self._lock:
            # A handler of a signal that runs the model meanwhile finds no idle instance, and makes one.
            instance = self._idle.pop() if self._idle else self._instance()
            for buffer, array in (*given, *made):
                instance.bind(buffer, array.ctypes.data)
            instance.dispatch()
            self._idle[:] = [instance]
        return {
            name: array.reshape(shape).view(final)
            for (name, _, _, final, shape), (_, array) in zip(self._outputs, made, strict=True)
        }

    def _instance(self) -> Instance:
        addresses = [each.memory.address for each in self.plan.kept or ()]
        instance = self._executable.instantiate(None, addresses, self.plan.arenas)
        for buffer, array in self._numbers:
            instance.bind(buffer, array.ctypes.data)
        return instance


def _packed(array: Array, type: np.dtype[Any], sizes: tuple[int, ...]) -> Array:
    """Return an input as a packed tensor of the graph, in memory that is aligned to its elements."""
    if array.dtype != type or not array.flags.c_contiguous or array.shape != sizes:
        array = np.ascontiguousarray(array).reshape(sizes).view(type)
    return array if array.flags.aligned else array.copy()


_ALIGNED_BYTES = 2**16


def _maker(type: np.dtype[Any], sizes: tuple[int, ...]) -> Callable[[], Array]:
    """Return a function that makes outputs, which are aligned to 64 bytes if they are large."""
    size = int(np.prod(sizes, dtype=np.int64)) * type.itemsize
    if size < _ALIGNED_BYTES:
        return lambda: np.empty(sizes, type)
    return lambda: aligned_bytes(np.empty, size).view(type).reshape(sizes)


def array_to_json(array: Array) -> list[Any]:
    """Return an array as JSON."""
    return ["array", type_text(array.dtype), array.shape, base64.b64encode(array.tobytes()).decode()]


def array_from_json(data: Sequence[Any]) -> Array:
    """Return the array that `array_to_json` has made JSON of."""
    _, type, sizes, content = data
    return np.frombuffer(base64.b64decode(content), np.uint8).view(type_of(type)).reshape(sizes)
