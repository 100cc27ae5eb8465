"""The backend of `torch.compile`: PyTorch's graphs, forward and backward, on DirectML's operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

from opendml.errors import InvalidArgument
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

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

Run = Callable[..., Any]


def backend(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Run:
    """`torch.compile(model, backend="opendml")`.

    Args:
        mode: one of PyTorch's; all compile alike.
        options: "freezing": True reads the parameters of graphs without gradients ahead of the runs, and
            again after each change that PyTorch counts.

    Raises:
        InvalidArgument: an unknown mode or option.
        Error: a part cannot be compiled.
    """
    freezes = _freezes(mode, options or {})
    # Attention is products and a softmax, which the compiler puts together again, in both directions.
    with sdpa_kernel(SDPBackend.MATH):
        compiled: Run = _autograd(freezes)(module, inputs)
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


def _freezes(mode: str | None, options: Mapping[str, Any]) -> bool:
    """Whether parameters are read ahead."""
    if mode is not None and mode not in _MODES:
        raise InvalidArgument(f"torch.compile: mode={mode!r}; known are {', '.join(_MODES)}")
    for name in options:
        if name != "freezing":
            raise InvalidArgument(f"torch.compile: option {name!r} is unknown; there is 'freezing'")
    freezes = options.get("freezing", False)
    if not isinstance(freezes, bool):
        raise InvalidArgument(f"torch.compile: option 'freezing' is {freezes!r}; needs True or False")
    return freezes


def _autograd(freezes: bool) -> Run:
    compiled: Run = aot_autograd(
        fw_compiler=partial(_compile, "forward"),
        bw_compiler=partial(_compile, "backward"),
        inference_compiler=partial(_compile, "inference", freezes=freezes),
        decompositions=_decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    return compiled


@cache
def _decompositions() -> dict[Any, Any]:
    """PyTorch's decompositions to its core operators, but for the operators that have a mapping."""
    table = dict(core_aten_decompositions().items())
    return {name: decomposition for name, decomposition in table.items() if converter_of(name) is None}


def _compile(kind: str, module: GraphModule, inputs: Sequence[Any], freezes: bool = False) -> Run:
    held = _parameters() if freezes else []
    run = _Sized(kind, module, held) if _has_symbols(module) else _compiled(kind, module, held)

    def boxed(tensors: list[Any]) -> Any:
        given = list(tensors)
        tensors.clear()
        return run(*given)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def _parameters() -> list[int]:
    """Which inputs of the graph that PyTorch is compiling are a module's parameters and buffers that it does
    not write."""
    context = TracingContext.try_get()
    known = context and context.fw_metadata
    if known is None:
        return []
    return [number for number in known.static_input_indices if not known.input_info[number].mutates_data]


def _compiled(kind: str, module: GraphModule, held: Collection[int] = ()) -> Run:
    """A graph whose sizes are all known."""
    without_empty_operands(module)
    device = device_of(module)
    reasons = reasons_against(module, device)
    parts = parts_of(module, reasons)
    report(kind, module, parts, reasons)
    run: Run = divided(module, parts, device, held)
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

    def __init__(self, kind: str, module: GraphModule, held: Collection[int]) -> None:
        self._kind, self._module, self._held = kind, module, held
        self._kept: dict[Any, Run] = {}

    def __call__(self, *given: Any) -> Any:
        key = tuple(map(_key, given))
        run = self._kept.get(key)
        if run is None:
            while len(self._kept) >= _MOST_SIZES:
                self._kept.pop(next(iter(self._kept)))
            run = self._kept[key] = _compiled(self._kind, self._specialized(given), self._held)
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
