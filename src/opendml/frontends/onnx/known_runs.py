"""Plans of ONNX models that another process has made, and the runs that they serve.

A plan has all that a run of one graph needs: keys of machine code, and launches and sizes as expressions over
the open dimensions of the inputs. Its guards say for which sizes these are right. They are checked for the
sizes of each new run, as in the process that made the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opendml.budget import meter
from opendml.frontends.onnx.tensor_info import type_of, type_text
from opendml.late_dataclass import dataclass
from opendml.program.program import packed
from opendml.program.scalar_type import ScalarType
from opendml.program.size_values import Conditions, Guard, IntegerArray
from opendml.program.sizes import value_at
from opendml.program.stored_sizes import ReadSizes, WrittenSizes, guards_from_json, guards_to_json
from opendml.runtime.graphs.refusals import Hints, Refusals, Refused
from opendml.runtime.graphs.run_limits import require_run
from opendml.runtime.graphs.shared import Footprint, PreparedMemory
from opendml.targets.memory import address_of
from opendml.targets.sized_instances import SizedInstances

if TYPE_CHECKING:
    from opendml.runtime.graphs.model_cache import Holder
    from opendml.targets.arenas import Arenas
    from opendml.targets.executable import TracedExecutable

Array = np.ndarray[Any, Any]


class PlanTensor(NamedTuple):
    """A tensor that the graph of a plan reads or computes.

    Attributes:
        name: its name in the model.
        buffer: the number of its buffer.
        type: its type in the graph.
        sizes: its sizes in the graph, which may be traced.
    """

    name: str
    buffer: int
    type: ScalarType
    sizes: Sequence[int]


class PlanOutput(NamedTuple):
    """A tensor that the graph of a plan computes, with the type and the sizes of the model's tensor."""

    tensor: PlanTensor
    type: np.dtype[Any]
    sizes: Sequence[int]


class PlanNumbers(NamedTuple):
    """An input of a graph whose elements follow from sizes."""

    name: str
    sizes: Sequence[int]
    type: np.dtype[Any]
    elements: Sequence[float]

    def at(self, dimensions: Mapping[str, int]) -> Array:
        """Return its content for some sizes."""
        values = [value_at(element, dimensions) for element in self.elements]
        return np.array(values, self.type).reshape(self.sizes)


class BoundTensor(NamedTuple):
    """A tensor that runs of a plan bind.

    Attributes:
        name: its name in the model.
        buffer: the number of its buffer.
        type: its type: of an input in the graph, of an output in the model.
        number: the number of its sizes among the `shapes` of a run.
    """

    name: str
    buffer: int
    type: np.dtype[Any]
    number: int


@dataclass(frozen=True)
class GraphFacts:
    """All that is known of a graph beside its code and its guards. It is the same for all of its plans.

    Args:
        others: guards over other traces, each with dimensions that must have certain values.
        inputs, outputs: the tensors that the graph reads and computes.
        numbers: the inputs that follow from sizes.
        kernel_steps: the kernel steps of a dispatch.
        own_bytes: bytes that a run holds beside constants and temporaries.
    """

    others: Sequence[tuple[Mapping[str, int], Sequence[Guard]]]
    inputs: Sequence[PlanTensor]
    outputs: Sequence[PlanOutput]
    numbers: Sequence[PlanNumbers]
    kernel_steps: int
    own_bytes: int

    def to_json(self, written: WrittenSizes) -> dict[str, Any]:
        """Return the facts as JSON, whose sizes are in the table of `written`."""

        def sizes(of: Sequence[float]) -> list[Any]:
            return [written(each) for each in of]

        def tensor(of: PlanTensor) -> list[Any]:
            return [of.name, of.buffer, of.type.name, sizes(of.sizes)]

        return {
            "others": guards_to_json(self.others),
            "inputs": [tensor(each) for each in self.inputs],
            "outputs": [
                [*tensor(each.tensor), type_text(each.type), sizes(each.sizes)] for each in self.outputs
            ],
            "numbers": [
                [each.name, each.sizes, type_text(each.type), sizes(each.elements)] for each in self.numbers
            ],
            "kernel_steps": written(self.kernel_steps),
            "own_bytes": self.own_bytes,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], read: ReadSizes) -> GraphFacts:
        """Return the facts that `to_json` has made JSON of.

        Raises:
            LookupError, TypeError, ValueError: they are damaged.
        """

        def sizes(of: Sequence[Any]) -> list[int]:
            return [read(each) for each in of]

        return cls(
            guards_from_json(data["others"]),
            [
                PlanTensor(name, buffer, ScalarType[type], sizes(own))
                for name, buffer, type, own in data["inputs"]
            ],
            [
                PlanOutput(
                    PlanTensor(name, buffer, ScalarType[type], sizes(own)), type_of(final), sizes(shape)
                )
                for name, buffer, type, own, final, shape in data["outputs"]
            ],
            [
                PlanNumbers(name, own, type_of(type), [read(each) for each in elements])
                for name, own, type, elements in data["numbers"]
            ],
            read(data["kernel_steps"]),
            int(data["own_bytes"]),
        )


class OtherGuards:
    """Guards over other traces than that of a plan.

    Args:
        others: the guards, each with dimensions that must have certain values.
    """

    def __init__(self, others: Sequence[tuple[Mapping[str, int], Sequence[Guard]]]) -> None:
        self._others = [(exact, Conditions(each)) for exact, each in others]

    def hold(self, dimensions: Mapping[str, int]) -> bool:
        """Return whether some sizes meet the guards."""
        return all(
            conditions(dimensions) and all(dimensions.get(name) == size for name, size in exact.items())
            for exact, conditions in self._others
        )


class KnownPlan:
    """A plan of a graph, of this process or another one.

    Args:
        guards: those of the sizes.
        facts: those of the graph.
        hints: the sizes for which its launches were chosen.
        refused: hints that were tried before, with guards that must all hold for their plans. Such a plan is
            the better one for sizes that it serves.

    Attributes:
        hints: the sizes for which its launches were chosen.
    """

    def __init__(
        self, guards: Sequence[Guard], facts: GraphFacts, hints: Hints, refused: Refused = ()
    ) -> None:
        self._guards, self._conditions, self.hints = guards, Conditions(guards), hints
        self._refused = [(tried, Conditions(each)) for tried, each in refused]
        self.refusals = Refusals()
        """Refused hints of all plans for the same purpose."""
        self._others = OtherGuards(facts.others)
        self._inputs, self._outputs = facts.inputs, facts.outputs
        self._tensors = [*facts.inputs, *[each.tensor for each in facts.outputs]]
        self._types = [each.type for each in self._tensors]
        self._output_types = [each.tensor.type.numpy for each in facts.outputs]
        self._numbers, self._steps, self.own_bytes = facts.numbers, facts.kernel_steps, facts.own_bytes
        self.kept: Sequence[PreparedMemory] | None = None
        """The prepared constants, once the plan is started."""
        self.source: tuple[dict[str, Any], ReadSizes] | None = None
        """The JSON that it was made of and what reads its sizes, until the plan is started."""
        self.before: Sequence[Holder] = ()
        """The holder of the trace that has made the plan. It stays in memory while the plan is used."""
        self.on_forget: Callable[[], object] = lambda: None
        """Is called when the plan is dropped."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> KnownPlan:
        """Return a plan that `StoredPlan.to_json` has made JSON of, with the facts of its graph.

        Raises:
            LookupError, TypeError, ValueError: it is damaged.
        """
        read = ReadSizes(data["sizes"])
        facts, refused = GraphFacts.from_json(data, read), guards_from_json(data["refused"])
        plan = cls(read.guards(data["guards"]), facts, dict(data["hints"]), refused)
        plan.source = data, read
        return plan

    def serves(self, dimensions: Mapping[str, int]) -> bool:
        """Return whether some sizes meet the guards."""
        return self._conditions(dimensions) and self._others.hold(dimensions)

    def has_better(self, dimensions: Mapping[str, int]) -> bool:
        """Return whether a better plan may serve some sizes, one of hints that were tried before."""
        return any(
            conditions(dimensions) and not self.refusals.cover(hints, dimensions)
            for hints, conditions in self._refused
        )

    def start(self, executable: TracedExecutable, kept: Sequence[PreparedMemory], arenas: Arenas) -> None:
        """Make runs possible.

        Args:
            executable: the executable of the plan.
            kept: its prepared constants.
            arenas: the arenas of its runs.
        """
        self.arenas = arenas
        addresses = [each.memory.address for each in kept]
        make = partial(executable.sized_instance, addresses, arenas)
        self.instances = SizedInstances(make, executable.sized_instances)
        own, counts = list(executable.sizes), [math.prod(each.sizes) for each in self._tensors]
        total = sum([count * each.type.bytes for count, each in zip(counts, self._tensors, strict=True)])
        needs = [self._steps, executable.temporary_bytes, total, *counts]
        # Sizes of tensors in the graph come first, then those of outputs in the model.
        groups = [*[each.sizes for each in self._tensors], *[each.sizes for each in self._outputs]]
        ends = list(accumulate(map(len, groups), initial=len(needs)))
        self._first, self._spans = len(own), list(pairwise(ends))
        self._conditions = Conditions(
            self._guards, [*own, *needs, *[size for each in groups for size in each]]
        )
        inputs = [
            BoundTensor(each.name, each.buffer, each.type.numpy, number)
            for number, each in enumerate(self._inputs)
        ]
        contents = {each.name: each for each in self._numbers}
        self.read = [each for each in inputs if each.name not in contents]
        """The inputs of runs that callers give."""
        self._computed_inputs = [(each, contents[each.name]) for each in inputs if each.name in contents]
        self.computed = [
            BoundTensor(each.tensor.name, each.tensor.buffer, each.type, number)
            for number, each in enumerate(self._outputs, len(self._tensors))
        ]
        """The outputs of runs. Their sizes are those in the model."""
        # Last: a plan whose start an interrupt has ended is started again.
        self.kept, self.source = kept, None

    def at(self, dimensions: Mapping[str, int]) -> KnownRun | None:
        """Return the run of a started plan for some sizes. None: they do not meet the guards.

        Raises:
            LimitExceeded: the model may not take so much.
        """
        values = self._conditions.values(dimensions)
        if values is None or not self._others.hold(dimensions):
            return None
        numbers = values[self._first :].tolist()
        shapes = [tuple(numbers[begin:end]) for begin, end in self._spans]
        inputs, tensors = len(self._inputs), len(self._tensors)
        steps, arena_bytes, total = numbers[:3]
        types = self._types
        require_run(lambda: map(packed, types, shapes), numbers[3 : 3 + tensors], total, arena_bytes, steps)
        makers = self.arenas.outputs.makers(zip(shapes[inputs:tensors], self._output_types, strict=True))
        contents = [
            (input.buffer, packed_input(each.at(dimensions), input.type, shapes[input.number]))
            for input, each in self._computed_inputs
        ]
        return KnownRun(self, values, shapes, makers, contents, steps)

    @property
    def footprint(self) -> Footprint:
        """The memory of the runs."""
        return Footprint(self.own_bytes, frozenset(self.kept or ()), self.arenas.most)

    def forget(self) -> None:
        """Drop the plan and its runs."""
        self.on_forget()


class KnownRun:
    """A graph that runs over the inputs of some sizes.

    Args:
        plan: the plan that it is of.
        values: the values of its expressions.
        shapes: the sizes of tensors in the graph, and then those of outputs in the model.
        makers: make the arrays of outputs.
        numbers: the buffers and contents of inputs that follow from sizes.
        kernel_steps: the kernel steps of a run.
    """

    __slots__ = ("_kernel_steps", "_makers", "_numbers", "_shapes", "_values", "plan")

    def __init__(
        self,
        plan: KnownPlan,
        values: IntegerArray,
        shapes: Sequence[tuple[int, ...]],
        makers: Sequence[Callable[[], Array]],
        numbers: Sequence[tuple[int, Array]],
        kernel_steps: int,
    ) -> None:
        self.plan, self._values, self._shapes = plan, values, shapes
        self._makers, self._numbers, self._kernel_steps = makers, numbers, kernel_steps

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs by name."""
        meter().count("kernel_steps", self._kernel_steps, "one run")
        plan, shapes = self.plan, self._shapes
        instances, held, results = plan.instances, list[Array](), dict[str, Any]()
        instance = instances.take(self._values)
        try:
            bind = instance.bind
            for name, buffer, type, number in plan.read:
                array = packed_input(inputs[name], type, shapes[number])
                held.append(array)
                bind(buffer, address_of(array))
            for buffer, array in self._numbers:
                bind(buffer, address_of(array))
            for (name, buffer, type, number), make in zip(plan.computed, self._makers, strict=True):
                array = make()
                bind(buffer, address_of(array))
                if array.shape != shapes[number]:
                    array = array.reshape(shapes[number])
                results[name] = array if array.dtype is type else array.view(type)
            instance.dispatch()
        finally:
            instances.free.append(instance)
        return results


def packed_input(array: Array, type: np.dtype[Any], sizes: tuple[int, ...]) -> Array:
    """Return an input as a packed tensor of the graph, in memory that is aligned to its elements."""
    flags = array.flags
    if array.dtype is not type or array.shape != sizes or not flags.c_contiguous:
        array = np.ascontiguousarray(array).reshape(sizes).view(type)
        flags = array.flags
    return array if flags.aligned else array.copy()
