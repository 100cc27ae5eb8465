"""What the tests of the CPU share."""

from __future__ import annotations

import pytest

from tests.targets.walks import use_small_caches


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this machine had hardly any caches."""
    use_small_caches(monkeypatch)
