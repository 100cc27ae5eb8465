"""Every way in which the CPU walks what normalizes groups, at odd sizes and over memory of any alignment."""

from __future__ import annotations

import pytest

from opendml import Device
from tests.targets.walks import (
    WALKS,
    Family,
    Walk,
    check,
    normalizations,
    softmaxes,
    walked,
)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("walk", WALKS, ids=str)
@pytest.mark.parametrize("family", [softmaxes, normalizations], ids=lambda family: family.__name__)
def test_every_walk_over_memory_of_any_alignment_equals_the_reference(family: Family, walk: Walk) -> None:
    device = Device("cpu")
    for desc in walked(family, walk):
        check(desc, device)
