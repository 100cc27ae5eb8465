"""Outputs of a model take the memory of outputs that the caller has dropped."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

import opendml as dml
from opendml.targets.memory import address_of
from opendml.targets.output_memory import OutputMemory

FLOAT32 = np.dtype(np.float32)


def _model(text: str) -> dml.onnx.OnnxModel:
    return dml.onnx.load(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}'))


@pytest.mark.parametrize("sizes", ["512, 600", "n, m"])
def test_the_next_run_takes_the_memory_of_a_dropped_output(sizes: str) -> None:
    model = _model(f"g (float[{sizes}] x) => (float[{sizes}] y) {{ y = Neg (x) }}")
    x = np.random.default_rng(0).standard_normal((512, 600), np.float32)
    for _ in range(3):  # Later runs have instances and plans of their own.
        y = model(x=x)["y"]
        address = address_of(y)
        del y
    again = model(x=x)["y"]
    assert address_of(again) == address
    np.testing.assert_array_equal(again, -x)


def test_an_output_that_grows_takes_memory_of_the_run_before_the_last() -> None:
    model = _model(
        "g (float[n, 600] x, float[1, 600] row) => (float[m, 600] y) { y = Concat <axis = 0> (x, row) }"
    )
    row, addresses = np.ones((1, 600), np.float32), list[int]()
    x = np.zeros((513, 600), np.float32)
    for step in range(12):
        x = model(x=x, row=row)["y"]
        assert x.shape == (514 + step, 600)
        np.testing.assert_array_equal(x[-step - 1 :], 1)
        np.testing.assert_array_equal(x[: -step - 1], 0)
        addresses.append(address_of(x))
    assert len(set(addresses)) <= 4  # Two of the first plan, and two later ones.


def test_views_keep_the_memory_of_an_output() -> None:
    model = _model("g (float[512, 600] x) => (float[512, 600] y) { y = Neg (x) }")
    x = np.ones((512, 600), np.float32)
    kept = model(x=x)["y"][7:9].view(np.int32)
    for number in range(4):
        model(x=np.full_like(x, number))
    np.testing.assert_array_equal(kept.view(np.float32), -1)


def test_memory_comes_back_once_whatever_was_made_of_the_base_of_an_output() -> None:
    memory = OutputMemory()
    (make,) = memory.makers([((100_000,), FLOAT32)])
    output = make()
    base: Any = output.base
    for derived in (base[4:8], base.copy(), base.view(np.ndarray)):
        del derived
    assert memory.free_bytes == 0
    del output
    assert memory.free_bytes == 0
    part = base[:4]
    del base
    assert memory.free_bytes == 0
    del part
    assert memory.free_bytes >= 400_000


@pytest.mark.parametrize("held", [lambda base: base.base, lambda base: np.asarray(base.base)])
def test_memory_that_a_caller_has_found_beneath_an_output_stays_theirs(held: Callable[[Any], Any]) -> None:
    memory = OutputMemory()
    (make,) = memory.makers([((100_000,), FLOAT32)])
    output = make()
    kept = held(output.base)
    del output
    assert memory.free_bytes == 0
    del kept
    output = make()
    del output
    assert memory.free_bytes >= 400_000


def test_no_more_memory_is_kept_than_the_largest_run_needs() -> None:
    memory = OutputMemory()
    makers = memory.makers([((100_000,), FLOAT32), ((300, 200), FLOAT32), ((3,), FLOAT32)])
    outputs = [make() for make in makers for _ in range(5)]
    assert memory.free_bytes == 0
    del outputs
    largest = memory.free_bytes
    assert 240_000 <= largest <= 1.125 * 640_000
    (larger,) = memory.makers([((200_000,), FLOAT32)])
    larger()
    assert 800_000 <= memory.free_bytes <= 1.125 * 800_000
    memory.clear()
    assert memory.free_bytes == 0


def test_outputs_are_aligned_and_outlive_the_model() -> None:
    memory = OutputMemory()
    (make,) = memory.makers([((100_000,), FLOAT32)])
    array = make()
    assert address_of(array) % 64 == 0
    assert array.flags.writeable
    assert array.flags.c_contiguous
    del memory, make
    array[:] = 1
    del array


def test_threads_never_share_memory_of_outputs() -> None:
    memory, faults = OutputMemory(), list[int]()
    (make,) = memory.makers([((50_000,), FLOAT32)])

    def work(number: int) -> None:
        for _ in range(300):
            array = make()
            array[:] = number
            if not (array == number).all():
                faults.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_memory_that_is_not_there_is_an_error() -> None:
    (make,) = OutputMemory().makers([((2**60,), FLOAT32)])
    with pytest.raises(dml.Unsupported, match="no memory for"):
        make()


@pytest.mark.parametrize("export", [memoryview, np.from_dlpack, "torch.from_numpy", "torch.from_dlpack"])
def test_exports_of_an_output_keep_its_memory(export: Any) -> None:
    if isinstance(export, str):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        export = getattr(torch, export.removeprefix("torch."))
    memory = OutputMemory()
    (make,) = memory.makers([((100_000,), FLOAT32)])
    output = make()
    output[:] = 7
    exported = export(output)
    address = address_of(output)
    del output
    other = make()
    other[:] = 8
    assert address_of(other) != address
    assert memory.free_bytes == 0
    np.testing.assert_array_equal(np.asarray(exported), 7)
    del exported
    assert memory.free_bytes > 0
    assert address_of(make()) == address


def test_garbage_may_be_collected_while_memory_is_counted() -> None:
    memory = OutputMemory()
    makers = memory.makers([((20_000 + 5_000 * number,), FLOAT32) for number in range(80)])
    before = gc.get_threshold()
    pairs = [(number, number) for number in range(5000)]  # Python keeps 2,000 freed pairs for new ones.
    for number, make in enumerate(makers):
        garbage: list[Any] = [make()]
        garbage.append(garbage)
        del garbage
        gc.set_threshold(gc.get_count()[0] + number % 20)
        try:
            assert memory.free_bytes >= 0
        finally:
            gc.set_threshold(*before)
    assert pairs
