"""Sessions of the libraries that run ONNX models, on so many threads."""

from __future__ import annotations

from functools import cache
from typing import Any


def onnxruntime_session(model: bytes, threads: int) -> Any:
    """A session of ONNX Runtime's CPU provider."""
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


def openvino_request(model: bytes, threads: int) -> Any:
    """A request of OpenVINO's CPU device, with float32 arithmetic."""
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": str(threads),
        "PERFORMANCE_HINT": "LATENCY",
    }
    core = openvino_core()
    return core.compile_model(core.read_model(model), "CPU", settings).create_infer_request()
