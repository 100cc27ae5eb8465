"""The cache of compiled objects on disk: shared, checked, and never a reason to fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import opendml as dml
from opendml import Unsupported
from opendml.digests import digest_of
from opendml.targets import object_cache
from opendml.targets.cpu import engine, linker, machine_code
from opendml.targets.object_cache import compiler_digest

SCRIPT = """
import numpy as np, opendml as dml
x = np.linspace(-2, 2, 37, dtype=np.float32)
y = dml.activation_celu(x, alpha=0.75)
assert np.allclose(y, np.where(x > 0, x, 0.75 * np.expm1(x / 0.75)), rtol=1e-6)
"""


def run(cache: Path) -> None:
    environment = os.environ | {"OPENDML_CACHE_DIRECTORY": str(cache)}
    subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with what the script compiles, which stays as it is."""
    cache = tmp_path_factory.mktemp("filled")
    run(cache)
    return cache


@pytest.fixture
def sound(filled: Path, tmp_path: Path) -> dict[Path, bytes]:
    """The files of a cache of one's own with the same, and what they hold."""
    return {Path(shutil.copy(path, tmp_path)): path.read_bytes() for path in filled.iterdir()}


def test_objects_are_written_once_and_read_again(tmp_path: Path, sound: dict[Path, bytes]) -> None:
    written = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert written.keys() == sound.keys()
    kinds = Counter(path.suffix for path in written)
    assert kinds == {".o": 2} | ({".host": 1} if linker.is_possible() else {})  # the kernel and the runtime
    run(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 5000, None], ids=("none", "few", "zeros", "bit"))
def test_damaged_objects_are_compiled_again(
    tmp_path: Path, sound: dict[Path, bytes], damage: bytes | None
) -> None:
    for path, content in sound.items():
        flipped = content[:200] + bytes([content[200] ^ 1]) + content[201:]
        path.write_bytes(flipped if damage is None else damage)
    run(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == sound


def test_objects_that_cannot_be_linked_are_compiled_again(tmp_path: Path, sound: dict[Path, bytes]) -> None:
    for code in (b"no object", *(content[32:] for content in sound.values())):
        for path in sound:
            path.write_bytes(digest_of(path.stem.encode() + code).digest() + code)
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


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_keys_depend_on_shaping_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    package = tmp_path / "opendml"
    shutil.copytree(Path(object_cache.__file__).parents[1], package)
    monkeypatch.setattr(object_cache, "__file__", str(package / "targets" / "object_cache.py"))
    digest = compiler_digest.__wrapped__
    before = digest(target)
    assert digest(target) == before
    names = ["functions", "narrow", "node", "scalar_type", "vector_math", "half_math"]
    for path in [
        *(package / "program" / f"{name}.py" for name in names),
        package / "compiler" / "simplify.py",
        package / "targets" / "common" / "accumulations.py",
        package / "targets" / target / "expression.py",
    ]:
        content = path.read_bytes()
        path.write_bytes(content + b"\n# other code\n")
        assert digest(target) != before, path
        path.write_bytes(content)
    assert digest(target) == before


BROKEN = """
define void @kernel(i64 %a, i64 %b, ptr %c, ptr %d, ptr %e) {
  call void @opendml_has_no_such_function()
  ret void
}
declare void @opendml_has_no_such_function()
@scratch_bytes = constant i64 0
"""


def test_a_kernel_that_cannot_be_linked_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(machine_code, "_codes", {})
    x = np.linspace(-2, 2, 37, dtype=np.float32)
    with monkeypatch.context() as patch:
        patch.setattr(engine, "kernel_assembly", lambda _: BROKEN)
        for _ in range(2):
            with pytest.raises(Unsupported, match="cannot be linked"):
                dml.activation_celu(x, alpha=0.375)
    assert list(tmp_path.iterdir()) == []
    before = np.where(x > 0, x, 0.375 * np.expm1(x / 0.375))
    np.testing.assert_allclose(dml.activation_celu(x, alpha=0.375), before, rtol=1e-6)


NO_MEMORY = """
import resource
import numpy as np, opendml as dml
x = np.ones(1000, np.float32)
dml.activation_relu(x)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for room in range(0, 61, 4):
    resource.setrlimit(resource.RLIMIT_AS, (used + room * 2**20, -1))
    try:
        dml.activation_celu(x, alpha=2.0 + room)
        raise SystemExit("there was memory")
    except dml.Unsupported as error:
        assert "address space" in str(error)
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, -1))
dml.activation_celu(x, alpha=100.0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux")
def test_without_memory_compilation_is_refused(tmp_path: Path) -> None:
    environment = os.environ | {"OPENDML_CACHE_DIRECTORY": str(tmp_path)}
    subprocess.run([sys.executable, "-c", NO_MEMORY], env=environment, check=True)
