"""What the tests of the CUDA target share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opendml.targets.cuda import api, driver


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No driver and no device is known from before, or afterwards."""
    monkeypatch.setattr(driver, "_devices", {})
    api.driver_module.cache_clear()
    yield
    api.driver_module.cache_clear()
