"""Windows and macOS, as far as they can be tested on Linux: system calls, folders, file names, processes."""

from __future__ import annotations

import ast
import multiprocessing
import os
import re
from collections import Counter
from pathlib import Path, PurePosixPath

import llvmlite.binding as llvm
import numpy as np
import pytest

import opendml as dml
from opendml.targets import object_cache
from opendml.targets.cpu import native
from tests.syntax import trees
from tests.test_project import ROOT, tracked_files

LINUX = {"clock_gettime", "sched_yield", "syscall"}
DARWIN = {"__ulock_wait", "__ulock_wake", "clock_gettime_nsec_np", "sched_yield"}
WINDOWS = {"GetTickCount64", "SwitchToThread", "WaitOnAddress", "WakeByAddressAll"}
SYSTEMS = {
    ("linux", "x86_64-unknown-linux-gnu"): LINUX,
    ("linux", "aarch64-unknown-linux-gnu"): LINUX,
    ("darwin", "arm64-apple-darwin"): DARWIN,
    ("darwin", "x86_64-apple-darwin"): DARWIN,
    ("win32", "x86_64-pc-windows-msvc"): WINDOWS,
}


@pytest.mark.parametrize(("system", "triple"), SYSTEMS)
def test_the_native_runtime_compiles_and_asks_for_what_the_system_has(
    system: str, triple: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native.sys, "platform", system)
    module = llvm.parse_assembly(native.runtime_assembly(triple))
    module.verify()
    declared = {each.name for each in module.functions if each.is_declaration}
    assert {name for name in declared if not name.startswith("llvm.")} == SYSTEMS[system, triple]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    assert llvm.Target.from_triple(triple).create_target_machine().emit_object(module)


def test_the_page_on_platforms_names_every_module_that_differs_by_system() -> None:
    page = (ROOT / "docs/guide/platforms.md").read_text("utf-8")
    asks = re.compile(r"sys\.platform\b|hasattr\(os,|platform\.machine\(")
    source = ROOT / "src/opendml"
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        # A report of versions differs in nothing that it does.
        if name != "frontends/onnxruntime/module.py" and asks.search(path.read_text("utf-8")):
            assert f"`{name}`" in page, name


@pytest.mark.parametrize(
    ("system", "variables", "expected"),
    [
        ("linux", {}, ".cache/opendml"),
        ("linux", {"XDG_CACHE_HOME": "/there"}, "/there/opendml"),
        ("darwin", {}, "Library/Caches/opendml"),
        ("win32", {}, "AppData/Local/opendml/Cache"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/opendml/Cache"),
    ],
)
def test_code_is_cached_where_the_system_keeps_caches(
    system: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("OPENDML_CACHE_DIRECTORY", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(object_cache.Path, "home", lambda: tmp_path)
    monkeypatch.setattr(object_cache.sys, "platform", system)
    assert object_cache.cache_directory() == tmp_path / expected


def test_every_file_may_have_its_name_on_windows_and_where_case_does_not_count() -> None:
    names = [path.relative_to(ROOT).as_posix() for path in tracked_files()]
    reserved = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
    for name in names:
        assert len(name) < 160, name
        for part in PurePosixPath(name).parts:
            assert not set(part) & set('<>:"\\|?*'), name
            assert part == part.rstrip(". "), name
            assert part.split(".")[0].lower() not in reserved, name
    assert [name for name, count in Counter(map(str.lower, names)).items() if count > 1] == []


POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
GUARDED = {"fchmod", "geteuid", "register_at_fork", "sched_getaffinity", "sysconf", "uname"}
"""Attributes of `os` that only some systems have. Modules test for them before use."""
OF_OS = """
    O_RDONLY O_WRONLY PathLike W_OK access close cpu_count devnull dup dup2 environ fsdecode fspath fstat
    getpid listdir makedirs mkdir open path replace scandir sep stat stat_result strerror supports_dir_fd
    supports_fd unlink urandom utime walk
"""


def test_no_module_of_one_family_of_systems_is_imported() -> None:
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & POSIX_ONLY, path


def test_what_os_has_on_some_systems_is_asked_for_first() -> None:
    for path, tree in trees().items():
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
        }
        assert used <= {*OF_OS.split()} | GUARDED, path
        text = path.read_text("utf-8")
        assert all(f'hasattr(os, "{name}")' in text for name in used & GUARDED), path


def test_text_files_say_their_encoding() -> None:
    for path, tree in trees().items():
        for node in ast.walk(tree):
            name = (
                node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            )
            if isinstance(node, ast.Call) and name in ("read_text", "write_text"):
                is_positional = len(node.args) > (name == "write_text")
                assert is_positional or "encoding" in {each.arg for each in node.keywords}, (
                    path,
                    node.lineno,
                )


def spawned(values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return dml.activation_tanh(values)  # type: ignore[no-any-return]


def test_a_process_that_begins_anew_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # Windows and macOS have no other processes: nothing of this one is there.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    values = np.linspace(-2, 2, 1000, dtype=np.float32)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(spawned, (values,)), spawned(values))
