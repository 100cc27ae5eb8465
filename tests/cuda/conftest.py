"""What the tests of the CUDA target share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opendml.errors import Unsupported
from opendml.targets.cuda import api, driver


@pytest.fixture(scope="module")
def gpu() -> None:
    """A CUDA device, without which the tests are skipped."""
    try:
        driver.device()
    except Unsupported as error:
        pytest.skip(str(error))


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No driver and no device is known from before, or afterwards."""
    monkeypatch.setattr(driver, "_devices", {})
    api.driver_module.cache_clear()
    yield
    api.driver_module.cache_clear()
