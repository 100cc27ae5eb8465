"""Sessions of the libraries that run ONNX models, on so many threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any


def onnxruntime_session(model: bytes | str, threads: int) -> Any:
    """Return a session of ONNX Runtime's CPU provider for a model or the path of one."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # an operator that is missing is reported once, by the table
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@cache
def openvino_core() -> Any:
    """OpenVINO's core, which takes a while to make."""
    import openvino

    return openvino.Core()


def openvino_request(
    model: bytes | str, threads: int, sizes: Mapping[str, Sequence[int]] | None = None
) -> Any:
    """Return a request of OpenVINO's CPU device, with float32 arithmetic, for a model or the path of one.

    Args:
        sizes: of the inputs of a model that leaves them open.
    """
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": str(threads),
        "PERFORMANCE_HINT": "LATENCY",
    }
    core = openvino_core()
    network = core.read_model(model)
    if sizes is not None and network.is_dynamic():
        network.reshape(dict(sizes))
    return core.compile_model(network, "CPU", settings).create_infer_request()
