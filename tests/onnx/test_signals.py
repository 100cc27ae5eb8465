"""Signals while modules are imported: handlers run when no lock is held that other threads need."""

from __future__ import annotations

import builtins
import signal
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import opendml as dml
from opendml.across_forks import importing


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="the system has no such signal")
def test_handlers_do_not_run_under_the_lock_of_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    owned = list[bool]()
    importing_module = builtins.__import__

    def signalled(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "opendml.frontends.onnx.opening":
            signal.raise_signal(signal.SIGUSR1)
        return importing_module(name, *arguments, **named)

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    model = helper.make_model(helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "model", [x], [y]))
    before = signal.signal(signal.SIGUSR1, lambda *_: owned.append(importing._is_owned()))  # type: ignore[attr-defined]
    try:
        monkeypatch.setattr(builtins, "__import__", signalled)
        dml.onnx.load(model, device="cpu")(np.ones(3, np.float32))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert owned
    assert not any(owned)
