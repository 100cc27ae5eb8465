"""The machine code of CUDA kernels comes from the cache, or from several threads at once; without a GPU."""

from __future__ import annotations

import re
import threading
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from opendml.targets.cuda import compile
from opendml.targets.cuda.compile import cubins_of
from opendml.targets.cuda.executable import CudaExecutable
from opendml.targets.cuda.kernel_source import kernel_source
from opendml.targets.cuda.pattern import Mode, Pattern
from tests.cuda import fake
from tests.cuda.compiled import MACHINES, all_launches, kernels

KERNELS = Path(str(resources.files("opendml.targets.cuda") / "kernels"))
TOGETHER = 3
"""Sources that the tests' compiler waits for."""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The sources that are compiled, with an empty cache, to themselves: three at a time."""
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC's bindings are not installed")
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path))
    log: list[str] = []
    all_there = threading.Barrier(TOGETHER, timeout=60)

    def machine_code(source: str, options: Any) -> bytes:
        all_there.wait()
        log.append(source)
        return f"{options.arch}\n{source}".encode()

    monkeypatch.setattr(compile, "machine_code", machine_code)
    return log


def test_every_kernel_waits_for_earlier_ones_first() -> None:
    """It may have been launched before they have ended. Only barriers in shared memory are made before."""
    texts = {path.relative_to(KERNELS).as_posix(): path.read_text() for path in KERNELS.rglob("*.cuh")}
    with_barriers = [texts.pop(f"sm90/{name}.cuh") for name in ("contraction", "attention")]
    begun = [each for text in texts.values() for each in re.findall(r"__global__ .*\{\n *(.*)\n", text)]
    assert len(begun) == sum(text.count("__global__") for text in texts.values()) > 10
    assert set(begun) == {"begin_kernel();"}
    for text in with_barriers:
        before = text.partition(" kernel(")[2].partition("begin_kernel();")[0]
        assert set(re.findall(r"(\w+)\(", before)) <= {
            *("shared_address", "prefetch", "start_barrier", "publish_barriers", "hold", "layout"),
            *("synchronize_cluster", "__syncthreads", "if", "for", "constexpr"),
        }


def codes_of(patterns: list[Pattern]) -> list[bytes]:
    return [f"sm_90a\n{kernel_source(each)}".encode() for each in patterns]


def test_kernels_are_compiled_side_by_side_each_once(compiled: list[str]) -> None:
    first, second, third, *_ = (launch.pattern for launch in kernels(90)[Mode.POINTWISE])
    patterns = [first, second, first, third]
    assert cubins_of(patterns, "sm_90a") == codes_of(patterns)
    assert sorted(compiled) == sorted(map(kernel_source, (first, second, third)))
    # Nothing is left to wait for others.
    assert cubins_of([third, first], "sm_90a") == codes_of([third, first])
    assert len(compiled) == TOGETHER


def test_each_kernel_of_a_program_gets_its_code(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fake.install(monkeypatch)
    monkeypatch.setattr(fake.FakeDevice, "machine", MACHINES[90], raising=False)
    monkeypatch.setattr(fake.FakeDevice, "function", lambda self, code, shared: code, raising=False)
    sources = {
        case: [kernel_source(each.pattern) for each in found] for case, found in all_launches(90).items()
    }
    case = next(case for case, found in sources.items() if len(found) == len(set(found)) == TOGETHER)
    executable = CudaExecutable(case.program)
    prepared = [executable.prepare(number, alignments) for number, alignments in executable._prepared]
    assert len(prepared) == len(executable.kernels) == len(compiled) == TOGETHER
    assert [each.function for each in prepared] == codes_of([each.launch.pattern for each in prepared])
