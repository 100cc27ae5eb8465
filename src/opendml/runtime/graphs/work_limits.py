"""Work is checked against the limits of the model that it is part of, before it is compiled."""

from __future__ import annotations

from opendml.budget import meter
from opendml.program.steps import repeats_of, steps_of
from opendml.runtime.graphs.work import Work


def require_work(work: Work) -> int:
    """Check the tensors, the recurrent networks and the kernel steps of some work.

    Returns:
        The kernel steps of one dispatch.

    Raises:
        LimitExceeded: more than the model around it may take.
    """
    limits = meter()
    total = sum(work.between)
    for kind, layouts in (("input", work.inputs), ("output", work.outputs)):
        for number, layout in enumerate(layouts):
            where = f"{kind} {number} of a graph, {layout.type.name} {list(layout.sizes)}"
            limits.require("tensor_elements", layout.element_count, where)
            total += layout.span[1] - layout.span[0]
    limits.require_memory(total, "the tensors of a graph")
    repeats = sum(repeats_of(stage.program.results) for stage in work.stages)
    limits.require("graph_parts", repeats, "the steps of a graph's recurrent networks")
    steps = sum(steps_of(stage.program.results) for stage in work.stages)
    limits.require("kernel_steps", steps, "one run of a graph")
    return steps
