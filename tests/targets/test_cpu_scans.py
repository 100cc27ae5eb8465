"""Every way in which the CPU walks scans, at odd sizes and over memory of any alignment."""

from __future__ import annotations

import numpy as np
import pytest

from opendml import FLOAT32, Device, TensorDesc, descs
from opendml.spec.enums import AxisDirection
from tests.targets.walks import (
    WALKS,
    Family,
    Walk,
    check,
    memory_at,
    scans,
    walked,
)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("walk", WALKS, ids=str)
@pytest.mark.parametrize("family", [scans], ids=lambda family: family.__name__)
def test_every_walk_over_memory_of_any_alignment_equals_the_reference(family: Family, walk: Walk) -> None:
    device = Device("cpu")
    for desc in walked(family, walk):
        check(desc, device)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("direction", AxisDirection)
@pytest.mark.parametrize("sizes", [(37, 1025), (3, 40_003)], ids=str)
def test_running_sums_that_cancel_do_not_depend_on_where_the_results_lie(
    sizes: tuple[int, ...], direction: AxisDirection
) -> None:
    tensor = TensorDesc(FLOAT32, sizes)
    desc = descs.CumulativeSummation(tensor, tensor, axis=1, axis_direction=direction)
    random = np.random.default_rng(1)
    x = random.standard_normal(sizes).astype(np.float32)
    x *= random.choice(np.float32([1, 2.0**60]), sizes)
    device = Device("cpu")
    compiled = device.compile_operator(device.create_operator(desc))
    found = set()
    for offset in range(16):
        memory = memory_at(offset, tensor)[1]
        compiled.bind([x], [memory]).dispatch()
        found.add(memory.tobytes())
    assert len(found) == 1
