"""The backend of `torch.compile`: PyTorch's graphs, forward and backward, on DirectML's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

from opendml.frontends.torch.conversion import outputs_of
from opendml.frontends.torch.partition import (
    device_of,
    divided,
    parts_of,
    reasons_against,
    without_empty_operands,
)
from opendml.frontends.torch.registry import converter_of
from opendml.frontends.torch.report import Explanation, explained, report

_MOST_SIZES = 64
"""For how many sizes of its inputs a graph is kept; the oldest go first."""

Run = Callable[..., Any]


def backend(module: GraphModule, inputs: Sequence[Any]) -> Run:
    """`torch.compile(model, backend="opendml")`.

    Raises:
        Error: a part cannot be compiled.
    """
    # Attention is products and a softmax, which the compiler puts together again, in both directions.
    with sdpa_kernel(SDPBackend.MATH):
        compiled: Run = _autograd()(module, inputs)
    return compiled


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Compiles a function or a module, runs it once, forward and backward, and tells what DirectML computes
    of it and what is left to PyTorch. What was compiled before is forgotten.

    Args:
        function: what would be given to `torch.compile`.
        args, kwargs: what it is called with.
    """
    torch._dynamo.reset()
    with explained() as explanation:
        results = tree_leaves(torch.compile(function, backend=backend)(*args, **kwargs))
        sums = [each.sum() for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
        leaves = [*tree_leaves((args, kwargs)), *getattr(function, "parameters", tuple)()]
        given = [each for each in leaves if isinstance(each, torch.Tensor) and each.requires_grad]
        if sums:
            torch.autograd.grad(sums, given, allow_unused=True)
    torch._dynamo.reset()
    return explanation


def _autograd() -> Run:
    compiled: Run = aot_autograd(
        fw_compiler=partial(_compile, "forward"),
        bw_compiler=partial(_compile, "backward"),
        inference_compiler=partial(_compile, "inference"),
        decompositions=_decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    return compiled


@cache
def _decompositions() -> dict[Any, Any]:
    """PyTorch's decompositions to its core operators, but for the operators that have a mapping."""
    table = dict(core_aten_decompositions().items())
    return {name: decomposition for name, decomposition in table.items() if converter_of(name) is None}


def _compile(kind: str, module: GraphModule, inputs: Sequence[Any]) -> Run:
    run = _Sized(kind, module) if _has_symbols(module) else _compiled(kind, module)

    def boxed(tensors: list[Any]) -> Any:
        given = list(tensors)
        tensors.clear()
        return run(*given)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def _compiled(kind: str, module: GraphModule) -> Run:
    """A graph whose sizes are all known."""
    without_empty_operands(module)
    device = device_of(module)
    reasons = reasons_against(module, device)
    parts = parts_of(module, reasons)
    report(kind, module, parts, reasons)
    run: Run = divided(module, parts, device)
    return run


def _has_symbols(module: GraphModule) -> bool:
    """Whether a graph has sizes that differ from run to run."""
    values = [each for node in module.graph.nodes for each in outputs_of(node)]
    symbolic = torch.SymInt | torch.SymFloat | torch.SymBool
    return any(
        isinstance(each, symbolic)
        or (isinstance(each, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in each.shape))
        for each in values
    )


class _Sized:
    """A graph with symbolic sizes: compiled for each of the sizes that it meets."""

    def __init__(self, kind: str, module: GraphModule) -> None:
        self._kind, self._module = kind, module
        self._kept: dict[Any, Run] = {}

    def __call__(self, *given: Any) -> Any:
        key = tuple(map(_key, given))
        run = self._kept.get(key)
        if run is None:
            while len(self._kept) >= _MOST_SIZES:
                self._kept.pop(next(iter(self._kept)))
            run = self._kept[key] = _compiled(self._kind, self._specialized(given))
        return run(*given)

    def _specialized(self, given: Sequence[Any]) -> GraphModule:
        """The graph, traced again with the sizes of these tensors."""
        mode = FakeTensorMode()
        fakes = [
            mode.from_tensor(each.detach()) if isinstance(each, torch.Tensor) else each for each in given
        ]
        with torch.no_grad(), mode:
            traced: GraphModule = make_fx(self._module)(*fakes)
        return traced


def _key(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return tuple(given.shape), given.stride()
    return given
