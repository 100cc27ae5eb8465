"""OpenVINO's CPU device with float32 arithmetic, into new arrays and into an output bound before."""

from __future__ import annotations

from benchmarks.cases import Layout
from benchmarks.contender import Contender, Mode
from benchmarks.data import Data
from benchmarks.onnx_model import make_model
from benchmarks.sessions import openvino_core, openvino_request


class OpenVino:
    name = "openvino"
    modes = (Mode.NEW, Mode.BOUND)

    def __init__(self, threads: int) -> None:
        import openvino

        self._openvino = openvino
        self._threads = threads
        openvino_core()  # is no part of the first case
        self.version = openvino.__version__.split("-")[0]

    def prepare(self, data: Data, mode: Mode) -> Contender:
        request = openvino_request(make_model(data), self._threads)
        nhwc = data.case.output_layout is Layout.NHWC
        if mode is Mode.NEW:
            return Contender(
                self.name,
                mode,
                lambda: request.infer({"x": data.x.array}, share_inputs=True, share_outputs=False)[0],
                lambda y: y.transpose(0, 3, 1, 2) if nhwc else y,
            )
        output = data.empty_output().array
        target = output.transpose(0, 2, 3, 1) if nhwc else output
        request.set_input_tensor(self._openvino.Tensor(data.x.array, shared_memory=True))
        request.set_output_tensor(self._openvino.Tensor(target, shared_memory=True))
        return Contender(self.name, mode, lambda: request.infer(share_outputs=True), lambda _: output)
