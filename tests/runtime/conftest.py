"""The devices of the object model's tests: the reference too."""

from __future__ import annotations

import pytest

from opendml import Device, Unsupported


@pytest.fixture(params=["reference", "cpu", "cuda"])
def any_device(request: pytest.FixtureRequest) -> Device:
    """A device of each kind that is here."""
    try:
        return Device(request.param)
    except Unsupported as error:
        pytest.skip(str(error))
