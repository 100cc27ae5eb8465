"""Operators that move elements, scale channels or draw numbers, against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendml as dml
from opendml import Device, TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.compiler.simplify import simplify
from opendml.program.node import ordered
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.spec.enums import DepthSpaceOrder, PaddingMode
from opendml.spec.schema import operator
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, on_arrays, same_bits

DCR, CRD = DepthSpaceOrder.DEPTH_COLUMN_ROW, DepthSpaceOrder.COLUMN_ROW_DEPTH
NUMPY_MODES = {
    PaddingMode.EDGE: "edge",
    PaddingMode.REFLECTION: "reflect",
    PaddingMode.SYMMETRIC: "symmetric",
    PaddingMode.WRAP: "wrap",
}
every_device = pytest.mark.parametrize("device", device_kinds())


def types_of(name: str) -> tuple[str, ...]:
    """The types of an operator's first tensor at the newest level."""
    return next(iter(operator(name).support[0].tensors.values())).types


def every_type(name: str) -> pytest.MarkDecorator:
    """Each of these types in turn."""
    return pytest.mark.parametrize("type", types_of(name))


def _values(type: str, *sizes: int, seed: int = 0) -> Array:
    """Any bits, among them infinities and NaN of one kind."""
    dtype = ScalarType[type].numpy
    generator = np.random.default_rng(seed)
    if dtype.kind == "f":
        numbers = generator.uniform(-9, 9, sizes)
        special = generator.choice(np.array([np.inf, -np.inf, np.nan, -0.0, 6e-8]), sizes)
        return np.where(generator.random(sizes) < 0.2, special, numbers).astype(dtype)
    limits = np.iinfo(dtype.name)
    return generator.integers(limits.min, limits.max, sizes, dtype.name, endpoint=True)


def _check(desc: Any, inputs: list[Any], expected: list[Any], device: str, **attributes: Any) -> None:
    results = on_arrays(desc, inputs, expected, device, **attributes)
    flat = [each for value in expected for each in (value if isinstance(value, list) else [value])]
    for result, array in zip(results, flat, strict=True):
        assert same_bits(np.ascontiguousarray(result), np.ascontiguousarray(array))


@every_device
@every_type("SLICE")
def test_slice(type: str, device: str) -> None:
    x = _values(type, 3, 7, 11)
    attributes = {"offsets": (1, 0, 2), "sizes": (2, 4, 3), "strides": (1, 2, 4)}
    _check(descs.Slice, [x], [x[1:, ::2, 2::4]], device, **attributes)


@every_device
@every_type("SLICE1")
def test_slice_from_either_end_of_a_window(type: str, device: str) -> None:
    x = _values(type, 5, 7, 11)
    attributes = {
        "input_window_offsets": (0, 1, 2),
        "input_window_sizes": (5, 6, 7),
        "input_window_strides": (-1, -4, 3),
    }
    _check(descs.Slice1, [x], [x[::-1, 6:1:-4, 2:9:3]], device, **attributes)


@every_device
@every_type("SLICE_GRAD")
@pytest.mark.parametrize("strides", [(-1, -4, 3), (1, 1, -1), (2, 1, -2)], ids=str)
def test_the_gradient_of_a_slice(strides: tuple[int, ...], type: str, device: str) -> None:
    whole: Any = _values(type, 5, 7, 11)
    window = whole[0:5, 1:7, 2:9][tuple(slice(None, None, stride) for stride in strides)]
    x = _values(type, *window.shape, seed=1)
    expected = np.zeros_like(whole)
    expected[0:5, 1:7, 2:9][tuple(slice(None, None, stride) for stride in strides)] = x
    attributes = {"input_window_offsets": (0, 1, 2), "input_window_sizes": (5, 6, 7)}
    _check(descs.SliceGrad, [x], [expected], device, input_window_strides=strides, **attributes)


@every_device
def test_an_output_may_take_the_first_of_a_window(device: str) -> None:
    x = np.arange(10, dtype=np.float32)
    for stride, expected in ((-3, x[8:4:-3]), (2, x[2:6:2])):
        attributes = {"input_window_offsets": (2,), "input_window_sizes": (7,)}
        _check(descs.Slice1, [x], [expected[:2]], device, input_window_strides=(stride,), **attributes)


@pairwise(device=device_kinds(), type=types_of("SPLIT"), parts=[(6,), (1, 2, 3)], axis=[0, 1, 2])
def test_split(axis: int, parts: tuple[int, ...], type: str, device: str) -> None:
    x = _values(type, *(6 if each == axis else size for each, size in enumerate((2, 3, 5))))
    expected = np.split(x, list(accumulate(parts))[:-1], axis)
    _check(descs.Split, [x], [expected], device, axis=axis)


@pairwise(device=device_kinds(), type=types_of("JOIN"), parts=[(6,), (1, 2, 3)], axis=[0, 1, 2])
def test_join(axis: int, parts: tuple[int, ...], type: str, device: str) -> None:
    own = [tuple(part if each == axis else size for each, size in enumerate((2, 3, 5))) for part in parts]
    arrays = [_values(type, *sizes, seed=seed) for seed, sizes in enumerate(own)]
    _check(descs.Join, [arrays], [np.concatenate(arrays, axis)], device, axis=axis)


@every_device
@every_type("PADDING1")
@pytest.mark.parametrize("value", [0, 7])
def test_padding_with_a_number(value: int, type: str, device: str) -> None:
    x = _values(type, 3, 4)
    attributes = {"padding_mode": PaddingMode.CONSTANT, "start_padding": (1, 0), "end_padding": (2, 3)}
    expected = np.pad(x, [(1, 2), (0, 3)], constant_values=value)
    _check(
        descs.Padding,
        [x],
        [expected],
        device,
        padding_value=value + 0.25 * (x.dtype.kind != "f"),
        **attributes,
    )
    typed = {"padding_value_data_type": TensorDataType[type], "padding_value": value}
    _check(descs.Padding1, [x], [expected], device, **typed, **attributes)


@every_device
@pytest.mark.parametrize("value", [-0.0, np.inf, np.nan])
def test_padding_with_a_special_number(value: float, device: str) -> None:
    x = np.ones((2, 2), np.float32)
    attributes = {"padding_mode": PaddingMode.CONSTANT, "start_padding": (1, 0), "end_padding": (0, 1)}
    expected = np.pad(x, [(1, 0), (0, 1)], constant_values=value)
    _check(descs.Padding, [x], [expected], device, padding_value=value, **attributes)


@every_device
def test_integers_are_padded_with_the_nearest_end_of_their_type(device: str) -> None:
    x = np.ones(2, np.int8)
    attributes = {"padding_mode": PaddingMode.CONSTANT, "start_padding": (1,), "end_padding": (0,)}
    expected = np.array([-128, 1, 1], np.int8)
    _check(descs.Padding, [x], [expected], device, padding_value=-1e9, **attributes)


@every_device
@every_type("PADDING1")
@pytest.mark.parametrize("mode", NUMPY_MODES)
def test_padding_with_own_elements(mode: PaddingMode, type: str, device: str) -> None:
    x = _values(type, 3, 1, 4)
    margins = [(2, 1), (1, 2), (0, 3)]
    _check_padding(x, margins, mode, device)


@pairwise(
    device=device_kinds(),
    margins=[(1, 0), (4, 5), (5, 4), (13, 2), (0, 31), (40, 40)],
    size=[1, 2, 5],
    mode=NUMPY_MODES,
)
def test_padding_may_be_large(mode: PaddingMode, size: int, margins: tuple[int, int], device: str) -> None:
    _check_padding(np.arange(2 * size, dtype=np.float32).reshape(2, size), [(0, 0), margins], mode, device)


@pytest.mark.parametrize("type", ["FLOAT32", "FLOAT16", "INT8", "INT64"])
@pytest.mark.parametrize("mode", NUMPY_MODES)
def test_rows_of_any_length_are_padded(mode: PaddingMode, type: str) -> None:
    for size in (8, 15, 16, 29, 32, 64, 90, 131):
        _check_padding(_values(type, 3, size), [(2, 1), (3, 5)], mode, "cpu")


def test_padding_is_one_kernel_with_what_follows() -> None:
    for mode in NUMPY_MODES:
        graph = dml.Graph()
        x = graph.input("x", dml.FLOAT32, [2, 3, 20, 30])
        margins = {"start_padding": (0, 0, 3, 2), "end_padding": (0, 0, 1, 4)}
        y = dml.activation_relu(dml.padding(x, padding_mode=mode, **margins))
        assert graph.compile({"y": y}, device="cpu").temporary_bytes == 0


def _check_padding(x: Array, margins: list[tuple[int, int]], mode: PaddingMode, device: str) -> None:
    expected = np.pad(x, margins, NUMPY_MODES[mode])  # type: ignore[call-overload]
    start, end = zip(*margins, strict=True)
    attributes = {"padding_mode": mode, "start_padding": start, "end_padding": end}
    _check(descs.Padding, [x], [expected], device, padding_value=3.0, **attributes)


@every_device
@every_type("TILE")
def test_tile(type: str, device: str) -> None:
    x = _values(type, 2, 3, 1)
    _check(descs.Tile, [x], [np.tile(x, (3, 2, 4))], device, repeats=(3, 2, 4))


@every_device
@every_type("SPACE_TO_DEPTH1")
@pytest.mark.parametrize("order", DepthSpaceOrder)
def test_blocks(order: DepthSpaceOrder, type: str, device: str) -> None:
    space, block = _values(type, 2, 3, 4, 6), 2
    blocks = space.reshape(2, 3, 2, block, 3, block)
    depth = blocks.transpose((0, 3, 5, 1, 2, 4) if order is DCR else (0, 1, 3, 5, 2, 4)).reshape(2, 12, 2, 3)
    _check(descs.SpaceToDepth1, [space], [depth], device, block_size=block, order=order)
    _check(descs.DepthToSpace1, [depth], [space], device, block_size=block, order=order)
    if order is DCR:
        _check(descs.SpaceToDepth, [space], [depth], device, block_size=block)
        _check(descs.DepthToSpace, [depth], [space], device, block_size=block)


@pairwise(device=device_kinds(), type=types_of("DIAGONAL_MATRIX"), offset=[0, 2, -1, 9, -9])
def test_diagonal_matrix(offset: int, type: str, device: str) -> None:
    dtype = ScalarType[type].numpy
    expected = np.broadcast_to(np.eye(4, 5, offset) * 3, (2, 4, 5)).astype(dtype)
    value = 3.75 if dtype.kind != "f" else 3.0
    _check(descs.DiagonalMatrix, [], [expected], device, offset=offset, value=value)


@pairwise(
    device=device_kinds(),
    type=types_of("DIAGONAL_MATRIX1"),
    diagonals=[(0, 1), (-1, 2), (2, -1), (1, 1), (0, 4), (-2, 1), (-(2**31), 1), (0, 2**31 - 1)],
)
def test_diagonals(diagonals: tuple[int, int], type: str, device: str) -> None:
    begin, end = diagonals
    x = _values(type, 4, 5)
    number = np.arange(5) - np.arange(4)[:, None]
    filled = (end >= begin) ^ (number >= begin) ^ (number < end)
    attributes = {
        "value_data_type": TensorDataType[type],
        "value": 7,
        "diagonal_fill_begin": begin,
        "diagonal_fill_end": end,
    }
    for given_input, rest in ((x, x), (None, np.zeros_like(x))):
        expected = np.where(filled, x.dtype.type(7), rest)
        _check(descs.DiagonalMatrix1, [given_input], [expected], device, **attributes)


@every_device
@given(data=st.data())
@examples
def test_any_slice_and_padding(device: str, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=8 if device == "cpu" else 4))
    x = np.random.default_rng(len(sizes)).random(sizes, np.float32)
    margins = [(data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))) for _ in sizes[-2:]]
    margins = [*[(0, 0)] * (len(sizes) - len(margins)), *margins]
    _check_padding(x, margins, data.draw(st.sampled_from(list(NUMPY_MODES))), device)
    offsets = [data.draw(st.integers(0, size - 1)) for size in sizes]
    extents = [data.draw(st.integers(1, size - o)) for size, o in zip(sizes, offsets, strict=True)]
    strides = [data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3])) for _ in sizes]
    window = x[tuple(slice(o, o + e) for o, e in zip(offsets, extents, strict=True))]
    expected = window[tuple(slice(None, None, stride) for stride in strides)]
    _check(
        descs.Slice1,
        [x],
        [expected],
        device,
        input_window_offsets=offsets,
        input_window_sizes=extents,
        input_window_strides=strides,
    )


@pytest.mark.parametrize("device", device_kinds())
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("bias", [(0.5,), (0.5, -2.0, 7.0)], ids=len)
def test_each_channel_has_its_bias(bias: tuple[float, ...], dtype: Any, device: str) -> None:
    x = np.random.default_rng(0).uniform(-9, 9, (2, len(bias), 3, 5)).astype(dtype)
    expected = x.astype(np.float64) * 0.75 + np.reshape(bias, (1, -1, 1, 1))
    (result,) = on_arrays(descs.ValueScale2D, [x], [x], device, scale=0.75, bias=bias)
    np.testing.assert_array_equal(result, expected.astype(dtype))


# Counter, key and numbers of Random123's known answers.
KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def _philox(counter: int, key: Sequence[int]) -> list[int]:
    words = [counter >> 32 * place & 0xFFFFFFFF for place in range(4)]
    key = list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [b >> 32 ^ words[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ words[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return words


def _expected(state: Array, count: int) -> tuple[list[int], list[int]]:
    """The numbers, and the state after them."""
    words = state.reshape(-1).tolist()
    counter = sum(word << 32 * place for place, word in enumerate(words[:4]))
    blocks = -(-count // 4)
    numbers = [word for block in range(blocks) for word in _philox((counter + block) % 2**128, words[4:])]
    after = (counter + blocks) % 2**128
    return numbers[:count], [*(after >> 32 * place & 0xFFFFFFFF for place in range(4)), *words[4:]]


@pytest.mark.parametrize(("counter", "key", "numbers"), KNOWN)
def test_known_answers(counter: list[int], key: list[int], numbers: list[int], any_device: Device) -> None:
    state = np.array([*counter, *key], np.uint32)
    np.testing.assert_array_equal(dml.random_generator(state, sizes=[4], device=any_device), numbers)


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ([0, 0, 0, 0, 7, 8], [1]),
        ([1, 2, 3, 4, 5, 6], [2, 3, 5, 7]),
        ([0xFFFFFFFF, 0, 0, 0, 1, 2], [3, 3]),
        ([0xFFFFFFFE, 0xFFFFFFFF, 9, 0, 1, 2], [17]),
        ([0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFF, 0, 1, 2], [1, 1, 1, 1, 1, 2, 4, 2]),
        ([0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 1, 2], [6]),
    ],
)
def test_numbers_go_on_with_the_counter(words: list[int], sizes: list[int], any_device: Device) -> None:
    state = np.array(words, np.uint32).reshape(1, 1, 6)
    numbers, after = dml.random_generator(state, sizes=sizes, output_state=True, device=any_device)
    expected, state_after = _expected(state, int(np.prod(sizes)))
    np.testing.assert_array_equal(numbers.reshape(-1), expected)
    np.testing.assert_array_equal(after.reshape(-1), state_after)
    assert after.shape == state.shape
    alone = dml.random_generator(state, sizes=sizes, device=any_device)
    np.testing.assert_array_equal(alone, numbers)


def test_the_counter_goes_on_as_on_the_page_of_directml(any_device: Device) -> None:
    """DirectML's page has the same numbers the wrong way round."""
    counter = 0x48656C6C_6F46726F_6D536561_746F776E
    state = np.array([*(counter >> 32 * place & 0xFFFFFFFF for place in range(4)), 1, 2], np.uint32)
    _, after = dml.random_generator(state, sizes=[1_299_420], output_state=True, device=any_device)
    assert sum(int(word) << 32 * place for place, word in enumerate(after[:4])) == counter + 324_855
    assert counter + 324_855 == 0x48656C6C_6F46726F_6D536561_74746C65


@pytest.mark.parametrize("count", [1000, 1001])
def test_each_block_of_numbers_is_computed_once(count: int) -> None:
    state, numbers = (TensorDesc(TensorDataType.UINT32, sizes) for sizes in ([1, 6], [1, count]))
    desc = descs.RandomGenerator(state, numbers, None)
    program = program_of(desc)
    largest = max(fuse(replace(program, results=simplify(program.results))).kernels, key=_operations)
    assert (largest.domain[0], len(largest.stores)) == (-(-count // 4), 4)


def _operations(kernel: Kernel) -> int:
    return len(ordered(kernel.values))
