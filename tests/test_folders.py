"""Files in folders: what links and `..` may not do, and files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from opendml import folders
from opendml.folders import Folder, open_within, replacing, replacing_within, within

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has neither such links nor pipes")


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    """A folder with a file, beside which a secret lies."""
    folder = tmp_path / "inner"
    (folder / "deep").mkdir(parents=True)
    (folder / "a").write_bytes(b"a")
    (folder / "deep" / "b").write_bytes(b"b")
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "to_a").symlink_to("a")
    (folder / "to_deep").symlink_to("deep")
    (folder / "to_secret").symlink_to("../secret")
    (folder / "to_outside").symlink_to("..")
    return folder


@pytest.mark.parametrize(
    ("name", "content"),
    [("a", b"a"), ("deep/b", b"b"), ("deep/../a", b"a"), ("to_a", b"a"), ("to_deep/b", b"b"), ("./a", b"a")],
)
def test_files_in_a_folder_are_read_and_written(name: str, content: bytes, inner: Path) -> None:
    for given in (name, inner / name):
        with open_within(inner, given) as file:
            assert file.read() == content
        with replacing_within(inner, given) as file:
            file.write(content)
    assert (inner / "to_a").is_symlink()
    assert (inner / "to_deep").is_symlink()


OUTSIDE = ["../secret", "to_secret", "to_outside/secret", "deep/../../secret", "", ".", "..", "/dev/null"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_outside_of_a_folder_is_opened(name: str, inner: Path, tmp_path: Path) -> None:
    assert within(inner, name) is None
    with pytest.raises(PermissionError, match="not in the folder"):
        open_within(inner, name)
    with pytest.raises(PermissionError, match="not in the folder"), replacing_within(inner, name):
        pass
    assert (tmp_path / "secret").read_bytes() == b"secret"


@pytest.mark.parametrize("name", ["a", "deep/b"])
def test_links_that_are_swapped_in_after_the_check_lead_nowhere(
    name: str, inner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b").write_bytes(b"secret")

    def swapped(folder: Any, given: Any) -> Any:
        found = within(folder, given)
        if name == "a":
            (inner / "a").unlink(missing_ok=True)
            (inner / "a").symlink_to("../secret")
        elif not (inner / "deep").is_symlink():
            (inner / "deep").rename(inner / "moved")
            (inner / "deep").symlink_to(outside)
        return found

    monkeypatch.setattr(folders, "within", swapped)
    with pytest.raises(OSError, match=str(inner)):
        open_within(inner, name)
    if name == "a":  # the link is replaced, not followed
        (inner / "a").unlink()
        (inner / "a").write_bytes(b"a")
        with replacing_within(inner, name) as file:
            file.write(b"new")
        assert (inner / "a").read_bytes() == b"new"
    else:
        with pytest.raises(OSError, match=str(inner)), replacing_within(inner, name) as file:
            file.write(b"new")
    assert (tmp_path / "secret").read_bytes() == b"secret"
    assert (outside / "b").read_bytes() == b"secret"


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_only_regular_files_are_opened_and_replaced_in_a_folder(kind: str, inner: Path) -> None:
    match kind:
        case "pipe":
            os.mkfifo(inner / "x")  # nobody writes to it: opening it would wait for ever
        case "folder":
            (inner / "x").mkdir()
        case "device":
            try:
                os.mknod(inner / "x", stat.S_IFCHR | 0o666, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("only root makes devices")
    before = (inner / "x").stat()
    with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
        open_within(inner, "x")
    with pytest.raises(OSError, match="not a regular file"), replacing_within(inner, "x"):
        pass
    assert os.path.samestat(before, (inner / "x").stat())


def test_folders_on_the_way_are_made(inner: Path) -> None:
    with replacing_within(inner, "new/to/c") as file:
        file.write(b"c")
    assert (inner / "new" / "to" / "c").read_bytes() == b"c"


@contextmanager
def _in_folder(path: Path) -> Iterator[BinaryIO]:
    with Folder(str(path.parent)).replacing(path.name) as file:
        yield file


WAYS: dict[str, Any] = {
    "path": replacing,
    "within": lambda path: replacing_within(path.parent, path.name),
    "folder": _in_folder,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt(), MemoryError()])
def test_a_file_is_written_whole_or_not_at_all(way: str, error: BaseException, inner: Path) -> None:
    names = sorted(os.listdir(inner))
    for name, before in (("a", b"a"), ("new", None)):
        path = inner / name
        with pytest.raises(type(error)), WAYS[way](path) as file:  # noqa: PT012
            file.write(b"half")
            file.flush()
            assert (path.read_bytes() if path.exists() else None) == before
            raise error
        assert (path.read_bytes() if path.exists() else None) == before
        assert sorted(os.listdir(inner)) == names
    with WAYS[way](inner / "a") as file:
        file.write(b"all")
    assert (inner / "a").read_bytes() == b"all"


def test_a_file_keeps_its_permissions_and_the_link_to_it(inner: Path) -> None:
    (inner / "a").chmod(0o640)
    with replacing(inner / "to_a") as file:
        file.write(b"new")
    assert (inner / "to_a").is_symlink()
    assert (inner / "a").read_bytes() == b"new"
    assert stat.S_IMODE((inner / "a").stat().st_mode) == 0o640


def test_new_files_have_the_permissions_of_the_process(inner: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(inner / "new"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((inner / "new").stat().st_mode) == 0o640


def test_a_device_that_the_user_names_is_written(inner: Path) -> None:
    with replacing("/dev/null") as file:
        file.write(b"all")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_errors_name_the_whole_path(inner: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        open_within(inner, "deep/no")
    assert caught.value.filename == str(inner / "deep" / "no")
    with pytest.raises(FileNotFoundError) as caught, replacing(inner / "no" / "file"):
        pass
    assert caught.value.filename == str(inner / "no")


def test_no_descriptor_is_left_open(inner: Path) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("the system does not list descriptors")
    before = os.listdir("/proc/self/fd")
    for name in ("a", "deep/b", "no", "deep", *OUTSIDE):
        for work in (open_within, replacing_within):
            try:
                with work(inner, name):
                    pass
            except OSError:
                pass
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_systems_that_open_no_names_in_open_folders_read_and_write_too(
    inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_HAS_AT", False)
    with replacing_within(inner, "new/c") as file:
        file.write(b"c")
    with open_within(inner, "new/c") as file:
        assert file.read() == b"c"
    assert sorted(Folder(str(inner)).names()) == sorted(os.listdir(inner))
    for name in OUTSIDE:
        with pytest.raises(PermissionError, match="not in the folder"):
            open_within(inner, name)
    with pytest.raises(NotADirectoryError):
        Folder(str(inner / "to_deep"))
