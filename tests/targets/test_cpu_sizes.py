"""Launches of traced sizes compute other sizes too, and share code and packed constants."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.simplify import simplify
from opendml.compiler.sized import plain
from opendml.program.atoms import Dimension
from opendml.program.size_values import Conditions, Values
from opendml.program.sizes import Size
from opendml.program.trace import Trace
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.targets.cpu.contraction import roles
from opendml.targets.cpu.launch import CpuLaunch
from opendml.targets.cpu.machine import assumed
from opendml.targets.cpu.schedule import schedule, scheduled
from tests.programs import sources
from tests.targets.kernels import contraction_kernel, run_launches
from tests.targets.test_cpu_chains import attended, chain, expected, tensors
from tools.machines import PROCESSORS, kernels_of
from tools.model_cases import Network

Case = Callable[[int], tuple[Kernel, list[Array], Array]]
"""Makes a kernel of a size, its arrays with the output last, and the expected output."""


def grown(kernel: Kernel, dimension: int, size: int) -> Kernel:
    """Return the kernel with another size of a dimension, over contiguous tensors."""
    old = kernel.domain[dimension]

    def moved(access: Access) -> Access:
        step = access.strides[dimension]
        outer = [bool(step and each and each % (old * step) == 0) for each in access.strides]
        strides = [
            each // old * size if is_outer else each
            for each, is_outer in zip(access.strides, outer, strict=True)
        ]
        return replace(access, strides=tuple(strides))

    domain = (*kernel.domain[:dimension], size, *kernel.domain[dimension + 1 :])
    return replace(kernel.with_accesses(moved), domain=domain)


def at(launches: Sequence[CpuLaunch], sizes: dict[str, int]) -> list[CpuLaunch]:
    """Return launches with all traced sizes evaluated."""
    names = [each.name for each in fields(CpuLaunch) if type(getattr(launches[0], each.name)) in (int, Size)]
    words = [word for launch in launches for word in launch.parameters]
    found = iter(Values(words + [getattr(each, name) for each in launches for name in names])(sizes).tolist())
    parameters = [tuple([next(found) for _ in launch.parameters]) for launch in launches]
    return [
        replace(launch, parameters=own, **{name: next(found) for name in names})
        for launch, own in zip(launches, parameters, strict=True)
    ]


def product(m: int, n: int, k: int, is_constant: bool) -> tuple[Kernel, list[Array], Array]:
    random = np.random.default_rng(m + n + k)
    a, b = (random.standard_normal(sizes).astype("f") for sizes in ((m, 1, k), (1, n, k)))
    out = np.full((m, n, 1), np.nan, "f")
    kernel = contraction_kernel(a, b, (2,), [out])
    loads = [replace(load, fixed=is_constant and load.buffer == 1) for load in kernel.loads]
    return replace(kernel, loads=tuple(loads)), [a, b, out], (a[:, 0] @ b[0].T)[..., np.newaxis]


def softmax(rows: int, columns: int) -> tuple[Kernel, list[Array], Array]:
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype("f")
    tensor = dml.TensorDesc(dml.FLOAT32, [rows, columns])
    program = program_of(dml.descs.ActivationSoftmax1(tensor, tensor, axes=[1]))
    (kernel,) = fuse(replace(program, results=simplify(program.results)), Abilities()).kernels
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return kernel, [x, np.full_like(x, np.nan)], weights / weights.sum(axis=1, keepdims=True)


def attention(queries: int, keys: int) -> tuple[Kernel, list[Array], Array]:
    arrays = tensors(3, queries, keys, 24, 40)
    wanted = expected(*arrays)
    kernel = chain(attended(*sources(*arrays)), *arrays)
    return kernel, [*arrays, np.full(wanted.shape, np.nan, "f")], wanted


CASES: dict[str, tuple[Case, int, int, tuple[int, ...]]] = {
    "few rows of a constant": (lambda m: product(m, 80, 300, True), 0, 7, (2, 5, 6, 7, 8)),
    "rows of a constant": (lambda m: product(m, 80, 300, True), 0, 20, (2, 9, 13, 20, 33, 70)),
    "columns": (lambda n: product(21, n, 70, False), 1, 50, (2, 9, 50, 51, 100, 500)),
    "depth": (lambda k: product(21, 40, k, False), 2, 70, (2, 9, 33, 70, 300, 1000)),
    "rows of a softmax": (lambda rows: softmax(rows, 100), 0, 20, (2, 3, 20, 33, 300)),
    "columns of a softmax": (lambda columns: softmax(33, columns), 1, 100, (2, 3, 17, 100, 300, 700)),
    "queries": (lambda queries: attention(queries, 60), 1, 30, (2, 9, 30, 31, 100)),
    "keys": (lambda keys: attention(30, keys), 2, 60, (2, 9, 60, 61, 300)),
}
"""Kernels of one size, the dimension of their domain, the hint of that size, and other values."""


@pytest.mark.parametrize("name", CASES)
def test_launches_of_traced_sizes_compute_all_sizes_that_meet_the_guards(name: str) -> None:
    case, dimension, hint, others = CASES[name]
    hinted, *_ = case(hint)
    trace = Trace({"size": Dimension(hint)})
    launches = schedule(grown(hinted, dimension, trace.size("size")), plain)
    holds = Conditions(trace.guards)
    met = [size for size in others if holds({"size": size})]
    assert len(met) >= len(others) - 1
    for size in met:
        kernel, arrays, wanted = case(size)
        assert grown(hinted, dimension, size).domain == kernel.domain
        run_launches(at(launches, {"size": size}), arrays)
        np.testing.assert_allclose(arrays[-1].reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)


def test_guards_keep_blocks_within_scratch_memory() -> None:
    with assumed(PROCESSORS["avx512"]):
        kernel, *_ = attention(2000, 60)
        trace = Trace({"depth": Dimension(24)})
        schedule(grown(kernel, 3, trace.size("depth")), plain)
    holds = Conditions(trace.guards)
    assert holds({"depth": 30})
    assert not holds({"depth": 250})


def layer(size: int, is_image: bool, type: str) -> Kernel:
    """Return the kernel of a layer with constant weights; its input has images, or rows, of that size."""
    network = Network("float32")
    if is_image:
        result = network.convolution(network.input(2, 64, size, size), 64, 3)
    else:
        result = network.linear(network.input(1, 1, size, 768), 768)
    (kernel,) = kernels_of(network.program(result), type)
    return kernel


@pytest.mark.parametrize("is_image", [False, True], ids=["rows", "images"])
@pytest.mark.parametrize("machine", PROCESSORS)
def test_constants_have_one_layout_and_few_kinds_of_tiles_serve_all_sizes(
    machine: str, is_image: bool
) -> None:
    sizes = (7, 8, 10, 14, 20, 37, 56, 75) if is_image else (2, 3, 5, 7, 9, 11, 15, 17, 23, 50, 99, 127, 300)
    with assumed(PROCESSORS[machine]):
        packings, codes = set(), set()
        for size in sizes:
            kernel = layer(size, is_image, machine)
            _, (packing, *_, product) = scheduled(kernel, range(len(kernel.domain)))
            assert packing.fixed
            packings.add((packing.pattern.text(), packing.parameters))
            codes.add(product.pattern.text())
    assert len(packings) == 1
    assert len(codes) <= (5 if is_image else 6)


def test_the_parts_of_a_product_are_found_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    renumbered, found = roles.renumbered, list[object]()

    def counted(*arguments: Any) -> Any:
        found.append(arguments)
        return renumbered(*arguments)

    monkeypatch.setattr(roles, "renumbered", counted)
    kernel, *_ = product(64, 80, 300, True)
    for rows in (64, 100, 7):
        sized = grown(kernel, 0, rows)
        assert all(roles.roles_of(sized, exchanged) for exchanged in (False, True))
    assert len(found) == 3  # Two operands and the epilogue.


ORDERED = """
from opendml.compiler.kernel import Access
from opendml.program.atoms import Dimension
from opendml.program.scalar_type import ScalarType
from opendml.program.trace import Trace
from opendml.targets.cpu.contraction.roles import by_stride

trace = Trace({"rows": Dimension(4), "columns": Dimension(50)})
strides = trace.size("rows"), trace.size("columns")
print(by_stride([Access(0, ScalarType.FLOAT32, 0, strides)], [0, 1]), [str(size) for _, size in trace.guards])
"""


def test_orders_of_dimensions_are_guarded_without_assertions_too() -> None:
    found = subprocess.run([sys.executable, "-O", "-c", ORDERED], capture_output=True, text=True, check=True)
    assert found.stdout == "(1, 0) ['<-1-rows+columns>']\n"


def test_windows_larger_than_a_part_of_products_are_planned_for_all_sizes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    random = np.random.default_rng(5)
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 1, "height", "width"])
    filters = random.integers(-3, 4, (32, 1, 17, 17)).astype(np.float32)
    y = dml.convolution(x, graph.constant(filters))
    model = graph.compile({"y": y}, "cpu")
    for batch, height, width in ((2, 40, 33), (3, 48, 56), (2, 20, 70)):
        image = random.integers(-3, 4, (batch, 1, height, width)).astype(np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(image[:, 0], (17, 17), (1, 2))
        expected = np.einsum("nhwij,oij->nohw", windows, filters[:, 0])
        np.testing.assert_array_equal(np.asarray(model(image)["y"]), expected)
    assert "cannot be traced" not in caplog.text
