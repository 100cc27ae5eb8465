"""Code of a softmax between products (a chain): products of queries and keys, and sums of weighted values.

An item is a block of queries. It packs them, then some keys and their values at a time. For one micro-panel
of queries after the other it computes the scores in scratch memory, and makes weights of them: exp of the
distance from the greatest score so far. If the greatest changes, the sums of weights and of weighted values
so far are scaled down. Behind the last keys the one divides the other.

Weights are multiplied by a power of two, so that the least of them are no denormal numbers. If results are
not finite then, their block is computed once more, with weights that are too small for sums of finite values
to overflow. Results that are finite now replace those that were not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from opendml.compiler.kernel import number_of
from opendml.program import vector_math
from opendml.program.node import Node, Operation, apply, source
from opendml.program.softmax_math import WIDEST, weight, weight_by
from opendml.targets.common.pattern import Level
from opendml.targets.cpu import ir
from opendml.targets.cpu.accumulation import emitted
from opendml.targets.cpu.code import I1, I32, I64, Code
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.fma import Strides, emit_micro_kernel
from opendml.targets.cpu.contraction.packing import PackingCode, Range
from opendml.targets.cpu.contraction.tiling import Chaining, MicroKernel, odd_lines
from opendml.targets.cpu.kernel_code import KernelCode
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import CpuPattern
from opendml.targets.cpu.shared_functions import shared_function
from opendml.targets.cpu.values import intrinsic, llvm_type, number, splat, type_suffix

_WEIGHT = weight(*(source(number, F32) for number in range(4)))
_FACTOR = vector_math.expand(apply(Operation.EXPONENTIAL, source(0, F32) - source(1, F32)))
"""The factor of a weight relative to one number for that relative to another."""

_DONE, _NOT_FINITE, _BLIND = 0.0, 1.0, 2.0
"""The states of a row: it is stored, or computed again because its results are not finite, or because its
weights are NaN."""

Weigh = Callable[[ir.Value, ir.Value | None], ir.Value]
"""Emits the weights of a vector of keys, from an index on. Weights outside a mask are zero."""


class ChainCode(KernelCode):
    """Emits a chain in tiles of vector registers.

    The pattern itself is that of the epilogue, whose last load is the results. Its row loops run over
    queries, its innermost loop over the columns of the results.
    """

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        chaining = pattern.walk_as(Chaining)
        first = self.layout.length
        self.query_packing = PackingCode(code, chaining.a, first)
        first += self.query_packing.layout.length
        self.key_packing = PackingCode(code, chaining.b, first)
        first += self.key_packing.layout.length
        self.scores = ScoresCode(code, chaining.scores, first)
        first += self.scores.layout.length
        self.value_packing = PackingCode(code, chaining.weighted, first)
        self.query_layout, self.keys_together, self.rows = chaining.a, chaining.keys, chaining.micro.rows
        self.depth = self.query_packing.elements
        by_keys = (
            (self.key_packing, chaining.b.packing.along_depth),
            (self.value_packing, not chaining.weighted.packing.along_depth),
        )
        self._prefetched = [part for part, lies_by_keys in by_keys if lies_by_keys]
        """The operands in which each key has a part of the memory of its own."""
        self._prefetched_queries = [self.query_packing] if chaining.a.packing.along_depth else []
        self.total = _sums_of(self)
        self._lay_out(chaining)
        self.open_rows = self.code.local(I64)
        """A variable: the number of rows that are not stored yet."""
        self.weigh_by: tuple[ir.Value, ...] = ()
        self.equal_weights: tuple[ir.Value, ...] = ()
        """A weight of at most one over the keys for queries without weights of their own, and one over it."""

    def _lay_out(self, chaining: Chaining) -> None:
        """Take scratch memory, and create the micro-kernels, which know its layout."""
        lanes, keys, widest, size = self.lanes, chaining.keys, chaining.widest, F32.bytes
        self.width, self.result_width = (
            each.vectors * lanes for each in (chaining.micro, chaining.weighting)
        )
        self.key_columns, self.result_columns = (
            -(-count // width) * width for count, width in ((keys, self.width), (widest, self.result_width))
        )
        self.pitch = odd_lines(self.key_columns + lanes)
        self.query_scratch, self.first_results, self.second_results = (
            self.reserve(F32, chaining.elements) for _ in range(3)
        )
        self.results_scratch = self.first_results
        self.scores_scratch = self.reserve(F32, self.rows * self.pitch // size)
        self.greatest_scratch = self.reserve(F32, chaining.elements // lanes)
        self.sums_scratch = self.reserve(F32, chaining.elements)
        self.factors_scratch = self.reserve(F32, -(-self.rows // lanes) * lanes)
        self.states_scratch = self.reserve(F32, chaining.elements // lanes)
        self.lay_out_products(chaining)

    def lay_out_products(self, chaining: Chaining) -> None:
        """Take scratch memory for packed keys and values, and create the micro-kernels."""
        lanes, size = self.lanes, F32.bytes
        self.key_scratch = self.reserve(F32, self.key_columns * (chaining.widest + lanes))
        self.value_scratch = self.reserve(F32, self.result_columns * (chaining.keys + lanes))
        (_, a_pitch), result_pitch = chaining.a.strides(lanes), self.result_width * size
        self.multiply = self._micro_kernel(
            "products", chaining.micro, Strides(size, a_pitch, self.width * size, self.pitch)
        )
        self.add_weighted = self._micro_kernel(
            "weighted", chaining.weighting, Strides(self.pitch, size, result_pitch, result_pitch)
        )

    def _micro_kernel(self, name: str, micro: MicroKernel, strides: Strides) -> ir.Function:
        return shared_function(
            self.function.module, name, emit_micro_kernel, micro, self.lanes, strides
        ).function

    def begin_weights(self, again: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return the two numbers beside scores that weights depend on: the exponent n of the weight 2^n of a
        greatest score, and the least distance from it that weights distinguish.

        When rows are computed again, that weight is at most one over the keys. So sums of weighted values
        overflow no sooner than their means.
        """
        wanted = [self.builder.sub(self.elements, I64(1)), I1(0)]
        bits = self.builder.sub(I64(64), intrinsic(self.builder, "llvm.ctlz.i64", I64, wanted))
        self.equal_weights = self._power_of_two(self.builder.neg(bits)), self._power_of_two(bits)
        share = self.builder.sitofp(self.builder.neg(bits), llvm_type(F32, 1))
        exponent = self.builder.select(again, share, number(F32, 1, WIDEST))
        given = emitted(self.builder, weight_by(source(0, F32)), 1, [exponent])
        return self.code.broadcast(given[0]), self.code.broadcast(given[1])

    def _power_of_two(self, exponent: ir.Value) -> ir.Value:
        bits = self.builder.shl(self.builder.add(exponent, I64(127)), I64(23))
        return self.builder.bitcast(self.builder.trunc(bits, I32), llvm_type(F32, 1))

    def item(self, item: ir.Value) -> None:
        """Compute one block of queries."""
        group, chunk = self.code.split(item, [I64(0), self.chunks])
        self.in_rounds(item, group, self.chunk_range(chunk, self.units))

    def begin_group(self, group: ir.Value) -> tuple[Pointers, Values]:
        """Go to a group. Return the pointers of the epilogue, and the values known there."""
        pointers = self.group_pointers(group)
        for part in (self.query_packing, self.key_packing, self.scores, self.value_packing):
            part.begin(group)
        return pointers, self.evaluate(Level.GROUP, 1, pointers, {})

    def in_rounds(self, item: ir.Value, group: ir.Value, queries: Range) -> None:
        """Compute some queries of a group, and those again whose results are not finite."""
        pointers, known = self.begin_group(group)
        self.code.set(self.open_rows, I64(1))
        with self.code.loop(I64(0), I64(2)) as times, self.builder.if_then(self.has_rows()):
            self.code.set(self.open_rows, I64(0))
            again = self.builder.icmp_signed("!=", times, I64(0))
            self.weigh_by = self.begin_weights(again)
            self.results_scratch = self.builder.select(again, self.second_results, self.first_results)
            self.attend_all(item, queries, pointers, known, again)

    def has_rows(self) -> ir.Value:
        """Return whether there are rows to compute."""
        return self.builder.icmp_signed("!=", self.code.get(self.open_rows), I64(0))

    def attend_all(
        self, item: ir.Value, queries: Range, pointers: Pointers, known: Values, again: ir.Value
    ) -> None:
        """Compute the results of a block of queries with all keys."""
        self.attend(item, queries, (I64(0), self.elements), pointers, known, again)

    def attend(
        self,
        item: ir.Value,
        queries: Range,
        span: Range,
        pointers: Pointers,
        known: Values,
        again: ir.Value,
    ) -> None:
        """Compute the results of a block of queries with a span of keys."""
        first, last = queries
        count = self.builder.sub(last, first)
        panels = self.query_packing.parts(count, self.rows)
        self._begin(first, last, panels)
        parts = self.query_packing.parts(self.builder.sub(span[1], span[0]), self.keys_together)
        with self.code.loop(I64(0), parts) as part:
            begin = self.builder.add(span[0], self.builder.mul(part, I64(self.keys_together)))
            keys = begin, self.code.minimum(self.builder.add(begin, I64(self.keys_together)), span[1])
            is_last = self.builder.icmp_signed("==", keys[1], span[1])
            self.pack_keys(keys)
            following = self.following(item, keys, is_last)
            with self.code.loop(I64(0), panels) as panel:
                self.prefetch(*following, panel, panels)
                row = self.builder.mul(panel, I64(self.rows))
                rows = row, self.code.minimum(self.builder.add(row, I64(self.rows)), count)
                results = self.results_at(panel)
                self.multiply_panel(panel, rows, keys)
                adds = self.builder.icmp_signed("!=", part, I64(0))
                self._weigh(panel, first, rows, keys, again)
                with self.builder.if_then(adds):
                    self._scale(results, self.builder.sub(rows[1], rows[0]))
                self.add_weighted_panel(results, rows, keys, adds)
                with self.builder.if_then(is_last):
                    self.finish_panel(pointers, known, panel, first, rows, again)

    def _begin(self, first: ir.Value, last: ir.Value, panels: ir.Value) -> None:
        """Pack the queries. There is no greatest score yet, and nothing is summed."""
        rows = I64(self.rows)
        with self.code.loop(I64(0), panels) as panel:
            row = self.builder.add(first, self.builder.mul(panel, rows))
            behind = self.code.minimum(self.builder.add(row, rows), last)
            self.pack_queries(panel, (row, behind))
            for vector in self._vectors():
                lowest = number(F32, self.lanes, -math.inf)
                self.code.store(self.state_at(self.greatest_scratch, panel, vector), lowest, F32)
            self.query_packing.clear(self.sums_at(panel, I64(0)), I64(self.rows * self.lanes))

    def _vectors(self) -> Iterator[ir.Value]:
        """Yield the first row of each vector of a panel's rows."""
        return (I64(row) for row in range(0, self.rows, self.lanes))

    # Places

    def element(self, place: ir.Value, index: ir.Value) -> ir.Value:
        return self.code.offset(place, self.builder.mul(index, I64(F32.bytes)))

    def state_at(self, scratch: ir.Value, panel: ir.Value, row: ir.Value) -> ir.Value:
        """Return where a number of a row of a panel lies, beside those of the others in whole vectors."""
        before = self.builder.mul(panel, I64(-(-self.rows // self.lanes) * self.lanes))
        return self.element(scratch, self.builder.add(before, row))

    def panel_at(self, panel: ir.Value) -> ir.Value:
        """Return where a panel of queries lies."""
        return self.code.offset(self.query_scratch, self.builder.mul(panel, self.panel_bytes()))

    def panel_bytes(self) -> ir.Value:
        """Return the bytes from one panel of queries to the next, with those that packing may write."""
        columns = self.builder.add(self.depth, I64(self.lanes))
        return self.builder.mul(columns, I64(self.query_layout.strides(self.lanes)[1]))

    def results_at(self, panel: ir.Value, scratch: ir.Value | None = None) -> ir.Value:
        """Return where the results of a panel lie, tile by tile."""
        tiles = self.query_packing.parts(self.inner, self.result_width)
        before = self.builder.mul(panel, self.builder.mul(tiles, I64(self._tile_elements)))
        return self.element(self.results_scratch if scratch is None else scratch, before)

    @property
    def _tile_elements(self) -> int:
        """The elements of a tile of results."""
        return self.rows * self.result_width

    def _key_tile_bytes(self) -> ir.Value:
        """Return the bytes from one tile of the keys to the next."""
        rows = self.builder.add(self.depth, I64(self.lanes))
        return self.builder.mul(rows, I64(self.width * F32.bytes))

    def _key_at(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """Return the place of an element of the keys."""
        tile, within = self.code.split(column, [I64(0), I64(self.width)])
        place = self.code.offset(self.key_scratch, self.builder.mul(tile, self._key_tile_bytes()))
        return self.key_packing.rows_at(place, self.width * F32.bytes)(row, within)

    @property
    def _value_tile_bytes(self) -> int:
        """The bytes from one tile of the values to the next."""
        return (self.keys_together + self.lanes) * self.result_width * F32.bytes

    def _value_at(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """Return the place of an element of the values."""
        tile, within = self.code.split(column, [I64(0), I64(self.result_width)])
        place = self.code.offset(self.value_scratch, self.builder.mul(tile, I64(self._value_tile_bytes)))
        return self.value_packing.rows_at(place, self.result_width * F32.bytes)(row, within)

    # Products

    def pack_queries(self, panel: ir.Value, rows: Range) -> None:
        """Pack a panel of queries."""
        self.query_packing.pack_a(self.panel_at(panel), rows, (I64(0), self.depth))

    def pack_keys(self, keys: Range) -> None:
        """Pack some keys and their values."""
        self.key_packing.pack_b(self._key_at, self.width, keys, (I64(0), self.depth))
        self.value_packing.pack_b(self._value_at, self.result_width, (I64(0), self.inner), keys)

    def multiply_panel(self, panel: ir.Value, rows: Range, keys: Range) -> None:
        """Compute the products of the rows of a panel of queries and some keys."""
        a = self.panel_at(panel)
        with self.tiles_of_scores(keys) as (tile, c):
            b = self.code.offset(self.key_scratch, self.builder.mul(tile, self._key_tile_bytes()))
            self.builder.call(self.multiply, [a, b, c, c, I64(self.pitch), self.depth, I1(0)])

    @contextmanager
    def tiles_of_scores(self, keys: Range) -> Iterator[tuple[ir.Value, ir.Value]]:
        """Loop over the tiles of some keys: yields the tile and where its scores lie."""
        tiles = self.query_packing.parts(self.builder.sub(keys[1], keys[0]), self.width)
        with self.code.loop(I64(0), tiles) as tile:
            yield tile, self.element(self.scores_scratch, self.builder.mul(tile, I64(self.width)))

    def put_weights(self, row: ir.Value, count: ir.Value, weigh: Weigh) -> None:
        """Store `count` weights of a row, for the second products."""
        place = self.scores_at(row)

        def put(index: ir.Value, mask: ir.Value | None) -> None:
            self.code.store(self.element(place, index), weigh(index, mask), F32)

        self.code.vector_loop(I64(0), count, put)

    def add_weighted_panel(self, results: ir.Value, rows: Range, keys: Range, adds: ir.Value) -> None:
        """Add the contribution of some keys to the rows of a panel's results if it `adds`, else store it."""
        count, pitch = self.builder.sub(keys[1], keys[0]), I64(self.result_width * F32.bytes)
        with self.tiles_of_results() as tile:
            b = self.code.offset(self.value_scratch, self.builder.mul(tile, I64(self._value_tile_bytes)))
            c = self.result_at(results, tile, I64(0))
            self.builder.call(self.add_weighted, [self.scores_scratch, b, c, c, pitch, count, adds])

    def pass_row(self) -> None:
        """Emit code between products, for each row of the scores and results."""

    # Steps

    def following(self, item: ir.Value, keys: Range, is_last: ir.Value) -> tuple[ir.Value, Range, Range]:
        """Return the group and the keys that follow some, and the queries that are packed before."""
        items = self.builder.mul(self.groups, self.chunks)
        later = self.code.minimum(self.builder.add(item, I64(1)), self.builder.sub(items, I64(1)))
        group, chunk = self.code.split(self.builder.select(is_last, later, item), [I64(0), self.chunks])
        first, last = self.chunk_range(chunk, self.units)
        start = self.builder.select(is_last, I64(0), keys[1])
        stop = self.code.minimum(self.builder.add(start, I64(self.keys_together)), self.elements)
        return group, (start, stop), (first, self.builder.select(is_last, last, first))

    def prefetch(
        self, group: ir.Value, keys: Range, queries: Range, panel: ir.Value, panels: ir.Value
    ) -> None:
        """Prefetch a panel's share of some keys, of their values and of some queries."""
        for parts, wanted in ((self._prefetched, keys), (self._prefetched_queries, queries)):
            count = self.builder.sub(wanted[1], wanted[0])
            first, last = (
                self.builder.add(wanted[0], self.builder.udiv(self.builder.mul(count, number), panels))
                for number in (panel, self.builder.add(panel, I64(1)))
            )
            for part in parts:
                part.prefetch(group, (first, last))

    def _weigh(self, panel: ir.Value, first: ir.Value, rows: Range, keys: Range, again: ir.Value) -> None:
        """Compute scores from products, then weights relative to the greatest score so far, and the factors
        of the weights before."""
        queries = self.builder.add(first, rows[0]), self.builder.add(first, rows[1])
        with self.scores.walk(*queries) as (query, pointers):
            self.pass_row()
            row = self.builder.sub(query, queries[0])
            at = self.state_at(self.greatest_scratch, panel, row)
            before = self.code.load(at, F32, 1)
            found = self.scores.compute(pointers, self.scores_at(row), keys)
            self.code.store(self.element(self.factors_scratch, row), before, F32)
            self.code.store(at, greater(self.builder, found, before), F32)
        for row in self._vectors():
            at = self.element(self.factors_scratch, row)
            greatest = self.code.load(self.state_at(self.greatest_scratch, panel, row), F32, self.lanes)
            factor = self.factor(self.code.load(at, F32, self.lanes), greatest)
            if self.scores.replaces_weights:
                are_blind = self._are_blind(panel, row, again)
                factor = self.builder.select(are_blind, number(F32, self.lanes, 1.0), factor)
            self.code.store(at, factor, F32)
        with self.code.loop(I64(0), self.builder.sub(rows[1], rows[0])) as row:
            self.pass_row()
            self._weigh_row(panel, row, keys, again)

    def factor(self, before: ir.Value, greatest: ir.Value) -> ir.Value:
        """Return the factors of weights relative to one greatest score for those relative to another."""
        given = [before, self._origin(greatest, self.lanes)]
        return emitted(self.builder, [_FACTOR], self.lanes, given)[0]

    def _are_blind(self, panel: ir.Value, row: ir.Value, again: ir.Value) -> ir.Value:
        """Return which rows from one on have no weights, when they are computed again."""
        state = self.code.load(self.state_at(self.states_scratch, panel, row), F32, self.lanes)
        found = self.builder.fcmp_ordered("==", state, number(F32, self.lanes, _BLIND))
        return self.builder.and_(found, self.code.broadcast(again))

    def _is_blind(self, panel: ir.Value, row: ir.Value, again: ir.Value) -> ir.Value:
        """Return whether a row has no weights, when it is computed again."""
        state = self.code.load(self.state_at(self.states_scratch, panel, row), F32, 1)
        found = self.builder.fcmp_ordered("==", state, number(F32, 1, _BLIND))
        return self.builder.and_(found, again)

    def scores_at(self, row: ir.Value) -> ir.Value:
        return self.code.offset(self.scores_scratch, self.builder.mul(row, I64(self.pitch)))

    def _origin(self, greatest: ir.Value, lanes: int) -> ir.Value:
        """Return the number that scores are relative to: the greatest, or zero if all are -infinity, which
        then weigh nothing."""
        lowest, zero = (number(F32, lanes, value) for value in (-math.inf, 0.0))
        return self.builder.select(self.builder.fcmp_ordered("==", greatest, lowest), zero, greatest)

    def _weigh_row(self, panel: ir.Value, row: ir.Value, keys: Range, again: ir.Value) -> None:
        """Compute the weights of a row of scores, and add them to the row's sums, one in each lane."""
        greatest = self.code.load(self.state_at(self.greatest_scratch, panel, row), F32, 1)
        base = self.code.broadcast(self._origin(greatest, 1))
        sums_at, zero = self.sums_at(panel, row), number(F32, self.lanes, 0.0)
        before = self.builder.fmul(self.code.load(sums_at, F32, self.lanes), self._factor(row))
        sums = self.code.local(llvm_type(F32, self.lanes), before)
        place = self.scores_at(row)
        is_blind = self._is_blind(panel, row, again) if self.scores.replaces_weights else None

        def weigh(index: ir.Value, mask: ir.Value | None) -> ir.Value:
            score = self.code.load(self.element(place, index), F32, self.lanes)
            (weight,) = emitted(self.builder, [_WEIGHT], self.lanes, [score, base, *self.weigh_by])
            if is_blind is not None:
                equal = self.code.broadcast(self.equal_weights[0])
                weight = self.builder.select(self.code.broadcast(is_blind), equal, weight)
            if mask is not None:
                weight = self.builder.select(mask, weight, zero)
            self.code.set(sums, self.builder.fadd(self.code.get(sums), weight))
            return weight

        self.put_weights(row, self.builder.sub(keys[1], keys[0]), weigh)
        self.code.store(sums_at, self.code.get(sums), F32)

    def _factor(self, row: ir.Value) -> ir.Value:
        """Return the factor of a row's weights so far."""
        return self.code.broadcast(self.code.load(self.element(self.factors_scratch, row), F32, 1))

    def sums_at(self, panel: ir.Value, row: ir.Value) -> ir.Value:
        """Return where the vector of a row's sums of weights lies."""
        before = self.builder.mul(panel, I64(self.rows))
        number = self.builder.add(before, row)
        return self.element(self.sums_scratch, self.builder.mul(number, I64(self.lanes)))

    def _scale(self, results: ir.Value, count: ir.Value) -> None:
        """Multiply `count` rows of a panel's results by their factors."""
        with self.code.loop(I64(0), count) as row:
            factor = self._factor(row)
            with self.tiles_of_results() as tile:
                place = self.result_at(results, tile, row)
                for column in range(0, self.result_width, self.lanes):
                    at = self.code.offset(place, I64(column * F32.bytes))
                    value = self.code.load(at, F32, self.lanes)
                    self.code.store(at, self.builder.fmul(value, factor), F32)

    def tiles_of_results(self) -> AbstractContextManager[ir.Value]:
        """Loop over the tiles of results."""
        return self.code.loop(I64(0), self.query_packing.parts(self.inner, self.result_width))

    def result_at(self, results: ir.Value, tile: ir.Value, row: ir.Value) -> ir.Value:
        """Return where a row of a tile of a panel's results lies."""
        before = self.builder.mul(tile, I64(self._tile_elements))
        return self.element(results, self.builder.add(before, self.builder.mul(row, I64(self.result_width))))

    def finish_panel(
        self,
        pointers: Pointers,
        known: Values,
        panel: ir.Value,
        first: ir.Value,
        rows: Range,
        again: ir.Value,
    ) -> None:
        """Emit the epilogue of a panel's rows: at first of those that are done, then of the others."""
        queries = self.builder.add(first, rows[0]), self.builder.add(first, rows[1])
        with self.walk_rows(pointers, *queries) as (query, row_pointers):
            self.pass_row()
            row = self.builder.sub(query, queries[0])
            with self.builder.if_then(self.is_done(panel, row, again)):
                row_values = self.evaluate(Level.ROW, 1, row_pointers, known)

                def known_at(index: ir.Value) -> Values:
                    at = self.element_of_results(self.results_at(panel), row, index)
                    return row_values | {id(self.total): self.code.load(at, F32, self.lanes)}

                self.store_range(row_pointers, I64(0), self.inner, known_at)

    def is_done(self, panel: ir.Value, row: ir.Value, again: ir.Value) -> ir.Value:
        """Divide a row of results by the sum of its weights, and return whether to store it. The first time
        it is stored if all results are finite, or if there are no weights and nothing replaces them. The
        second time it is stored if it was not before."""
        sum, replaces = self._sum_of(panel, row), self.scores.replaces_weights
        share = self.builder.fdiv(number(F32, 1, 1.0), sum)
        if replaces:
            replacement = self.builder.fmul(self.scores.replacement(), self.equal_weights[1])
            share = self.builder.select(self._is_blind(panel, row, again), replacement, share)
        share = self.code.broadcast(share)
        sums, before = self.results_at(panel), self.results_at(panel, self.first_results)
        zero = number(F32, self.lanes, 0.0)
        found = self.code.local(llvm_type(F32, self.lanes))
        self.code.set(found, zero)

        def divide(index: ir.Value, mask: ir.Value | None) -> None:
            at = self.element_of_results(sums, row, index)
            result = self.builder.fmul(self.code.load(at, F32, self.lanes), share)
            first = self.code.load(self.element_of_results(before, row, index), F32, self.lanes)
            takes_first = self.builder.or_(self._is_finite(first), self.builder.not_(self._is_finite(result)))
            merged = self.builder.select(takes_first, first, result)
            result = self.builder.select(self.code.broadcast(again), merged, result)
            self.code.store(at, result, F32)
            counted = result if mask is None else self.builder.select(mask, result, zero)
            # An infinity or NaN times zero is NaN.
            self.code.set(found, self.builder.fadd(self.code.get(found), self.builder.fmul(counted, zero)))

        self.code.vector_loop(I64(0), self.inner, divide)
        is_open = self.builder.fcmp_unordered("uno", *[self._added(self.code.get(found))] * 2)
        state: ir.Value = number(F32, 1, _NOT_FINITE)
        if replaces:
            is_blind = self.builder.fcmp_unordered("ule", sum, number(F32, 1, 0.0))
            state = self.builder.select(is_blind, number(F32, 1, _BLIND), state)
        else:
            is_open = self.builder.and_(is_open, self.builder.fcmp_ordered("ord", sum, sum))
        state = self.builder.select(is_open, state, number(F32, 1, _DONE))
        at = self.state_at(self.states_scratch, panel, row)
        was_open = self.builder.fcmp_ordered("!=", self.code.load(at, F32, 1), number(F32, 1, _DONE))
        with self.builder.if_then(self.builder.not_(again)):
            self.code.store(at, state, F32)
            count = self.builder.add(self.code.get(self.open_rows), self.builder.zext(is_open, I64))
            self.code.set(self.open_rows, count)
        return self.builder.select(again, was_open, self.builder.not_(is_open))

    def _is_finite(self, vector: ir.Value) -> ir.Value:
        zero = number(F32, self.lanes, 0.0)
        return self.builder.fcmp_ordered("==", self.builder.fmul(vector, zero), zero)

    def element_of_results(self, results: ir.Value, row: ir.Value, column: ir.Value) -> ir.Value:
        """Return where an element of a panel's results lies."""
        tile, within = self.code.split(column, [I64(0), I64(self.result_width)])
        return self.element(self.result_at(results, tile, row), within)

    def _sum_of(self, panel: ir.Value, row: ir.Value) -> ir.Value:
        """Return the sum of a row's weights."""
        return self._added(self.code.load(self.sums_at(panel, row), F32, self.lanes))

    def _added(self, lanes: ir.Value) -> ir.Value:
        """Return the sum of the lanes of a vector."""
        name = f"llvm.vector.reduce.fadd.{type_suffix(F32, self.lanes)}"
        operands = [number(F32, 1, 0.0), lanes]
        return intrinsic(self.builder, name, llvm_type(F32, 1), operands, flags=("reassoc",))


class ScoresCode(KernelCode):
    """Emits the scores from products. The pattern's row loops run over queries, its innermost over keys. A
    second value replaces the weights of queries that have none."""

    def __init__(self, code: Code, pattern: CpuPattern, first_parameter: int) -> None:
        super().__init__(code, pattern, first_parameter)
        self._sums = _sums_of(self)
        self._pointers: Pointers = ()
        self._known: Values = {}

    def begin(self, group: ir.Value) -> None:
        """Go to the first query and key of a group."""
        self._pointers = self.group_pointers(group)
        self._known = self.evaluate(Level.GROUP, 1, self._pointers, {})

    @property
    def replaces_weights(self) -> bool:
        """True if a number replaces weights that are NaN."""
        return len(self.pattern.values) > 1

    def replacement(self) -> ir.Value:
        """Return the weight of each key for queries whose weights are NaN."""
        return self.value(self.pattern.values[1], 1, self._known)

    def walk(self, first: ir.Value, last: ir.Value) -> AbstractContextManager[tuple[ir.Value, Pointers]]:
        """Loop over queries: yields the query and where the accesses are there."""
        return self.walk_rows(self._pointers, first, last)

    def compute(self, pointers: Pointers, place: ir.Value, keys: Range) -> ir.Value:
        """Compute the scores of one query with some keys from the products at a place. Returns the greatest
        that is a number, or -infinity."""
        known = self.evaluate(Level.ROW, 1, pointers, self._known)
        lowest = number(F32, self.lanes, -math.inf)
        greatest = self.code.local(llvm_type(F32, self.lanes), lowest)

        def compute(index: ir.Value, mask: ir.Value | None) -> None:
            distance = self.builder.sub(index, keys[0])
            at = self.code.offset(place, self.builder.mul(distance, I64(F32.bytes)))
            given = known | {id(self._sums): self.code.load(at, F32, self.lanes)}
            values = self.evaluate(Level.ELEMENT, self.lanes, pointers, given, index, mask)
            score = splat(self.builder, self.value(self.pattern.values[0], self.lanes, values), self.lanes)
            self.code.store(at, score, F32)
            counted = score if mask is None else self.builder.select(mask, score, lowest)
            self.code.set(greatest, greater(self.builder, counted, self.code.get(greatest)))

        self.code.vector_loop(*keys, compute)
        name = f"llvm.vector.reduce.fmax.{type_suffix(F32, self.lanes)}"
        return intrinsic(
            self.builder, name, llvm_type(F32, 1), [self.code.get(greatest)], flags=("nnan", "nsz")
        )


def greater(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return the greater of two; the second if the first is NaN."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _sums_of(code: KernelCode) -> Node:
    """Return the last load of a pattern: sums of products, which are not in memory yet."""
    last = len(code.pattern.loads) - 1
    return next(node for node in code.nodes if node.operation is Operation.SOURCE and number_of(node) == last)
