"""Reports of the operators that DirectML computes, and of those left to PyTorch."""

from __future__ import annotations

import logging
import operator
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule, Node

from opendml.frontends.torch.indices import checked
from opendml.late_dataclass import dataclass
from opendml.spec.wording import counted

_logger = logging.getLogger("opendml.torch")

_MOST_PLACES = 3
"""Lines of the caller's code that a report names for an operator, at most."""
_FRAME = re.compile(r'^ *File "([^"]+)", line (\d+)', re.MULTILINE)
_PYTORCH = f"{Path(torch.__file__).parent}/"
_REASONS = {
    "it makes memory without values": (
        "empty empty_like empty_permuted empty_strided new_empty new_empty_strided"
    ),
    "PyTorch owns the state of random numbers": (
        "bernoulli exponential geometric log_normal multinomial native_dropout normal normal_functional "
        "poisson rand rand_like randint randint_like randn randn_like randperm uniform"
    ),
    # `decompositions` has the times.
    "PyTorch has the faster kernel": "embedding_dense_backward index_add",
}
_BY_DESIGN = {f"aten.{name}": reason for reason, names in _REASONS.items() for name in names.split()}
"""Why PyTorch runs operators without a warning, by their names without overloads."""

Place = tuple[str, int]
"""A file and a line in it."""


class FallbackWarning(UserWarning):
    """Operators of a compiled graph run in PyTorch.

    It is issued at the line of the caller's code that needs the first of them. It names each operator, where
    it is called, why PyTorch runs it, and which share of the graph this is. Memory without values, random
    numbers and sums at indices give no warning.
    """


@dataclass(frozen=True)
class GraphReport:
    """One graph that was compiled.

    Args:
        kind: "inference", "forward" or "backward".
        operator_count: its operators; what takes one of several outputs is none.
        part_count: the models that they became.
        left: the operators that are left to PyTorch, and how often each occurs.
        reasons: of each of these, why it is.
        places: of each of these, the lines of the caller's code that need it, as "file.py:12".
        untraced: why the graph serves some sizes alone; "": it serves all that it may meet.
    """

    kind: str
    operator_count: int
    part_count: int
    left: Counter[str]
    reasons: dict[str, str]
    untraced: str = ""
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        said = self.operator_count - self.left.total()
        operators = counted(self.operator_count, "operator", "operators")
        first = f"{self.kind}: {said} of {operators} in {counted(self.part_count, 'model', 'models')}"
        lines = [self.line(name) for name, _ in self.left.most_common()]
        if self.untraced:
            lines.append(f"  not for all sizes: {self.untraced}")
        return "\n".join([first, *lines])

    def line(self, name: str) -> str:
        """Return the line of an operator that is left to PyTorch."""
        places = self.places.get(name, ())
        more = ", ..." if len(places) > _MOST_PLACES else ""
        where = f" at {', '.join(places[:_MOST_PLACES])}{more}" if places else ""
        return f"  {name} ({counted(self.left[name], 'time', 'times')}){where}: {self.reasons[name]}"


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
        kind: "inference", "forward" or "backward".
        module: the graph.
        parts: the nodes of each model that it becomes.
        reasons: why DirectML does not express some of the other nodes.
        untraced: why the graph serves some sizes alone.

    Returns:
        A function that reports: to `explained`, or to the log, with one warning for all that is left to
        PyTorch.
    """
    nodes = [
        node
        for node in module.graph.nodes
        if node.op == "call_function" and node.target not in (operator.getitem, checked)
    ]
    left = _left_to_pytorch(nodes, parts)
    places_of = {
        name: [place for each in calls if (place := _place_of(each))] for name, calls in left.items()
    }
    refusals = {
        name: next((reasons[each] for each in calls if each in reasons), None) for name, calls in left.items()
    }
    found = GraphReport(
        kind,
        len(nodes),
        len(parts),
        Counter({name: len(calls) for name, calls in left.items()}),
        {name: _reason(name, refusal) for name, refusal in refusals.items()},
        untraced,
        {name: tuple(dict.fromkeys(map(_shown, places))) for name, places in places_of.items()},
    )
    refused = [
        name
        for name, refusal in refusals.items()
        if refusal is not None and _without_overload(name) not in _BY_DESIGN
    ]

    def tell() -> None:
        listener = _listener.get()
        if listener is not None:
            listener.graphs.append(found)
            return
        _logger.info("%s", found)
        if refused:
            first = next((place for name in refused for place in places_of[name]), None)
            _warn(_warning(found, refused), first)

    return tell


def _left_to_pytorch(nodes: Iterable[Node], parts: Iterable[Iterable[Node]]) -> dict[str, list[Node]]:
    """Return the nodes that are in no part, by the names of their operators."""
    in_parts = {node for part in parts for node in part}
    left: dict[str, list[Node]] = {}
    for node in nodes:
        if node not in in_parts:
            left.setdefault(str(node.target), []).append(node)
    return left


def _reason(name: str, refusal: str | None) -> str:
    """Return why an operator is left to PyTorch.

    Args:
        name: its overload.
        refusal: why DirectML does not express it; None: it does.
    """
    if refusal is None:
        return "nothing beside it is computed"
    return _BY_DESIGN.get(_without_overload(name), refusal)


def _without_overload(name: str) -> str:
    """Return the name of an operator, such as "aten.add", for its overload "aten.add.Tensor"."""
    return name.rpartition(".")[0]


def _warning(report: GraphReport, refused: list[str]) -> str:
    """Return the text of the warning: the operators, and what it costs that PyTorch runs them."""
    count = sum(report.left[name] for name in refused)
    share = f"{count} of {counted(report.operator_count, 'operator', 'operators')}"
    rest = "nothing is compiled"
    if report.part_count:
        rest = f"the others are {counted(report.part_count, 'model', 'models')}"
        rest += ", which exchange tensors with it" if report.part_count > 1 else ""
    first = f"PyTorch runs {share} ({count / report.operator_count:.0%}) of the {report.kind} graph; {rest}"
    return "\n".join(
        [first, *[report.line(name) for name in sorted(refused, key=report.left.__getitem__, reverse=True)]]
    )


_issued: dict[str, dict[Any, Any]] = {}
"""The warnings that were issued in each file, as Python's `warnings` keeps them."""


def _warn(text: str, place: Place | None) -> None:
    """Issue a warning at a line of the caller's code."""
    if place is None:
        warnings.warn(text, FallbackWarning, stacklevel=4)
    else:
        warnings.warn_explicit(text, FallbackWarning, *place, registry=_issued.setdefault(place[0], {}))


def _place_of(node: Node) -> Place | None:
    """Return the innermost line outside of PyTorch that needs a node; None: PyTorch's trace does not tell."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if not frame[0].startswith(_PYTORCH)]
    return (own[-1][0], int(own[-1][1])) if own else None


def _shown(place: Place) -> str:
    return f"{Path(place[0]).name}:{place[1]}"
