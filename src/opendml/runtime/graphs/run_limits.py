"""The limits of one run: its tensors, its temporary memory and its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from opendml.budget import meter
from opendml.program.program import Layout


def require_tensors(layouts: Sequence[Layout], steps: int, more_bytes: int = 0) -> None:
    """Check the tensors of some work and its kernel steps against the limits.

    Raises:
        LimitExceeded: more than the model around it may take.
    """
    limits, total = meter(), more_bytes
    for layout in layouts:
        where = f"a tensor of a graph, {layout.type.name} {list(layout.sizes)}"
        limits.require("tensor_elements", layout.element_count, where)
        total += layout.span[1] - layout.span[0]
    limits.require_memory(total, "the tensors of a graph")
    limits.require("kernel_steps", steps, "one run of a graph")


def require_run(
    layouts: Callable[[], Iterable[Layout]],
    counts: Iterable[int],
    tensor_bytes: int,
    arena_bytes: int,
    steps: int,
) -> None:
    """Check a run of known code for new sizes against the limits, which takes little time if it meets them.

    Args:
        layouts: returns the layouts of its tensors, which an error names.
        counts: the elements of each tensor.
        tensor_bytes: the bytes of all tensors.
        arena_bytes: its temporary memory.
        steps: its kernel steps.

    Raises:
        LimitExceeded: more than the model around it may take.
    """
    if not meter().allows(max(tensor_bytes, arena_bytes), max(counts, default=0), steps):
        require_tensors([*layouts()], steps)
        meter().require_memory(arena_bytes, "the temporary tensors of a graph")
