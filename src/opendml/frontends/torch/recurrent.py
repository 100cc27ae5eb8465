"""LSTM and GRU as one operator each in PyTorch's graphs.

PyTorch decomposes these networks into operators for every step, or calls a library for each layer. Graphs
that need no gradients have these operators instead, which are converted as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

from opendml.across_forks import importing

Tensors: TypeAlias = list[torch.Tensor]


@torch.library.custom_op("opendml::lstm", mutates_args=())  # type: ignore[untyped-decorator]
def lstm(
    x: torch.Tensor,
    states: Tensors,
    weights: Tensors,
    has_biases: bool,
    layers: int,
    is_bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute `torch.lstm` without dropout, where a graph leaves it to PyTorch."""
    results: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = torch.lstm(
        x, states, weights, has_biases, layers, 0.0, False, is_bidirectional, batch_first
    )
    return results


@torch.library.custom_op("opendml::gru", mutates_args=())  # type: ignore[untyped-decorator]
def gru(
    x: torch.Tensor,
    states: Tensors,
    weights: Tensors,
    has_biases: bool,
    layers: int,
    is_bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute `torch.gru` without dropout, where a graph leaves it to PyTorch."""
    results: tuple[torch.Tensor, torch.Tensor] = torch.gru(
        x, states[0], weights, has_biases, layers, 0.0, False, is_bidirectional, batch_first
    )
    return results


def _results(x: torch.Tensor, states: Sequence[torch.Tensor], *options: Any) -> tuple[torch.Tensor, ...]:
    """Return the results of a network as PyTorch lays them: step after step, whatever comes first."""
    *_, is_bidirectional, batch_first = options
    steps, batch = (1, 0) if batch_first else (0, 1)
    width = states[0].shape[-1] * (2 if is_bidirectional else 1)
    sequence = x.new_empty((x.shape[steps], x.shape[batch], width))
    return sequence.transpose(0, 1) if batch_first else sequence, *(
        each.new_empty(each.shape) for each in states
    )


lstm.register_fake(_results)
gru.register_fake(_results)

_OPERATORS = {
    torch.lstm: (torch.ops.opendml.lstm.default, 4),
    torch.gru: (torch.ops.opendml.gru.default, 3),
}
"""The operator of each function, and its gates."""


def with_networks(module: GraphModule) -> GraphModule:
    """Replace the recurrent networks of a graph, in place, unless they need gradients.

    Args:
        module: as PyTorch traced it.

    Returns:
        The module.
    """
    found = [node for node in module.graph.nodes if node.op == "call_function" and node.target in _OPERATORS]
    for node in found:
        operator, gates = _OPERATORS[node.target]
        arguments = _arguments(node, gates) if len(node.args) == 9 and not node.kwargs else None
        if arguments is not None:
            node.target, node.args = operator, arguments
    if found:
        module.recompile()
    return module


def _arguments(node: Node, gates: int) -> tuple[Any, ...] | None:
    """Return the arguments of the operator; None if it does not compute the same.

    Sequences of several lengths (`PackedSequence`), projections and dropout are left as they are.
    """
    x, given, weights, has_biases, layers, dropout, train, is_bidirectional, batch_first = node.args
    states = [given] if isinstance(given, Node) else list(given)
    if not isinstance(weights, list | tuple) or (train and dropout):
        return None
    if len(weights) != layers * (2 if is_bidirectional else 1) * (4 if has_biases else 2):
        return None
    values = [each.meta.get("example_value") for each in (x, *states, *weights)]
    if not all(isinstance(each, torch.Tensor) for each in values):
        return None
    results = [each for each in tree_leaves(node.meta.get("example_value")) if isinstance(each, torch.Tensor)]
    if not results or any(each.requires_grad for each in results) or values[0].dim() != 3:
        return None
    if {each.dtype for each in values} != {results[0].dtype}:
        return None
    hidden = values[1].shape[-1]
    if any(each.shape[0] != gates * hidden for each in values[1 + len(states) :]):
        return None
    return x, states, list(weights), has_biases, layers, is_bidirectional, batch_first


class _Allowed(int):
    """A setting of `torch._dynamo` that holds for one backend, in graphs that need no gradients."""

    backend: object
    """The backend."""

    def __bool__(self) -> bool:
        """Return whether PyTorch traces such a graph now."""
        with importing:
            from torch._dynamo.symbolic_convert import InstructionTranslator
        try:
            output: Any = InstructionTranslator.current_tx().output
        except AttributeError:  # nothing is traced
            return False
        compiler = output.compiler_fn
        compiler = getattr(compiler, "_torchdynamo_orig_backend", compiler)
        return getattr(compiler, "compiler_fn", compiler) is self.backend and not torch.is_grad_enabled()


def allow_networks(backend: object) -> None:
    """Let `torch._dynamo` trace LSTM and GRU for a backend.

    By default it leaves them to Python, because its own decompositions have operators for every step. Other
    backends, and training, see no difference. A setting that the caller has made stays.
    """
    config: Any = torch._dynamo.config
    if getattr(config, "allow_rnn", None) is False:
        config.allow_rnn = _Allowed()
        config.allow_rnn.backend = backend
