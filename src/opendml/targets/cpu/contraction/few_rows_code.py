"""Code of attention of few queries (`few_rows`).

Keys and values are read where they lie. The code loads as many as fill the registers, and multiplies them
with one query after the other.

A launch over parts of the keys stores the greatest score, the sums of weights and the sums of weighted values
of each part in the arena: [head][part][query]. Another one merges them, in the order of the parts. If results
are not finite, it computes them again from all keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager

from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.chain_code import ChainCode, greater
from opendml.targets.cpu.contraction.packing import Range
from opendml.targets.cpu.contraction.tiling import Chaining, ChainStep
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import CpuPattern
from opendml.targets.cpu.values import llvm_type, number, overloaded, vector_constant

_CHAINS = 4
"""Independent sums of weighted values, which hide the latency of multiply-adds."""


class FewRowsCode(ChainCode):
    """Emits attention of few queries, all of which are in one panel."""

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        self._step = pattern.walk_as(Chaining).step

    def lay_out_products(self, chaining: Chaining) -> None:
        self._row_bytes, _ = chaining.a.strides(self.lanes)
        self._together = chaining.micro.vectors

    def item(self, item: ir.Value) -> None:
        if self._step is ChainStep.WHOLE:
            super().item(item)
        elif self._step is ChainStep.COMBINE:
            self.in_rounds(item, item, (I64(0), self.units))
        else:
            group, part = self.code.split(item, [I64(0), self.chunks])
            pointers, known = self.begin_group(group)
            never = ir.I1(0)
            self.weigh_by = self.begin_weights(never)
            span = self.chunk_range(part, self.elements)
            self.attend(item, (I64(0), self.units), span, pointers, known, never)
            self._store_state(item)

    def attend_all(
        self, item: ir.Value, queries: Range, pointers: Pointers, known: Values, again: ir.Value
    ) -> None:
        if self._step is ChainStep.WHOLE:
            super().attend_all(item, queries, pointers, known, again)
            return
        with self.builder.if_else(again) as (repeated, first):
            with repeated:
                super().attend_all(item, queries, pointers, known, again)
            with first:
                self._merge(item)
        super().finish_panel(pointers, known, I64(0), I64(0), queries, again)

    def finish_panel(
        self,
        pointers: Pointers,
        known: Values,
        panel: ir.Value,
        first: ir.Value,
        rows: Range,
        again: ir.Value,
    ) -> None:
        if self._step is ChainStep.WHOLE:
            super().finish_panel(pointers, known, panel, first, rows, again)

    def following(self, item: ir.Value, keys: Range, is_last: ir.Value) -> tuple[ir.Value, Range, Range]:
        nothing = I64(0), I64(0)
        return I64(0), nothing, nothing

    def prefetch(
        self, group: ir.Value, keys: Range, queries: Range, panel: ir.Value, panels: ir.Value
    ) -> None:
        """Prefetch nothing: each vector prefetches those that are read next."""

    # Products

    def pack_queries(self, panel: ir.Value, rows: Range) -> None:
        place = self.query_packing.rows_at(self.panel_at(panel), self._row_bytes)
        self.query_packing.pack_m_rows(place, rows, (I64(0), self.depth))

    def pack_keys(self, keys: Range) -> None:
        """Pack nothing."""

    def multiply_panel(self, panel: ir.Value, rows: Range, keys: Range) -> None:
        first, last = keys
        rest = self.builder.and_(self.builder.sub(first, last), I64(self.lanes - 1))
        with self.code.loop(first, self.builder.add(last, rest), self.lanes) as key:
            distance = self.builder.sub(key, first)
            with self.code.loop(*rows) as row:
                products = self._products(row, (key, last))
                self.code.store(self.element(self.scores_at(row), distance), products, F32)

    def _products(self, row: ir.Value, keys: Range) -> ir.Value:
        """Return the products of a query and a vector of keys. Lanes behind the last key are undefined."""
        query = self.code.offset(self.query_scratch, self.builder.mul(row, I64(self._row_bytes)))
        zero = number(F32, self.lanes, 0.0)
        slots = [self.code.local(llvm_type(F32, self.lanes)) for _ in range(self.lanes)]
        for slot in slots:
            self.code.set(slot, zero)

        def take_in(index: ir.Value, mask: ir.Value | None, vectors: list[ir.Value]) -> None:
            factor = self.code.load(self.element(query, index), F32, self.lanes)
            for slot, vector in zip(slots, vectors, strict=True):
                old = self.code.get(slot)
                new = overloaded(self.builder, "fma", F32, self.lanes, [factor, vector, old])
                self.code.set(slot, new if mask is None else self.builder.select(mask, new, old))

        self.key_packing.read_together(keys, self.lanes, (I64(0), self.depth), take_in)
        return self._sums([self.code.get(slot) for slot in slots])

    def _sums(self, vectors: Sequence[ir.Value]) -> ir.Value:
        """Return the sums of the lanes of each of as many vectors as there are lanes, in their order.

        Each step adds the halves of the parts of two vectors, which then share one.
        """
        width = self.lanes
        while width > 1:
            width //= 2
            begins = range(0, self.lanes, 2 * width)
            low = [
                begin + lane
                for begin in (*begins, *[self.lanes + each for each in begins])
                for lane in range(width)
            ]
            halves = [vector_constant(ir.IntType(32), [each + moved for each in low]) for moved in (0, width)]
            vectors = [
                self.builder.fadd(*[self.builder.shuffle_vector(a, b, half) for half in halves])
                for a, b in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        (result,) = vectors
        return result

    def add_weighted_panel(self, results: ir.Value, rows: Range, keys: Range, adds: ir.Value) -> None:
        with self.builder.if_then(self.builder.not_(adds)), self.code.loop(*rows) as row:
            self._clear(row)
        first, last = keys
        rest = self.builder.urem(self.builder.sub(last, first), I64(self._together))
        whole = self.builder.sub(last, rest)
        for start, stop, together in ((first, whole, self._together), (whole, last, 1)):
            with self.code.loop(start, stop, together) as key:
                self._add_values(rows, self.builder.sub(key, first), (key, last), together)

    def _clear(self, row: ir.Value) -> None:
        """Store zeros as the results of a query."""
        with self._vectors_of_results() as column:
            self.code.store(self._result_at(row, column), number(F32, self.lanes, 0.0), F32)

    def _add_values(self, rows: Range, distance: ir.Value, keys: Range, count: int) -> None:
        """Add the values of some keys to the results of all queries, by their weights at a distance."""

        def take_in(index: ir.Value, mask: ir.Value | None, vectors: list[ir.Value]) -> None:
            with self.code.loop(*rows) as row:
                weights = self.element(self.scores_at(row), distance)
                place = self._result_at(row, index)
                sums = [self.code.load(place, F32, self.lanes)]
                sums += [number(F32, self.lanes, 0.0)] * (min(count, _CHAINS) - 1)
                for key, vector in enumerate(vectors):
                    weight = self.code.load(self.code.offset(weights, I64(key * F32.bytes)), F32, 1)
                    operands = [self.code.broadcast(weight), vector, sums[key % _CHAINS]]
                    sums[key % _CHAINS] = overloaded(self.builder, "fma", F32, self.lanes, operands)
                while len(sums) > 1:
                    sums = [self.builder.fadd(*pair) for pair in zip(sums[::2], sums[1::2], strict=True)]
                self.code.store(place, sums[0], F32)

        self.value_packing.read_together(keys, count, (I64(0), self.inner), take_in)

    def _result_at(self, row: ir.Value, column: ir.Value) -> ir.Value:
        return self.element_of_results(self.results_scratch, row, column)

    # Parts

    def _vectors_of_results(self) -> AbstractContextManager[ir.Value]:
        """Loop over the first columns of the vectors of a row of results."""
        return self.code.loop(I64(0), self.builder.add(self.inner, I64(self.lanes - 1)), self.lanes)

    def _state_rows(self, item: ir.Value, row: ir.Value) -> ir.Value:
        """Return where the state of a query for an item of keys lies: a vector that begins with the greatest
        score, a vector of sums, and the results."""
        vectors = self.builder.add(self.query_packing.parts(self.inner, self.lanes), I64(2))
        before = self.builder.add(self.builder.mul(item, self.units), row)
        before = self.builder.mul(before, self.builder.mul(vectors, I64(self.lanes)))
        return self.element(self.arena(), before)

    def _store_state(self, item: ir.Value) -> None:
        """Store the state of all queries for an item of keys."""
        with self.code.loop(I64(0), self.units) as row:
            at = self._state_rows(item, row)
            greatest = self.code.load(self.state_at(self.greatest_scratch, I64(0), row), F32, 1)
            self.code.store(at, greatest, F32)
            sums = self.code.load(self.sums_at(I64(0), row), F32, self.lanes)
            self.code.store(self.element(at, I64(self.lanes)), sums, F32)
            with self._vectors_of_results() as column:
                result = self.code.load(self._result_at(row, column), F32, self.lanes)
                self.code.store(self._state_result(at, column), result, F32)

    def _state_result(self, state: ir.Value, column: ir.Value) -> ir.Value:
        return self.element(state, self.builder.add(column, I64(2 * self.lanes)))

    def _merge(self, group: ir.Value) -> None:
        """Merge the states of all queries of a head."""
        first = self.builder.mul(group, self.chunks)
        items = first, self.builder.add(first, self.chunks)
        with self.code.loop(I64(0), self.units) as row:
            found = self.state_at(self.greatest_scratch, I64(0), row)
            self.code.store(found, number(F32, 1, -math.inf), F32)
            with self.code.loop(*items) as item:
                greatest = self.code.load(self._state_rows(item, row), F32, 1)
                before = self.code.load(found, F32, 1)
                self.code.store(found, greater(self.builder, greatest, before), F32)
            greatest = self.code.broadcast(self.code.load(found, F32, 1))
            self.code.store(self.sums_at(I64(0), row), number(F32, self.lanes, 0.0), F32)
            self._clear(row)
            with self.code.loop(*items) as item:
                self._add_state(self._state_rows(item, row), row, greatest)

    def _add_state(self, state: ir.Value, row: ir.Value, greatest: ir.Value) -> None:
        """Add the sums and results of a part of the keys to those of a query."""
        factor = self.factor(self.code.broadcast(self.code.load(state, F32, 1)), greatest)

        def add(place: ir.Value, part: ir.Value) -> None:
            operands = [self.code.load(each, F32, self.lanes) for each in (part, place)]
            total = overloaded(self.builder, "fma", F32, self.lanes, [factor, *operands])
            self.code.store(place, total, F32)

        add(self.sums_at(I64(0), row), self.element(state, I64(self.lanes)))
        with self._vectors_of_results() as column:
            add(self._result_at(row, column), self._state_result(state, column))
