"""Random numbers as a function of a counter and a key."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.operators.registry import defines
from opendml.program.functions import equal, select
from opendml.program.node import Node, Operation, apply, convert, element_number, index
from opendml.program.scalar_type import ScalarType
from opendml.program.view import joined, reshaped, sliced
from opendml.spec.enums import RandomGeneratorType
from opendml.spec.tensor_desc import TensorDesc

_WORDS = 4
"""Words of 32 bits in a counter, and in the numbers that it yields."""
_ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85


@defines("RANDOM_GENERATOR", output=True)
def random_generator(
    state: Node, *, type: RandomGeneratorType, output: tuple[TensorDesc, TensorDesc | None]
) -> tuple[Node, ...]:
    """the words that Philox 4x32-10 makes of the counter, of the counter + 1, and so on, one after the other;
    state: the counter + number of elements / 4, rounded up, and the key

    The first word of the state is the least significant one of the counter, as in Random123, whose published
    numbers these are. The counter goes on from 0 after its last value.
    """
    numbers, next_state = output
    count = math.prod(numbers.sizes)
    blocks = -(-count // _WORDS)
    words = [_word(state, place, 2) for place in range(_WORDS + 2)]
    steps = convert(element_number((blocks, 1)), ScalarType.UINT64)
    made = joined(_philox(_advanced(words[:_WORDS], steps), words[_WORDS:]), 1)
    drawn = reshaped(sliced(reshaped(made, (blocks * _WORDS,)), (0,), (count,)), numbers.sizes)
    if next_state is None:
        return (drawn,)
    further = index(ScalarType.UINT64, (), blocks, ())
    rank = len(state.sizes)
    place = index(ScalarType.UINT32, state.sizes, 0, (*(0,) * (rank - 1), 1))
    own = [_word(state, place, rank) for place in range(_WORDS + 2)]
    return drawn, _chosen([*_advanced(own[:_WORDS], further), *own[_WORDS:]], place)


def _word(state: Node, place: int, rank: int) -> Node:
    """Return a word of the state, for tensors of `rank` dimensions."""
    first = (*(0,) * (len(state.sizes) - 1), place)
    return reshaped(sliced(state, first, (1,) * len(state.sizes)), (1,) * rank)


def _chosen(words: Sequence[Node], place: Node) -> Node:
    """Return the word at a place."""
    result = words[-1]
    for number, word in reversed(list(enumerate(words[:-1]))):
        result = select(equal(place, number), word, result)
    return result


def _advanced(counter: list[Node], steps: Node) -> list[Node]:
    """Return the words of a counter after UINT64 `steps`."""
    low, high = _wide(counter[0], counter[1]), _wide(counter[2], counter[3])
    low = low + steps
    high = high + convert(low < steps, ScalarType.UINT64)
    return [_low(low), _high(low), _low(high), _high(high)]


def _philox(counter: list[Node], key: list[Node]) -> list[Node]:
    for _ in range(_ROUNDS):
        products = [
            convert(word, ScalarType.UINT64) * multiplier
            for word, multiplier in zip(counter[::2], _MULTIPLIERS, strict=True)
        ]
        counter = [
            _xor(_xor(_high(products[1]), counter[1]), key[0]),
            _low(products[1]),
            _xor(_xor(_high(products[0]), counter[3]), key[1]),
            _low(products[0]),
        ]
        key = [word + step for word, step in zip(key, _KEY_STEPS, strict=True)]
    return counter


def _wide(low: Node, high: Node) -> Node:
    wide = [convert(word, ScalarType.UINT64) for word in (low, high)]
    return apply(Operation.OR, wide[0], apply(Operation.SHIFT_LEFT, wide[1], 32))


def _low(value: Node) -> Node:
    return convert(value, ScalarType.UINT32)


def _high(value: Node) -> Node:
    return convert(apply(Operation.SHIFT_RIGHT, value, 32), ScalarType.UINT32)


def _xor(a: Node, b: Node) -> Node:
    return apply(Operation.XOR, a, b)
