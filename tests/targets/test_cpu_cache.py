"""The cache of compiled objects on disk: shared, checked, and never a reason to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np, opendml as dml
x = np.linspace(-2, 2, 37, dtype=np.float32)
y = dml.activation_celu(x, alpha=0.75)
assert np.allclose(y, np.where(x > 0, x, 0.75 * np.expm1(x / 0.75)), rtol=1e-6)
"""


def run(cache: Path) -> None:
    environment = os.environ | {"OPENDML_CACHE_DIRECTORY": str(cache)}
    subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True)


def test_objects_are_written_once_and_read_again(tmp_path: Path) -> None:
    run(tmp_path)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(written) == 2  # the kernel and the runtime
    run(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 5000])
def test_damaged_objects_are_compiled_again(tmp_path: Path, damage: bytes) -> None:
    run(tmp_path)
    sound = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path in sound:
        path.write_bytes(damage)
    run(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == sound


def test_single_flipped_bit_is_noticed(tmp_path: Path) -> None:
    run(tmp_path)
    sound = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path, content in sound.items():
        path.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    run(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == sound


def test_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    run(blocker / "cache")
    assert blocker.read_text() == "in the way"


def test_processes_can_fill_the_cache_at_once(tmp_path: Path) -> None:
    environment = os.environ | {"OPENDML_CACHE_DIRECTORY": str(tmp_path)}
    processes = [subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment) for _ in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    assert not list(tmp_path.glob("*.tmp"))
