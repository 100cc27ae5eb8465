"""Graphs of ONNX models with open sizes, which another process has traced and fused.

A process that meets sizes of a new bucket chooses launches for the kernels of such a graph. It neither parses
nor traces the model, nor fuses the graph. A graph is read only then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from opendml.frontends.onnx.known_runs import GraphFacts, KnownRun, OtherGuards
from opendml.program.atoms import Dimension
from opendml.program.stored_sizes import ReadSizes, WrittenSizes
from opendml.program.trace import Trace
from opendml.runtime.graphs.plan_maker import PlanMaker, StoredPlan
from opendml.runtime.graphs.refusals import Hints, Refusals

if TYPE_CHECKING:
    from opendml.targets.backend import DeviceBackend


class GraphToWrite:
    """A graph of this process, which other processes may read.

    Args:
        maker: makes its plans. It may go on making plans while the graph is written.
        facts: those of the graph.
    """

    def __init__(self, maker: PlanMaker, facts: GraphFacts) -> None:
        with maker.trace._lock:  # While a plan is made, the dimensions are those of its bucket.
            self._dimensions = dict(maker.trace.dimensions)
        self._traced, self._guards, self._facts = maker.traced, maker.guards, facts

    def to_json(self, backend: DeviceBackend) -> dict[str, Any] | None:
        """Return the graph as JSON. None: it has no kernels with open sizes, or these have no form in JSON.

        Args:
            backend: the device.
        """
        written, program = WrittenSizes(), self._traced
        traced = None if program is None else backend.stored_traced(program, written)
        if traced is None:
            return None
        data = {
            "dimensions": [
                [name, each.hint, each.least, each.greatest] for name, each in self._dimensions.items()
            ],
            "graph": traced,
            "guards": written.guards(self._guards),
            **self._facts.to_json(written),
        }
        return {**data, "sizes": written.table()}


class KnownGraph:
    """A graph that makes plans for sizes which no process has met.

    Args:
        data: the JSON that `GraphToWrite.to_json` has made.
        backend: the device.
        threads: threads that share a dispatch, at most.
        only_sizes: the only size of each dimension in the runs of the model, as `PlanMaker` has it.

    Attributes:
        facts: those of the graph.
        constants: the place or the content of each constant, and its identity, as JSON.
        read: the initializers that the trace has read, as JSON.

    Raises:
        LookupError, TypeError, ValueError: it is damaged.
    """

    def __init__(
        self,
        data: dict[str, Any],
        backend: DeviceBackend,
        threads: int | None,
        only_sizes: dict[str, int],
    ) -> None:
        self.constants = {int(number): each for number, *each in data["constants"]}
        self.read = data["read"]
        trace = Trace({name: Dimension(*each) for name, *each in data["dimensions"]}, narrows=True)
        read = ReadSizes(data["sizes"], trace)
        guards = read.guards(data["guards"])
        trace.restore(guards)
        traced = backend.traced_from_stored(data["graph"], read, threads)
        self._maker = PlanMaker(trace, trace.guards, backend.hint_multiple, traced, only_sizes=only_sizes)
        self.facts = GraphFacts.from_json(data, read)
        self._others = OtherGuards(self.facts.others)

    def plan(
        self,
        dimensions: Mapping[str, int],
        has_others: bool,
        known: Callable[[Hints], KnownRun | None],
        refusals: Refusals,
    ) -> StoredPlan | KnownRun | None:
        """Return a run of some sizes by a known plan, or a new plan that serves them.

        None: there is none. Or a handler of a signal asks while its thread makes a plan.

        Args:
            dimensions: the sizes.
            has_others: whether the cache has plans of their bucket that do not serve them.
            known: returns a run by a known plan of some hints that serves the sizes.
            refusals: refused hints of the bucket, to which others are added.
        """
        maker = self._maker
        if maker.trace.is_in_block:
            return None  # Its ranges are those of another bucket.
        if not {*maker.dimensions} <= dimensions.keys() or not self._others.hold(dimensions):
            return None
        maker.has_one_size &= not has_others
        maker.refusals = refusals
        return maker.search({name: dimensions[name] for name in maker.dimensions}, known, lambda plan: plan)
