"""What all tests share: the devices that operators run on, and the folder of foreign test data."""

from __future__ import annotations

import fcntl
import gc
import hashlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from opendml import Device, Unsupported
from opendml.targets.cpu import compile_workers, engine, object_code

os.environ.setdefault("OPENDML_CACHE_PLANS", "0")
"""Tests change the compiler, which plans on disk would not follow."""

SHARED = Path(__file__).parents[2] / "shared"
CUDA = Path(__file__).parent / "cuda"
COMPILING = frozenset({"compile_all", "compiled", "emulated", "machine_code"})
"""Functions of tests/cuda that compile kernels for GPUs, or run them on the processor."""
LISTING = frozenset({"all_launches", "chosen", "kernels", "kernels_by_source"})
"""Functions that list those kernels, 10 seconds for each generation, and fixtures that run them."""


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> Device:
    """A device that runs machine code: its results are compared with those of "reference"."""
    try:
        return Device(request.param)
    except Unsupported as error:
        pytest.skip(str(error))


@pytest.fixture(params=["reference", "cpu", "cuda"])
def any_device(request: pytest.FixtureRequest) -> Device:
    """A device of each kind that is here."""
    try:
        return Device(request.param)
    except Unsupported as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Test data that the repository must not contain, in a folder beside it; without it tests are skipped."""
    if not SHARED.is_dir():
        pytest.skip("the folder ../shared is not here")
    return SHARED


MadeOnce = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Return a function that makes a folder of that name once per run.

    Workers may run tests of one file at the same time. One of them makes the folder, and the others wait.
    """
    top = tmp_path_factory.getbasetemp().resolve()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent

    def folder(name: str, make: Callable[[Path], None]) -> Path:
        path = top / name
        with (top / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.mkdir()
                try:
                    make(path)
                except BaseException:
                    shutil.rmtree(path)
                    raise
        return path

    return folder


@pytest.fixture
def compile_workers_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes compile kernels beside this one, as they do for users."""
    monkeypatch.setattr(engine, "worker_count", compile_workers.worker_count)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Lets SIGINT interrupt this process and those that it starts, as from a terminal. Under `nohup`, and in
    the background of some shells, it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--emulated`: tests that need a GPU run its kernels on the processor, about one of them in a second.
    `--all-kernels`: kernels whose sources have no line of their own are compiled too."""
    parser.addoption("--emulated", action="store_true", help="run CUDA kernels without a GPU")
    parser.addoption("--all-kernels", action="store_true", help="compile all CUDA kernels, not a choice")


def pytest_configure(config: pytest.Config) -> None:
    """Before tests are listed: those that need a GPU are left out where none is."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Each core has a process of tests. Others would take longer to start than LLVM takes for a kernel.
        engine.worker_count = lambda kernels, threads: 0
        object_code.compiled_object = _compiled_once
    if config.getoption("emulated"):
        # Few runs of the tests need it.
        from tools.cuda_emulator import emulated

        kernels = ExitStack()
        config.add_cleanup(kernels.close)
        kernels.enter_context(emulated())


_compiled_object = object_code.compiled_object
_objects: dict[tuple[object, ...], bytes] = {}


def _compiled_once(assembly: str, effort: object_code.Effort, target: llvm.TargetMachine) -> bytes:
    """Compile equal assembly once per process. Patterns that differ may have it, as sums of INT8 and UINT8
    have, and tests with caches of their own compile the same kernels: a twelfth of LLVM's time."""
    key = hashlib.sha256(assembly.encode()).digest(), effort, target
    if key not in _objects:
        _objects[key] = _compiled_object(assembly, effort, target)
    return _objects[key]


def pytest_collection() -> None:
    """Tests are listed without looking for garbage: there is none, and to find that out takes a quarter of
    the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Never look at what was made for the list again, and look for garbage less often than by default: that
    takes a twentieth of the time."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark device tests. Where there is no GPU, one skipped test of each file stands for all that need one:
    thousands. The first test begins what takes longest, so that no process waits for it at the end."""
    items.sort(key=lambda item: "site" not in getattr(item, "fixturenames", ()))
    for item in items:
        if _is_for_cuda(item) or _compiles_for_cuda(item):
            item.add_marker(pytest.mark.devices)
    try:
        Device("cuda")
        return
    except Unsupported as error:
        reason = str(error)
    needing = [item for item in items if _is_for_cuda(item)]
    superfluous = []
    for _, group in groupby(needing, key=lambda item: item.path):
        first, *others = group
        more = f"; {len(others)} more of these tests need it" if others else ""
        first.add_marker(pytest.mark.skip(reason=reason + more))
        superfluous += others
    if superfluous:
        left_out = set(superfluous)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=superfluous)


def _is_for_cuda(item: pytest.Item) -> bool:
    """Whether a fixture gives the test a GPU: those here, the kind of a device, or one named for it."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    kinds = [parameters.get(name) for name in ("device", "any_device", "kind")]
    return "cuda" in kinds or "gpu" in getattr(item, "fixturenames", ())


def _compiles_for_cuda(item: pytest.Item) -> bool:
    """Return whether the test, or a function of its file that it calls, compiles, runs or lists kernels."""
    function = getattr(item, "function", None)
    if CUDA not in item.path.parents or function is None:
        return False
    names, told = set(function.__code__.co_names), function.__globals__
    for name in [*names]:
        called = getattr(told.get(name), "__code__", None)
        names.update(called.co_names if called else ())
    # Attributes of the same name are no functions that keep their lists.
    listing = {name for name in names & LISTING if hasattr(told.get(name), "cache_info")}
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool(listing or names & COMPILING or fixtures & (COMPILING | LISTING))
