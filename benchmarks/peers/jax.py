"""JAX on the CPU: the formula, compiled by `jax.jit` at the highest precision of matrix products.

JAX has no setting for its number of threads; the process's CPU affinity limits it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.cases import Layout
from benchmarks.contender import Contender, Mode, NotExpressible
from benchmarks.data import Data
from benchmarks.formulas import ACTIVATIONS, normalize


class Jax:
    name = "jax"
    modes = (Mode.NEW,)

    def __init__(self, threads: int) -> None:
        import jax

        jax.config.update("jax_platforms", "cpu")
        self._jax = jax
        self.version = jax.__version__
        self._namespace = SimpleNamespace(**vars(jax.numpy))
        self._namespace.erf = jax.scipy.special.erf

    def prepare(self, data: Data, mode: Mode) -> Contender:
        case, xp = data.case, self._namespace
        if case.input_layout is not Layout.PACKED:
            raise NotExpressible("JAX arrays are packed")
        nhwc = case.output_layout is Layout.NHWC

        def formula(x: Any, scale: Any, bias: Any) -> Any:
            y = normalize(xp, x, scale, bias, case.axes) if case.axes else x
            for activation in case.activations:
                y = ACTIVATIONS[activation.name](xp, y, **dict(activation.attributes))
            return y.transpose(0, 2, 3, 1) if nhwc else y

        arguments = [self._jax.device_put(array) for array in (data.x.array, data.scale, data.bias)]
        compiled = self._jax.jit(formula).lower(*arguments).compile()

        def to_numpy(y: Any) -> np.ndarray[Any, Any]:
            result = np.asarray(y)
            return result.transpose(0, 3, 1, 2) if nhwc else result

        return Contender(self.name, mode, lambda: compiled(*arguments).block_until_ready(), to_numpy)
