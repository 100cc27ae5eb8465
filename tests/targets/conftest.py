"""Fixtures that the tests of the CPU share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opendml.targets.cpu.machine import assumed, machine
from tests.targets.walks import SMALL_CACHES


@pytest.fixture
def small_caches() -> Iterator[None]:
    """As if this machine had hardly any caches."""
    with assumed(SMALL_CACHES):
        yield


@pytest.fixture
def no_matrix_registers() -> Iterator[None]:
    """Run a test as if this machine had no matrix registers."""
    with assumed(machine().without_matrix_registers):
        yield
