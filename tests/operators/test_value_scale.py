"""VALUE_SCALE_2D against its formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml import descs
from tests.running import device_kinds, on_arrays


@pytest.mark.parametrize("device", device_kinds())
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("bias", [(0.5,), (0.5, -2.0, 7.0)], ids=len)
def test_each_channel_has_its_bias(bias: tuple[float, ...], dtype: Any, device: str) -> None:
    x = np.random.default_rng(0).uniform(-9, 9, (2, len(bias), 3, 5)).astype(dtype)
    expected = x.astype(np.float64) * 0.75 + np.reshape(bias, (1, -1, 1, 1))
    (result,) = on_arrays(descs.ValueScale2D, [x], [x], device, scale=0.75, bias=bias)
    np.testing.assert_array_equal(result, expected.astype(dtype))
