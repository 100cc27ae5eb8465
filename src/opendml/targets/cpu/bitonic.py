"""Bitonic networks that sort words in memory, in vectors.

A word is a key and a position, both without signs, in two arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from opendml.program.scalar_type import ScalarType
from opendml.targets.common.lines import POSITION, word_is_less
from opendml.targets.cpu import ir
from opendml.targets.cpu.accumulation import emitted
from opendml.targets.cpu.code import I32, I64, Code, internal_function
from opendml.targets.cpu.values import number, splat, vector_constant

_BLOCK = 2048
"""Words of a block that all strides visit in turn, while it is in a level 1 cache (8 to 24 KiB of words)."""

Word = tuple[ir.Value, ir.Value]
"""A key and a position, or vectors of them."""


class Words(NamedTuple):
    """The addresses of words: those of their keys, those of their positions."""

    keys: ir.Value
    positions: ir.Value


def word_bytes(key: ScalarType) -> int:
    """Return the bytes of a word with keys of a type."""
    return key.bytes + POSITION.bytes


class BitonicNetwork:
    """Emits code that sorts `width` words with keys of a type. The width is a power of two, and at least two
    vectors. Long parts are functions of their own in the module."""

    def __init__(self, code: Code, key: ScalarType, width: ir.Value) -> None:
        self.code, self.builder, self.lanes = code, code.builder, code.lanes
        self.types, self.width = (key, POSITION), width

    def sort(self, words: Words) -> None:
        """Sort all words."""
        self._call("sort", words, lambda network, given: network._sort(given))

    def take_lesser(self, words: Words, others: Words) -> None:
        """Merge sorted words with as many sorted others, and keep the lesser half in `words`."""
        reverse = vector_constant(I32, reversed(range(self.lanes)))
        last = self.builder.sub(self.width, I64(self.lanes))
        with self._vectors(I64(0), self.width) as place:
            mine, (key, position) = self.load(words, place), self.load(others, self.builder.sub(last, place))
            key, position = (self.builder.shuffle_vector(part, part, reverse) for part in (key, position))
            opposite = key, position
            self.store(words, place, self._chosen(self._less(opposite, mine), opposite, mine))
        self._merge(words, self.width)

    def _call(
        self, name: str, words: Words, emit: Callable[[BitonicNetwork, Words], None], *more: ir.Value
    ) -> None:
        """Call a function over words. `emit` fills it at the first call."""
        module, arguments = self.builder.module, [*words, self.width, *more]
        function = module.function(name)
        if function is None:
            function = internal_function(module, name, [argument.type for argument in arguments])
            network = BitonicNetwork(Code(function, self.lanes), self.types[0], function.args[2])
            emit(network, Words(*function.args[:2]))
            network.builder.ret_void()
        self.builder.call(function, arguments)

    def _sort(self, words: Words) -> None:
        with self._vectors(I64(0), self.width) as place:
            word = self.load(words, place)
            for size in reversed(list(_halves(self.lanes))[:-1]):
                is_down = self._is_down(place, size)
                for stride in _halves(size // 2):
                    word = self._exchanged_lanes(word, stride, is_down)
            self.store(words, place, word)
        with self._powers(I64(2 * self.lanes), self.width, up=True) as size_of_parts:
            self._merge(words, size_of_parts)

    def clear(self, words: Words) -> None:
        """Make all words greater than those of elements."""
        key, position = (number(type, self.lanes, -1) for type in self.types)
        with self._vectors(I64(0), self.width) as place:
            self.store(words, place, (key, position))

    def positions(self, first: ir.Value) -> ir.Value:
        """Return a vector of positions from the first on."""
        steps = vector_constant(I32, range(self.lanes))
        return self.builder.add(self.code.broadcast(self.builder.trunc(first, I32)), steps)

    def load(self, words: Words, number: ir.Value, lanes: int | None = None) -> Word:
        """Return a vector of words, or another number of them, from one on."""
        key, position = (
            self.code.load(self._address(address, type, number), type, lanes or self.lanes)
            for address, type in zip(words, self.types, strict=True)
        )
        return key, position

    def store(self, words: Words, first: ir.Value, word: Word) -> None:
        """Store a vector of words."""
        for address, type, part in zip(words, self.types, word, strict=True):
            self.code.store(self._address(address, type, first), part, type)

    def compressed(self, word: Word, mask: ir.Value) -> Word:
        """Return the words of the lanes of a mask in the first lanes, and behind them words greater than
        all."""
        key, position = (
            self.code.compressed(part, mask, number(type, self.lanes, -1), type)
            for part, type in zip(word, self.types, strict=True)
        )
        return key, position

    def _address(self, address: ir.Value, type: ScalarType, number: ir.Value) -> ir.Value:
        return self.code.element_at(address, number, I64(type.bytes))

    def _merge(self, words: Words, size: ir.Value) -> None:
        """Sort parts of a size, each of which goes up, then down. Parts of even numbers are sorted
        upwards."""
        self._call("merge", words, lambda network, given: network._merge_here(given), size)

    def _merge_here(self, words: Words) -> None:
        size = self.code.builder.function.args[3]
        block = self.code.minimum(I64(_BLOCK), self.width)
        half = self.builder.lshr(size, I64(1))
        with self._powers(half, block, up=False) as stride:
            self._exchange(words, I64(0), self.width, stride, size)
        within = self.code.minimum(half, self.builder.lshr(block, I64(1)))
        with self.code.loop(I64(0), self.builder.udiv(self.width, block)) as number_of_block:
            first = self.builder.mul(number_of_block, block)
            last = self.builder.add(first, block)
            with self._powers(within, I64(self.lanes), up=False) as stride:
                self._exchange(words, first, last, stride, size)
            with self._vectors(first, last) as place:
                word, is_down = self.load(words, place), self._is_down(place, size)
                for stride_of_lanes in _halves(self.lanes // 2):
                    word = self._exchanged_lanes(word, stride_of_lanes, is_down)
                self.store(words, place, word)

    def _exchange(
        self, words: Words, first: ir.Value, last: ir.Value, stride: ir.Value, size: ir.Value
    ) -> None:
        """Order each word and the one a stride after it, in pairs of vectors."""
        below = self.builder.sub(stride, I64(1))
        count = self.builder.lshr(self.builder.sub(last, first), I64(1))
        with self._vectors(I64(0), count) as pair:
            inside = self.builder.and_(pair, below)
            outside = self.builder.shl(self.builder.sub(pair, inside), I64(1))
            low = self.builder.add(first, self.builder.add(outside, inside))
            high = self.builder.add(low, stride)
            a, b = self.load(words, low), self.load(words, high)
            turned = self.builder.xor(self._less(b, a), self._is_down(low, size))
            self.store(words, low, self._chosen(turned, b, a))
            self.store(words, high, self._chosen(turned, a, b))

    def _exchanged_lanes(self, word: Word, stride: int, is_down: ir.Value) -> Word:
        """Order each lane of a vector of words and the one a stride after it."""
        lanes = range(self.lanes)
        partners = vector_constant(I32, [lane ^ stride for lane in lanes])
        key, position = (self.builder.shuffle_vector(part, part, partners) for part in word)
        upper = vector_constant(ir.IntType(1), [bool(lane & stride) for lane in lanes])
        turned = self.builder.xor(self._less((key, position), word), self.builder.xor(upper, is_down))
        return self._chosen(turned, (key, position), word)

    def _is_down(self, place: ir.Value, size: int | ir.Value) -> ir.Value:
        """Return whether the words of a vector are in parts of a size that are sorted downwards."""
        if isinstance(size, int) and size < self.lanes:
            lanes = [bool(lane & size) for lane in range(self.lanes)]
            return vector_constant(ir.IntType(1), lanes)
        bit = self.builder.and_(place, I64(size) if isinstance(size, int) else size)
        return splat(self.builder, self.builder.icmp_signed("!=", bit, I64(0)), self.lanes)

    def _less(self, a: Word, b: Word) -> ir.Value:
        (is_less,) = emitted(self.builder, [word_is_less(self.types[0])], self.lanes, [*a, *b])
        return is_less

    def _chosen(self, condition: ir.Value, a: Word, b: Word) -> Word:
        return self.builder.select(condition, a[0], b[0]), self.builder.select(condition, a[1], b[1])

    def _vectors(self, first: ir.Value, last: ir.Value) -> AbstractContextManager[ir.Value]:
        return self.code.loop(first, last, self.lanes)

    @contextmanager
    def _powers(self, first: ir.Value, last: ir.Value, *, up: bool) -> Iterator[ir.Value]:
        """Loop over the powers of two from the first to the last."""
        power = self.code.local(I64)
        self.code.set(power, first)
        head, body, done = (self.builder.append_basic_block(name) for name in ("head", "power", "done"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        current = self.code.get(power)
        goes_on = self.builder.icmp_signed("<=" if up else ">=", current, last)
        self.builder.cbranch(goes_on, body, done)
        self.builder.position_at_end(body)
        yield current
        step = self.builder.shl if up else self.builder.lshr
        self.code.set(power, step(current, I64(1)))
        self.builder.branch(head)
        self.builder.position_at_end(done)


def _halves(stride: int) -> Iterator[int]:
    while stride:
        yield stride
        stride //= 2
