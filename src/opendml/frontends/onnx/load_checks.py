"""Checks of a whole model at load: operators that nothing runs, and impossible sizes and types.

ONNX Runtime refuses such models at load, too. The tracer would report only the first problem, and only in a
run.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Self

from google.protobuf.message import EncodeError  # type: ignore[import-untyped,unused-ignore]

from opendml.across_forks import importing
from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx import infer_shapes
from opendml.frontends.onnx.custom import converter_of, custom_of
from opendml.frontends.onnx.element_types import set_tensor_type
from opendml.frontends.onnx.evaluate import Evaluator
from opendml.frontends.onnx.folding import folds
from opendml.frontends.onnx.hosted import hosted
from opendml.frontends.onnx.infer_shapes import FITS, WRONG
from opendml.frontends.onnx.inference import is_safe
from opendml.frontends.onnx.inlining import functions_of, has_body
from opendml.frontends.onnx.loops import is_loop
from opendml.frontends.onnx.node import OnnxNode, messages_in, nodes_of, opsets_of
from opendml.frontends.onnx.old_opsets import FIRST_MODERN_OPSET
from opendml.frontends.onnx.package import is_imported, locations, onnx
from opendml.signals import deferred_signals
from opendml.targets.cpu.llvm_library import can_start_processes

_MOST_STATED = 5
"""Greatest number of operators that one message names."""
_MOST_ELEMENTS = 256
"""Elements of the largest weight that inference sees, such as the sizes of a Reshape. Of larger ones it sees
the sizes."""
_LONGEST = 20.0
"""Seconds after which a process that checks a model is given up, and this one does it. A small model takes
0.05."""
_NOT_INFERRED = frozenset({"GroupNormalization", "MeanVarianceNormalization"})
"""Operators for which inference (onnx 1.23) finds no types, or refuses their function body. Results have the
sizes and type of the first input."""


def require_runnable(model: onnx.ModelProto) -> None:
    """Check that something runs each operator of a model.

    Raises:
        Unsupported: neither DirectML nor the evaluator of `onnx` has an operator; the message names them.
    """
    functions, judged = functions_of(model), dict[tuple[str, str, int], str | None]()
    for node in _all_nodes(model):
        key = (node.domain, node.operator, node.version)
        if (*key[:2], node.message.overload) not in functions and key not in judged:
            judged[key] = _reason(node)
    wrong = [reason for reason in judged.values() if reason is not None]
    if wrong:
        more = f", and {len(wrong) - _MOST_STATED} more" if len(wrong) > _MOST_STATED else ""
        raise Unsupported("\n".join(wrong[:_MOST_STATED]) + more)


class PossibleSizes:
    """A check of the sizes and types of a model by the rules of ONNX, as far as they are known at load.

    Another process does it if this one has not imported the `onnx` package: meanwhile converters are
    imported, and this process needs no schemas.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._content: bytes | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if not all(map(_is_inferable, _all_nodes(model))):
            return
        with suppress(EncodeError, ValueError):  # Inference cannot take more than 2 GiB.
            self._content = _without_weights(model).SerializeToString()
        if self._content is not None and not is_imported() and can_start_processes():
            # Under `importing` no other thread forks: its child would keep the pipes open.
            try:
                with suppress(OSError), deferred_signals(), importing:
                    self._process = self._started()
            except BaseException:  # Of a handler that was deferred.
                self.__exit__()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End the process if nobody has waited for it."""
        if self._process is not None and self._process.returncode is None:
            with self._process:
                self._process.kill()

    def require(self) -> None:
        """Wait for the check.

        Raises:
            InvalidArgument: a node cannot take its inputs, or makes another type than the model declares.
        """
        if self._content is None:
            return
        found = b"" if self._process is None else self._answer(self._process, self._content)
        if found == FITS:
            return
        if found.startswith(WRONG):
            raise _does_not_fit(found.removeprefix(WRONG).decode(errors="replace"))
        try:
            onnx.shape_inference.infer_shapes(self._content, strict_mode=True)
        except onnx.shape_inference.InferenceError as error:
            raise _does_not_fit(str(error)) from error
        except (RuntimeError, ValueError):
            return

    @staticmethod
    def _started() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", infer_shapes.__file__, *locations()]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    @staticmethod
    def _answer(process: subprocess.Popen[bytes], content: bytes) -> bytes:
        """Return what the process answers; nothing: it is lost, or takes too long."""
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(infer_shapes.request_of(content), _LONGEST)[0]
        return b""


def _does_not_fit(reason: str) -> InvalidArgument:
    return InvalidArgument(f"sizes and types do not fit: {reason.strip()}")


def require_possible(model: onnx.ModelProto) -> None:
    """Check the sizes and types of a model now, as `PossibleSizes` does."""
    with PossibleSizes(model) as possible:
        possible.require()


def _is_inferable(node: OnnxNode) -> bool:
    """Return whether ONNX's inference takes a node correctly.

    It is wrong about old operators, and refuses dimensions under an ellipsis that broadcast.
    """
    is_old = not node.domain and node.version < FIRST_MODERN_OPSET
    is_broadcast = node.operator == "Einsum" and "..." in str(node.attributes.get("equation"))
    return is_safe(node.message) and not is_old and not is_broadcast


def _reason(node: OnnxNode) -> str | None:
    """Return a message if nothing runs an operator."""
    if not node.domain and node.version < FIRST_MODERN_OPSET and onnx.defs.has(node.operator):
        node = replace(node, version=FIRST_MODERN_OPSET)  # The tracer does the same.
    if is_loop(node) or hosted(node) is not None or (node.operator == "If" and not node.domain):
        return None
    if converter_of(node) is not None or folds(node) or has_body(node):
        return None
    try:
        Evaluator(node)
    except Unsupported:
        fix = "; dml.onnx.custom_operator registers a function" if node.domain else ""
        return f"{node}: neither opendml nor onnx's evaluator has such an operator{fix}"
    return None


def custom_operators(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the operators of a model that are functions of the program."""
    functions = functions_of(model)
    names = [
        f"{node.domain}.{node.operator}"
        for node in _all_nodes(model)
        if custom_of(node) and (node.domain, node.operator, node.message.overload) not in functions
    ]
    return tuple(dict.fromkeys(names))


def _all_nodes(model: onnx.ModelProto) -> Iterator[OnnxNode]:
    """Yield the nodes of a model, of its functions and of the graphs within nodes."""
    opsets = opsets_of(model.opset_import)
    yield from nodes_of(messages_in(model.graph, onnx.NodeProto), opsets)
    for function in model.functions:
        own = {**opsets, **opsets_of(function.opset_import)}
        yield from nodes_of(messages_in(function, onnx.NodeProto), own)


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model for inference, with weights as inputs and without declarations of intermediate tensors.

    Declared sizes of outputs may be wrong. ONNX Runtime accepts that, and so does opendml.
    """
    graph = onnx.GraphProto(name="graph")
    new = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, graph=graph)
    new.functions.extend(model.functions)
    graph = new.graph
    graph.input.extend(model.graph.input)
    declared = {each.name for each in graph.input}
    tensors = {each.name: each for each in model.graph.initializer}
    for each in model.graph.sparse_initializer:  # As dense tensors without content.
        tensors[each.values.name] = onnx.TensorProto(data_type=each.values.data_type, dims=each.dims)
    for node in model.graph.node:
        weight = _large_constant(node)
        if weight is not None:
            tensors[node.output[0]] = weight
            continue
        copy = graph.node.add()
        copy.CopyFrom(node)
        copy.name = node.name or next(filter(None, node.output), node.op_type)  # Errors name it.
    for name, tensor in tensors.items():
        if math.prod(tensor.dims) <= _MOST_ELEMENTS and tensor.name == name:
            graph.initializer.append(tensor)
        elif name not in declared:
            set_tensor_type(graph.input.add(name=name).type, tensor.data_type, list(tensor.dims))
    for each in (graph, *new.functions):
        for node in messages_in(each, onnx.NodeProto):
            if node.op_type in _NOT_INFERRED and not node.domain:
                node.op_type = "Identity"
                del node.attribute[:], node.input[1:]
    for output in model.graph.output:
        copy = graph.output.add()
        copy.CopyFrom(output)
        if copy.type.HasField("tensor_type"):
            copy.type.tensor_type.ClearField("shape")
    return new


def _large_constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    if node.op_type == "Constant" and not node.domain and len(node.output) == 1:
        for attribute in node.attribute:
            if attribute.name == "value" and math.prod(attribute.t.dims) > _MOST_ELEMENTS:
                return attribute.t
    return None
