"""Measures how exact sums are on the CPU and writes it to opendml/spec/data/tolerances.json.

    python -m tools.measure_sums              all of them
    python -m tools.measure_sums GRU ...      some of them

A result is compared with the reference's; the unit of an operator's tolerance is that of the table. The
operands are random, of one size for each operator. The table's bounds are set by hand and not changed here; a
measured value above its bound is an error.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

import opendml as dml
from opendml import Device, descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import ReduceFunction
from opendml.spec.facts import tolerance_facts
from opendml.spec.operator_desc import Size2D
from tools.distances import distances
from tools.terms import of_log_softmax, of_normalization, of_reduction, of_softmax

TABLE = Path(str(resources.files("opendml.spec"))) / "data" / "tolerances.json"
SEEDS = range(8)
TYPES = (np.dtype("float32"), np.dtype("float16"))


class Operands:
    """Random operands of a type."""

    def __init__(self, seed: int, dtype: np.dtype[Any]) -> None:
        self._generator, self._dtype = np.random.default_rng(seed), dtype

    def normal(self, *sizes: int) -> Array:
        """Normally distributed numbers."""
        return self._generator.standard_normal(sizes).astype(self._dtype)

    def positive(self, *sizes: int) -> Array:
        """Numbers from 1/4 to 4."""
        return self._generator.uniform(0.25, 4, sizes).astype(self._dtype)

    def ones(self) -> Array:
        """One one."""
        return np.ones(1, self._dtype)

    def bytes(self, *sizes: int) -> Array:
        """Integers of 8 bits."""
        return self._generator.integers(0, 255, sizes, np.uint8, endpoint=True)

    def regions(self, count: int, extent: float) -> Array:
        """Two corners each."""
        first = self._generator.uniform(0, extent / 2, (count, 2))
        second = first + self._generator.uniform(1, extent / 2, (count, 2))
        return np.concatenate([first, second], axis=1).astype(self._dtype)


Call = tuple[Sequence[Any], Mapping[str, Any]]
"""Positional and keyword arguments of an immediate function."""


def _normalization(o: Operands) -> Call:
    group = (1, 16, 1, 1)
    return [o.normal(4, 16, 32, 32), o.positive(*group), o.normal(*group)], {"epsilon": 1e-5}


def _normalized(o: Operands) -> list[Array]:
    return [o.normal(4, 16, 32, 32), o.positive(1, 16, 1, 1), o.normal(1, 16, 1, 1)]


def _resampled(o: Operands, **more: Any) -> Call:
    return [o.normal(2, 4, 9, 11)], {"interpolation_mode": "LINEAR", "scales": [1, 1, 2.5, 1.5], **more}


def _normalization_gradient(o: Operands) -> Call:
    sizes, group = (4, 16, 32, 32), (1, 16, 1, 1)
    statistics = [o.normal(*group), o.positive(*group), o.positive(*group)]
    return [o.normal(*sizes), o.normal(*sizes), *statistics], {"epsilon": 1e-5}


def _attention(o: Operands, **heads: int) -> Call:
    tensors = [o.normal(2, 64, 4 * 32) for _ in range(3)]
    return tensors, {"scale": 32**-0.5, "mask_type": "NONE", **heads}


def _recurrent(o: Operands, gates: int, activations: Sequence[Any], **attributes: Any) -> Call:
    hidden = 32
    weights = [o.normal(1, 1, gates * hidden, size) * np.float16(0.125) for size in (24, hidden)]
    return [o.normal(1, 12, 4, 24), *weights], {
        "activation_descs": activations,
        "output_sequence": True,
        **attributes,
    }


def _alignment(**more: Any) -> dict[str, Any]:
    return {
        "reduction_function": "AVERAGE",
        "interpolation_mode": "LINEAR",
        "spatial_scale_x": 1.0,
        "spatial_scale_y": 1.0,
        "minimum_samples_per_output": 2,
        "maximum_samples_per_output": 2,
        **more,
    }


def _aligned(o: Operands, **more: Any) -> Call:
    return [o.normal(2, 8, 16, 16), o.regions(6, 15), np.array([0, 1] * 3, np.uint32)], _alignment(**more)


_SIGMOID, _TANH = descs.ActivationSigmoid(), descs.ActivationTanh()
_POOLING: dict[str, Any] = {"window_size": [3, 3], "strides": [2, 2]}
_RESAMPLING: dict[str, Any] = {
    "interpolation_mode": "LINEAR",
    "scales": [1, 1, 2.5, 1.5],
    "sizes": [2, 4, 9, 11],
}
_OUTSIDE: dict[str, Any] = {"out_of_bounds_input_value": 0.0, "sizes": [6, 8, 5, 4]}

CASES: dict[str, Callable[[Operands], Call]] = {
    "ACTIVATION_LOG_SOFTMAX": lambda o: ([o.normal(1, 1, 64, 500)], {}),
    "ACTIVATION_LOG_SOFTMAX1": lambda o: ([o.normal(8, 30, 500)], {"axes": [0, 2]}),
    "ACTIVATION_SOFTMAX": lambda o: ([o.normal(1, 1, 64, 500)], {}),
    "ACTIVATION_SOFTMAX1": lambda o: ([o.normal(8, 30, 500)], {"axes": [0, 2]}),
    "ADAM_OPTIMIZER": lambda o: (
        [
            *(o.normal(1, 1, 64, 64) for _ in range(2)),
            o.positive(1, 1, 64, 64),
            o.normal(1, 1, 64, 64),
            np.full((1, 1, 1, 1), 7, np.uint32),
        ],
        {"learning_rate": 0.01},
    ),
    "AVERAGE_POOLING": lambda o: ([o.normal(2, 4, 31, 31)], {**_POOLING, "include_padding": False}),
    "AVERAGE_POOLING1": lambda o: ([o.normal(2, 4, 31, 31)], {**_POOLING, "include_padding": False}),
    "AVERAGE_POOLING_GRAD": lambda o: (
        [o.normal(2, 4, 15, 15)],
        {**_POOLING, "include_padding": False, "sizes": [2, 4, 31, 31]},
    ),
    "BATCH_NORMALIZATION": lambda o: (
        [
            o.normal(4, 16, 32, 32),
            *(each(1, 16, 1, 1) for each in (o.normal, o.positive, o.positive, o.normal)),
        ],
        {"epsilon": 1e-5},
    ),
    "BATCH_NORMALIZATION_GRAD": _normalization_gradient,
    "BATCH_NORMALIZATION_TRAINING": _normalization,
    "BATCH_NORMALIZATION_TRAINING_GRAD": _normalization_gradient,
    "CONVOLUTION": lambda o: (
        [o.normal(2, 24, 20, 20), o.normal(32, 24, 3, 3), o.normal(1, 32, 1, 1)],
        {},
    ),
    "CUMULATIVE_PRODUCT": lambda o: ([o.normal(4, 8, 200) * np.float16(0.01) + o.ones()], {"axis": 2}),
    "CUMULATIVE_SUMMATION": lambda o: ([o.normal(4, 8, 500)], {"axis": 2}),
    "FOLD": lambda o: (
        [o.normal(2, 4 * 9, 15 * 15)],
        {"window_sizes": [3, 3], "strides": [2, 2], "sizes": [2, 4, 31, 31]},
    ),
    "GEMM": lambda o: ([o.normal(64, 500), o.normal(500, 80), o.normal(64, 80)], {}),
    "GRU": lambda o: _recurrent(o, 3, [_SIGMOID, _TANH], linear_before_reset=False),
    "LOCAL_RESPONSE_NORMALIZATION": lambda o: (
        [o.normal(2, 16, 16, 16)],
        {"cross_channel": True, "local_size": 5, "alpha": 0.5},
    ),
    "LOCAL_RESPONSE_NORMALIZATION_GRAD": lambda o: (
        [o.normal(2, 16, 16, 16), o.normal(2, 16, 16, 16)],
        {"cross_channel": True, "local_size": 5, "alpha": 0.5},
    ),
    "LP_NORMALIZATION": lambda o: ([o.normal(4, 300, 5)], {"axis": 1, "p": 2}),
    "LP_POOLING": lambda o: ([o.normal(2, 4, 31, 31)], {**_POOLING, "p": 3}),
    "LP_POOLING1": lambda o: ([o.normal(2, 4, 31, 31)], {**_POOLING, "p": 3}),
    "LSTM": lambda o: _recurrent(o, 4, [_SIGMOID, _TANH, _TANH]),
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT": lambda o: (
        [
            *(o.bytes(1, 32, 200), o.positive(1, 1, 1), None),
            *(o.bytes(1, 200, 48), o.positive(1, 1, 1) / np.float16(4096)),
        ],
        {},
    ),
    "MAX_POOLING_GRAD": lambda o: ([o.normal(2, 4, 31, 31), o.normal(2, 4, 15, 15)], _POOLING),
    "MEAN_VARIANCE_NORMALIZATION": lambda o: (_normalized(o), {"epsilon": 1e-5}),
    "MEAN_VARIANCE_NORMALIZATION1": lambda o: (_normalized(o), {"axes": [2, 3], "epsilon": 1e-5}),
    "MEAN_VARIANCE_NORMALIZATION2": lambda o: (_normalized(o), {"axes": [2, 3], "epsilon": 1e-5}),
    "MULTIHEAD_ATTENTION": lambda o: _attention(o, head_count=4),
    "MULTIHEAD_ATTENTION1": lambda o: _attention(o, query_head_count=4, key_value_head_count=4),
    "REDUCE": lambda o: ([o.positive(40, 1000)], {"function": "LOG_SUM", "axes": [1]}),
    "RESAMPLE": _resampled,
    "RESAMPLE1": _resampled,
    "RESAMPLE2": lambda o: _resampled(o, rounding_direction="DECREASING"),
    "RESAMPLE3": lambda o: (
        [o.normal(2, 4, 19, 21)],
        {
            "interpolation_mode": "LINEAR",
            "scales": [1, 1, 0.25, 0.4],
            "rounding_direction": "DECREASING",
            "antialiased": True,
        },
    ),
    "RESAMPLE_GRAD": lambda o: ([o.normal(2, 4, 22, 16)], _RESAMPLING),
    "RESAMPLE_GRAD1": lambda o: (
        [o.normal(2, 4, 22, 16)],
        {**_RESAMPLING, "rounding_direction": "DECREASING"},
    ),
    "RNN": lambda o: _recurrent(o, 1, [_TANH]),
    "ROI_ALIGN": lambda o: _aligned(o, **_OUTSIDE),
    "ROI_ALIGN1": lambda o: _aligned(o, **_OUTSIDE),
    "ROI_ALIGN_GRAD": lambda o: (
        [None, o.normal(6, 8, 5, 4), o.regions(6, 15), np.array([0, 1] * 3, np.uint32)],
        _alignment(
            input_pixel_offset=0.5,
            output_pixel_offset=-0.5,
            align_regions_to_corners=False,
            output_gradient=True,
            sizes=[2, 8, 16, 16],
        ),
    ),
    "UPSAMPLE_2D": lambda o: (
        [o.normal(2, 4, 9, 11)],
        {"scale_size": Size2D(2, 3), "interpolation_mode": "LINEAR"},
    ),
}


TERMS: dict[str, Callable[..., Array]] = {
    "ACTIVATION_LOG_SOFTMAX": lambda x, exact: of_log_softmax(x, [3]),
    "ACTIVATION_LOG_SOFTMAX1": lambda x, exact, axes: of_log_softmax(x, axes),
    "ACTIVATION_SOFTMAX": lambda x, exact: of_softmax(x, [3], exact),
    "ACTIVATION_SOFTMAX1": lambda x, exact, axes: of_softmax(x, axes, exact),
    "MEAN_VARIANCE_NORMALIZATION": lambda x, s, b, exact, epsilon: of_normalization(x, [2, 3], epsilon, s),
    "MEAN_VARIANCE_NORMALIZATION1": lambda x, s, b, exact, axes, epsilon: of_normalization(
        x, axes, epsilon, s
    ),
    "REDUCE": lambda x, exact, function, axes: of_reduction(ReduceFunction[function], exact),
}
"""What is added up, where that is not what the operator makes of the magnitudes of its operands."""


def distance(name: str, dtype: np.dtype[Any], seed: int, device: Device | str = "cpu") -> float:
    """How far the outputs of floats are off at most, in the unit of the operator's tolerance."""
    unit = tolerance_facts()[name][dtype.name.upper()]["unit"]
    function = getattr(dml, name.lower())
    arguments, attributes = CASES[name](Operands(seed, dtype))
    found = function(*arguments, **attributes, device=device)
    # States of a network are of its type; what has no such is exact enough in FLOAT32.
    wide = arguments if unit == "greatest" else [_widened(each) for each in arguments]
    exact = function(*wide, **attributes, device="reference")
    terms = None
    if unit == "terms" and name in TERMS:
        terms = TERMS[name](*wide, exact=exact, **attributes)
    elif unit == "terms":
        terms = function(
            *(None if each is None else np.abs(each) for each in wide), **attributes, device="reference"
        )
    # Half of the last place may be the reference's own rounding.
    rounding = 0.5 if unit == "ulp" and dtype == np.float32 else 0.0
    pairs = [(found, exact)] if isinstance(found, np.ndarray) else list(zip(found, exact, strict=True))
    return rounding + max(
        float(distances(unit, result, reference.astype(np.float64), terms).max())
        for result, reference in pairs
        if result is not None
    )


def _widened(operand: Array | None) -> Array | None:
    return None if operand is None else operand.astype(np.float32)


def main(names: Sequence[str]) -> int:
    """Measures, prints, rewrites the table; returns 1 if a bound is not met."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    failed = False
    for name in names or CASES:
        for dtype in TYPES:
            row = table[name][dtype.name.upper()]
            found = max(distance(name, dtype, seed) for seed in SEEDS)
            row["measured"] = math.ceil(found * 1000) / 1000
            exceeds = found > row["bound"]
            failed |= exceeds
            of = f"{row['bound']} {row['unit']}"
            print(f"{name:36} {dtype.name} {found:8.3f} of {of}{' EXCEEDED' if exceeds else ''}")
    TABLE.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
