"""What all tests share: the devices that operators run on, and the folder of foreign test data."""

from __future__ import annotations

from pathlib import Path

import pytest

from opendml import Device, Unsupported

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> Device:
    """A device that runs machine code: its results are compared with those of "reference"."""
    try:
        return Device(request.param)
    except Unsupported as error:
        pytest.skip(str(error))


@pytest.fixture(params=["reference", "cpu", "cuda"])
def any_device(request: pytest.FixtureRequest) -> Device:
    """A device of each kind that is here."""
    try:
        return Device(request.param)
    except Unsupported as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Test data that the repository must not contain, in a folder beside it; without it tests are skipped."""
    if not SHARED.is_dir():
        pytest.skip("the folder ../shared is not here")
    return SHARED
