"""Products of few rows with a grouped narrow operand, in integers.

The elements of a block of a row become integers of 32 bits times a power of two. An integer is four signed
bytes, its digits to the base 256. One instruction multiplies four neighbours along k, of one digit, by as
many packed numbers. The sums of a block are exact. They become floats, which are scaled and added.

An element that is much smaller than the largest of its block loses low bits. If it loses more than 2^-23 of
its value, the lost part (the rest) is multiplied as a float. Each row has a list of rests. Very large
numbers, infinities and NaN are rests as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from opendml.late_dataclass import dataclass
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I1, I32, I64, POINTER, Code, internal_function
from opendml.targets.cpu.contraction.arithmetic import F32, dot_bytes
from opendml.targets.cpu.contraction.narrow import GROUP, Narrow
from opendml.targets.cpu.contraction.tiling import DigitRows, MicroKernel
from opendml.targets.cpu.contraction.widening import VECTORS, Widening
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import any_lane, intrinsic, llvm_type, overloaded, vector_constant
from opendml.targets.cpu.values import number as constant

_I32 = ScalarType.INT32
_DIGITS, _BASE_BITS = 4, 8
"""The digits of an integer, and the bits of each."""
_WHOLE_BITS = 30
"""The bits of the largest integer of a block below its highest bit."""
_GREATEST = 0x7F7F7F00
"""The greatest integer in FLOAT32 whose highest digit is below 128. The excess over it is a rest."""
_FRACTION_BITS, _BIAS = 23, 127
"""The bits of the fraction of a FLOAT32, and the bias of its exponent."""
_LOST = 2.0**-23
"""The part of an element that its digits may lose. 2 to 4 of 1,000 activations of GPT-2 lose more."""
_LEAST, _MOST = _BIAS - 60, _BIAS + 60
"""Biased exponents between which the largest number of a block lies, so that no scale overflows or is
denormal."""
_RESTS_TOGETHER = 64
"""The products of rests that are added to one sum."""
_BALANCE = 0x00808080
"""Added to an integer, and then flipped, these bits make signed bytes of the lower digits."""
_BLOCK_WORDS, _SCALE_AT = 4, 2 * _I32.bytes
"""The words of 32 bits that a row has for a block, and the bytes before the third of them, its scale. The
first two are sums, and the last is not used."""
_EVERY_BYTE, _LOW_NIBBLES = 0x01010101, 0x0F0F0F0F
"""A word whose bytes are 1, and the lower four bits of each byte of a word."""
_WITHOUT_SIGN = 0x7FFFFFFF
"""The bits of the magnitude of a FLOAT32."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The addresses of a row of A in digits."""

    code: Code
    place: ir.Value
    layout: DigitRows

    def digits(self, element: ir.Value) -> ir.Value:
        """Return the address of the digits of an element, the first of a group."""
        return self._at(0, element)

    def block(self, block: ir.Value) -> ir.Value:
        """Return the address of the sums and the scale of a block."""
        return self._at(self.layout.blocks_at, self.code.builder.mul(block, I64(_BLOCK_WORDS)))

    @property
    def count(self) -> ir.Value:
        """The address of the number of rests."""
        return self._at(self.layout.count_at, I64(0))

    def rest(self, number: ir.Value) -> ir.Value:
        """Return the address of a rest."""
        return self._at(self.layout.rests_at, number)

    def position(self, number: ir.Value) -> ir.Value:
        """Return the address of the position of a rest along k."""
        return self._at(self.layout.positions_at, number)

    def _at(self, start: int, word: ir.Value) -> ir.Value:
        distance = self.code.builder.add(self.code.builder.mul(word, I64(F32.bytes)), I64(start))
        return self.code.offset(self.place, distance)


def row_count_place(code: Code, rows: ir.Value, layout: DigitRows) -> ir.Value:
    """Return the address of the number of rows, a multiple of those that are multiplied together."""
    return code.offset(rows, I64(layout.count_at + ScalarType.INT64.bytes))


def emit_row_digits(module: ir.Module, name: str, layout: DigitRows, lanes: int) -> ir.Function:
    """Emit the function name(floats, place, count). It converts `count` floats of a row."""
    function = internal_function(module, name, [POINTER, POINTER, I64])
    code = Code(function, lanes)
    floats, place, count = function.args
    _DigitsOfRow(code, layout, floats, place).emit(count)
    code.builder.ret_void()
    return function


class _DigitsOfRow:
    """Emits code that converts the floats of a row to digits."""

    def __init__(self, code: Code, layout: DigitRows, floats: ir.Value, place: ir.Value) -> None:
        self.code, self.builder, self.lanes = code, code.builder, code.lanes
        self.block, self.floats = layout.block, floats
        self.row = _Row(code, place, layout)
        self.rests = code.local(I64, I64(0))
        self.vector = llvm_type(_I32, code.lanes)
        self.number = partial(constant, _I32, code.lanes)

    def emit(self, count: ir.Value) -> None:
        """Emit code that converts `count` floats, block by block: first it finds the largest, then it scales
        and stores the digits."""
        builder, code = self.builder, self.code
        blocks = builder.udiv(builder.add(count, I64(self.block - 1)), I64(self.block))
        largest, sums = code.local(self.vector), code.local(self.vector)
        with code.loop(I64(0), blocks) as block:
            begin = builder.mul(block, I64(self.block))
            end = code.minimum(builder.add(begin, I64(self.block)), count)
            code.set(largest, self.number(0))
            code.set(sums, self.number(0))
            with code.loop(begin, end, self.lanes) as index:
                magnitude, is_large = self._magnitude(self._floats_at(index))
                within = builder.select(is_large, self.number(0), magnitude)
                code.set(largest, self._intrinsic("umax", [code.get(largest), within]))
            name = f"llvm.vector.reduce.umax.v{self.lanes}i32"
            most = intrinsic(builder, name, I32, [code.get(largest)])
            exponent = code.maximum(builder.lshr(most, I32(_FRACTION_BITS)), I32(_LEAST))
            scale = self._power(builder.sub(exponent, I32(_WHOLE_BITS)))
            inverse = self._power(builder.sub(I32(2 * _BIAS + _WHOLE_BITS), exponent))
            with code.loop(begin, end, self.lanes) as index:
                code.set(sums, self._store_digits(index, scale, inverse, code.get(sums)))
            self._store_block(block, code.get(sums), scale)
        code.store(self.row.count, code.get(self.rests), ScalarType.INT64)

    def _floats_at(self, index: ir.Value) -> ir.Value:
        distance = self.builder.mul(index, I64(F32.bytes))
        return self.code.load(self.code.offset(self.floats, distance), F32, self.lanes)

    def _magnitude(self, values: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return the bits of floats without their signs, and whether they are too large, or not finite."""
        magnitude = self.builder.and_(self.builder.bitcast(values, self.vector), self.number(_WITHOUT_SIGN))
        limit = self.number(_MOST << _FRACTION_BITS)
        return magnitude, self.builder.icmp_unsigned(">=", magnitude, limit)

    def _power(self, exponent: ir.Value) -> ir.Value:
        """Return a power of two with a biased exponent."""
        return self.builder.bitcast(self.builder.shl(exponent, I32(_FRACTION_BITS)), llvm_type(F32, 1))

    def _store_digits(self, index: ir.Value, scale: ir.Value, inverse: ir.Value, sums: ir.Value) -> ir.Value:
        """Store the digits of a vector, and return the sums of digits with those of this vector."""
        builder, lanes = self.builder, self.lanes
        values = self._floats_at(index)
        _, is_large = self._magnitude(values)
        zero = constant(F32, lanes, 0.0)
        scaled = builder.fmul(builder.select(is_large, zero, values), self.code.broadcast(inverse))
        nearest = overloaded(builder, "rint", F32, lanes, [scaled])
        greatest = constant(F32, lanes, _GREATEST)
        whole = overloaded(builder, "minnum", F32, lanes, [nearest, greatest])
        lost = overloaded(
            builder, "fma", F32, lanes, [builder.fneg(whole), self.code.broadcast(scale), values]
        )
        share = builder.fmul(self._absolute(values), constant(F32, lanes, _LOST))
        is_rest = builder.or_(builder.fcmp_ordered(">", self._absolute(lost), share), is_large)
        with builder.if_then(any_lane(builder, is_rest, lanes), likely=False):
            self._store_rests(index, lost, is_rest)
        integers = builder.add(builder.fptosi(whole, self.vector), self.number(_BALANCE))
        digits = builder.xor(integers, self.number(_BALANCE))
        bytes = builder.bitcast(digits, llvm_type(ScalarType.INT8, lanes * _DIGITS))
        order = [
            group + element * _DIGITS + digit
            for group in range(0, lanes * _DIGITS, GROUP * _DIGITS)
            for digit in range(_DIGITS)
            for element in range(GROUP)
        ]
        by_digits = builder.shuffle_vector(bytes, bytes, vector_constant(ir.IntType(32), order))
        words = builder.bitcast(by_digits, self.vector)
        self.code.store(self.row.digits(index), words, _I32)
        return dot_bytes(builder, sums, words, self.number(_EVERY_BYTE), lanes)

    def _store_rests(self, index: ir.Value, rests: ir.Value, mask: ir.Value) -> None:
        builder, code = self.builder, self.code
        count = code.get(self.rests)
        positions = builder.add(
            code.broadcast(builder.trunc(index, I32)), vector_constant(I32, range(self.lanes))
        )
        for place, values in (
            (self.row.rest(count), builder.bitcast(rests, self.vector)),
            (self.row.position(count), positions),
        ):
            code.store(place, code.compressed(values, mask, values, _I32), _I32)
        code.set(self.rests, builder.add(count, code.count(mask)))

    def _store_block(self, block: ir.Value, sums: ir.Value, scale: ir.Value) -> None:
        """Store the negative sums of a block's lower and upper two digits, and its scale."""
        builder, totals = self.builder, list[ir.Value]()
        for digit in range(_DIGITS):
            lanes = (builder.extract_element(sums, I32(lane)) for lane in range(digit, self.lanes, _DIGITS))
            totals.append(self.code.sum(lanes))
        place = self.row.block(block)
        for number, (low, high) in enumerate(zip(totals[::2], totals[1::2], strict=True)):
            both = builder.add(low, builder.shl(high, I32(_BASE_BITS)))
            at = self.code.offset(place, I64(number * _I32.bytes))
            self.code.store(at, builder.neg(both), _I32)
        self.code.store(self.code.offset(place, I64(_SCALE_AT)), scale, F32)

    def _absolute(self, values: ir.Value) -> ir.Value:
        return overloaded(self.builder, "fabs", F32, self.lanes, [values])

    def _intrinsic(self, name: str, operands: list[ir.Value]) -> ir.Value:
        return intrinsic(self.builder, f"llvm.{name}.v{self.lanes}i32", self.vector, operands)


def emit_digit_kernel(
    module: ir.Module,
    name: str,
    micro: MicroKernel,
    lanes: int,
    layout: DigitRows,
    narrow: Narrow,
    c_row: int,
) -> ir.Function:
    """Emit the micro-kernel name(a, b, c, results, row_bytes, depth, adds, following, following_parameters,
    parameters). It stores the sums of `depth` products into `results`, added to `c` if `adds`.

    `following` are numbers and parameters that are multiplied soon, and are prefetched.
    """
    arguments = [*[POINTER] * 4, I64, I64, I1, *[POINTER] * 3]
    function = internal_function(module, name, arguments)
    code = Code(function, lanes)
    kernel = _DigitKernel(code, layout, narrow, c_row)
    if layout.together == micro.rows:
        kernel.emit(I64(0))
    else:
        count = code.load(row_count_place(code, function.args[0], layout), ScalarType.INT64, 1)
        with code.loop(I64(0), count, layout.together) as row:
            kernel.emit(row)
    code.builder.ret_void()
    return function


class _DigitKernel:
    """Emits code that multiplies rows in digits by a panel of narrow numbers."""

    def __init__(self, code: Code, layout: DigitRows, narrow: Narrow, c_row: int) -> None:
        self.code, self.builder, self.lanes = code, code.builder, code.lanes
        self.layout, self.narrow, self.c_row = layout, narrow, c_row
        assert narrow.affine is not None
        self.affine = narrow.affine
        self.columns = VECTORS * self.lanes
        self.group_bytes = GROUP * narrow.row_bytes(self.columns)
        self.parameter_bytes = narrow.parameter_bytes(self.columns)
        self.vector = llvm_type(_I32, self.lanes)
        self.number = partial(constant, _I32, self.lanes)
        # Flipping the highest bit makes signed numbers unsigned ones, which are greater by that bit.
        self.flipped = 1 << narrow.bits - 1 if narrow.type.is_signed else 0

    def emit(self, first_row: ir.Value) -> None:
        """Emit the products of the rows that are multiplied together, from one on."""
        builder, code = self.builder, self.code
        a, b, c, results, row_bytes, depth, adds, following, following_parameters, parameters = (
            code.function.args
        )
        zero = constant(F32, self.lanes, 0.0)
        rows = [builder.add(first_row, I64(row)) for row in range(self.layout.together)]
        row_distance = I64(self.layout.row_bytes)
        places = [_Row(code, code.offset(a, builder.mul(row, row_distance)), self.layout) for row in rows]
        totals = [[code.local(zero.type, zero) for _ in range(VECTORS)] for _ in rows]
        block = self.narrow.block
        blocks = builder.udiv(builder.add(depth, I64(block - 1)), I64(block))
        with code.loop(I64(0), blocks) as number:
            begin = builder.mul(number, I64(block))
            end = code.minimum(builder.add(begin, I64(block)), depth)
            distance = builder.mul(number, I64(self.parameter_bytes))
            at, soon = (code.offset(each, distance) for each in (parameters, following_parameters))
            self._prefetch(soon, self.parameter_bytes)
            zeros, scales = self._parameters(at)
            sums = [self._first_sums(each, number, zeros) for each in places]
            count = I64(block) if block == self.narrow.step else builder.sub(end, begin)
            with code.loop(I64(0), count, self.narrow.step) as step:
                first = builder.add(begin, step)
                for group in range(0, self.narrow.step, GROUP):
                    element = builder.add(first, I64(group))
                    here = builder.mul(element, I64(self.group_bytes // GROUP))
                    self._prefetch(code.offset(following, here), self.group_bytes)
                    self._multiply(code.offset(b, here), element, places, sums)
            for place, row_sums, row_totals in zip(places, sums, totals, strict=True):
                self._add_block(place.block(number), row_sums, scales, row_totals)
        for place, row_totals in zip(places, totals, strict=True):
            self._add_rests(place, b, parameters, row_totals)
        for row, row_totals in zip(rows, totals, strict=True):
            for vector, total in enumerate(row_totals):
                with builder.if_then(adds):
                    before = code.load(self._vector_of(c, row, I64(self.c_row), vector), F32, self.lanes)
                    code.set(total, builder.fadd(before, code.get(total)))
                code.store(self._vector_of(results, row, row_bytes, vector), code.get(total), F32)

    def _vector_of(self, tile: ir.Value, row: ir.Value, row_bytes: ir.Value, vector: int) -> ir.Value:
        """Return the address of a vector of a tile."""
        distance = I64(vector * F32.bytes * self.lanes)
        return self.code.offset(tile, self.builder.add(self.builder.mul(row, row_bytes), distance))

    def _prefetch(self, place: ir.Value, bytes: int) -> None:
        for line in range(0, bytes, LINE):
            self.code.prefetch(self.code.offset(place, I64(line)), level=2)

    def _parameters(self, place: ir.Value) -> tuple[list[ir.Value], list[ir.Value]]:
        """Return the vectors of a block's zero points and of its scales."""
        zeros, scales = [], []
        for source, type in enumerate(self.narrow.parameters, 1):
            for vector in range(VECTORS):
                at = self.code.offset(place, I64(vector * self.lanes * type.bytes))
                value = self.code.load(at, type, self.lanes)
                if source == self.affine.zero_source:
                    wide = self.builder.sext if type.is_signed else self.builder.zext
                    zero = wide(value, self.vector)
                    zeros.append(self.builder.add(zero, self.number(self.flipped)) if self.flipped else zero)
                elif source == self.affine.scale_source:
                    is_whole = type is F32
                    scales.append(
                        value if is_whole else self.builder.fpext(value, llvm_type(F32, self.lanes))
                    )
            place = self.code.offset(place, I64(self.columns * type.bytes))
        if not zeros:
            zeros = [self.number(self.affine.zero + self.flipped)] * VECTORS
        return zeros, scales or [constant(F32, self.lanes, 1.0)] * VECTORS

    def _first_sums(self, place: _Row, block: ir.Value, zeros: Sequence[ir.Value]) -> list[list[ir.Value]]:
        """Return the sums of each vector and digit, which begin with what zero points take away."""
        builder, code = self.builder, self.code
        result = []
        for zero in zeros:
            sums = [code.local(self.vector) for _ in range(_DIGITS)]
            for half in range(_DIGITS // 2):
                at = code.offset(place.block(block), I64(half * _I32.bytes))
                taken_away = builder.mul(code.broadcast(code.load(at, _I32, 1)), zero)
                code.set(sums[2 * half], taken_away)
                code.set(sums[2 * half + 1], self.number(0))
            result.append(sums)
        return result

    def _multiply(
        self, b: ir.Value, element: ir.Value, places: Sequence[_Row], sums: Sequence[list[list[ir.Value]]]
    ) -> None:
        """Take in a group of numbers."""
        code = self.code
        numbers = self._numbers(b)
        for place, row_sums in zip(places, sums, strict=True):
            digits = place.digits(element)
            for digit in range(_DIGITS):
                word = code.load(code.offset(digits, I64(digit * _I32.bytes)), _I32, 1)
                factor = code.broadcast(word)
                for values, vector_sums in zip(numbers, row_sums, strict=True):
                    total = dot_bytes(self.builder, code.get(vector_sums[digit]), factor, values, self.lanes)
                    code.set(vector_sums[digit], total)

    def _numbers(self, place: ir.Value) -> list[ir.Value]:
        """Return the unsigned numbers of a group, for each vector."""
        builder, step = self.builder, self.lanes * _I32.bytes
        if self.narrow.bits == self.narrow.type.bits:
            words = [
                self.code.load(self.code.offset(place, I64(vector * step)), _I32, self.lanes)
                for vector in range(VECTORS)
            ]
        else:
            both = self.code.load(place, _I32, self.lanes)
            halves = both, builder.lshr(both, self.number(self.narrow.bits))
            words = [builder.and_(each, self.number(_LOW_NIBBLES)) for each in halves]
        flipped = self.number(self.flipped * _EVERY_BYTE)
        return [builder.xor(each, flipped) for each in words] if self.flipped else words

    def _add_block(
        self,
        place: ir.Value,
        sums: Sequence[Sequence[ir.Value]],
        scales: Sequence[ir.Value],
        totals: Sequence[ir.Value],
    ) -> None:
        """Add the sums of a block, scaled, to the totals of a row."""
        builder, code = self.builder, self.code
        vector = llvm_type(F32, self.lanes)
        own = code.broadcast(code.load(code.offset(place, I64(_SCALE_AT)), F32, 1))
        for digits, scale, total in zip(sums, scales, totals, strict=True):
            low, high = (
                builder.sitofp(
                    builder.add(
                        code.get(digits[first]),
                        builder.shl(code.get(digits[first + 1]), self.number(_BASE_BITS)),
                    ),
                    vector,
                )
                for first in (0, 2)
            )
            base = constant(F32, self.lanes, float(1 << 2 * _BASE_BITS))
            whole = overloaded(builder, "fma", F32, self.lanes, [high, base, low])
            # The product of both scales could overflow or be denormal. This one is exact.
            scaled = [builder.fmul(whole, own), scale, code.get(total)]
            code.set(total, overloaded(builder, "fma", F32, self.lanes, scaled))

    def _add_rests(self, place: _Row, b: ir.Value, parameters: ir.Value, totals: Sequence[ir.Value]) -> None:
        """Add the products of a row's rests, _RESTS_TOGETHER to one sum."""
        builder, code = self.builder, self.code
        count, zero = code.load(place.count, ScalarType.INT64, 1), constant(F32, self.lanes, 0.0)
        sums = [code.local(zero.type) for _ in totals]
        with code.loop(I64(0), builder.add(count, I64(_RESTS_TOGETHER - 1)), _RESTS_TOGETHER) as first:
            for each in sums:
                code.set(each, zero)
            last = code.minimum(builder.add(first, I64(_RESTS_TOGETHER)), count)
            self._add_some_rests(place, b, parameters, (first, last), sums)
            for each, total in zip(sums, totals, strict=True):
                code.set(total, builder.fadd(code.get(total), code.get(each)))

    def _add_some_rests(
        self,
        place: _Row,
        b: ir.Value,
        parameters: ir.Value,
        numbers: tuple[ir.Value, ir.Value],
        sums: Sequence[ir.Value],
    ) -> None:
        builder, code = self.builder, self.code
        with code.loop(*numbers) as number:
            position = builder.zext(code.load(place.position(number), _I32, 1), I64)
            block = builder.udiv(position, I64(self.narrow.block))
            at = code.offset(parameters, builder.mul(block, I64(self.parameter_bytes)))
            widening = Widening(builder, self.narrow, self.lanes, at)
            group = builder.udiv(position, I64(GROUP))
            group_place = code.offset(b, builder.mul(group, I64(self.group_bytes)))
            factor = code.broadcast(code.load(place.rest(number), F32, 1))
            row = builder.urem(position, I64(GROUP))
            for value, each in zip(widening.row_of_group(group_place, row), sums, strict=True):
                code.set(each, overloaded(builder, "fma", F32, self.lanes, [factor, value, code.get(each)]))
