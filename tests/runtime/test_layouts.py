"""Layouts of arrays: any strides, offsets and ranks give the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT32, Device, TensorDataType, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.pattern import CpuMode
from tests.pairwise import pairwise
from tests.running import FLOATS, elements, laid_out, launches, memory_for, numpy_type, run, same_bits

TYPES = [np.float32, np.float16]
GUARD = 77.0

View = Callable[[Array, Sequence[int]], Array]
"""Takes a view of the given sizes out of memory that has room for all of them."""


def whole(sizes: Sequence[int]) -> int:
    return 4 * math.prod(size + 8 for size in sizes)


def packed_at(offset: int) -> View:
    return lambda memory, sizes: memory[offset : offset + math.prod(sizes)].reshape(sizes)


def padded_rows(memory: Array, sizes: Sequence[int]) -> Array:
    wider = [*sizes[:-1], sizes[-1] + 5]
    return packed_at(3)(memory, wider)[..., : sizes[-1]]


def every_second(memory: Array, sizes: Sequence[int]) -> Array:
    return packed_at(1)(memory, [*sizes[:-1], sizes[-1] * 2])[..., ::2]


def every_second_row(memory: Array, sizes: Sequence[int]) -> Array:
    return packed_at(0)(memory, [2 * sizes[0], *sizes[1:]])[1::2]


def reversed_last(memory: Array, sizes: Sequence[int]) -> Array:
    return packed_at(2)(memory, sizes)[..., ::-1]


def reversed_all(memory: Array, sizes: Sequence[int]) -> Array:
    return packed_at(0)(memory, sizes)[tuple([slice(None, None, -1)] * len(sizes))]


def transposed(memory: Array, sizes: Sequence[int]) -> Array:
    return packed_at(1)(memory, sizes[::-1]).T


def channels_last(memory: Array, sizes: Sequence[int]) -> Array:
    return np.moveaxis(packed_at(0)(memory, [sizes[0], *sizes[2:], sizes[1]]), -1, 1)


def first_repeated(memory: Array, sizes: Sequence[int]) -> Array:
    return np.broadcast_to(packed_at(0)(memory, [1, *sizes[1:]]), sizes)


def last_repeated(memory: Array, sizes: Sequence[int]) -> Array:
    return np.broadcast_to(packed_at(1)(memory, [*sizes[:-1], 1]), sizes)


def all_repeated(memory: Array, sizes: Sequence[int]) -> Array:
    return np.broadcast_to(memory[5], sizes)


WRITABLE: dict[str, View] = {
    "packed": packed_at(0),
    "odd-offset": packed_at(3),
    "padded-rows": padded_rows,
    "every-second": every_second,
    "every-second-row": every_second_row,
    "reversed-last": reversed_last,
    "reversed-all": reversed_all,
    "transposed": transposed,
    "channels-last": channels_last,
}
READABLE = WRITABLE | {
    "first-repeated": first_repeated,
    "last-repeated": last_repeated,
    "all-repeated": all_repeated,
}

SIZES = [[2, 3, 5, 7], [1, 4, 9, 33], [3, 64, 17, 19], [2, 2, 2, 130]]


def checked(
    x: Array, out_memory: Array, out: Array, function: Callable[..., Any], **attributes: float
) -> None:
    """Runs `function` from x to out and compares all of `out_memory` with what must be there then."""
    packed = function(np.ascontiguousarray(x), **attributes)
    out_memory[:] = GUARD
    expected_memory = out_memory.copy()
    offset = (out.__array_interface__["data"][0] - out_memory.__array_interface__["data"][0]) // out.itemsize
    view = np.lib.stride_tricks.as_strided(expected_memory[offset:], out.shape, out.strides)
    view[...] = packed
    assert function(x, out=out, **attributes) is out
    assert same_bits(out_memory, expected_memory)


def random_memory(count: int, type: Any) -> Array:
    return np.random.default_rng(count).uniform(-4, 4, count).astype(type)


@pairwise(read=READABLE, written=WRITABLE, sizes=SIZES, type=TYPES)
def test_any_view_gives_the_same_bits_as_packed(read: str, written: str, sizes: list[int], type: Any) -> None:
    x = READABLE[read](random_memory(whole(sizes), type), sizes)
    memory = random_memory(whole(sizes), type)
    out = WRITABLE[written](memory, sizes)
    checked(x, memory, out, dml.activation_celu, alpha=0.7)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    "count", [*range(1, 41), 63, 64, 65, 127, 129, 4095, 4096, 4097, 8191, 8192, 8193, 16383, 16385, 100_003]
)
def test_any_length_and_offset_writes_exactly_its_elements(count: int, type: Any) -> None:
    for offset in (0, 1, 3, 8):
        source = random_memory(count + 40, type)
        memory = random_memory(count + 40, type)
        checked(source[offset : offset + count], memory, memory[7 : 7 + count], dml.activation_elu, alpha=1.0)
        checked(source[7 : 7 + count], memory, memory[offset : offset + count], dml.activation_hard_sigmoid)


@pytest.mark.parametrize("data_type", FLOATS)
@pytest.mark.parametrize("offset", [0, 1, 5, 16, 31])
def test_an_output_that_bypasses_caches_writes_its_elements(offset: int, data_type: TensorDataType) -> None:
    tensor = TensorDesc(data_type, [3, 20_011])
    desc = descs.ActivationSoftsign(tensor, tensor)
    x = random_memory(60_033, numpy_type(tensor))
    plain = run(desc, [x]).ravel()
    assert not launches(desc)[0].pattern.stores[0].streamed
    # As if the last cache were tiny: a real one would take much memory to exceed.
    device = Device("cpu")
    with assumed(replace(machine(), last_cache_bytes=4096)):
        assert launches(desc)[0].pattern.stores[0].streamed
        compiled = device.compile_operator(device.create_operator(desc))
    memory = np.full(60_100, GUARD, x.dtype)
    compiled.bind([x], [memory[offset : offset + x.size]]).dispatch()
    assert same_bits(memory[offset : offset + x.size], plain)
    assert (memory[:offset] == GUARD).all()
    assert (memory[offset + x.size :] == GUARD).all()


@pytest.mark.parametrize("rank", range(1, 9))
@pytest.mark.parametrize("data_type", FLOATS)
def test_strides_of_any_rank(rank: int, data_type: TensorDataType, device: Device) -> None:
    sizes = [3, 2, 4, 1, 3, 2, 2, 5][:rank]
    packed = TensorDesc(data_type, sizes)
    values = random_memory(math.prod(sizes), numpy_type(packed)).reshape(sizes)
    plain = run(descs.ActivationTanh(packed, packed), [values], device)
    inside_out = [math.prod(sizes[:dimension]) for dimension in range(rank)]
    spread = [3 * stride for stride in packed.effective_strides]
    for read, written in [(inside_out, None), (None, inside_out), (spread, inside_out), (inside_out, spread)]:
        given, taken = TensorDesc(data_type, sizes, read), TensorDesc(data_type, sizes, written)
        assert same_bits(run(descs.ActivationTanh(given, taken), [laid_out(values, given)], device), plain)


@pytest.mark.parametrize("repeated", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]], ids=str)
def test_a_stride_of_zero_repeats_the_input(repeated: list[int], device: Device) -> None:
    sizes = [3, 5, 40]
    strides = [0 if d in repeated else stride for d, stride in enumerate((200, 40, 1))]
    given, packed = TensorDesc(FLOAT32, sizes, strides), TensorDesc(FLOAT32, sizes)
    memory = memory_for(given)
    memory[:] = np.linspace(-2, 2, memory.size)
    result = run(descs.ActivationCelu(given, packed), [memory], device)
    logical = np.ascontiguousarray(elements(memory, given))
    assert same_bits(result, run(descs.ActivationCelu(packed, packed), [logical], device))


@pytest.mark.parametrize(
    ("sizes", "mode"), [([2, 64, 33, 35], CpuMode.TRANSPOSED), ([1, 3, 130, 70], CpuMode.POINTWISE)]
)
@pytest.mark.parametrize("data_type", FLOATS)
def test_channels_first_to_channels_last_and_back(
    sizes: list[int], mode: CpuMode, data_type: TensorDataType, device: Device
) -> None:
    _, c, h, w = sizes
    first = TensorDesc(data_type, sizes)
    last = TensorDesc(data_type, sizes, [h * w * c, 1, w * c, c])
    values = random_memory(math.prod(sizes), numpy_type(first)).reshape(sizes)
    plain = run(descs.ActivationSigmoid(first, first), [values], device)
    assert launches(descs.ActivationSigmoid(first, last))[0].pattern.mode is mode
    to_last = run(descs.ActivationSigmoid(first, last), [values], device)
    to_first = run(descs.ActivationSigmoid(last, first), [laid_out(values, last)], device)
    assert same_bits(to_last, plain)
    assert same_bits(to_first, plain)


@pytest.mark.parametrize("data_type", FLOATS)
def test_numbers_of_channels_are_no_reason_to_transpose(data_type: TensorDataType, device: Device) -> None:
    sizes = [2, 64, 33, 35]
    image, numbers = TensorDesc(data_type, sizes), TensorDesc(data_type, sizes, [0, 1, 0, 0])
    desc = descs.ElementWiseMultiply(image, numbers, image)
    assert launches(desc)[0].pattern.mode is CpuMode.POINTWISE
    x = random_memory(math.prod(sizes), numpy_type(image)).reshape(sizes)
    scale = random_memory(64, numpy_type(numbers))
    spread = np.ascontiguousarray(np.broadcast_to(scale.reshape(1, 64, 1, 1), sizes))
    plain = run(descs.ElementWiseMultiply(image, image, image), [x, spread], device)
    assert same_bits(run(desc, [x, scale], device), plain)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1, 1, 1, 1, 1)], ids=str)
def test_one_element_in_any_rank(shape: tuple[int, ...]) -> None:
    x = np.full(shape or (1,), -1.0, np.float32)
    assert dml.activation_relu(x).shape == x.shape
    assert (dml.activation_relu(x) == 0).all()


def test_strides_of_dimensions_of_size_one_do_not_matter(device: Device) -> None:
    odd = TensorDesc(FLOAT32, [1, 6, 1], [12345, 1, 777])
    packed = TensorDesc(FLOAT32, [1, 6, 1])
    x = np.arange(-3, 3, dtype=np.float32)
    result = run(descs.ActivationRelu(odd, odd), [x], device)
    assert same_bits(result, run(descs.ActivationRelu(packed, packed), [x], device))
