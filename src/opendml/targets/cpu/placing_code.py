"""Kernels that place along lines: the last position that goes to each place, and the positions of the least
elements, in order.

Elements are ordered by words that have the key above the position. No two are equal, so every way to select
and sort them gives the same result, with the first of equal elements first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.code import I1, I64
from opendml.targets.cpu.kernel_code import KernelCode, Pointers, Values
from opendml.targets.cpu.pattern import Level, Mode, Pattern
from opendml.targets.cpu.values import any_lane, intrinsic, llvm_type, scalar_llvm_type, splat

_POSITION_BITS = 32
_DIGITS = 256
"""Values of a digit of a key in a sort."""


class PlacingCode(KernelCode):
    """The one placing of a kernel, along the innermost loop: an item is a batch of lines."""

    def __init__(self, function: ir.Function, pattern: Pattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        self.placed = pattern.values[0]
        (self.operand,) = self.placed.operands
        self._lanes_room = self.code.room(self.operand.type, lanes)

    def item(self, item: ir.Value) -> None:
        """One batch."""
        first, last = self.chunk_range(item, self.groups)
        with self.walk_groups(first, last) as (_, pointers):
            self.line(item, pointers)

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """One line."""
        raise NotImplementedError

    def of_line(self, pointers: Pointers) -> Values:
        """What is known of a line."""
        values: Values = {}
        for level in (Level.GROUP, Level.ROW):
            values = self.evaluate(level, 1, pointers, values, roots=[self.operand])
        return values

    def elements_at(
        self, pointers: Pointers, known: Values, index: ir.Value, lanes: int, mask: ir.Value | None = None
    ) -> ir.Value:
        """The operand of the placing at an index of the line: a vector, or one."""
        values = self.evaluate(Level.ELEMENT, lanes, pointers, known, index, mask, [self.operand])
        return splat(self.builder, self.value(self.operand, lanes, values), lanes)

    def put_down(self, vector: ir.Value) -> None:
        """Puts a vector of elements where `lane` finds them one by one."""
        self.code.store(self._lanes_room, vector, self.operand.type)

    def lane(self, number: ir.Value) -> ir.Value:
        """One of the elements that were put down."""
        type = scalar_llvm_type(self.operand.type)
        return self.builder.load(
            self.builder.gep(self._lanes_room, [number], source_etype=type), typ=type, align=type.width // 8
        )

    def write(self, pointers: Pointers, place: ir.Value, position: ir.Value) -> None:
        """Writes a position to a place of a line."""
        value = self.code.narrowed(position, scalar_llvm_type(self.placed.type))
        for access in range(len(self.pattern.loads), len(self.accesses)):
            stride = self.parameter(self.layout.inner_stride(access))
            target = self.code.offset(pointers[access], self.builder.mul(place, stride))
            self.code.store(target, value, self.placed.type)


class ScatterCode(PlacingCode):
    """The last position that goes to each place; where none does, nothing is written."""

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """One line, in order."""
        known = self.of_line(pointers)
        widen = self.builder.sext if self.operand.type.is_signed else self.builder.zext
        nowhere = ir.Constant(llvm_type(self.operand.type, self.lanes), [-1] * self.lanes)

        def step(index: ir.Value, mask: ir.Value | None) -> None:
            places = self.elements_at(pointers, known, index, self.lanes, mask)
            self.put_down(places if mask is None else self.builder.select(mask, places, nowhere))
            with self.code.loop(I64(0), I64(self.lanes)) as lane:
                place = self.lane(lane)
                place = place if place.type == I64 else widen(place, I64)
                with self.builder.if_then(self.builder.icmp_unsigned("<", place, self.elements)):
                    self.write(pointers, place, self.builder.add(index, lane))

        self.code.vector_loop(I64(0), self.inner, step)


class _TopCode(PlacingCode):
    """Words of keys and positions, and where they lie in the arena."""

    def __init__(self, function: ir.Function, pattern: Pattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        self.word = ir.IntType(word_bytes(self.operand.type) * 8)
        self.count = self.elements

    def words(self, first: ir.Value) -> ir.Value:
        """The address of words in the arena, from their number."""
        return self.place(self.arena(), first)

    def place(self, words: ir.Value, number: ir.Value) -> ir.Value:
        """The address of one of several words."""
        return self.builder.gep(words, [number], source_etype=self.word)

    def get_word(self, words: ir.Value, number: ir.Value) -> ir.Value:
        return self.builder.load(self.place(words, number), typ=self.word, align=self.word.width // 8)

    def set_word(self, words: ir.Value, number: ir.Value, word: ir.Value) -> None:
        self.builder.store(word, self.place(words, number), align=self.word.width // 8)

    def word_of(self, key: ir.Value, position: ir.Value) -> ir.Value:
        """The word of an element."""
        high = self.builder.shl(self.builder.zext(key, self.word), self.word(_POSITION_BITS))
        wide = position if self.word == I64 else self.builder.zext(position, self.word)
        return self.builder.or_(high, wide)

    def write_first(self, pointers: Pointers, words: ir.Value) -> None:
        """Writes the positions of as many words as are wanted."""
        with self.code.loop(I64(0), self.count) as number:
            word = self.get_word(words, number)
            low = word if self.word == I64 else self.builder.trunc(word, I64)
            self.write(pointers, number, self.builder.and_(low, I64((1 << _POSITION_BITS) - 1)))


class TopHeapCode(_TopCode):
    """The least elements in a heap, the greatest of which is its root: of whole lines, or of chunks of them,
    whose heaps another launch puts together."""

    def item(self, item: ir.Value) -> None:
        """One batch of lines, one chunk, or the chunks of a line."""
        if self.pattern.mode is Mode.TOP_HEAP:
            super().item(item)
        elif self.pattern.mode is Mode.TOP_CHUNKS:
            line, chunk = self.code.split(item, [I64(0), self.chunks])
            first, last = self.chunk_range(chunk, self.inner)
            heap = self.words(self.builder.mul(item, self.count))
            self._select(self.group_pointers(line), heap, first, last)
        else:
            each = self.builder.mul(self.chunks, self.count)
            heap = self.words(self.builder.mul(item, each))
            with self.code.loop(self.count, each) as number:
                self._offer(heap, self.get_word(heap, number))
            self._finish(self.group_pointers(item), heap)

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """One whole line."""
        heap = self.words(self.builder.mul(item, self.count))
        self._select(pointers, heap, I64(0), self.inner)
        self._finish(pointers, heap)

    def _select(self, pointers: Pointers, heap: ir.Value, first: ir.Value, last: ir.Value) -> None:
        """The heap of some elements of a line. Where they are too few, the greatest word stands for others:
        it is that of no element."""
        known = self.of_line(pointers)
        there = self.code.minimum(self.count, self.builder.sub(last, first))
        with self.code.loop(I64(0), there) as number:
            position = self.builder.add(first, number)
            key = self.elements_at(pointers, known, position, 1)
            self.set_word(heap, number, self.word_of(key, position))
        with self.code.loop(there, self.count) as number:
            self.set_word(heap, number, self.word(-1))
        half = self.builder.lshr(self.count, I64(1))
        with self.code.loop(I64(0), half) as number:
            node = self.builder.sub(self.builder.sub(half, I64(1)), number)
            self._sink(heap, node, self.count, self.get_word(heap, node))

        def step(index: ir.Value, mask: ir.Value | None) -> None:
            keys = self.elements_at(pointers, known, index, self.lanes, mask)
            root = self.builder.lshr(self.get_word(heap, I64(0)), self.word(_POSITION_BITS))
            bound = self.code.narrowed(root, scalar_llvm_type(self.operand.type))
            better = self.builder.icmp_unsigned("<", keys, self.code.broadcast(bound))
            if mask is not None:
                better = self.builder.and_(better, mask)
            with self.builder.if_then(any_lane(self.builder, better, self.lanes), likely=False):
                self.put_down(keys)
                with self._set_lanes(better) as lane:
                    self._offer(heap, self.word_of(self.lane(lane), self.builder.add(index, lane)))

        self.code.vector_loop(self.builder.add(first, there), last, step)

    @contextmanager
    def _set_lanes(self, mask: ir.Value) -> Iterator[ir.Value]:
        """A loop over the lanes that are set."""
        bits = self.builder.bitcast(mask, ir.IntType(self.lanes))
        rest = self.code.local(I64, self.builder.zext(bits, I64))
        with self._repeated() as done:
            left = self.code.get(rest)
            self._unless(self.builder.icmp_signed("!=", left, I64(0)), done)
            yield intrinsic(self.builder, "llvm.cttz.i64", I64, [left, I1(0)])
            self.code.set(rest, self.builder.and_(left, self.builder.sub(left, I64(1))))

    def _offer(self, heap: ir.Value, word: ir.Value) -> None:
        """Puts a word in the place of the root if that is greater."""
        with self.builder.if_then(self.builder.icmp_unsigned("<", word, self.get_word(heap, I64(0)))):
            self._sink(heap, I64(0), self.count, word)

    def _finish(self, pointers: Pointers, heap: ir.Value) -> None:
        """Sorts the heap, and writes its positions."""
        last = self.builder.sub(self.count, I64(1))
        with self.code.loop(I64(0), last) as number:
            end = self.builder.sub(last, number)
            word = self.get_word(heap, end)
            self.set_word(heap, end, self.get_word(heap, I64(0)))
            self._sink(heap, I64(0), end, word)
        self.write_first(pointers, heap)

    def _sink(self, heap: ir.Value, node: ir.Value, count: ir.Value, word: ir.Value) -> None:
        """Puts a word where it belongs, from a node down, in a heap of so many."""
        place = self.code.local(I64, node)
        with self._repeated() as done:
            here = self.code.get(place)
            left = self.builder.add(self.builder.shl(here, I64(1)), I64(1))
            self._unless(self.builder.icmp_signed("<", left, count), done)
            right = self.builder.add(left, I64(1))
            right = self.builder.select(self.builder.icmp_signed("<", right, count), right, left)
            words = self.get_word(heap, left), self.get_word(heap, right)
            is_right = self.builder.icmp_unsigned("<", *words)
            greater = self.builder.select(is_right, words[1], words[0])
            self._unless(self.builder.icmp_unsigned("<", word, greater), done)
            self.set_word(heap, here, greater)
            self.code.set(place, self.builder.select(is_right, right, left))
        self.set_word(heap, self.code.get(place), word)

    @contextmanager
    def _repeated(self) -> Iterator[ir.Block]:
        """A loop without end but for jumps to the block that it yields, which comes after it."""
        body, done = (self.builder.append_basic_block(name) for name in ("repeat", "done"))
        self.builder.branch(body)
        self.builder.position_at_end(body)
        yield done
        self.builder.branch(body)
        self.builder.position_at_end(done)

    def _unless(self, condition: ir.Value, done: ir.Block) -> None:
        """Goes on where the condition holds, otherwise to a block."""
        on = self.builder.append_basic_block("on")
        self.builder.cbranch(condition, on, done)
        self.builder.position_at_end(on)


class TopSortCode(_TopCode):
    """All elements of a line, sorted by one digit of their keys after the other."""

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """One line."""
        first = self.builder.mul(self.builder.mul(item, I64(2)), self.inner)
        words = self.words(first)
        now = self.code.local(I64, self.builder.ptrtoint(words, I64))
        other = self.code.local(I64, self.builder.ptrtoint(self.place(words, self.inner), I64))
        self._fill(pointers, words)
        digits = I64(self.operand.type.bytes)
        counts = self.room(ScalarType.UINT64, _DIGITS)
        with self.code.loop(I64(0), digits) as digit:
            shift = self.builder.add(self.builder.shl(digit, I64(3)), I64(_POSITION_BITS))
            source = self.builder.inttoptr(self.code.get(now), words.type)
            self._count_digits(source, shift, counts)
            one = self._counter(counts, self.get_word(source, I64(0)), shift)
            is_one = self.builder.icmp_signed("==", self.builder.load(one, typ=I64), self.inner)
            with self.builder.if_then(self.builder.not_(is_one)):
                target = self.builder.inttoptr(self.code.get(other), words.type)
                self._spread(source, target, shift, counts)
                before = self.code.get(now)
                self.code.set(now, self.code.get(other))
                self.code.set(other, before)
        self.write_first(pointers, self.builder.inttoptr(self.code.get(now), words.type))

    def _fill(self, pointers: Pointers, words: ir.Value) -> None:
        known = self.of_line(pointers)

        def step(index: ir.Value, mask: ir.Value | None) -> None:
            self.put_down(self.elements_at(pointers, known, index, self.lanes, mask))
            there = self.code.minimum(I64(self.lanes), self.builder.sub(self.inner, index))
            with self.code.loop(I64(0), there) as lane:
                position = self.builder.add(index, lane)
                self.set_word(words, position, self.word_of(self.lane(lane), position))

        self.code.vector_loop(I64(0), self.inner, step)

    def _count_digits(self, words: ir.Value, shift: ir.Value, counts: ir.Value) -> None:
        """How many words have each value of a digit."""
        with self.code.loop(I64(0), I64(_DIGITS)) as value:
            self.builder.store(I64(0), self.builder.gep(counts, [value], source_etype=I64))
        with self.code.loop(I64(0), self.inner) as number:
            counter = self._counter(counts, self.get_word(words, number), shift)
            self.builder.store(self.builder.add(self.builder.load(counter, typ=I64), I64(1)), counter)

    def _spread(self, source: ir.Value, target: ir.Value, shift: ir.Value, counts: ir.Value) -> None:
        """Moves words behind those of lesser digits."""
        before = self.code.local(I64, I64(0))
        with self.code.loop(I64(0), I64(_DIGITS)) as value:
            counter = self.builder.gep(counts, [value], source_etype=I64)
            count, first = self.builder.load(counter, typ=I64), self.code.get(before)
            self.builder.store(first, counter)
            self.code.set(before, self.builder.add(first, count))
        with self.code.loop(I64(0), self.inner) as number:
            word = self.get_word(source, number)
            counter = self._counter(counts, word, shift)
            place = self.builder.load(counter, typ=I64)
            self.builder.store(self.builder.add(place, I64(1)), counter)
            self.set_word(target, place, word)

    def _counter(self, counts: ir.Value, word: ir.Value, shift: ir.Value) -> ir.Value:
        """Where words with a word's digit are counted."""
        wide = shift if self.word == I64 else self.builder.zext(shift, self.word)
        digit = self.builder.and_(self.builder.lshr(word, wide), self.word(_DIGITS - 1))
        index = digit if self.word == I64 else self.builder.trunc(digit, I64)
        return self.builder.gep(counts, [index], source_etype=I64)


def word_bytes(key: ScalarType) -> int:
    """The bytes of a word with a key and a position."""
    return 8 if key is ScalarType.UINT32 else 16
