"""Kernels that find the least elements of lines, in order."""

from __future__ import annotations

from opendml.targets.common.pattern import Level
from opendml.targets.cpu import ir
from opendml.targets.cpu.bitonic import BitonicNetwork, Words, word_bytes
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.loads import Pointers, Values
from opendml.targets.cpu.pattern import CpuMode, CpuPattern
from opendml.targets.cpu.placing_code import PlacingCode
from opendml.targets.cpu.values import any_lane, intrinsic, llvm_type, scalar_llvm_type

_SAMPLE = 32
"""Elements of the sample of a line for each word that is sorted together: all of a line of 1,000. A greater
sample takes longer. A smaller one gives a bound that more elements pass."""


class TopCode(PlacingCode):
    """The least elements of a line, sorted. An item is a batch of lines, or a chunk of a line, or the chunks
    of a line.

    Elements that do not exceed a bound are collected. When there is no room for another vector of them, they
    are sorted. The lesser ones of these and of the best so far are sorted too, and give a lower bound.
    """

    def __init__(self, code: Code, pattern: CpuPattern) -> None:
        super().__init__(code, pattern)
        self.count, self.width = self.elements, self.units
        (self._key,) = self.operands
        self.network = BitonicNetwork(self.code, self._key.type, self.width)

    def item(self, item: ir.Value) -> None:
        """Emit one batch of lines, one chunk, or the merge of a line's chunks."""
        if self.pattern.mode is CpuMode.TOP:
            super().item(item)
        elif self.pattern.mode is CpuMode.TOP_CHUNKS:
            line, chunk = self.code.split(item, [I64(0), self.chunks])
            self._select(self.group_pointers(line), self._best_of(item), *self.chunk_range(chunk, self.inner))
        else:
            first = self.builder.mul(item, self.chunks)
            best = self._best_of(first)
            with self.code.loop(I64(1), self.chunks) as number:
                self.network.take_lesser(best, self._best_of(self.builder.add(first, number)))
            self._write_first(self.group_pointers(item), best)

    def line(self, item: ir.Value, pointers: Pointers) -> None:
        """Emit one whole line."""
        best = self._best_of(item)
        self._select(pointers, best, I64(0), self.inner)
        self._write_first(pointers, best)

    def _best_of(self, item: ir.Value) -> Words:
        """Return the best words of an item in the arena. Those that it collects lie behind them."""
        size = self.builder.mul(self.width, I64(word_bytes(self._key.type)))
        keys = self.code.element_at(self.arena(), self.builder.mul(item, I64(2)), size)
        key_bytes = self.builder.mul(self.width, I64(self._key.type.bytes))
        return Words(keys, self.code.offset(keys, key_bytes))

    def _select(self, pointers: Pointers, best: Words, first: ir.Value, last: ir.Value) -> None:
        """Find the best of some elements of a line. If they are too few, words greater than all stand for the
        others."""
        known = self.outside_loops(Level.GROUP, pointers, {})
        bound = self.code.local(llvm_type(self._key.type, self.lanes))
        self._set_bound(bound, self._bound_of_sample(pointers, known, best, first, last))
        number = self.code.local(I64, I64(0))
        # Words that are collected first are the best so far, and lie there. Later ones lie behind them.
        behind = self.builder.mul(self.width, I64(word_bytes(self._key.type)))
        distance = self.code.local(I64, I64(0))
        self.network.clear(best)

        def collected() -> Words:
            return Words(*(self.code.offset(address, self.code.get(distance)) for address in best))

        def merge() -> None:
            is_first = self.builder.icmp_signed("==", self.code.get(distance), I64(0))
            # Of equal elements those that come first are there already, and nothing is less than 0.
            worst, zero = self._worst(best), scalar_llvm_type(self._key.type)(0)
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
            (keys,) = self.elements_at(pointers, known, index, mask)
            better = self.builder.icmp_unsigned("<=", keys, self.code.get(bound))
            if mask is not None:
                better = self.builder.and_(better, mask)
            with self.builder.if_then(any_lane(self.builder, better, self.lanes), likely=False):
                at = self.code.get(number)
                word = keys, self.network.positions(index)
                self.network.store(collected(), at, self.network.compressed(word, better))
                after = self.builder.add(at, self.code.count(better))
                self.code.set(number, after)
                most = self.builder.sub(self.width, I64(self.lanes))
                with self.builder.if_then(self.builder.icmp_signed(">", after, most)):
                    merge()

        self.code.vector_loop(first, last, step)
        with self.builder.if_then(self.builder.icmp_signed(">", self.code.get(number), I64(0))):
            merge()

    def _bound_of_sample(
        self, pointers: Pointers, known: Values, least: Words, first: ir.Value, last: ir.Value
    ) -> ir.Value:
        """Return a key that as many of the first elements do not exceed as are wanted.

        Of every `width`-th element, from each of the first ones on, the least is taken. That many of these do
        not exceed the key.
        """
        count = self.builder.mul(self.width, I64(_SAMPLE))
        end = self.code.minimum(self.builder.add(first, count), last)
        below = self.builder.sub(self.width, I64(1))
        self.network.clear(least)
        is_long = self.builder.icmp_signed(">", self.builder.sub(last, first), self.width)
        with self.builder.if_then(is_long):
            with self.code.loop(first, end, self.lanes) as index:
                (keys,) = self.elements_at(pointers, known, index)
                at = self.builder.and_(self.builder.sub(index, first), below)
                before, positions = self.network.load(least, at)
                is_less = self.builder.icmp_unsigned("<", keys, before)
                self.network.store(least, at, (self.builder.select(is_less, keys, before), positions))
            self.network.sort(least)
        return self._worst(least)

    def _worst(self, best: Words) -> ir.Value:
        """Return the key of the last wanted element, if the best were all."""
        return self.network.load(best, self.builder.sub(self.count, I64(1)), 1)[0]

    def _one_less(self, key: ir.Value) -> ir.Value:
        """Return the key before a key, or 0."""
        return intrinsic(self.builder, f"llvm.usub.sat.{key.type}", key.type, [key, key.type(1)])

    def _set_bound(self, bound: ir.Value, key: ir.Value) -> None:
        self.code.set(bound, self.code.broadcast(key))

    def _write_first(self, pointers: Pointers, best: Words) -> None:
        """Store the positions of the wanted words."""
        with self.code.loop(I64(0), self.count) as number:
            _, position = self.network.load(best, number, 1)
            value = self.narrow(self.builder.zext(position, I64))
            for access in self.stored:
                target = self.code.element_at(pointers[access], number, self.stride(access))
                self.code.store(target, value, self.placed.type)
