"""Code of a softmax between products in matrix registers: queries, keys, values and weights are packed in
bfloat16 parts. Scores and weights are computed in vectors."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I1, I32, I64
from opendml.targets.cpu.contraction.amx import ChainBf16Kernel, configure, keep_awake, release
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.bf16_parts import Magnitudes, PartLayout, Splitter
from opendml.targets.cpu.contraction.chain_code import ChainCode, Weigh
from opendml.targets.cpu.contraction.packers import packer_of
from opendml.targets.cpu.contraction.packing import Range
from opendml.targets.cpu.contraction.tiling import (
    REGISTER_BYTES,
    REGISTER_ROWS,
    STEP,
    Chaining,
    bf16_bytes,
)
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.shared_functions import shared_function

_MAGNITUDES = Magnitudes(2.0**-49, 2.0**29)
"""The magnitudes of queries, keys and values: without a scale, so that sums need none. What a product loses
by being smaller than the least normal number is below 2^-27 of it."""


class AmxChainCode(ChainCode):
    """Emits a chain in tiles of matrix registers.

    Weights are split without a check. The greatest of a row is 2^24, by which no sum of split values
    overflows. The least is the least normal number, and so is its first part. Its other parts lose less than
    is lost by weights that become 0 for being smaller still. If a weight is NaN, so is the sum of its row.
    """

    def item(self, item: ir.Value) -> None:
        configure(self.code)
        super().item(item)
        release(self.code)

    def lay_out_products(self, chaining: Chaining) -> None:
        depth, keys = chaining.a.depth, chaining.keys
        self._splitter = Splitter(self.code, _MAGNITUDES)
        self._query_packer = packer_of(self.query_packing, self, _MAGNITUDES)
        self._key_packer = packer_of(self.key_packing, self, _MAGNITUDES)
        self._value_packer = packer_of(self.value_packing, self, _MAGNITUDES)
        self._key_bytes, self._value_bytes = (
            bf16_bytes(operand.columns, operand.depth) for operand in (chaining.b, chaining.weighted)
        )
        self.key_scratch = self._bytes(self.key_columns // self.width * self._key_bytes)
        self.value_scratch = self._bytes(self.result_columns // self.result_width * self._value_bytes)
        self._weights = PartLayout(self.rows // REGISTER_ROWS, keys, _MAGNITUDES)
        self._weights_scratch = self._bytes(bf16_bytes(self.rows, keys))
        module, result_bytes = self.function.module, self.result_width * F32.bytes
        multiply, add = (
            shared_function(module, name, ChainBf16Kernel, micro, count, result_bytes, _MAGNITUDES)
            for name, micro, count in (
                ("products", chaining.micro, depth),
                ("weighted", chaining.weighting, keys),
            )
        )
        self.multiply, self.add_weighted = multiply.function, add.function
        self._scratch = self._bytes(max(multiply.scratch_bytes, add.scratch_bytes))

    def _bytes(self, count: int) -> ir.Value:
        return self.reserve(F32, count // F32.bytes)

    def panel_bytes(self) -> ir.Value:
        return I64(self.query_layout.part_bytes(self.lanes))

    def pack_queries(self, panel: ir.Value, rows: Range) -> None:
        self._query_packer.pack(self.panel_at(panel), rows, (I64(0), self.depth))

    def pack_keys(self, keys: Range) -> None:
        depth, values = (I64(0), self.depth), (I64(0), self.inner)
        parts = (
            (self._key_packer, self.key_scratch, self.width, self._key_bytes, keys, depth),
            (self._value_packer, self.value_scratch, self.result_width, self._value_bytes, values, keys),
        )
        for packer, scratch, width, tile_bytes, (first, last), products in parts:
            tiles = self.query_packing.parts(self.builder.sub(last, first), width)
            with self.code.loop(I64(0), tiles) as tile:
                start = self.builder.add(first, self.builder.mul(tile, I64(width)))
                stop = self.code.minimum(self.builder.add(start, I64(width)), last)
                place = self.code.offset(scratch, self.builder.mul(tile, I64(tile_bytes)))
                packer.pack(place, (start, stop), products)

    def multiply_panel(self, panel: ir.Value, rows: Range, keys: Range) -> None:
        a = self.panel_at(panel)
        with self.tiles_of_scores(keys) as (tile, c):
            b = self.code.offset(self.key_scratch, self.builder.mul(tile, I64(self._key_bytes)))
            operands = [a, b, c, c, I64(self.pitch), self.depth, I1(0), self._scratch]
            self.builder.call(self.multiply, operands)

    def put_weights(self, row: ir.Value, count: ir.Value, weigh: Weigh) -> None:
        register, within = (
            operation(row, I64(REGISTER_ROWS)) for operation in (self.builder.udiv, self.builder.urem)
        )
        distance = self.builder.mul(register, I64(REGISTER_BYTES))
        distance = self.builder.add(distance, self.builder.mul(within, I64(LINE)))
        place = self.code.offset(self._weights_scratch, self.builder.add(distance, I64(LINE)))

        def put(index: ir.Value, masks: Sequence[ir.Value | None]) -> None:
            halves = [
                self._splitter.split(weigh(self.builder.add(index, I64(half * self.lanes)), mask))
                for half, mask in enumerate(masks)
            ]
            step = self.builder.mul(self.builder.udiv(index, I64(STEP)), I64(self._weights.step_bytes))
            for part, pair in enumerate(zip(*halves, strict=True)):
                at = self.builder.add(step, I64(part * self._weights.bf16_bytes))
                self.builder.store(self._splitter.concatenate(*pair), self.code.offset(place, at), align=LINE)

        with self.code.loop(I64(0), count, STEP) as index:
            put(index, [None, None])
        rest = self.builder.urem(count, I64(STEP))
        with self.builder.if_then(self.builder.icmp_unsigned("!=", rest, I64(0))):
            behind = self.code.maximum(I64(0), self.builder.sub(rest, I64(self.lanes)))
            masks = [self.code.first_lanes(each) for each in (rest, behind)]
            put(self.builder.sub(count, rest), masks)

    def pass_row(self) -> None:
        keep_awake(self.code)

    def add_weighted_panel(self, results: ir.Value, rows: Range, keys: Range, adds: ir.Value) -> None:
        count, pitch = self.builder.sub(keys[1], keys[0]), I64(self.result_width * F32.bytes)
        self.builder.store(I32(0), self._weights_scratch)
        with self.tiles_of_results() as tile:
            b = self.code.offset(self.value_scratch, self.builder.mul(tile, I64(self._value_bytes)))
            c = self.result_at(results, tile, I64(0))
            operands = [self._weights_scratch, b, c, c, pitch, count, adds, self._scratch]
            self.builder.call(self.add_weighted, operands)
