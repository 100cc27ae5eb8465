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
from torch.fx import GraphModule
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

from opendml.errors import InvalidArgument
from opendml.frontends.torch.partition import (
    device_of,
    divided,
    parts_of,
    reasons_against,
    without_empty_operands,
)
from opendml.frontends.torch.registry import converter_of
from opendml.frontends.torch.report import Explanation, explained, report
from opendml.frontends.torch.sizes import Run, Sized, depends_on_values, has_symbols
from opendml.runtime.graphs.kept_models import KeptModels
from opendml.runtime.graphs.shared import SharedMemory

_OPTIONS = ("freezing", "most_kept_bytes")
_MOST = "torch.compile: option 'most_kept_bytes'"
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

_aten = torch.ops.aten


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
            again after each change that PyTorch counts. "most_kept_bytes": how much memory each graph may
            keep for sizes of its inputs that ran before, beside what the last ones need (None: a quarter of
            the machine's memory, or of what a container may use).

    Raises:
        InvalidArgument: an unknown mode or option.
        Error: a part cannot be compiled.
    """
    freezes, most = _options(mode, options or {})
    # Attention is products and a softmax, which the compiler puts together again, in both directions.
    with sdpa_kernel(SDPBackend.MATH):
        compiled: Run = _autograd(freezes, most)(module, inputs)
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


def _options(mode: str | None, options: Mapping[str, Any]) -> tuple[bool, int | None]:
    """Whether parameters are read ahead, and how many bytes are kept for other sizes."""
    if mode is not None and mode not in _MODES:
        raise InvalidArgument(f"torch.compile: mode={mode!r}; known are {', '.join(_MODES)}")
    for name in options:
        if name not in _OPTIONS:
            known = " and ".join(map(repr, _OPTIONS))
            raise InvalidArgument(f"torch.compile: option {name!r} is unknown; there are {known}")
    freezes = options.get("freezing", False)
    if not isinstance(freezes, bool):
        raise InvalidArgument(f"torch.compile: option 'freezing' is {freezes!r}; needs True or False")
    most = options.get("most_kept_bytes")
    KeptModels(most, _MOST)  # refuses what is no number of bytes
    return freezes, most


def _autograd(freezes: bool, most: int | None) -> Run:
    compiled: Run = aot_autograd(
        fw_compiler=partial(_compile, "forward", most_kept_bytes=most),
        bw_compiler=partial(_compile, "backward", most_kept_bytes=most),
        inference_compiler=partial(_compile, "inference", freezes=freezes, most_kept_bytes=most),
        decompositions=_decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    return compiled


@cache
def _decompositions() -> dict[Any, Any]:
    """PyTorch's decompositions to its core operators, but for the operators that have a mapping."""
    table = dict(core_aten_decompositions().items()) | {_aten.native_dropout.default: _dropout}
    return {name: decomposition for name, decomposition in table.items() if converter_of(name) is None}


def _dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Only the mask is PyTorch's: it draws what it draws for its own dropout on the CPU, and depends on
    nothing, so it divides no part."""
    if train is False:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    mask = torch.empty(x.shape, dtype=torch.bool, device=x.device).bernoulli(1 - p)
    return x * mask * (1 / (1 - p) if p < 1 else 0.0), mask


def _compile(
    kind: str,
    module: GraphModule,
    inputs: Sequence[Any],
    freezes: bool = False,
    most_kept_bytes: int | None = None,
) -> Run:
    held = _parameters() if freezes else []
    run: Run
    if depends_on_values(module):
        run = _left(kind, module)
    elif has_symbols(module):
        kept = KeptModels(most_kept_bytes, _MOST)
        run = Sized(module, partial(_compiled, kind, held=held, shared=kept.shared), kept)
    else:
        run = _compiled(kind, module, held)

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


def _left(kind: str, module: GraphModule) -> GraphModule:
    """A graph that PyTorch runs as a whole."""
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    report(kind, module, [], dict.fromkeys(nodes, "its graph has sizes that depend on values"))
    return module


def _compiled(
    kind: str, module: GraphModule, held: Collection[int] = (), shared: SharedMemory | None = None
) -> GraphModule:
    """A graph whose sizes are all known."""
    without_empty_operands(module)
    device = device_of(module)
    reasons = reasons_against(module, device)
    parts = parts_of(module, reasons)
    report(kind, module, parts, reasons)
    return divided(module, parts, device, held, shared)
