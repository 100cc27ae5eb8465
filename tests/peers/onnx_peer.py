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
    """The only output of an ONNX operator.

    Args:
        peer: "reference" (NumPy, by ONNX itself) or "runtime" (ONNX Runtime).
        operator: ONNX's name.
        inputs: the tensors, in its order.
        outputs: NumPy's name of the output's type.
        attributes: its attributes; None leaves one out.
    """
    onnx = pytest.importorskip("onnx", reason="ONNX is not installed")
    from onnx import helper

    def info(name: str, dtype: str) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)

    names = [f"x{index}" for index in range(len(inputs))]
    given = {name: np.asarray(array, order="C") for name, array in zip(names, inputs, strict=True)}
    node = helper.make_node(operator, names, ["y"], **attributes)
    infos = [info(name, array.dtype.name) for name, array in given.items()]
    graph = helper.make_graph([node], "one", infos, [info("y", outputs)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    with np.errstate(all="ignore"):
        return np.asarray(_run(onnx, peer, model, given))


def _run(onnx: Any, peer: str, model: Any, inputs: dict[str, Array]) -> Array:
    if peer == "reference":
        from onnx.reference import ReferenceEvaluator

        result: Array = ReferenceEvaluator(model).run(None, inputs)[0]
        return result
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    runtime.set_default_logger_severity(4)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    result = session.run(None, inputs)[0]
    return result
