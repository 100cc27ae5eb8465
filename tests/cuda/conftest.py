"""What the tests of the CUDA target share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from opendml.errors import Unsupported
from opendml.targets.cuda import api, driver
from tests.conftest import MadeOnce


@pytest.fixture(scope="session", autouse=True)
def one_process_lists_kernels(made_once: MadeOnce) -> None:
    """Let one of several processes of tests list kernels, which takes 24 s, for all."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        from tests.cuda import compiled

        compiled.made_once = made_once


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


@pytest.fixture(scope="module")
def emulated_kernels() -> Iterator[None]:
    """Kernels run on the processor, and are compiled once for all tests of a module."""
    from tools.cuda_emulator import emulated

    with emulated():
        yield
