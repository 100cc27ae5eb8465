"""Nodes that run in NumPy, because DirectML has no operators for them or a program defines them so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from opendml.frontends.onnx.custom import custom_on_arrays
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.scatter_reduction import is_reduction, scatter_reduction_of
from opendml.frontends.onnx.suppression import suppression_of
from opendml.frontends.onnx.tensor_info import TensorInfo

NOTHING: Mapping[str, TensorInfo] = MappingProxyType({})


def hosted(
    node: OnnxNode, declared: Mapping[str, TensorInfo] = NOTHING
) -> Callable[[Mapping[str, Any]], dict[str, Any]] | None:
    """Return the node as a NumPy function of contents by name; None: there is none.

    Args:
        node: the node.
        declared: what the model declares of the results of functions that a program defines.
    """
    if is_reduction(node):
        return scatter_reduction_of(node)
    if not node.domain and node.operator == "NonMaxSuppression":
        return suppression_of(node)
    return custom_on_arrays(node, declared)
