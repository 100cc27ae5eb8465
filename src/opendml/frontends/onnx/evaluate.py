"""Nodes on the evaluator of the `onnx` package: what is known ahead, and what DirectML cannot say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from opendml.budget import meter
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.onnx.evaluator_faults import fault
from opendml.frontends.onnx.evaluator_operators import MENDED
from opendml.frontends.onnx.evaluator_work import bytes_of, require_work
from opendml.frontends.onnx.growth import results_of
from opendml.frontends.onnx.inference import inferred_outputs
from opendml.frontends.onnx.node import Node, graphs_of
from opendml.frontends.onnx.values import Array, Known

RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators whose results differ from run to run."""


UNSURE = frozenset(
    {
        "Attention",
        "AveragePool",
        "GRU",
        "GatherElements",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "GridSample",
        "LSTM",
        "LpPool",
        "MaxPool",
        "MeanVarianceNormalization",
        "RNN",
        "Resize",
        "RotaryEmbedding",
        "Shape",
        "Upsample",
    }
)
"""Operators of which the evaluator makes something else at times: what DirectML can say it is not asked."""


_SMALL = 1024
"""Bytes of a tensor up to which it is compared with that of the trace before."""
_KEPT = 64 * 1024
"""Bytes of results that nodes keep for the next trace, at most."""


class EvaluatorWarning(UserWarning):
    """A node runs on the evaluator of the `onnx` package, in Python: DirectML cannot say it."""


def evaluator_of(node: Node) -> Evaluator:
    """The node's evaluator, which all traces share.

    Raises:
        Unsupported: the evaluator has no such operator.
    """
    found = node.kept.get(Evaluator)
    if not isinstance(found, Evaluator):
        found = node.kept[Evaluator] = Evaluator(node)
    return found


class Evaluator:
    """One node, prepared for the evaluator.

    Raises:
        Unsupported: the evaluator has no such operator, or the node has graphs, which the tracer takes.
    """

    def __init__(self, node: Node) -> None:
        if graphs_of(node.message):
            raise Unsupported(f"{node}: its graphs are no work for onnx's evaluator")
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
        self._last: tuple[list[tuple[Any, ...] | None], dict[str, Any]] | None = None
        try:
            self._evaluator = ReferenceEvaluator(model, new_ops=MENDED)
        except Exception as error:
            raise Unsupported(f"{node}: onnx's evaluator has no such operator ({error})") from error

    def __call__(self, contents: Mapping[str, Any]) -> dict[str, Any]:
        """The node's outputs by name.

        Raises:
            InvalidArgument: what the evaluator finds wrong, or what of its results is not ONNX's.
            Unsupported: what the evaluator is known to compute otherwise than ONNX says.
            LimitExceeded: the node takes more than the model may.
        """
        given = {name: contents[name] for name in self._reads}
        try:
            reason = fault(self._node, given)
        except (AttributeError, LookupError, TypeError) as error:  # what is no tensor, or not of such sizes
            raise InvalidArgument(f"{self._node}: {error}") from error
        if reason is not None:
            raise Unsupported(f"{self._node}: onnx's evaluator {reason}")
        values = {name: Known(content) for name, content in given.items()}
        types = inferred_outputs(self._node, values)
        require_work(self._node, given, results_of(self._node, values, types))
        try:
            with np.errstate(all="ignore"), meter().timed("evaluator_seconds", self._node):
                results = self._evaluator.run(None, given)
        except Error:
            raise
        except Exception as error:
            raise InvalidArgument(f"{self._node}: {error}") from error
        names = [name for name in self._node.outputs if name]
        found = {name: _array(result) for name, result in zip(names, results, strict=True)}
        self._require_inferred(types, found)
        for name, content in found.items():
            meter().hold(bytes_of(content), f"{self._node}: output {name!r}")
        return found

    def folded(self, contents: Mapping[str, Any]) -> dict[str, Any]:
        """The same, but the node is not evaluated again if it gets what it got last: most nodes get the same
        known contents whatever sizes a model's inputs have."""
        given = [_compared(contents[name]) for name in self._reads]
        if self._last is not None and self._last[0] == given:
            return self._last[1]
        results = self(contents)
        if None not in given and all(_is_kept(result) for result in results.values()):
            self._last = given, results
        return results

    def _require_inferred(self, types: Mapping[str, onnx.TypeProto], found: Mapping[str, Any]) -> None:
        """Checks that results are of the sizes and types that ONNX's inference says."""
        for name, type in types.items():
            result = found.get(name)
            if isinstance(result, np.ndarray) and not _fits(result, type.tensor_type):
                raise InvalidArgument(
                    f"{self._node}: onnx's evaluator makes {result.dtype.name} of sizes {list(result.shape)} "
                    "of it, ONNX something else"
                )


def _fits(result: Array, tensor: onnx.TypeProto.Tensor) -> bool:
    """Whether a result is what inference says, as far as it says it. Strings have types of any length."""
    if result.dtype.kind in "fiub" and tensor.elem_type:
        wanted = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if wanted.kind in "fiub" and wanted != result.dtype:
            return False
    if not tensor.HasField("shape"):
        return True
    sizes = [each.dim_value if each.HasField("dim_value") else None for each in tensor.shape.dim]
    return len(sizes) == result.ndim and all(
        wanted in (None, size) for wanted, size in zip(sizes, result.shape, strict=True)
    )


def _array(result: Any) -> Any:
    """A result as an array, where it is one; sequences stay lists. Strings are objects: in arrays of NumPy's
    own strings each takes as much as the longest."""
    if not isinstance(result, np.ndarray | np.generic):
        return result
    array = np.asarray(result)
    return array.astype(object) if array.dtype.kind == "U" else array


def _compared(content: Any) -> tuple[Any, ...] | None:
    """What is equal for equal small tensors; None for others."""
    if isinstance(content, np.ndarray) and content.nbytes <= _SMALL and not content.dtype.hasobject:
        return content.dtype, content.shape, content.tobytes()
    return None


def _is_kept(result: Any) -> bool:
    return isinstance(result, np.ndarray) and result.nbytes <= _KEPT
