"""Which function converts which operator of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

from opendml.runtime.graphs.tensor import GraphTensor

Result = GraphTensor | tuple[GraphTensor | None, ...]
"""What a converter returns: the outputs, None for those that only PyTorch can compute."""

Converter = Callable[..., Result]
"""Takes the `Conversion` and the operator's arguments, tensors as those of the graph."""

C = TypeVar("C", bound=Converter)

_converters: dict[Any, Converter] = {}


def converts(*operators: Any) -> Callable[[C], C]:
    """Registers the function below as what converts these overloads (`torch.ops.aten.relu.default`).

    Raises:
        ValueError: there is one already.
    """

    def register(converter: C) -> C:
        for operator in operators:
            if operator in _converters:
                raise ValueError(f"{operator} is converted twice")
            _converters[operator] = converter
        return converter

    return register


def converter_of(operator: Any) -> Converter | None:
    """What converts an overload; None: nothing does."""
    _load()
    return _converters.get(operator)


@cache
def _load() -> None:
    """Imports the families of operators, which register their converters."""
    from opendml.frontends.torch import operators

    for module in iter_modules(operators.__path__):
        import_module(f"{operators.__name__}.{module.name}")
