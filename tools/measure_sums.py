"""Measures how exact sums are on the CPU and writes it to opendml/spec/data/sum_tolerances.json.

    python -m tools.measure_sums              all of them
    python -m tools.measure_sums GRU ...      some of them

Terms of a sum may cancel, so an error is counted in steps of the type's precision at the greatest magnitude
of the whole output: |result - reference| / (epsilon * greatest |reference|). The operands are random, of one
size for each operator. The table's bounds ("steps") are set by hand and not changed here; a measured value
above its bound is an error.
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

TABLE = Path(str(resources.files("opendml.spec"))) / "data" / "sum_tolerances.json"
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
    "ADAM_OPTIMIZER": lambda o: (
        [
            *(o.normal(1, 1, 64, 64) for _ in range(2)),
            o.positive(1, 1, 64, 64),
            o.normal(1, 1, 64, 64),
            np.full((1, 1, 1, 1), 7, np.uint32),
        ],
        {"learning_rate": 0.01},
    ),
    "AVERAGE_POOLING_GRAD": lambda o: (
        [o.normal(2, 4, 15, 15)],
        {**_POOLING, "include_padding": False, "sizes": [2, 4, 31, 31]},
    ),
    "BATCH_NORMALIZATION_GRAD": _normalization_gradient,
    "BATCH_NORMALIZATION_TRAINING": _normalization,
    "BATCH_NORMALIZATION_TRAINING_GRAD": _normalization_gradient,
    "FOLD": lambda o: (
        [o.normal(2, 4 * 9, 15 * 15)],
        {"window_sizes": [3, 3], "strides": [2, 2], "sizes": [2, 4, 31, 31]},
    ),
    "GRU": lambda o: _recurrent(o, 3, [_SIGMOID, _TANH], linear_before_reset=False),
    "LOCAL_RESPONSE_NORMALIZATION_GRAD": lambda o: (
        [o.normal(2, 16, 16, 16), o.normal(2, 16, 16, 16)],
        {"cross_channel": True, "local_size": 5, "alpha": 0.5},
    ),
    "LSTM": lambda o: _recurrent(o, 4, [_SIGMOID, _TANH, _TANH]),
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT": lambda o: (
        [
            *(o.bytes(1, 32, 200), o.positive(1, 1, 1), None),
            *(o.bytes(1, 200, 48), o.positive(1, 1, 1) / np.float16(4096)),
        ],
        {},
    ),
    "MAX_POOLING_GRAD": lambda o: ([o.normal(2, 4, 31, 31), o.normal(2, 4, 15, 15)], _POOLING),
    "MULTIHEAD_ATTENTION": lambda o: _attention(o, head_count=4),
    "MULTIHEAD_ATTENTION1": lambda o: _attention(o, query_head_count=4, key_value_head_count=4),
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
}


def steps_off(name: str, dtype: np.dtype[Any], seed: int, device: Device | str = "cpu") -> float:
    """How many steps the outputs of floats are off at most."""
    function = getattr(dml, name.lower())
    arguments, attributes = CASES[name](Operands(seed, dtype))
    found, exact = (function(*arguments, **attributes, device=each) for each in (device, "reference"))
    pairs = [(found, exact)] if isinstance(found, np.ndarray) else list(zip(found, exact, strict=True))
    return max(_steps(*pair) for pair in pairs if pair[0] is not None)


def _steps(result: Array, reference: Array) -> float:
    wide = reference.astype(np.float64)
    unit = float(np.finfo(result.dtype).eps * np.abs(wide).max())
    return float(np.abs(result.astype(np.float64) - wide).max()) / unit


def main(names: Sequence[str]) -> int:
    """Measures, prints, rewrites the table; returns 1 if a bound is not met."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    failed = False
    for name in names or CASES:
        for dtype in TYPES:
            row = table[name][dtype.name.upper()]
            found = max(steps_off(name, dtype, seed) for seed in SEEDS)
            row["measured"] = math.ceil(found * 1000) / 1000
            exceeds = found > row["steps"]
            failed |= exceeds
            print(f"{name:36} {dtype.name} {found:8.3f} of {row['steps']}{' EXCEEDED' if exceeds else ''}")
    TABLE.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
