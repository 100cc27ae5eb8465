"""The folder of compiled objects: who may write to it, how much it holds, and that nothing in it harms."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import folders
from opendml.digests import digest_of
from opendml.targets import object_cache
from opendml.targets.cpu import machine_code
from opendml.targets.object_cache import read_object, write_object

KEY, OTHER = "0" * 64, "1" * 64
FILE = f"{KEY}.o"
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has access lists, not modes")
needs_root = pytest.mark.skipif(not ROOT, reason="only root gives files to others")


@pytest.fixture(autouse=True)
def unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "_warned", set())


@pytest.fixture(params=["opened before", "opened now"])
def opening(request: pytest.FixtureRequest) -> str:
    """Whether the process has opened the folder before."""
    return str(request.param)


@pytest.fixture
def cache(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with one object."""
    folder = tmp_path / "above" / "cache"
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(folder))
    write_object(KEY, b"code")
    assert read_object(KEY) == b"code"
    if "opening" not in request.fixturenames or request.getfixturevalue("opening") == "opened now":
        monkeypatch.setattr(object_cache, "_known", None)
    return folder


def warning(caplog: pytest.LogCaptureFixture) -> str:
    """The one warning that was logged."""
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "OPENDML_CACHE_DIRECTORY" in record.getMessage()
    return record.getMessage()


def test_folders_and_files_are_made_for_the_user_alone(cache: Path) -> None:
    for path in (cache.parent, cache):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in cache.iterdir()] == [0o600]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o1777])
@pytest.mark.parametrize("which", ["", FILE])
def test_what_others_may_write_to_is_not_read(
    which: str, mode: int, opening: str, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = cache / which
    path.chmod(mode)
    assert read_object(KEY) is None
    assert read_object(KEY) is None
    assert f"{path}: others may write to it (mode {mode:04o}); `chmod go-w`" in warning(caplog)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_nothing_is_read_in_others_folders(mode: int, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache.parent.chmod(mode)
    assert read_object(KEY) is None
    assert f"{cache.parent}: others may write to it" in warning(caplog)
    write_object(OTHER, b"code")
    assert [path.name for path in cache.iterdir()] == [FILE]


def test_others_may_have_folders_beside_the_users(cache: Path) -> None:
    cache.parent.chmod(0o1777)
    assert read_object(KEY) == b"code"


def test_nothing_is_written_where_others_may_write(opening: str, cache: Path) -> None:
    cache.chmod(0o777)
    write_object(OTHER, b"code")
    assert [path.name for path in cache.iterdir()] == [FILE]


def test_a_cache_may_be_removed_while_processes_use_it(opening: str, cache: Path) -> None:
    shutil.rmtree(cache)
    assert read_object(KEY) is None
    write_object(KEY, b"code")
    assert read_object(KEY) == b"code"


def test_a_program_may_close_files_that_it_does_not_know(cache: Path, tmp_path: Path) -> None:
    assert read_object(KEY) == b"code"
    assert object_cache._known is not None
    number = object_cache._known[1]._fd
    assert number is not None
    os.dup2(os.open(tmp_path, os.O_RDONLY), number)
    write_object(OTHER, b"code")
    assert {path.name for path in cache.iterdir()} == {FILE, f"{OTHER}.o"}
    assert os.path.samestat(os.fstat(number), tmp_path.stat())  # another's file is not closed
    os.close(number)
    assert read_object(KEY) == b"code"


@needs_root
@pytest.mark.parametrize("which", ["", "..", FILE])
def test_what_belongs_to_others_is_not_read(
    which: str, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.chown((cache / which).resolve(), 12345, -1)
    assert read_object(KEY) is None
    assert f"{(cache / which).resolve()}: belongs to user 12345" in warning(caplog)


def test_a_user_may_share_a_cache_of_roots(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders are root's, or, where the tests run as a user, look as if."""
    real = folders.Folder.status

    def owned_by_root(folder: folders.Folder, name: str | None = None) -> os.stat_result:
        status = list(real(folder, name))
        status[4] = 0
        return os.stat_result(status)

    monkeypatch.setattr(folders.Folder, "status", owned_by_root)
    if ROOT:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert read_object(KEY) == b"code"


def test_links_to_folders_are_followed_to_one_that_can_be_trusted(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "link").symlink_to(cache)
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(shared / "link"))
    assert read_object(KEY) == b"code"
    cache.chmod(0o777)
    assert read_object(KEY) is None


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "dangling link"])
def test_only_regular_files_are_read(kind: str, cache: Path, tmp_path: Path) -> None:
    path, elsewhere = cache / FILE, tmp_path / "elsewhere"
    path.rename(elsewhere)
    match kind:
        case "link":
            path.symlink_to(elsewhere)
        case "dangling link":
            path.symlink_to(tmp_path / "nothing")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    assert read_object(KEY) is None
    write_object(KEY, b"new")
    assert read_object(KEY) == (b"new" if "link" in kind else None)
    assert not (tmp_path / "nothing").exists()


def test_a_link_that_is_swapped_in_after_the_check_is_not_followed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "planted"
    planted.mkdir(mode=0o700)
    content = digest_of(KEY.encode() + b"planted").digest() + b"planted"
    (planted / FILE).write_bytes(content)
    resolved = os.path.realpath

    def swapped(path: Any, **options: Any) -> str:
        found = resolved(path, **options)
        if cache.is_dir() and not cache.is_symlink():
            cache.rename(tmp_path / "moved")
            cache.symlink_to(planted)
        return str(found)

    monkeypatch.setattr(os.path, "realpath", swapped)
    assert read_object(KEY) is None


def test_an_object_under_the_key_of_another_is_damaged(cache: Path) -> None:
    write_object(OTHER, b"other")
    (cache / FILE).rename(cache / "x")
    (cache / f"{OTHER}.o").rename(cache / FILE)
    (cache / "x").rename(cache / f"{OTHER}.o")
    assert read_object(KEY) is None
    assert read_object(OTHER) is None


def test_swapped_files_change_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path))
    x = np.linspace(-2, 2, 37, dtype=np.float32)

    def results() -> list[bytes]:
        monkeypatch.setattr(machine_code, "_codes", {})
        found = []
        for function in (dml.activation_relu, dml.activation_tanh):
            graph = dml.Graph()
            model = graph.compile({"y": function(graph.input("x", dml.FLOAT32, x.shape))})
            found.append(model(x)["y"].tobytes())
        return found

    expected = results()
    first, second = (path for path in tmp_path.iterdir() if b"scratch_bytes" in path.read_bytes())
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])
    assert results() == expected
    assert (first.read_bytes(), second.read_bytes()) == contents


@pytest.mark.parametrize("name", ["OPENDML_CACHE_DIRECTORY", "XDG_CACHE_HOME"])
def test_relative_paths_are_not_used(
    name: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("OPENDML_CACHE_DIRECTORY")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(cache.parent)
    cache.rename("opendml")
    monkeypatch.setenv(name, "." if name == "XDG_CACHE_HOME" else "opendml")
    assert read_object(KEY) is None
    write_object(OTHER, b"other")
    assert len(list(Path("opendml").iterdir())) == 1
    if name == "XDG_CACHE_HOME":
        assert (tmp_path / "home" / ".cache" / "opendml" / f"{OTHER}.o").is_file()
    else:
        assert "must be an absolute path" in warning(caplog)


def test_no_home_needs_no_cache(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for variable in ("OPENDML_CACHE_DIRECTORY", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    write_object(KEY, b"code")
    assert read_object(KEY) is None
    assert "no home" in warning(caplog)


class _FullDisk:
    def __init__(self, file: Any, error: BaseException) -> None:
        self._file, self._error = file, error

    def __enter__(self) -> _FullDisk:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        self._file.write(data[:1])
        raise self._error


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), MemoryError(), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["open", "write", "replace"])
def test_what_cannot_be_written_leaves_nothing_behind(
    cache: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, step: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    def full(name: Any, mode: str, **options: Any) -> Any:
        file = open(name, mode, **options)  # noqa: SIM115
        return _FullDisk(file, error) if mode == "xb" else file

    assert read_object(OTHER) is None  # opens the folder
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with monkeypatch.context() as patch:
        if step == "replace":
            patch.setattr(os, "replace", fail)
        else:
            patch.setattr(folders, "open", full if step == "write" else fail, raising=False)
        with pytest.raises(KeyboardInterrupt) if isinstance(error, KeyboardInterrupt) else nullcontext():
            write_object(OTHER, b"code")
    assert [path.name for path in cache.iterdir()] == [FILE]
    assert before == (len(os.listdir("/proc/self/fd")) if before else 0)
    write_object(OTHER, b"code")
    assert read_object(OTHER) == b"code"


def test_an_unusable_folder_is_told_once_and_keeps_nobody_from_computing(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    script = """
import numpy as np, opendml as dml
for alpha in (0.5, 0.75, 1.25):
    dml.activation_celu(np.ones(37, np.float32), alpha=alpha)
    dml.activation_elu(np.ones(39, np.float32), alpha=alpha)
"""
    environment = os.environ | {"OPENDML_CACHE_DIRECTORY": str(blocker / "cache")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True)
    assert done.stderr.decode().count("without its cache") == 1
    assert f"{blocker}: Not a directory" in done.stderr.decode()


def test_a_huge_file_is_not_read_into_memory(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "_LARGEST_OBJECT", 2**20)
    with (cache / FILE).open("r+b") as file:
        file.truncate(2**40)
    assert read_object(KEY) is None


# How much it holds


@pytest.fixture
def small(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that may hold 10,000 bytes."""
    monkeypatch.setenv("OPENDML_CACHE_BYTES", "10000")
    return cache


def aged(path: Path, seconds: float) -> None:
    """Makes a file look as if it was used so long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def key(number: int) -> str:
    return f"{number:064x}"


def test_what_was_used_longest_ago_goes_first(small: Path) -> None:
    for number in range(9):
        write_object(key(number), bytes(1000 - 32))
        aged(small / f"{key(number)}.o", 100_000 - number)
    assert read_object(key(0)) is not None  # counts as used now
    for number in range(9, 12):
        write_object(key(number), bytes(1000 - 32))
    left = {int(path.stem, 16) for path in small.iterdir()}
    assert {0, 9, 10, 11} <= left
    assert left.isdisjoint({1, 2})
    assert sum(path.stat().st_size for path in small.iterdir()) <= 10_000


def test_an_object_larger_than_the_cache_is_not_kept(small: Path) -> None:
    write_object(OTHER, bytes(20_000))
    assert [path.name for path in small.iterdir()] == [FILE]


def test_only_files_of_the_cache_are_removed(small: Path) -> None:
    (small / "main.o").write_bytes(bytes(50_000))
    (small / "opendml-0123456789abcdef.tmp").write_bytes(b"half")
    (small / "opendml-1123456789abcdef.tmp").write_bytes(b"half")
    aged(small / "opendml-1123456789abcdef.tmp", 100_000)
    write_object(OTHER, bytes(1000))
    names = {path.name for path in small.iterdir()}
    assert names == {"main.o", "opendml-0123456789abcdef.tmp", FILE, f"{OTHER}.o"}


def test_large_caches_are_rarely_scanned(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scans = []
    monkeypatch.setenv("OPENDML_CACHE_BYTES", str(2**20))
    monkeypatch.setattr(object_cache, "_remove_oldest", lambda *_: scans.append(1))
    for number in range(256):
        write_object(digest_of(bytes([number])).hexdigest(), bytes(1024))
    assert 4 <= len(scans) <= 32  # 16 are expected of a quarter of the bytes that it may hold


def test_processes_may_fill_and_empty_a_small_cache_at_once(small: Path) -> None:
    script = """
import hashlib, os, sys
from opendml.targets.object_cache import read_object, write_object
for number in range(200):
    key = hashlib.sha256(b"%d" % (number % 25)).hexdigest()
    found = read_object(key)
    assert found is None or found == key.encode() * 10
    write_object(key, key.encode() * 10)
"""
    running = [subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[1] for process in running] == [b"", b"", b""]
    assert sum(path.stat().st_size for path in small.iterdir()) <= 10_000 + 3 * 700


def test_no_bytes_are_no_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENDML_CACHE_BYTES", "0")
    assert read_object(KEY) is None
    write_object(OTHER, b"code")
    assert [path.name for path in cache.iterdir()] == [FILE]


@pytest.mark.parametrize("text", ["1 GiB", "-1", "1.5", "٣", "9" * 30])
def test_a_size_that_is_no_number_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENDML_CACHE_BYTES", text)
    with pytest.raises(dml.InvalidArgument, match=r"^OPENDML_CACHE_BYTES: .* whole number of bytes"):
        read_object(KEY)
