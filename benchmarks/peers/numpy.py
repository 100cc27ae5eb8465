"""NumPy, as one would write the formula."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.cases import Layout
from benchmarks.contender import Contender, Mode, NotExpressible
from benchmarks.data import Data
from benchmarks.formulas import ACTIVATIONS, normalize


class NumPy:
    name = "numpy"
    version = np.__version__
    modes = (Mode.NEW,)

    def __init__(self, threads: int) -> None:
        """NumPy's element-wise functions run on one thread whatever `threads` is."""

    def prepare(self, data: Data, mode: Mode) -> Contender:
        case = data.case
        if any(activation.name == "GELU" for activation in case.activations):
            raise NotExpressible("NumPy has no erf")

        def run() -> Any:
            y: Any = data.x.array
            if case.output_layout is Layout.NHWC and case.input_layout is Layout.PACKED:
                return np.ascontiguousarray(y.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
            if case.axes:
                y = normalize(np, y, data.scale, data.bias, case.axes)
            for activation in case.activations:
                y = ACTIVATIONS[activation.name](np, y, **dict(activation.attributes))
            return y

        return Contender(self.name, mode, run, lambda y: y)
