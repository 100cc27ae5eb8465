"""A survey of an ONNX model that finds all nodes without a mapping, without a run."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from opendml.budget import check_time, meter
from opendml.errors import Error
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import ValueNeeded
from opendml.frontends.onnx.evaluate import Evaluator
from opendml.frontends.onnx.hosted import hosted
from opendml.frontends.onnx.inference import is_safe
from opendml.frontends.onnx.load_checks import require_possible
from opendml.frontends.onnx.loops import is_loop
from opendml.frontends.onnx.model_file import ModelLike, read_model
from opendml.frontends.onnx.node import OnnxNode, onnx_errors
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.segment import Segment
from opendml.frontends.onnx.sizes import NO_SIZES, Sizes
from opendml.frontends.onnx.tensor_info import TensorInfo, tensor_info
from opendml.frontends.onnx.trace import Tracer
from opendml.frontends.onnx.values import RuntimeValue, sizes_of_type
from opendml.late_dataclass import dataclass
from opendml.runtime.objects.device import as_device


@dataclass(frozen=True)
class Gap:
    """A node that does not become DirectML operators, and the reason."""

    node: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """The findings about one model.

    Args:
        name: the model's file.
        opset: the version of ONNX's own operator set.
        inputs: the inputs, with assumed sizes.
        nodes: the number of nodes.
        unsupported: nodes that nothing here runs.
        evaluated: nodes that run on the evaluator of the `onnx` package.
        unknown: nodes that depend on data, whose mapping only a run decides.
    """

    name: str
    opset: int
    inputs: tuple[TensorInfo, ...]
    nodes: int
    unsupported: tuple[Gap, ...]
    evaluated: tuple[Gap, ...]
    unknown: tuple[Gap, ...]


def check(model: ModelLike, sizes: Sizes = NO_SIZES) -> Findings:
    """Convert each node of a model as a run would, for inputs of one size.

    Args:
        model: a path, the bytes of a file, or an onnx.ModelProto.
        sizes: the sizes of symbolic dimensions; others are 1.

    Raises:
        InvalidArgument: the file is no ONNX model, `sizes` do not fit it, or a node cannot take its inputs.
        Unsupported: the operator set is newer than the `onnx` package.
    """
    read, name, weights = read_model(model)
    sizes.require_used([read], name)
    given = sizes.of(read, name)
    symbols = (sizes_of_type(each.type) or () for each in given.graph.input)
    given = Sizes({name: 1 for each in symbols for name in each if isinstance(name, str)}).of(given)
    initializers = {each.name for each in given.graph.initializer}
    infos = (tensor_info(each) for each in given.graph.input if each.name not in initializers)
    inputs = tuple(each if each.sizes is None else replace(each, sizes=each._assumed_sizes) for each in infos)
    require_possible(given)
    checker = Checker.of_model(given, as_device(None), weights)
    with meter().timed("compile_seconds", name):
        checker.survey({each.name: _runtime_value(each) for each in inputs}, _inferred(given))
    opset = next((each.version for each in given.opset_import if each.domain in ("", "ai.onnx")), 0)
    found = (tuple(checker.unsupported), tuple(checker.evaluated), tuple(checker.unknown))
    return Findings(name, opset, inputs, len(given.graph.node), *found)


class Checker(Tracer):
    """A tracer that compiles nothing, and skips nodes that it cannot convert."""

    def survey(self, inputs: Mapping[str, RuntimeValue], inferred: Mapping[str, RuntimeValue]) -> None:
        """Convert all nodes.

        Args:
            inputs: the inputs of the model.
            inferred: sizes and types of the results of skipped nodes.
        """
        self.unsupported: list[Gap] = []
        self.evaluated: list[Gap] = []
        self.unknown: list[Gap] = []
        known = {name: value for name, value in inputs.items() if value.sizes is not None}
        segment, pending = Segment(ChainMap({**self._known, **known}), self._model_cache.shared), self._start
        while pending:
            check_time()
            node, pending = pending.popped()
            missing = [name for name in node.reads if name not in segment.values]
            try:
                if missing:
                    raise ValueNeeded(missing[0])
                replaced = self._convert(node, segment)
            except ValueNeeded as needed:
                what = "tensor" if missing else "the content of tensor"
                self.unknown.append(Gap(str(node), f"depends on {what} {needed.name!r}"))
            except NotExpressible as reason:
                self._gap(node, str(reason))
            else:
                pending = pending.prepended(replaced)
                if replaced:
                    continue
            segment.values.update((name, inferred[name]) for name in node.outputs if name in inferred)

    def _gap(self, node: OnnxNode, reason: str) -> None:
        if is_loop(node) or hosted(node) is not None:
            self.unknown.append(Gap(str(node), reason if is_loop(node) else "runs on the host, in NumPy"))
            return
        try:
            Evaluator(node)
        except Error:
            self.unsupported.append(Gap(str(node), reason))
        else:
            self.evaluated.append(Gap(str(node), reason))


def _runtime_value(info: TensorInfo) -> RuntimeValue:
    if info.sizes is None or info.type is None:
        return RuntimeValue(None, None)
    return RuntimeValue(tuple(int(size or 0) for size in info.sizes), np.dtype(info.type))


def _inferred(model: onnx.ModelProto) -> dict[str, RuntimeValue]:
    """Infer the tensors between nodes whose sizes are all known."""
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    if not all(map(is_safe, nodes)):
        return {}
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except onnx_errors():
        return {}  # The model is broken or very large: nodes behind a gap stay unknown.
    infos = [tensor_info(each) for each in (*inferred.graph.value_info, *inferred.graph.output)]
    return {
        each.name: _runtime_value(each)
        for each in infos
        if each.type is not None
        and each.sizes is not None
        and all(isinstance(size, int) for size in each.sizes)
    }
