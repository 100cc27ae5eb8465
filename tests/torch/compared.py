"""Functions of PyTorch on DirectML's operators, compared with PyTorch itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves

from opendml.frontends.torch.backend import _divided
from opendml.frontends.torch.decompositions import decompositions
from opendml.frontends.torch.report import GraphReport, explained
from tests.tolerances import assert_within


def compiled(function: Callable[..., Any], *tensors: Any) -> tuple[Callable[..., Any], GraphReport]:
    """A function as the backend compiles the graph that PyTorch makes of it, and what is said of it."""
    module = make_fx(
        lambda *given: function(*given), decomposition_table=decompositions(), tracing_mode="fake"
    )(*tensors)
    with explained() as explanation:
        run = _divided("inference", module).at({})
    assert run is not None
    return run, explanation.graphs[0]


def require_equal(
    function: Callable[..., Any], *tensors: Any, left: int = 0, rtol: float = 1e-5, atol: float = 1e-5
) -> None:
    """Checks that a function gives PyTorch's results in PyTorch's types, sizes and strides, and that so many
    of its operators are left to PyTorch."""
    expected = tree_leaves(function(*tensors))
    run, report = compiled(function, *tensors)
    assert report.left.total() == left, str(report)
    results = tree_leaves(run(*tensors))
    for result, wanted in zip(results, expected, strict=True):
        assert result.stride() == wanted.stride()
        torch.testing.assert_close(result, wanted, rtol=rtol, atol=atol, equal_nan=True)


def require_within(operator: str, function: Callable[..., Any], *tensors: Any) -> None:
    """Checks that a function of floats, linear in each, is within the operator's tolerance, which is that of
    sums, of what PyTorch gives in float64."""
    exact = tree_leaves(function(*(tensor.double() for tensor in tensors)))
    terms = tree_leaves(function(*(tensor.abs().double() for tensor in tensors)))
    run, report = compiled(function, *tensors)
    assert report.left.total() == 0, str(report)
    for result, wanted, added in zip(tree_leaves(run(*tensors)), exact, terms, strict=True):
        assert_within(operator, result.numpy(), wanted.numpy(), added.numpy())
