"""What a processor must offer."""

from __future__ import annotations

import os

import llvmlite.binding as llvm
import pytest

import opendml as dml
from opendml.targets.cpu.machine import _cache_bytes, detected, machine


@pytest.mark.parametrize(("feature", "name"), [("fma", "FMA"), ("f16c", "F16C")])
def test_a_processor_without_a_needed_feature_is_refused_by_name(
    feature: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = llvm.get_host_cpu_features()
    features[feature] = False
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(llvm, "get_process_triple", lambda: "x86_64-unknown-linux-gnu")
    detected.cache_clear()
    try:
        with pytest.raises(dml.Unsupported, match=f'no {name},.* use the device "reference"'):
            machine()
    finally:
        detected.cache_clear()


@pytest.mark.parametrize("processors", [1, 2, 4096])
def test_a_few_processors_count_on_their_share_of_a_large_cache(
    processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    whole = _cache_bytes(3) or 16 * 1024 * 1024
    detected.cache_clear()
    try:
        assert machine().last_cache_bytes == min(whole, processors * 2 * 1024 * 1024)
    finally:
        detected.cache_clear()
