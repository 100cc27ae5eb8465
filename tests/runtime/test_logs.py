"""Logs: what is told, and that nothing is told by default."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import opendml as dml


def model(device: dml.Device) -> dml.Model:
    graph = dml.Graph()
    return graph.compile({"y": graph.input("x", dml.FLOAT32, [17]) * 1.7320508}, device)


def test_devices_compilations_and_the_cache_are_told(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path))
    with caplog.at_level(logging.DEBUG, "opendml"):
        device = dml.Device("cpu", threads=1)
        model(device)
        dml.activation_elu(np.ones(19, np.float32), alpha=0.8765, device=device)
    assert {record.name for record in caplog.records} == {"opendml"}
    text = caplog.text
    assert "device: Device('cpu', feature_level='6_4', threads=1)" in text
    assert "compiled a graph of outputs [[17]] for cpu in" in text
    assert "compiled a call of outputs [[19]] for cpu in" in text


def test_nothing_is_told_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    model(dml.Device("cpu", threads=1))
    assert capfd.readouterr() == ("", "")
    assert not logging.getLogger("opendml").isEnabledFor(logging.DEBUG)
