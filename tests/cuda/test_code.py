"""The code of CUDA kernels: how nodes are printed, how exact functions are, and when code is compiled."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opendml.program import vector_math
from opendml.program.functions import select
from opendml.program.node import FUNCTIONS, Node, rebuild, source
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda import compile, job, narrow_math, planning
from opendml.targets.cuda.compile import cubins_of
from opendml.targets.cuda.cubins import Cubin
from opendml.targets.cuda.expression import CUDA
from opendml.targets.cuda.kernel_source import kernel_source
from opendml.targets.cuda.pattern import CudaMode, CudaPattern
from opendml.targets.cuda.planning import compiled_program
from opendml.targets.cuda.reciprocal_math import gaussian_error_linear_unit
from tests.cuda import fake
from tests.cuda.compiled import CASES, MACHINES, fused, launches
from tests.program.evaluate import evaluate
from tests.program.sweeps import greatest_distance, magnitudes
from tests.program.test_vector_math import exact_gelu

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


WAITS = "begin_kernel(p.lets_next_begin);"


def test_every_kernel_waits_for_earlier_ones_first() -> None:
    """It may have been launched before they have ended. Only barriers in shared memory are made before, and
    operands that are the same in every run are loaded."""
    texts = {path.relative_to(KERNELS).as_posix(): path.read_text() for path in KERNELS.rglob("*.cuh")}
    attention, contraction = (texts.pop(f"sm90/{name}.cuh") for name in ("attention", "contraction"))
    begun = [each for text in texts.values() for each in re.findall(r"__global__ .*\{\n *(.*)\n", text)]
    assert len(begun) == sum(text.count("__global__") for text in texts.values()) > 10
    assert set(begun) == {WAITS}
    barriers = {
        *("shared_address", "prefetch", "start_barrier", "publish_barriers", "hold", "layout"),
        *("synchronize_cluster", "block_of_cluster", "__syncthreads", "if", "for", "constexpr"),
        "expect_bytes",
    }
    for text, end in ((attention, WAITS), (contraction, "if (threadIdx.x < 128)")):
        assert called(text.partition(" kernel(")[2].partition(end)[0]) <= barriers
    loading, _, multiplying = contraction.partition("if (threadIdx.x < 128) {")[2].partition("} else {")
    assert called(loading) == {"produce"}
    assert multiplying.split(";")[1].strip() == WAITS.rstrip(";")
    loaded = contraction.partition("DEVICE void produce(")[2].partition(WAITS)[0]
    assert set(re.findall(r"load\w*\(.*\);", loaded)) == {
        "loader(p, work, block);",
        "load(p, tiles + begun * STAGE_BYTES, full + begun * BARRIER_BYTES, block, A_FIXED, B_FIXED);",
    }


def called(text: str) -> set[str]:
    """Return the names before parentheses."""
    return set(re.findall(r"(\w+)\(", text))


def codes_of(patterns: list[CudaPattern]) -> list[bytes]:
    return [f"sm_90a\n{kernel_source(each)}".encode() for each in patterns]


def test_kernels_are_compiled_side_by_side_each_once(compiled: list[str]) -> None:
    launched = (launch.pattern for case in CASES for launch in launches(case, MACHINES[90]))
    pointwise = islice((each for each in launched if each.mode is CudaMode.POINTWISE), 20)
    first, second, third, *_ = {kernel_source(each): each for each in pointwise}.values()
    patterns = [first, second, first, third]
    assert [each.code for each in cubins_of(patterns, "sm_90a")] == codes_of(patterns)
    assert sorted(compiled) == sorted(map(kernel_source, (first, second, third)))
    # Nothing is left to wait for others.
    assert [each.code for each in cubins_of([third, first], "sm_90a")] == codes_of([third, first])
    assert len(compiled) == TOGETHER


def test_each_kernel_of_a_program_gets_its_code(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fake.install(monkeypatch)
    monkeypatch.setattr(fake.FakeDevice, "machine", MACHINES[90], raising=False)
    monkeypatch.setattr(fake.FakeDevice, "function", lambda self, code, shared: code, raising=False)
    case = next(
        case
        for case in CASES
        if len(fused(case).kernels) == TOGETHER
        and len({kernel_source(each.pattern) for each in launches(case, MACHINES[90])}) == TOGETHER
    )
    executable = compiled_program(case.program)
    codes = [each.cubin.code.decode().partition("\n")[2] for each in executable.launches]
    assert len(executable.parts.groups) == len(compiled) == TOGETHER
    assert sorted(codes) == sorted(compiled)


def test_a_dispatch_does_not_wait_while_another_thread_compiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake.install(monkeypatch)
    monkeypatch.setattr(fake.FakeDevice, "machine", MACHINES[90], raising=False)
    monkeypatch.setattr(fake.FakeDevice, "function", lambda self, code, shared: code, raising=False)
    empty = Cubin("", b"")
    monkeypatch.setattr(planning, "cubins_of", lambda patterns, architecture: [empty] * len(patterns))
    monkeypatch.setattr(job, "launcher", lambda *_: None)
    made = compiled_program(CASES[0].program)
    begun, may_end = threading.Event(), threading.Event()

    def slow(patterns: list[CudaPattern], architecture: str) -> list[Cubin]:
        begun.set()
        assert may_end.wait(60)
        return [empty] * len(patterns)

    instances = [made.instantiate() for _ in range(3)]
    buffers = {buffer for of in made.parts.accesses for buffer, _ in of if buffer is not None}
    for number, instance in enumerate(instances):
        for buffer in buffers:
            instance.bind(buffer, (1 << 20) + 4 * (number > 0))
    monkeypatch.setattr(planning, "cubins_of", slow)
    with ThreadPoolExecutor() as threads:
        new = [threads.submit(instance.prepare, 0) for instance in instances[1:]]
        try:
            assert begun.wait(60)
            threads.submit(instances[0].prepare, 0).result(60)
        finally:
            may_end.set()
        for each in new:
            each.result(60)
    forms = [[form for form, _ in instance._others.values()] for instance in instances]
    assert not forms[0]
    assert forms[1] == forms[2] != []


@pytest.mark.parametrize(
    ("bounded", "wanted"),
    [
        (lambda x: select(x < 2.0, 2.0, x), "maximum(x, bound)"),
        (lambda x: select(x > 2.0, 2.0, x), "minimum(x, bound)"),
        (lambda x: select(x < -0.0, -0.0, x), "maximum(x, bound)"),
        # -0 stays where 0 is the bound, and 0 stays where -0 is.
        (lambda x: select(x < 0.0, 0.0, x), "condition ? bound : x"),
        (lambda x: select(x > 0.0, 0.0, x), "condition ? bound : x"),
        (lambda x: select(x > -0.0, -0.0, x), "condition ? bound : x"),
        (lambda x: select(x <= 2.0, 2.0, x), "condition ? bound : x"),
        (lambda x: select(x < 2.0, 3.0, x), "condition ? bound : x"),
        (lambda x: select(x < 2.0, 2.0, x + 1.0), "condition ? bound : x"),
    ],
)
def test_a_bound_is_a_minimum_or_maximum_where_these_mean_the_same(
    bounded: Callable[[Node], Node], wanted: str
) -> None:
    node = bounded(source(0, ScalarType.FLOAT32, (7,)))
    assert CUDA.expression(node, ["condition", "bound", "x"]) == wanted


def test_bounds_of_other_types_are_selections() -> None:
    for type in (ScalarType.INT32, ScalarType.FLOAT64):
        x = source(0, type, (7,))
        assert CUDA.expression(select(x < 2, 2, x), ["c", "b", "x"]) == "c ? b : x"


GELU = gaussian_error_linear_unit(source(0, ScalarType.FLOAT32))


def test_gelu_keeps_its_stated_accuracy() -> None:
    x = magnitudes(-8, 4, step=84)
    with np.errstate(all="ignore"):
        exact = exact_gelu(x.astype(np.float64))
    assert greatest_distance(GELU, exact, x) <= 3.6


(NARROW_GELU,) = rebuild(
    [narrow_math.gaussian_error_linear_unit(source(0, ScalarType.FLOAT32))],
    lambda node: vector_math.expand(node) if node.operation in FUNCTIONS else node,
)
"""With an exponential that has a few units in the last place; that of CUDA has two."""


def test_narrow_gelu_keeps_its_stated_accuracy_for_all_results() -> None:
    x = magnitudes(-8, 4, step=84)
    x = x[np.abs(x) < 13]
    exact = exact_gelu(x.astype(np.float64))
    error = np.abs(evaluate(NARROW_GELU, x).astype(np.float64) - exact)
    assert (error <= 2.0**-15 * np.abs(exact) + 2.0**-126).all()


@pytest.mark.parametrize("gelu", [GELU, NARROW_GELU])
@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (0.0, 0.0),
        (-0.0, -0.0),
        (math.inf, math.inf),
        (-math.inf, math.nan),
        (-1000.0, -0.0),
        (3e38, 3e38),
        (math.nan, math.nan),
    ],
)
def test_gelu_at_its_ends(argument: float, expected: float, gelu: Node) -> None:
    result = evaluate(gelu, np.array([argument], np.float32))
    np.testing.assert_array_equal(result, np.array([expected], np.float32))
    assert math.isnan(expected) or np.signbit(result[0]) == np.signbit(expected)
