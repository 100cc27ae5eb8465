"""Random numbers against those that Random123 publishes, and against Philox in Python's integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import opendml as dml
from opendml import Device, TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.compiler.simplify import simplify
from opendml.program.node import ordered
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of

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
