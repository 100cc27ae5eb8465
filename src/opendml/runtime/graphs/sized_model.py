"""Models of a plan for other sizes than those of its first model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opendml.runtime.graphs.model import NEW_MEMORY, Model, needed_of
from opendml.runtime.graphs.shared import Footprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opendml.program.size_values import IntegerArray
    from opendml.runtime.graphs.compiled_work import Prepared
    from opendml.runtime.graphs.traced_model import Plan
    from opendml.runtime.memory.host_array import Array

LATER = frozenset({
    "_lock", "_work", "_layouts", "_input_layouts", "_output_layouts", "_prepared", "_copies_on_stream",
})  # fmt: skip
"""Attributes of a model that calls on arrays in host memory do not need."""


class SizedModel(Model):
    """A model of other sizes than the first model of its plan, with the same constants.

    A call on arrays in host memory writes the sizes into an instance that all sizes of the plan share. So a
    new size needs no job of its own. The attributes that other methods need (LATER) are made on first use.

    Args:
        plan: the plan, which has its first model.
        values: the values of the plan's expressions.
    """

    def __init__(self, plan: Plan, values: IntegerArray) -> None:
        first = plan.model
        assert first is not None
        self.__dict__.update(plan.shared_attributes)
        needs = plan.needs(values)
        self._plan, self._values = plan, values
        self._kernel_steps, self._arena_bytes, self._own_bytes = needs.steps, needs.arena_bytes, 0
        layouts = self._traced_layouts = needs.layouts
        self._expected = [
            needed_of(*each[:2], layouts[each[0]]) if each[0] in layouts else each for each in first._expected
        ]
        outputs = first._output_layouts
        self._makers = self._makers_of(
            [layouts.get(number, layout) for number, layout in enumerate(outputs, len(self._names))]
        )

    def __getattr__(self, name: str) -> Any:
        """Make some attributes of LATER, and return one of them. Runs on a stream need no work of their
        own."""
        if name not in LATER:
            raise AttributeError(name)
        first = self._plan.model
        assert first is not None
        if name == "_lock":
            self._lock_first()
            return self.__dict__[name]
        if name.endswith("_layouts"):
            every = [self._traced_layouts.get(*each) for each in enumerate(first._layouts)]
            count = len(first._input_layouts)
            self._layouts = tuple(every)
            self._input_layouts, self._output_layouts = self._layouts[:count], self._layouts[count:]
            return self.__dict__[name]
        made = first._sized(self._plan.compiled(self._values, self.device))
        self.__dict__.update(
            {each: made.__dict__[each] for each in ("_work", "_prepared") if each in made.__dict__}
        )
        return self.__dict__[name]

    def _called_on_host(
        self, inputs: dict[str, Any], memory: Mapping[str, Array] = NEW_MEMORY
    ) -> dict[str, Array] | None:
        instances = self._plan.instances_on(None)
        instance = instances.take(self._values)
        self.device._require_ready()
        try:
            return self._dispatched(instance, inputs, memory)
        finally:
            instances.free.append(instance)

    def _start(self, addresses: Sequence[int], stream: int | None, prepared: Prepared | None = None) -> None:
        if prepared is not None:
            super()._start(addresses, stream, prepared)
            return
        instances = self._plan.instances_on(stream)
        instance = instances.take(self._values)
        try:
            for _ in map(instance.bind, self._numbers, addresses):
                pass
            if stream is None:
                instance.dispatch()
            else:
                assert instance.enqueue is not None
                instance.enqueue(stream)
        finally:
            instances.free.append(instance)

    def _copied(self) -> Model:
        _ = self._work, self._layouts
        return super()._copied()

    def _footprint(self, prepared: Any = None) -> Footprint:
        first = self._plan.model
        assert first is not None
        return Footprint(0, first._footprint(prepared).kept, self._arena_bytes)
