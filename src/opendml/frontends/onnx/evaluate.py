"""Nodes on the evaluator of the `onnx` package: what is known ahead, and what DirectML cannot say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx.evaluator_operators import MENDED
from opendml.frontends.onnx.node import Node

RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators whose results differ from run to run."""


class EvaluatorWarning(UserWarning):
    """A node runs on the evaluator of the `onnx` package, in Python: DirectML cannot say it."""


class Evaluator:
    """One node, prepared for the evaluator.

    Raises:
        Unsupported: the evaluator has no such operator.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        reads = sorted(node.reads)
        graph = onnx.GraphProto(name="node")
        graph.node.append(node.message)
        graph.input.extend(onnx.ValueInfoProto(name=name) for name in reads)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.outputs if name)
        model = onnx.ModelProto(ir_version=onnx.IR_VERSION, graph=graph)
        for domain, version in {**node.opsets, node.domain: node.version}.items():
            model.opset_import.append(onnx.OperatorSetIdProto(domain=domain, version=version))
        self._reads = reads
        try:
            self._evaluator = ReferenceEvaluator(model, new_ops=MENDED)
        except Exception as error:
            raise Unsupported(f"{node}: onnx's evaluator has no such operator ({error})") from error

    def __call__(self, contents: Mapping[str, Any]) -> dict[str, Any]:
        """The node's outputs by name.

        Raises:
            InvalidArgument: what the evaluator finds wrong.
        """
        given = {name: contents[name] for name in self._reads}
        try:
            with np.errstate(all="ignore"):
                results = self._evaluator.run(None, given)
        except Exception as error:
            raise InvalidArgument(f"{self._node}: {error}") from error
        names = [name for name in self._node.outputs if name]
        return {name: _array(result) for name, result in zip(names, results, strict=True)}


def _array(result: Any) -> Any:
    """A result as an array, where it is one; sequences stay lists."""
    return np.asarray(result) if isinstance(result, np.ndarray | np.generic) else result
