"""The backend of `torch.compile`: PyTorch's graphs, forward and backward, on DirectML's operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext
from torch.fx import GraphModule
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

from opendml.errors import InvalidArgument
from opendml.frontends.torch.attention import with_attention
from opendml.frontends.torch.decompositions import decompositions
from opendml.frontends.torch.indices import with_checked_indices, with_indices_in_range
from opendml.frontends.torch.partition import (
    DividedGraph,
    device_of,
    parts_of,
    reasons_against,
    with_numbers,
    with_own_memory,
    without_empty_operands,
)
from opendml.frontends.torch.recurrent import allow_networks, with_networks
from opendml.frontends.torch.report import TorchExplanation, explained, report
from opendml.frontends.torch.sizes import Run, Sized, depends_on_values, has_symbols
from opendml.frontends.torch.symbols import Symbols, Tracing, Untraceable
from opendml.runtime.graphs.model_cache import ModelCache
from opendml.runtime.graphs.plan_maker import UNTRACED
from opendml.runtime.graphs.shared import SharedMemory
from opendml.runtime.graphs.traced_model import has_plans
from opendml.runtime.objects.device import Device
from opendml.targets.registry import KINDS

_SWITCHES = ("freezing", "check_indices")
_OPTIONS = (*_SWITCHES, "most_kept_bytes")
_MOST = "torch.compile: option 'most_kept_bytes'"
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def backend(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Run:
    """Compile a graph for `torch.compile(model, backend="opendml")`.

    Args:
        mode: one of PyTorch's; all compile alike.
        options: "freezing": True reads the parameters of graphs without gradients ahead of the runs, and
            again after each change that PyTorch counts. "check_indices": True refuses indices that are out of
            range; without it they stand for the nearest element. "most_kept_bytes": the memory that a graph
            may keep for earlier sizes of its inputs, beside what the last ones need. None stands for a
            quarter of the memory that the process may use.

    Raises:
        InvalidArgument: an unknown mode or option.
        Error: a part cannot be compiled.

    Raises (what is compiled):
        InvalidArgument: an index is out of range, with "check_indices".
    """
    chosen = chosen_options(mode, options or {})
    # Attention that needs gradients stays decomposed; the compiler fuses its products and softmax.
    module = with_networks(with_attention(module))
    with sdpa_kernel(SDPBackend.MATH):
        compiled: Run = _autograd(**chosen)(module, inputs)
    return compiled


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> TorchExplanation:
    """Compile a function or a module, run it once, and report what is left to PyTorch.

    It runs forward and backward. Everything that was compiled before is forgotten.

    Args:
        function: what would be given to `torch.compile`.
        args, kwargs: what it is called with.
    """
    torch._dynamo.reset()
    with explained() as explanation:
        results = tree_leaves(torch.compile(function, backend=backend)(*args, **kwargs))
        sums = [each.sum() for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
        if sums:
            torch.autograd.grad(sums, _leaves_of(sums))
    torch._dynamo.reset()
    return explanation


def _leaves_of(results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the tensors that get gradients of results, such as parameters that a function refers to."""
    waiting, found = [each.grad_fn for each in results], dict[Any, torch.Tensor]()
    known = set(waiting)
    while waiting:
        step: Any = waiting.pop()
        if hasattr(step, "variable"):
            found[step] = step.variable
        following = {each for each, _ in step.next_functions if each is not None} - known
        known |= following
        waiting += following
    return list(found.values())


def chosen_options(mode: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options by name."""
    if mode is not None and mode not in _MODES:
        raise InvalidArgument(f"torch.compile: mode={mode!r}; known are {', '.join(_MODES)}")
    for name, value in options.items():
        if name not in _OPTIONS:
            raise InvalidArgument(
                f"torch.compile: option {name!r} is unknown; known are {', '.join(_OPTIONS)}"
            )
        if name in _SWITCHES and not isinstance(value, bool):
            raise InvalidArgument(f"torch.compile: option {name!r} is {value!r}; needs True or False")
    most = options.get("most_kept_bytes")
    ModelCache(most, _MOST)  # refuses what is no number of bytes
    return {name: options.get(name, False) for name in _SWITCHES} | {"most_kept_bytes": most}


def _autograd(freezing: bool, check_indices: bool, most_kept_bytes: int | None) -> Run:
    compile = partial(_compile, most_kept_bytes=most_kept_bytes)
    compiled: Run = aot_autograd(
        fw_compiler=partial(compile, "forward", checks=check_indices),
        bw_compiler=partial(compile, "backward"),
        inference_compiler=partial(compile, "inference", freezes=freezing, checks=check_indices),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    return compiled


def _compile(
    kind: str,
    module: GraphModule,
    inputs: Sequence[Any],
    freezes: bool = False,
    checks: bool = False,
    most_kept_bytes: int | None = None,
) -> Run:
    held = _parameters() if freezes else []
    return compiled_graph(
        kind, module, held=held, freezing=freezes, check_indices=checks, most_kept_bytes=most_kept_bytes
    )


def compiled_graph(
    kind: str,
    module: GraphModule,
    *,
    held: Collection[int],
    freezing: bool,
    check_indices: bool,
    most_kept_bytes: int | None,
) -> Run:
    """Compile a graph of PyTorch's core operators.

    Args:
        kind: "inference", "forward" or "backward".
        module: the graph. Its inputs have their values without content.
        held: the numbers of inputs that are read ahead of the runs, with `freezing`.
        freezing, check_indices, most_kept_bytes: as of `backend`.

    Returns:
        A function of a list of all inputs, which it empties.
    """
    divide = partial(_divided, kind, held=held if freezing else (), checks=check_indices)
    run: Run
    device = device_of(module)
    if depends_on_values(module):
        run = _left(kind, module, "its graph has sizes that depend on values")
    elif device.type not in KINDS:
        run = _left(kind, module, f"its graph computes on {device}")
    elif has_symbols(module):
        kept, on = ModelCache(most_kept_bytes, _MOST), Device(str(device))
        with_own_memory(module, trusts_inputs=kind != "backward")
        run = Sized(module, _symbols_of(module, on), partial(divide, shared=kept.shared), kept, on)
    else:
        exact = divide(module).at({})
        assert exact is not None
        run = exact

    def boxed(tensors: list[Any]) -> Any:
        given = list(tensors)
        tensors.clear()
        return run(*given)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def _parameters() -> list[int]:
    """Return the numbers of the inputs of the graph that PyTorch is compiling which are a module's parameters
    and buffers that it does not write."""
    context = TracingContext.try_get()
    known = context and context.fw_metadata
    if known is None:
        return []
    return [number for number in known.static_input_indices if not known.input_info[number].mutates_data]


def _left(kind: str, module: GraphModule, reason: str) -> GraphModule:
    """Leave a whole graph to PyTorch."""
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    report(kind, module, [], dict.fromkeys(nodes, reason))()
    return module


def _symbols_of(module: GraphModule, device: Device) -> Symbols | str:
    """Return the symbols of a graph, or why its sizes cannot be traced."""
    if not has_plans(device):
        return f"the device {device.kind} has no plans for several sizes"
    try:
        return Symbols(module)
    except (Untraceable, *UNTRACED) as error:
        return str(error)


def _divided(
    kind: str,
    module: GraphModule,
    tracing: Tracing | None = None,
    *,
    held: Collection[int] = (),
    checks: bool = False,
    shared: SharedMemory | None = None,
    untraced: str = "",
) -> DividedGraph:
    """Compile a graph.

    Args:
        tracing: has the traces of its sizes; None: all are known.
        untraced: why a graph with symbolic sizes serves some sizes alone.

    Raises:
        Untraceable: the traces do not serve the sizes that they are made for, or no others.
    """
    without_empty_operands(module)
    if checks:
        with_checked_indices(module)
    else:
        with_indices_in_range(module)
    if tracing is None:
        with_own_memory(module, trusts_inputs=kind != "backward")
    numbers = [] if tracing is None else with_numbers(module)
    device = device_of(module)
    reasons = reasons_against(module, device)
    if tracing is not None:
        tracing.require(tracing.used.trace)
    parts = parts_of(module, reasons)
    tell = report(kind, module, parts, reasons, untraced)
    graph = DividedGraph(module, parts, device, tracing, held, shared, numbers)
    tell()
    return graph


allow_networks(backend)
