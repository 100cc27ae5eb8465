"""Descriptions of launches that an interrupt leaves unfinished."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from opendml.targets.cuda import launcher


@pytest.mark.parametrize("where", ["description", "function"])
def test_a_description_serves_no_size_after_an_interrupt(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    driver = SimpleNamespace(CUstream=int, cuLaunchKernelEx=lambda *_: (0,))
    monkeypatch.setattr(launcher, "driver_module", lambda: driver)
    monkeypatch.setattr(launcher, "launch_config", lambda *_: SimpleNamespace())
    launch: Any = SimpleNamespace(cooperative=False)
    config, stream = launcher.LaunchConfig(), 5
    functions = object(), object()
    first = launcher.launcher(functions[0], launch, (4, 1, 128, 1024), 64, stream, False, config)
    assert config.served == (1024, stream)
    with monkeypatch.context() as patch:
        changed = (driver, "CUstream") if where == "description" else (ctypes, "addressof")
        patch.setattr(*changed, interrupted)
        with pytest.raises(KeyboardInterrupt):
            launcher.launcher(functions[1], launch, (8, 1, 128, 2048), 64, stream, False, config)
    assert config.served is None
    again = launcher.launcher(functions[0], launch, (4, 1, 128, 1024), 64, stream, False, config)
    assert again is first
    assert config.served == (1024, stream)
