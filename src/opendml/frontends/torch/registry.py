"""The converters of PyTorch's operators, by overload."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from opendml.frontends.common.registry import Registry
from opendml.runtime.graphs.tensor import GraphTensor

if TYPE_CHECKING:
    from opendml.frontends.torch.conversion import TorchConversion

TorchNode: TypeAlias = "TorchConversion"
Tensor: TypeAlias = GraphTensor
Operand: TypeAlias = Tensor | float
Result: TypeAlias = Tensor | tuple[Tensor | None, ...]
"""The outputs of a node, None for those that only PyTorch can compute."""

Converter: TypeAlias = Callable[..., Result]
"""A function of the node and of the operator's arguments, with tensors of the graph."""

F = TypeVar("F", bound=Converter)

CONVERTERS: Registry[Converter] = Registry("opendml.frontends.torch.operators")


def converts(*names: str, to: str | Callable[..., Any] = "") -> Callable[[F], F]:
    """Register the decorated function as the converter of overloads.

    Args:
        names: the overloads: "prims.sum.default", "add.Tensor" for "aten.add.Tensor", or "relu" for
            "aten.relu.default".
        to: DirectML's operators that say the same, as `Registry.converts` takes them.
    """
    return CONVERTERS.converts(*map(_full_name, names), to=to)


def directml_names() -> dict[str, frozenset[str]]:
    """Return DirectML's operators by the names of PyTorch's operators, without namespaces and overloads."""
    found: dict[str, frozenset[str]] = {}
    for name, meant in CONVERTERS.directml_names().items():
        operator = name.split(".")[1]
        found[operator] = found.get(operator, frozenset()) | meant
    return found


def _full_name(name: str) -> str:
    return {0: f"aten.{name}.default", 1: f"aten.{name}"}.get(name.count("."), name)


def converter_of(operator: object) -> Converter | None:
    """Return the converter of an overload (`torch.ops.aten.relu.default`); None if there is none."""
    return CONVERTERS.find(str(operator))
