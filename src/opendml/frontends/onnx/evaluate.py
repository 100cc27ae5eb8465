"""Nodes on the evaluator of the `onnx` package: constant folding, and nodes that DirectML cannot express."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from opendml.across_forks import importing
from opendml.budget import meter
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.onnx.element_types import dtype_of
from opendml.frontends.onnx.evaluator_facts import facts_of, fault
from opendml.frontends.onnx.evaluator_limits import bytes_of, most_elements, require_work, results_of
from opendml.frontends.onnx.folding import folded, folds
from opendml.frontends.onnx.inference import inferred_outputs
from opendml.frontends.onnx.node import OnnxNode, graphs_of
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.values import Array, Known, sizes_of_type

_MOST_COMPARED_BYTES = 1024  # Bytes of the largest input that is compared with that of the previous trace.
_MOST_CACHED_BYTES = 64 * 1024  # Bytes of the largest result that a node caches for the next trace.

_MOST_SMALL = 2**20
"""The most elements of a result that NumPy folds without ONNX's inference."""


class EvaluatorWarning(UserWarning):
    """A node runs in Python, on the evaluator of the `onnx` package, because DirectML cannot express it."""


def evaluator_of(node: OnnxNode) -> Evaluator:
    """Return the node's evaluator, which all traces share.

    Raises:
        Unsupported: the evaluator has no such operator.
    """
    found = node.cache.get(Evaluator)
    if not isinstance(found, Evaluator):
        found = node.cache[Evaluator] = Evaluator(node)
    return found


class _Seeds:
    """The source of seeds for random nodes without one; None: the system's."""

    source: np.random.RandomState | None = None


def set_seed(seed: int) -> None:
    """Seed all random nodes that have no seed of their own.

    Raises:
        InvalidArgument: the seed is negative.
    """
    if seed < 0:
        raise InvalidArgument(f"set_seed: {seed}; must not be negative")
    _Seeds.source = np.random.RandomState(seed % 2**32)


class Evaluator:
    """A node prepared for the evaluator.

    Raises:
        Unsupported: the evaluator does not have the operator, or the node has graphs, which the tracer
            handles.
    """

    def __init__(self, node: OnnxNode) -> None:
        if graphs_of(node.message):
            raise Unsupported(f"{node}: its graphs are no work for onnx's evaluator")
        self._node, self._reads = node, sorted(node.reads)
        self._last: tuple[list[tuple[Any, ...] | None], dict[str, Any]] | None = None
        self._evaluator = None if folds(node) else self._prepared()

    def _prepared(self, source: np.random.RandomState | None = None) -> Any:
        """Return the evaluator of the `onnx` package for the node.

        Args:
            source: gives a seed.
        """
        # Few models need it, and it has 230 modules.
        with importing:
            from onnx.reference import ReferenceEvaluator

            from opendml.frontends.onnx.evaluator_operators import MENDED
        node = self._node
        graph = onnx.GraphProto(name="node")
        graph.node.append(node.message)
        if source is not None:
            seed = float(source.randint(2**24))  # A float32 has 24 bits.
            graph.node[0].attribute.append(onnx.helper.make_attribute("seed", seed))
        graph.input.extend(onnx.ValueInfoProto(name=name) for name in self._reads)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.outputs if name)
        model = onnx.ModelProto(ir_version=onnx.IR_VERSION, graph=graph)
        for domain, version in {**node.opsets, node.domain: node.version}.items():
            model.opset_import.append(onnx.OperatorSetIdProto(domain=domain, version=version))
        try:
            return ReferenceEvaluator(model, new_ops=MENDED)
        except Exception as error:
            raise Unsupported(f"{node}: onnx's evaluator has no such operator ({error})") from error

    @property
    def _source(self) -> np.random.RandomState | None:
        """The source of a seed for each run; None: the node has its own, or the system's."""
        is_random = facts_of(self._node).random and "seed" not in self._node.attributes
        return _Seeds.source if is_random else None

    def __call__(self, contents: Mapping[str, Any]) -> dict[str, Any]:
        """Return the node's outputs by name.

        Raises:
            InvalidArgument: the evaluator refuses the inputs, or its results contradict ONNX's inference.
            Unsupported: the evaluator is known to be wrong about these inputs.
            LimitExceeded: the node takes more than the model may.
        """
        given = {name: contents[name] for name in self._reads}
        try:
            reason = fault(self._node, given)
        except (AttributeError, LookupError, TypeError) as error:  # No tensor, or wrong sizes.
            raise InvalidArgument(f"{self._node}: {error}") from error
        if reason is not None:
            raise Unsupported(f"{self._node}: onnx's evaluator {reason}")
        found = self._run(partial(folded, self._node, given)) if self._is_small(given) else None
        if found is None:
            values = {name: Known(content) for name, content in given.items()}
            types = inferred_outputs(self._node, values)
            require_work(self._node, given, results_of(self._node, values, types))
            found = self._run(partial(self._results, given))
            assert found is not None
            self._require_inferred(types, found)
        else:
            sizes = {name: (each.shape, each.itemsize) for name, each in found.items()}
            require_work(self._node, given, sizes)
        for name, content in found.items():
            meter().hold(bytes_of(content), f"{self._node}: output {name!r}")
        return found

    def _is_small(self, given: Mapping[str, Any]) -> bool:
        """Return whether NumPy folds the node and needs little memory, so that no inference must tell it."""
        if self._evaluator is not None:
            return False
        sizes = [np.shape(given[name]) for name in self._node.inputs if name]
        if self._node.operator == "ConstantOfShape":
            sizes = [tuple(np.ravel(given[name]).tolist()) for name in self._node.inputs if name]
        return most_elements(self._node, sizes) <= _MOST_SMALL

    def _run(self, results: Callable[[], Any]) -> dict[str, Any] | None:
        """Return the node's outputs by name; None: there are no results."""
        try:
            with np.errstate(all="ignore"), meter().timed("evaluator_seconds", self._node):
                found = results()
        except Error:
            raise
        except Exception as error:
            raise InvalidArgument(f"{self._node}: {error}") from error
        if found is None:
            return None
        names = [name for name in self._node.outputs if name]
        return {name: _array(result) for name, result in zip(names, found, strict=True)}

    def _results(self, given: dict[str, Any]) -> Any:
        """Return the node's outputs that have names, in order."""
        found = folded(self._node, given) if self._evaluator is None else None
        if found is not None:
            return found
        if self._source is not None:
            return self._prepared(self._source).run(None, given)
        self._evaluator = self._evaluator or self._prepared()
        return self._evaluator.run(None, given)

    def folded(self, contents: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs, which are cached for the last inputs.

        Most nodes get the same known contents for all sizes of a model's inputs.
        """
        given = [_comparable(contents[name]) for name in self._reads]
        if self._last is not None and self._last[0] == given:
            return self._last[1]
        results = self(contents)
        sizes = [each.nbytes if isinstance(each, np.ndarray) else math.inf for each in results.values()]
        if None not in given and max(sizes, default=0) <= _MOST_CACHED_BYTES:
            self._last = given, results
        return results

    def _require_inferred(self, types: Mapping[str, onnx.TypeProto], found: Mapping[str, Any]) -> None:
        """Check results against the sizes and types of ONNX's inference."""
        for name, type in types.items():
            result = found.get(name)
            if isinstance(result, np.ndarray) and not _fits(result, type):
                raise InvalidArgument(
                    f"{self._node}: onnx's evaluator makes {result.dtype.name} of sizes {list(result.shape)} "
                    f"of it, onnx's inference {_text_of(type)}"
                )


def _text_of(type: onnx.TypeProto) -> str:
    """Return an inferred type as text."""
    element = onnx.TensorProto.DataType.Name(type.tensor_type.elem_type).lower()
    sizes = sizes_of_type(type)
    return element if sizes is None else f"{element} of sizes {list(sizes)}"


def _fits(result: Array, type: onnx.TypeProto) -> bool:
    """Return whether a result agrees with the inferred type. Strings have types of any length."""
    if result.dtype.kind in "fiub" and type.tensor_type.elem_type:
        wanted = dtype_of(type.tensor_type.elem_type)
        if wanted.kind in "fiub" and wanted != result.dtype:
            return False
    sizes = sizes_of_type(type)
    if sizes is None or len(sizes) != result.ndim:
        return sizes is None
    return all(
        wanted == size for wanted, size in zip(sizes, result.shape, strict=True) if isinstance(wanted, int)
    )


def _array(result: Any) -> Any:
    """Return a tensor as an array, and a sequence unchanged.

    Strings become objects, because each element of a NumPy string array takes as much as the longest.
    """
    if not isinstance(result, np.ndarray | np.generic):
        return result
    array = np.asarray(result)
    return array.astype(object) if array.dtype.kind == "U" else array


def _comparable(content: Any) -> tuple[Any, ...] | None:
    """Return a value that is equal for equal small tensors; None: the tensor is large."""
    if (
        isinstance(content, np.ndarray)
        and content.nbytes <= _MOST_COMPARED_BYTES
        and not content.dtype.hasobject
    ):
        return content.dtype, content.shape, content.tobytes()
    return None
