"""Reports of the operators that DirectML computes, and of those left to PyTorch."""

from __future__ import annotations

import logging
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from torch.fx import GraphModule, Node

from opendml.frontends.torch.indices import checked
from opendml.spec.wording import counted

_logger = logging.getLogger("opendml.torch")


class FallbackWarning(UserWarning):
    """Operators of a compiled graph run in PyTorch."""


@dataclass(frozen=True)
class GraphReport:
    """One graph that was compiled.

    Args:
        kind: "inference", "forward" or "backward".
        operator_count: its operators; what takes one of several outputs is none.
        part_count: the models that they became.
        left: the operators that are left to PyTorch, and how often each occurs.
        reasons: of each of these, why it is.
        untraced: why the graph serves some sizes alone; "": it serves all that it may meet.
    """

    kind: str
    operator_count: int
    part_count: int
    left: Counter[str]
    reasons: dict[str, str]
    untraced: str = ""

    def __str__(self) -> str:
        said = self.operator_count - self.left.total()
        operators = counted(self.operator_count, "operator", "operators")
        first = f"{self.kind}: {said} of {operators} in {counted(self.part_count, 'model', 'models')}"
        lines = [f"  {name} ({count} times): {self.reasons[name]}" for name, count in self.left.most_common()]
        if self.untraced:
            lines.append(f"  not for all sizes: {self.untraced}")
        return "\n".join([first, *lines])


@dataclass
class TorchExplanation:
    """The graphs of a function that was compiled, in their order."""

    graphs: list[GraphReport] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(map(str, self.graphs)) or "no graphs"


_listener: ContextVar[TorchExplanation | None] = ContextVar("listener", default=None)


@contextmanager
def explained() -> Iterator[TorchExplanation]:
    """Collect the reports of the block, without warnings."""
    explanation = TorchExplanation()
    token = _listener.set(explanation)
    try:
        yield explanation
    finally:
        _listener.reset(token)


def report(
    kind: str, module: GraphModule, parts: list[list[Node]], reasons: dict[Node, str], untraced: str = ""
) -> Callable[[], None]:
    """Make the report of a graph before its parts are compiled.

    Args:
        untraced: why the graph serves some sizes alone.

    Returns:
        A function that reports: to `explained`, or to the log, with one warning for all that is left to
        PyTorch.
    """
    in_parts = {node for nodes in parts for node in nodes}
    nodes = [
        node
        for node in module.graph.nodes
        if node.op == "call_function" and node.target not in (operator.getitem, checked)
    ]
    left = [node for node in nodes if node not in in_parts]
    found = GraphReport(
        kind,
        len(nodes),
        len(parts),
        Counter(str(node.target) for node in left),
        {str(node.target): reasons.get(node, "nothing beside it is computed") for node in left},
        untraced,
    )
    refused = Counter(str(node.target) for node in left if node in reasons)

    def tell() -> None:
        listener = _listener.get()
        if listener is not None:
            listener.graphs.append(found)
            return
        _logger.info("%s", found)
        if refused:
            names = ", ".join(f"{name} ({count} times)" for name, count in refused.most_common())
            warnings.warn(f"PyTorch runs in the {kind} graph: {names}", FallbackWarning, stacklevel=2)

    return tell
