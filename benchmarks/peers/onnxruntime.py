"""ONNX Runtime's CPU provider, into new arrays and into an output bound before."""

from __future__ import annotations

from benchmarks.cases import Layout
from benchmarks.contender import Contender, Mode
from benchmarks.data import Data
from benchmarks.onnx_model import make_model
from benchmarks.sessions import onnxruntime_session


class OnnxRuntime:
    name = "onnxruntime"
    modes = (Mode.NEW, Mode.BOUND)

    def __init__(self, threads: int) -> None:
        import onnxruntime

        self._onnxruntime = onnxruntime
        self._threads = threads
        self.version = onnxruntime.__version__

    def prepare(self, data: Data, mode: Mode) -> Contender:
        session = onnxruntime_session(make_model(data), self._threads)
        nhwc = data.case.output_layout is Layout.NHWC
        if mode is Mode.NEW:
            return Contender(
                self.name,
                mode,
                lambda: session.run(["y"], {"x": data.x.array})[0],
                lambda y: y.transpose(0, 3, 1, 2) if nhwc else y,
            )
        # Both have the memory order of the model's output; the bound array is seen through its logical sizes.
        output = data.empty_output().array
        target = output.transpose(0, 2, 3, 1) if nhwc else output
        value = self._onnxruntime.OrtValue.ortvalue_from_numpy(data.x.array)
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", value)
        binding.bind_output("y", "cpu", 0, target.dtype, target.shape, target.ctypes.data)
        return Contender(self.name, mode, lambda: session.run_with_iobinding(binding), lambda _: output)
