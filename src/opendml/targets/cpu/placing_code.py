"""Kernels that place along lines: the last position or value that goes to each place, and the positions, in
order, of the least elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from llvmlite import ir

from opendml.compiler.domains import moving_operands
from opendml.program.node import PLACINGS, Operation
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.bitonic import BitonicNetwork, Words, word_bytes
from opendml.targets.cpu.code import I1, I64, Body
from opendml.targets.cpu.kernel_code import KernelCode
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import LINE, CpuMode, CpuPattern
from opendml.targets.cpu.values import (
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

_ROWS_AHEAD = 8
"""Rows of lines side by side after which one is asked for."""

Columns = Callable[[Body], None]
"""Calls a body for each vector of some lines that lie side by side."""


class PlacingCode(KernelCode):
    """The one placing of a kernel, along the innermost loop: an item is a batch of lines or a chunk."""

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        self.placed = next(node for node in self.nodes if node.operation in PLACINGS)
        self.operands = moving_operands(self.placed)
        self.before = self.placed.operands[len(self.operands) :]
        """What the places hold before, if the kernel computes it; else it lies there."""
        self.operand = self.operands[0]
        self.stored = range(len(pattern.loads), len(self.accesses))
        """The numbers of the stores."""
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
        for access in self.stored:
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

    def positions(self, first: ir.Value) -> ir.Value:
        """A vector of positions as they are written, from the first on."""
        steps = vector_constant(scalar_llvm_type(self.placed.type), range(self.lanes))
        return self.builder.add(self.code.broadcast(self.narrow(first)), steps)


class Target(NamedTuple):
    """Where results of a vector of elements lie."""

    first: ir.Value
    """The place 0 of the first lane."""
    step: ir.Value
    """The bytes from one place of a line to the next."""
    along: ir.Value | None
    """The bytes from the line of one lane to that of the next; None: they have one line."""


class ScatterCode(PlacingCode):
    """The last position or value that goes to each place, or the sum of what does; where nothing goes,
    nothing is written."""

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """One line, in order."""
        of_line = self.outside_loops(Level.GROUP, pointers, {})
        targets = [Target(pointers[access], self.stride(access), None) for access in self.stored]
        self._keep_before(pointers)
        with self.walk_rows(pointers, I64(0), self.units) as (_, row):
            known = self.outside_loops(Level.ROW, row, of_line)

            def step(index: ir.Value, mask: ir.Value | None) -> None:
                vectors = self.elements_at(row, known, index, self.lanes, mask)
                self.put(targets, vectors, mask, lambda: self.positions(index))

            self.code.vector_loop(I64(0), self.inner, step)

    def _keep_before(self, pointers: Pointers) -> None:
        """Writes what the places of a line hold before, if the kernel computes it."""
        if not self.before:
            return
        known = self.evaluate(Level.GROUP, 1, pointers, {}, roots=self.before)

        def keep(index: ir.Value, mask: ir.Value | None) -> None:
            value = self.before_at(pointers, known, index, mask)
            for access in self.stored:
                self.store(access, value, pointers, index, mask)

        self.code.vector_loop(I64(0), self.elements, keep)

    def before_at(
        self, pointers: Pointers, known: Values, index: ir.Value, mask: ir.Value | None
    ) -> ir.Value:
        """A vector of what places hold before."""
        values = self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask, self.before)
        return splat(self.builder, self.value(self.before[0], self.lanes, values), self.lanes)

    def put(
        self,
        targets: Sequence[Target],
        vectors: list[ir.Value],
        mask: ir.Value | None,
        position: Callable[[], ir.Value],
    ) -> None:
        """Writes or adds, in the order of the lanes, what vectors of the operands have for the places that
        they name, or their positions."""
        limit = self.code.narrowed(self.elements, scalar_llvm_type(self.operand.type))
        inside = self.builder.icmp_unsigned("<", vectors[0], self.code.broadcast(limit))
        if mask is not None:
            inside = self.builder.and_(inside, mask)
        if self.placed.operation is Operation.SCATTER_SUM:
            self._add(targets, vectors, inside)
            return
        value = position() if self.placed.operation is Operation.SCATTER else vectors[1]
        outside = any_lane(self.builder, self.builder.not_(inside), self.lanes)
        with self.builder.if_else(outside, likely=False) as (some, all_lanes):
            with some:
                self._write(targets, vectors[0], value, inside)
            with all_lanes:
                self._write(targets, vectors[0], value, None)

    def _write(
        self, targets: Sequence[Target], places: ir.Value, value: ir.Value, mask: ir.Value | None
    ) -> None:
        places = self.code.unsigned(places, I64)
        for first, step, along in targets:
            distance = self.builder.mul(places, self.code.broadcast(step))
            self.code.scatter(first, along, value, self.placed.type, mask, distance)

    def _add(self, targets: Sequence[Target], vectors: list[ir.Value], inside: ir.Value) -> None:
        """Adds lane by lane: several may name one place."""
        self.put_down(vectors)
        with self.set_lanes(inside) as lane:
            place, value = self.lane(lane)
            place = self.code.unsigned(place, I64)
            for first, step, along in targets:
                distance = self.builder.mul(place, step)
                if along is not None:
                    distance = self.builder.add(distance, self.builder.mul(lane, along))
                target = self.code.offset(first, distance)
                before = self.code.load(target, self.placed.type, 1)
                self.code.store(target, self.builder.add(before, value), self.placed.type)


class ScatterColumnCode(ScatterCode):
    """The same for lines side by side, an item being a tile of them: row by row, lanes over lines."""

    def item(self, item: ir.Value) -> None:
        """One tile."""
        group, start, stop = self.block_range(item)
        pointers = self.group_pointers(group)
        if self.before:
            with self.all_places(pointers) as (_, there):

                def keep(index: ir.Value, mask: ir.Value | None) -> None:
                    value = self.held(there, index, mask)
                    for access in self.stored:
                        self.store(access, value, there, index, mask)

                self.code.vector_loop(start, stop, keep)
        columns = partial(self.code.vector_loop, start, stop)
        self.place_rows(pointers, columns, lambda index: self._targets(pointers, index))

    @contextmanager
    def all_places(self, pointers: Pointers) -> Iterator[tuple[ir.Value, Pointers]]:
        """A loop over the places of lines: yields the place and where the accesses stand there."""
        with self.code.loop(I64(0), self.elements) as place:
            yield place, self.row_pointers(pointers, place)

    def held(self, place: Pointers, index: ir.Value, mask: ir.Value | None) -> ir.Value:
        """What a place of neighbouring lines holds before."""
        if self.before:
            known = self.evaluate(Level.ROW, 1, place, {}, roots=self.before)
            known = self.evaluate(Level.GROUP, self.lanes, place, known, index, mask, self.before)
            return self.before_at(place, known, index, mask)
        first = self.stored[0]
        address = self.code.offset(place[first], self.builder.mul(index, self.steps[first]))
        return self.loads.read(first, self.lanes, address, mask)

    def place_rows(
        self, pointers: Pointers, columns: Columns, targets: Callable[[ir.Value], Sequence[Target]]
    ) -> None:
        """Some of the lines of a group; `targets` says where the results of those from an index on lie."""
        with self.code.loop(I64(0), self.units) as row:
            row_pointers = self.row_pointers(pointers, row)
            known = self.outside_loops(Level.ROW, row_pointers, {})
            later = self.row_pointers(pointers, self.builder.add(row, I64(_ROWS_AHEAD)))

            def step(index: ir.Value, mask: ir.Value | None) -> None:
                self._ask_for(later, index)
                of_lines = self.evaluate(
                    Level.GROUP, self.lanes, row_pointers, known, index, mask, self.operands
                )
                vectors = self.elements_at(row_pointers, of_lines, index, self.lanes, mask)
                self.put(targets(index), vectors, mask, lambda: self.code.broadcast(self.narrow(row)))

            columns(step)

    def _ask_for(self, row: Pointers, index: ir.Value) -> None:
        """Asks for the operands of a vector of elements of a row: the rows of a narrow tile lie too far apart
        for processors to look ahead."""
        for number, access in enumerate(self.pattern.loads):
            if access.step is Step.CONTIGUOUS and not access.counter:
                first = self.code.offset(row[number], self.builder.mul(index, self.steps[number]))
                for distance in range(0, self.lanes * access.type.bytes, LINE):
                    self.code.prefetch(self.code.offset(first, I64(distance)))

    def _targets(self, pointers: Pointers, line: ir.Value) -> list[Target]:
        """The results of lines where they belong."""
        return [
            Target(
                self.code.offset(pointers[access], self.builder.mul(line, self.steps[access])),
                self.stride(access),
                self.steps[access],
            )
            for access in self.stored
        ]

    def stride(self, access: int) -> ir.Value:
        """The bytes from one place of a line to the next."""
        return self.parameter(self.layout.row_stride(access, 0))


class ScatterTileCode(ScatterColumnCode):
    """The same, where the results of a tile lie in the thread's room while they are placed."""

    def item(self, item: ir.Value) -> None:
        """One tile."""
        group, start, stop = self.block_range(item)
        pitch = self.builder.mul(self.block, I64(self.placed.type.bytes))
        columns = partial(self.code.vector_loop, start, stop)
        self.place_in_room(self.group_pointers(group), start, pitch, columns)

    def place_in_room(self, pointers: Pointers, start: ir.Value, pitch: ir.Value, columns: Columns) -> None:
        """Some of the lines of a group, from `start` on; their places lie `pitch` bytes apart in the room."""
        room, element = self.rest_of_room(), I64(self.placed.type.bytes)

        def at(index: ir.Value) -> ir.Value:
            return self.code.offset(room, self.builder.mul(self.builder.sub(index, start), element))

        with self.all_places(pointers) as (place, there):
            into = self.builder.mul(place, pitch)

            def fetch(index: ir.Value, mask: ir.Value | None) -> None:
                value = self.held(there, index, mask)
                self.code.store(self.code.offset(at(index), into), value, self.placed.type, mask)

            columns(fetch)
        self.place_rows(pointers, columns, lambda index: [Target(at(index), pitch, element)])
        with self.all_places(pointers) as (place, there):
            begin = self.builder.mul(place, pitch)

            def put_back(index: ir.Value, mask: ir.Value | None) -> None:
                address = self.code.offset(at(index), begin)
                value = self.code.load(address, self.placed.type, self.lanes, mask)
                for access in self.stored:
                    self.store(access, value, there, index, mask)

            columns(put_back)


class ScatterStripCode(ScatterTileCode):
    """The same, where the results of one vector of lines after the other do."""

    def item(self, item: ir.Value) -> None:
        """One tile."""
        group, start, stop = self.block_range(item)
        pointers, pitch = self.group_pointers(group), I64(self.lanes * self.placed.type.bytes)

        def strip(index: ir.Value, mask: ir.Value | None) -> None:
            self.place_in_room(pointers, index, pitch, lambda put: put(index, mask))

        self.code.vector_loop(start, stop, strip)


class TopCode(PlacingCode):
    """The least elements of a line, sorted: of a whole line, or of a chunk, or those of all chunks of a line.

    Elements that do not exceed a bound are collected. When there is no more room for a vector of them, they
    are sorted, and so are then the lesser ones of these and of the best so far, which give a lower bound.
    """

    def __init__(self, function: ir.Function, pattern: CpuPattern, lanes: int) -> None:
        super().__init__(function, pattern, lanes)
        self.count, self.width = self.elements, self.units
        self.network = BitonicNetwork(self.code, self.operand.type, self.width)

    def item(self, item: ir.Value) -> None:
        """One batch of lines, one chunk, or the chunks of a line."""
        if self.pattern.mode is CpuMode.TOP:
            super().item(item)
        elif self.pattern.mode is CpuMode.TOP_CHUNKS:
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
