"""Products in matrix registers on machines without them; others run test_cpu_matrix_registers.py."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from opendml.compiler.kernel import Kernel
from opendml.targets.cpu.contraction.launches import launches_of
from opendml.targets.cpu.contraction.schedule import ProductQuery, Tiles, estimates
from opendml.targets.cpu.contraction.tiling import Instructions, Tiling
from opendml.targets.cpu.machine import machine
from tests.targets.emulated_registers import emulated_registers
from tests.targets.kernels import contraction_kernel, run_launches
from tests.targets.test_cpu_contraction import assert_accurate, values
from tests.targets.test_cpu_windows import AXES, Form, convolution

pytestmark = pytest.mark.skipif(
    machine().has("amx-bf16") or not machine().triple.startswith("x86_64"),
    reason="this processor has matrix registers, or is no x86-64 processor",
)


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with emulated_registers(monkeypatch):
        yield


FORMS = [
    Form((5, 17), (3, 3)),
    Form((4, 12), (3, 3), strides=(2, 2)),
    Form((5, 11), (3, 3), dilations=(2, 2)),
    Form((3, 35), (1, 3)),
    Form((20, 2), (3, 1)),
    Form((4, 9), (2, 2)),
]


def smallest(ways: list[Tiles]) -> Tiles:
    return min(ways, key=lambda tiles: tiles.rows * tiles.columns)


def of_an_image(kernel: Kernel) -> list[Tiles]:
    """Return the smallest and the largest blocks of windows in bfloat16 parts."""
    ways = [
        way.choice
        for way in estimates(ProductQuery(kernel, machine()))
        if way.choice.instructions is Instructions.AMX_BF16 and way.choice.viewed
    ]
    return [smallest(ways), max(ways, key=lambda tiles: tiles.rows * tiles.columns)]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_strips_of_windows_are_copied_from_an_image(form: Form) -> None:
    """In two parts of channels; blocks change no bit."""
    kernel, arrays = convolution(form, channels=64, filters=40)
    found = set()
    for tiles in of_an_image(kernel):
        launches = launches_of(tiles)
        assert launches[-1].pattern.walk_as(Tiling).windows == "b"
        run_launches(launches, arrays)
        assert_accurate(arrays[2], *arrays[:2], AXES)
        found.add(arrays[2].tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("value", [np.inf, 1e-40], ids=["infinite", "denormal"])
def test_strips_hold_numbers_that_cannot_be_split(value: float) -> None:
    kernel, arrays = convolution(FORMS[1], channels=64, filters=40)
    filters, windows, out = arrays
    windows[0, 0, 0, 0, 3] = value
    run_launches(launches_of(of_an_image(kernel)[0]), arrays)
    if np.isfinite(value):
        assert_accurate(out, filters, windows, AXES)
    else:
        seen = (~np.isfinite(windows)).any(AXES, keepdims=True)
        np.testing.assert_array_equal(~np.isfinite(out), np.broadcast_to(seen, out.shape))


@pytest.mark.parametrize("fixed", ["a", "b", "neither"])
def test_parts_that_are_packed_ahead_are_multiplied(fixed: str) -> None:
    m, n, k = 40, 70, 300
    a, b, out = values("float32", m, 1, k), values("float32", 1, n, k), np.zeros((m, n, 1), "f")
    kernel = contraction_kernel(a, b, (2,), [out])
    ways = [
        way.choice
        for way in estimates(ProductQuery(kernel, machine()))
        if way.choice.instructions is Instructions.AMX_BF16
    ]
    packed = {"a": (True, False), "b": (False, True), "neither": (False, False)}[fixed]
    tiles = smallest([tiles for tiles in ways if (tiles.a.is_ahead, tiles.b.is_ahead) == packed])
    run_launches(launches_of(tiles), [a, b, out])
    assert_accurate(out, a, b, (2,))
