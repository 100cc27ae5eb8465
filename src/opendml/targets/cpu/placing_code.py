"""Kernels that place along lines: the last position or value that goes to each place, and the positions, in
order, of what holds and of the least elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llvmlite import ir

from opendml.program.node import Operation
from opendml.targets.cpu.bitonic import BitonicNetwork, Words, word_bytes
from opendml.targets.cpu.code import I1, I64
from opendml.targets.cpu.kernel_code import KernelCode, Pointers, Values
from opendml.targets.cpu.pattern import Level, Mode, Pattern, Step
from opendml.targets.cpu.values import (
    Literal,
    any_lane,
    intrinsic,
    llvm_type,
    scalar_llvm_type,
    splat,
    vector_constant,
)

_SAMPLE = 32
"""Elements of the sample of a line for each word that is sorted together: of a line of 1,000 all. A greater
sample takes longer, of a lesser one the bound lets more elements pass."""


class PlacingCode(KernelCode):
    """The one placing of a kernel, along the innermost loop: an item is a batch of lines."""

    def __init__(self, function: ir.Function, pattern: Pattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        self.placed = pattern.values[0]
        self.operands = self.placed.operands
        self.operand = self.operands[0]
        self._lanes_rooms = [self.code.room(operand.type, lanes) for operand in self.operands]

    def item(self, item: ir.Value) -> None:
        """One batch."""
        first, last = self.chunk_range(item, self.groups)
        with self.walk_groups(first, last) as (_, pointers):
            self.line(item, pointers)

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """One line."""
        raise NotImplementedError

    def outside_loops(self, level: Level, pointers: Pointers, known: Values) -> Values:
        """What is known of a line, or then of one of its rows."""
        return self.evaluate(level, 1, pointers, known, roots=self.operands)

    def elements_at(
        self, pointers: Pointers, known: Values, index: ir.Value, lanes: int, mask: ir.Value | None = None
    ) -> list[ir.Value]:
        """The operands of the placing at an index of the line: vectors, or one element of each."""
        values = self.evaluate(Level.ELEMENT, lanes, pointers, known, index, mask, self.operands)
        return [splat(self.builder, self.value(operand, lanes, values), lanes) for operand in self.operands]

    def put_down(self, vectors: list[ir.Value]) -> None:
        """Puts vectors of the operands where `lane` finds their elements one by one."""
        for room, vector, operand in zip(self._lanes_rooms, vectors, self.operands, strict=True):
            self.code.store(room, vector, operand.type)

    def lane(self, number: ir.Value) -> list[ir.Value]:
        """The elements of one lane of what was put down."""
        return [
            self.code.load(
                self.code.offset(room, self.builder.mul(number, I64(operand.type.bytes))), operand.type, 1
            )
            for room, operand in zip(self._lanes_rooms, self.operands, strict=True)
        ]

    @contextmanager
    def set_lanes(self, mask: ir.Value) -> Iterator[ir.Value]:
        """A loop over the lanes that are set."""
        bits = self.builder.bitcast(mask, ir.IntType(self.lanes))
        rest = self.code.local(I64)
        self.code.set(rest, self.builder.zext(bits, I64))
        with self.code.loop(I64(0), intrinsic(self.builder, "llvm.ctpop.i64", I64, [self.code.get(rest)])):
            left = self.code.get(rest)
            yield intrinsic(self.builder, "llvm.cttz.i64", I64, [left, I1(0)])
            self.code.set(rest, self.builder.and_(left, self.builder.sub(left, I64(1))))

    def places(self, pointers: Pointers, place: ir.Value) -> Iterator[ir.Value]:
        """The addresses of a place of a line."""
        for access in range(len(self.pattern.loads), len(self.accesses)):
            yield self.code.offset(pointers[access], self.builder.mul(place, self.stride(access)))

    def stride(self, access: int) -> ir.Value:
        """The bytes from one place of a line to the next."""
        return self.parameter(self.layout.inner_stride(access))

    def write(self, pointers: Pointers, place: ir.Value, value: ir.Value) -> None:
        """Writes a value to a place of a line."""
        for target in self.places(pointers, place):
            self.code.store(target, value, self.placed.type)

    def narrow(self, position: ir.Value) -> ir.Value:
        """A position as it is written."""
        return self.code.narrowed(position, scalar_llvm_type(self.placed.type))


class ScatterCode(PlacingCode):
    """The last position or value that goes to each place, or the sum of what does; where nothing goes,
    nothing is written."""

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """One line, in order."""
        of_line = self.outside_loops(Level.GROUP, pointers, {})
        with self.walk_rows(pointers, I64(0), self.units) as (_, row):
            known = self.outside_loops(Level.ROW, row, of_line)

            def step(index: ir.Value, mask: ir.Value | None) -> None:
                vectors = self.elements_at(row, known, index, self.lanes, mask)
                self.put_lanes(
                    vectors, mask, lambda lane: self.put(pointers, lane, self.builder.add(index, lane))
                )

            self.code.vector_loop(I64(0), self.inner, step)

    def put_lanes(
        self, vectors: list[ir.Value], mask: ir.Value | None, place: Callable[[ir.Value], None]
    ) -> None:
        """Calls `place` for the lanes of the operands, in their order, that name a place."""
        limit = self.code.narrowed(self.elements, scalar_llvm_type(self.operand.type))
        inside = self.builder.icmp_unsigned("<", vectors[0], self.code.broadcast(limit))
        if mask is not None:
            inside = self.builder.and_(inside, mask)
        self.put_down(vectors)
        outside = any_lane(self.builder, self.builder.not_(inside), self.lanes)
        with self.builder.if_else(outside, likely=False) as (some, all_lanes):
            with some, self.set_lanes(inside) as lane:
                place(lane)
            with all_lanes:
                for number in range(self.lanes):
                    place(I64(number))

    def put(self, pointers: Pointers, lane: ir.Value, position: ir.Value) -> None:
        """Writes or adds what one lane of the operands has."""
        place, *value = self.lane(lane)
        place = place if place.type == I64 else self.builder.zext(place, I64)
        match self.placed.operation:
            case Operation.SCATTER:
                self.write(pointers, place, self.narrow(position))
            case Operation.SCATTER_LAST:
                self.write(pointers, place, value[0])
            case _:
                self._add(pointers, place, value[0])

    def _add(self, pointers: Pointers, place: ir.Value, value: ir.Value) -> None:
        for target in self.places(pointers, place):
            before = self.code.load(target, self.placed.type, 1)
            self.code.store(target, self.builder.add(before, value), self.placed.type)


class ScatterColumnCode(ScatterCode):
    """The same for lines side by side, an item being a tile of them: row by row, lanes over lines."""

    def item(self, item: ir.Value) -> None:
        """One tile."""
        group, start, stop = self.block_range(item)
        pointers = self.group_pointers(group)
        with self.code.loop(I64(0), self.units) as row:
            row_pointers = self.row_pointers(pointers, row)
            known = self.outside_loops(Level.ROW, row_pointers, {})

            def step(index: ir.Value, mask: ir.Value | None) -> None:
                of_lines = self.evaluate(
                    Level.GROUP, self.lanes, row_pointers, known, index, mask, self.operands
                )
                vectors = self.elements_at(row_pointers, of_lines, index, self.lanes, mask)

                def place(lane: ir.Value) -> None:
                    self.put(self._columns(pointers, self.builder.add(index, lane)), lane, row)

                self.put_lanes(vectors, mask, place)

            self.code.vector_loop(start, stop, step)

    def _columns(self, pointers: Pointers, line: ir.Value) -> Pointers:
        """Where the accesses stand at one of the lines."""
        return [
            self.code.offset(pointer, self.builder.mul(line, step))
            for pointer, step in zip(pointers, self.steps, strict=True)
        ]

    def stride(self, access: int) -> ir.Value:
        """The bytes from one place of a line to the next."""
        return self.parameter(self.layout.row_stride(access, 0))


class PositionsCode(PlacingCode):
    """The positions of what holds, vector by vector, and -1 behind them."""

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """One line, in order."""
        known = self.outside_loops(Level.GROUP, pointers, {})
        number = self.code.local(I64, I64(0))
        vector = llvm_type(self.placed.type, self.lanes)
        steps = vector_constant(vector.element, range(self.lanes))

        def step(index: ir.Value, mask: ir.Value | None) -> None:
            (found,) = self.elements_at(pointers, known, index, self.lanes, mask)
            if mask is not None:
                found = self.builder.and_(found, mask)
            positions = self.builder.add(self.code.broadcast(self.narrow(index)), steps)
            together = self.code.together(positions, found, Literal(vector, "undef"), self.placed.type)
            there = self.code.get(number)
            after = self.builder.add(there, self.code.count(found))
            # A full vector ends no further than the elements that were read.
            inside = None if mask is None else self.code.first_lanes(self.builder.sub(after, there))
            self._write_vector(pointers, there, together, inside)
            self.code.set(number, after)

        self.code.vector_loop(I64(0), self.inner, step)
        nothing = Literal(vector, f"splat (i{self.placed.type.bits} -1)")
        self.code.vector_loop(
            self.code.get(number),
            self.inner,
            lambda index, mask: self._write_vector(pointers, index, nothing, mask),
        )

    def _write_vector(
        self, pointers: Pointers, first: ir.Value, value: ir.Value, mask: ir.Value | None
    ) -> None:
        """Writes to neighbouring places of a line."""
        stores = zip(self.places(pointers, first), self.pattern.stores, strict=True)
        for number, (target, store) in enumerate(stores, len(self.pattern.loads)):
            if store.step is Step.CONTIGUOUS:
                self.code.store(target, value, self.placed.type, mask)
            else:
                self.code.scatter(target, self.steps[number], value, self.placed.type, mask)


class TopCode(PlacingCode):
    """The least elements of a line, sorted: of a whole line, or of a chunk, or those of all chunks of a line.

    Elements that do not exceed a bound are collected. When there is no more room for a vector of them, they
    are sorted, and so are then the lesser ones of these and of the best so far, which give a lower bound.
    """

    def __init__(self, function: ir.Function, pattern: Pattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        self.count, self.width = self.elements, self.units
        self.network = BitonicNetwork(self.code, self.operand.type, self.width)

    def item(self, item: ir.Value) -> None:
        """One batch of lines, one chunk, or the chunks of a line."""
        if self.pattern.mode is Mode.TOP:
            super().item(item)
        elif self.pattern.mode is Mode.TOP_CHUNKS:
            line, chunk = self.code.split(item, [I64(0), self.chunks])
            first, last = self.chunk_range(chunk, self.inner)
            self._select(self.group_pointers(line), self._words(item, 0), first, last)
        else:
            best = self._words(self.builder.mul(item, self.chunks), 0)
            with self.code.loop(I64(1), self.chunks) as number:
                chunk = self.builder.add(self.builder.mul(item, self.chunks), number)
                self.network.take_lesser(best, self._words(chunk, 0))
            self._write_first(self.group_pointers(item), best)

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """One whole line."""
        best = self._words(item, 0)
        self._select(pointers, best, I64(0), self.inner)
        self._write_first(pointers, best)

    def _words(self, item: ir.Value, part: int) -> Words:
        """Where the best of an item lie, or what it collects (part 1)."""
        number = self.builder.add(self.builder.mul(item, I64(2)), I64(part))
        each = self.builder.mul(self.width, I64(word_bytes(self.operand.type)))
        keys = self.code.offset(self.arena(), self.builder.mul(number, each))
        key_bytes = self.builder.mul(self.width, I64(self.operand.type.bytes))
        return Words(keys, self.code.offset(keys, key_bytes))

    def _select(self, pointers: Pointers, best: Words, first: ir.Value, last: ir.Value) -> None:
        """The best of some elements of a line. Where they are too few, words greater than all stand for
        others."""
        known = self.outside_loops(Level.GROUP, pointers, {})
        bound = self.code.local(llvm_type(self.operand.type, self.lanes))
        self._set_bound(bound, self._bound_of_sample(pointers, known, best, first, last))
        number = self.code.local(I64, I64(0))
        # What is collected first is the best so far, and lies there; what follows lies behind it.
        behind = self.builder.mul(self.width, I64(word_bytes(self.operand.type)))
        distance = self.code.local(I64, I64(0))
        self.network.clear(best)

        def collected() -> Words:
            return Words(*(self.code.offset(address, self.code.get(distance)) for address in best))

        def put_together() -> None:
            is_first = self.builder.icmp_signed("==", self.code.get(distance), I64(0))
            # Of equal elements those that come first are there already, and nothing is less than 0.
            worst, zero = self._worst(best), scalar_llvm_type(self.operand.type)(0)
            improves = self.builder.or_(is_first, self.builder.icmp_unsigned("!=", worst, zero))
            with self.builder.if_then(improves):
                self.network.sort(collected())
                with self.builder.if_then(self.builder.not_(is_first)):
                    self.network.take_lesser(best, collected())
                self._set_bound(bound, self._one_less(self._worst(best)))
            self.code.set(distance, behind)
            self.network.clear(collected())
            self.code.set(number, I64(0))

        def step(index: ir.Value, mask: ir.Value | None) -> None:
            (keys,) = self.elements_at(pointers, known, index, self.lanes, mask)
            better = self.builder.icmp_unsigned("<=", keys, self.code.get(bound))
            if mask is not None:
                better = self.builder.and_(better, mask)
            with self.builder.if_then(any_lane(self.builder, better, self.lanes), likely=False):
                place = self.code.get(number)
                word = keys, self.network.positions(index)
                self.network.store(collected(), place, self.network.together(word, better))
                after = self.builder.add(place, self.code.count(better))
                self.code.set(number, after)
                most = self.builder.sub(self.width, I64(self.lanes))
                with self.builder.if_then(self.builder.icmp_signed(">", after, most)):
                    put_together()

        self.code.vector_loop(first, last, step)
        with self.builder.if_then(self.builder.icmp_signed(">", self.code.get(number), I64(0))):
            put_together()

    def _bound_of_sample(
        self, pointers: Pointers, known: Values, least: Words, first: ir.Value, last: ir.Value
    ) -> ir.Value:
        """A key that as many of the first elements as are wanted do not exceed: so many of the least ones of
        every `width`-th element, from each of the first ones on, do not."""
        count = self.builder.mul(self.width, I64(_SAMPLE))
        end = self.code.minimum(self.builder.add(first, count), last)
        below = self.builder.sub(self.width, I64(1))
        self.network.clear(least)
        is_long = self.builder.icmp_signed(">", self.builder.sub(last, first), self.width)
        with self.builder.if_then(is_long):
            with self.code.loop(first, end, self.lanes) as index:
                (keys,) = self.elements_at(pointers, known, index, self.lanes)
                place = self.builder.and_(self.builder.sub(index, first), below)
                before, positions = self.network.load(least, place)
                is_less = self.builder.icmp_unsigned("<", keys, before)
                self.network.store(least, place, (self.builder.select(is_less, keys, before), positions))
            self.network.sort(least)
        return self._worst(least)

    def _worst(self, best: Words) -> ir.Value:
        """The key of the last element that is wanted, if the best were all."""
        return self.network.load_one(best, self.builder.sub(self.count, I64(1)))[0]

    def _one_less(self, key: ir.Value) -> ir.Value:
        """The key before a key, or 0."""
        return intrinsic(self.builder, f"llvm.usub.sat.{key.type}", key.type, [key, key.type(1)])

    def _set_bound(self, bound: ir.Value, key: ir.Value) -> None:
        self.code.set(bound, self.code.broadcast(key))

    def _write_first(self, pointers: Pointers, best: Words) -> None:
        """Writes the positions of as many words as are wanted."""
        with self.code.loop(I64(0), self.count) as number:
            _, position = self.network.load_one(best, number)
            self.write(pointers, number, self.narrow(self.builder.zext(position, I64)))
