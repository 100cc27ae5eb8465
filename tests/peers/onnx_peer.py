"""ONNX operators, evaluated by ONNX's own reference or by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from opendml.runtime.memory.host_array import Array

PEERS = ("reference", "runtime")
OPSET = 21


def onnx_result(peer: str, operator: str, inputs: Sequence[Array], outputs: str, **attributes: Any) -> Array:
    """The only output of an ONNX operator, of a type by NumPy's name; otherwise as `onnx_results`."""
    (result,) = onnx_results(peer, operator, inputs, [outputs], **attributes)
    return result


def onnx_results(
    peer: str,
    operator: str,
    inputs: Sequence[Array | None],
    outputs: Sequence[str],
    domain: str = "",
    **attributes: Any,
) -> list[Array]:
    """The outputs of an ONNX operator.

    Args:
        peer: "reference" (NumPy, by ONNX itself) or "runtime" (ONNX Runtime).
        operator: ONNX's name.
        inputs: the tensors, in its order, None for absent ones.
        outputs: NumPy's names of the outputs' types.
        domain: that of the operator.
        attributes: its attributes; None leaves one out.
    """
    onnx = pytest.importorskip("onnx", reason="ONNX is not installed")
    from onnx import helper

    def info(name: str, dtype: str) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)

    names = ["" if array is None else f"x{index}" for index, array in enumerate(inputs)]
    given = {
        name: np.asarray(array, order="C")
        for name, array in zip(names, inputs, strict=True)
        if array is not None
    }
    results = [f"y{index}" for index in range(len(outputs))]
    node = helper.make_node(operator, names, results, domain=domain, **attributes)
    infos = [info(name, array.dtype.name) for name, array in given.items()]
    made = [info(name, dtype) for name, dtype in zip(results, outputs, strict=True)]
    graph = helper.make_graph([node], "one", infos, made)
    sets = [helper.make_opsetid("", OPSET), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    with np.errstate(all="ignore"):
        return [np.asarray(result) for result in _run(onnx, peer, model, given)]


def onnx_type(dtype: np.dtype[Any]) -> int:
    """ONNX's number of a NumPy type."""
    helper = pytest.importorskip("onnx", reason="ONNX is not installed").helper
    number: int = helper.np_dtype_to_tensor_dtype(dtype)
    return number


def _run(onnx: Any, peer: str, model: Any, inputs: dict[str, Array]) -> list[Array]:
    if peer == "reference":
        from onnx.reference import ReferenceEvaluator

        result: list[Array] = ReferenceEvaluator(model).run(None, inputs)
        return result
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    runtime.set_default_logger_severity(4)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    result = session.run(None, inputs)
    return result
