"""Code that splits float32 into three bfloat16 parts, and joins them again. AMX multiplies the parts: six of
their products make one of float32.

A part of a panel begins with a cache line that states its form. For every STEP products follow the matrix
registers of each bfloat16 part: rows of A along k, or rows of pairs of neighbours along k of columns of B. If
a number is too large or too small to be split, the part holds float32 instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.late_dataclass import dataclass
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I32, I64, POINTER, Code, internal_function
from opendml.targets.cpu.contraction.tiling import BF16_PARTS, REGISTER_BYTES, REGISTER_ROWS, STEP
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import Literal, intrinsic, llvm_type, number, vector_constant, vector_type

_F32, _I32 = ScalarType.FLOAT32, ScalarType.INT32
LANES = REGISTER_ROWS
"""Lanes of the vectors of float32 that are split."""

_ROWS_AHEAD, _PAIRS_AHEAD = 4, 12
"""Rows, and pairs of rows, by which numbers are prefetched before they are split (Sapphire Rapids)."""


@dataclass(frozen=True, slots=True)
class Magnitudes:
    """The magnitudes, beside zero, of numbers that are split. They are multiplied by `scale` before. All
    their parts and products then are normal numbers, or too small to count, and no sum overflows."""

    least: float
    most: float
    scale: float = 1.0


OF_FACTORS = Magnitudes(2.0**-79, 2.0**29, 2.0**30)
"""The magnitudes of factors. Small numbers of activations and gradients matter more than large ones."""


@dataclass(frozen=True, slots=True)
class PartLayout:
    """The layout of a part of a panel with the rows (or columns) of `registers` matrix registers, and at most
    `depth` products."""

    registers: int
    depth: int
    magnitudes: Magnitudes = OF_FACTORS

    @property
    def bf16_bytes(self) -> int:
        """Bytes from one bfloat16 part of STEP products to the next."""
        return self.registers * REGISTER_BYTES

    @property
    def step_bytes(self) -> int:
        """Bytes from one STEP products to the next."""
        return BF16_PARTS * self.bf16_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes from one row of A to the next, in float32."""
        return -(-self.depth // STEP) * STEP * _F32.bytes + LINE

    @property
    def float_bytes(self) -> int:
        """Bytes of the rows in float32; no more than those of the bfloat16 parts."""
        return self.registers * REGISTER_ROWS * self.row_bytes


class Splitter:
    """Emits code that splits numbers into bfloat16 parts, and joins them."""

    def __init__(self, code: Code, magnitudes: Magnitudes = OF_FACTORS) -> None:
        self.code, self.builder, self.magnitudes = code, code.builder, magnitudes
        self._worst = code.local(llvm_type(_I32, LANES))
        self.reset()

    def reset(self) -> None:
        """Forget the numbers that were split before."""
        self.code.set(self._worst, number(_I32, LANES, 0))

    def split_checked(self, vector: ir.Value) -> list[ir.Value]:
        """Return the bfloat16 parts of a vector, and note whether it can be split."""
        self._check(vector)
        return self.split(vector)

    def split(self, vector: ir.Value) -> list[ir.Value]:
        """Return the bfloat16 parts of a vector, each in the upper half of a lane whose lower half is
        zero."""
        rest = self.builder.fmul(vector, number(_F32, LANES, self.magnitudes.scale))
        parts = []
        for _ in range(BF16_PARTS - 1):
            rounded = self.builder.add(self._bits(rest), number(_I32, LANES, 0x8000))
            parts.append(self.builder.and_(rounded, number(_I32, LANES, -0x10000)))
            rest = self.builder.fsub(rest, self._float(parts[-1]))
        return [*parts, self._bits(rest)]

    def join(self, parts: Sequence[ir.Value]) -> ir.Value:
        """Return the vector with these bfloat16 parts."""
        first, second, third = map(self._float, parts)
        whole = self.builder.fadd(self.builder.fadd(first, second), third)
        return self.builder.fmul(whole, number(_F32, LANES, 1 / self.magnitudes.scale))

    def _check(self, vector: ir.Value) -> None:
        """Note how far above the least magnitude the worst number is. The difference of a smaller number is
        negative, so very large as an unsigned one."""
        magnitude = self.builder.and_(self._bits(vector), number(_I32, LANES, 0x7FFFFFFF))
        beyond = self.builder.sub(magnitude, number(_I32, LANES, _bits_of(self.magnitudes.least)))
        zero = number(_I32, LANES, 0)
        beyond = self.builder.select(self.builder.icmp_unsigned("==", magnitude, zero), zero, beyond)
        vector_type = llvm_type(_I32, LANES)
        operands = [self.builder.load(self._worst, typ=vector_type), beyond]
        worst = intrinsic(self.builder, f"llvm.umax.v{LANES}i32", vector_type, operands)
        self.code.set(self._worst, worst)

    def store_state(self, state: ir.Value) -> ir.Value:
        """Store at `state` whether some number could not be split, and return that."""
        worst = self.builder.load(self._worst, typ=llvm_type(_I32, LANES))
        worst = intrinsic(self.builder, f"llvm.vector.reduce.umax.v{LANES}i32", I32, [worst])
        least, most = _bits_of(self.magnitudes.least), _bits_of(self.magnitudes.most)
        holds = self.builder.icmp_unsigned(">", worst, I32(most - least))
        self.builder.store(self.builder.zext(holds, I32), state)
        return holds

    def pairs_of(self, evens: Sequence[ir.Value], odds: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the pairs of two split vectors, lane by lane, for each bfloat16 part."""
        halves = number(_I32, LANES, 16)
        return [
            self.builder.or_(self.builder.lshr(even, halves), odd)
            for even, odd in zip(evens, odds, strict=True)
        ]

    def join_pairs(self, pairs: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value]:
        """Return the two vectors whose pairs are given for each bfloat16 part."""
        halves, upper = number(_I32, LANES, 16), number(_I32, LANES, -0x10000)
        return (
            self.join([self.builder.shl(pair, halves) for pair in pairs]),
            self.join([self.builder.and_(pair, upper) for pair in pairs]),
        )

    def concatenate(self, first: ir.Value, second: ir.Value) -> ir.Value:
        """Return the upper halves of two vectors' lanes, one vector after the other."""
        short = vector_type(ir.IntType(16), 2 * LANES)
        lanes = vector_constant(I32, range(1, 4 * LANES, 2))
        first, second = (self.builder.bitcast(each, short) for each in (first, second))
        return self.builder.shuffle_vector(first, second, lanes)

    def separate(self, both: ir.Value) -> list[ir.Value]:
        """Return the two vectors whose upper halves are given, one after the other."""
        result = []
        for half in range(2):
            lanes = vector_constant(I32, range(half * LANES, (half + 1) * LANES))
            short = self.builder.shuffle_vector(both, Literal(both.type, "undef"), lanes)
            wide = self.builder.zext(short, llvm_type(_I32, LANES))
            result.append(self.builder.shl(wide, number(_I32, LANES, 16)))
        return result

    def _bits(self, vector: ir.Value) -> ir.Value:
        return self.builder.bitcast(vector, llvm_type(_I32, LANES))

    def _float(self, bits: ir.Value) -> ir.Value:
        return self.builder.bitcast(bits, llvm_type(_F32, LANES))


class _PartCode(Code):
    """Emits a function that splits or joins the numbers of a part."""

    def __init__(self, function: ir.Function, layout: PartLayout) -> None:
        super().__init__(function, LANES)
        self.reads_unaligned = True  # Constants are split where they lie in a file.
        self.layout, self.splitter = layout, Splitter(self, layout.magnitudes)

    def at(self, part: ir.Value, step: ir.Value, number: int, register: ir.Value, row: ir.Value) -> ir.Value:
        """Return the address of a row of a register of a bfloat16 part."""
        distance = self.builder.mul(step, I64(self.layout.step_bytes))
        distance = self.builder.add(distance, self.builder.mul(register, I64(REGISTER_BYTES)))
        distance = self.builder.add(distance, self.builder.mul(row, I64(LINE)))
        return self.offset(part, self.builder.add(distance, I64(LINE + number * self.layout.bf16_bytes)))


def emit_split_rows(module: ir.Module, name: str, layout: PartLayout) -> ir.Function:
    """Emit the function name(source, row_bytes, part, rows, depth), which packs a part of A from `rows` rows
    of `depth` float32. Rows that are missing become zero."""
    function = internal_function(module, name, [POINTER, I64, POINTER, I64, I64])
    source, row_bytes, part, rows, depth = function.args
    code = _PartCode(function, layout)
    builder = code.builder
    steps, rest = builder.udiv(depth, I64(STEP)), builder.urem(depth, I64(STEP))
    masks = [
        code.first_lanes(code.maximum(I64(0), builder.sub(rest, I64(half * LANES)))) for half in range(2)
    ]

    def put(row: ir.Value, step: ir.Value, is_whole: bool) -> None:
        at = code.offset(source, builder.mul(row, row_bytes))
        at = code.offset(at, builder.mul(step, I64(STEP * _F32.bytes)))
        for half in range(2):
            later = builder.mul(row_bytes, I64(_ROWS_AHEAD))
            code.prefetch(code.offset(at, builder.add(later, I64(half * LINE))))
        halves = [
            code.splitter.split_checked(
                code.load(code.offset(at, I64(half * LINE)), _F32, LANES, None if is_whole else masks[half])
            )
            for half in range(2)
        ]
        for each, pair in enumerate(zip(*halves, strict=True)):
            store(row, step, each, code.splitter.concatenate(*pair))

    def store(row: ir.Value, step: ir.Value, number: int, value: ir.Value) -> None:
        register, within = builder.udiv(row, I64(REGISTER_ROWS)), builder.urem(row, I64(REGISTER_ROWS))
        builder.store(value, code.at(part, step, number, register, within), align=LINE)

    with code.loop(I64(0), rows) as row:
        with code.loop(I64(0), steps) as step:
            put(row, step, True)
        with builder.if_then(builder.icmp_unsigned("!=", rest, I64(0))):
            put(row, steps, False)
    zero = Literal(vector_type(ir.IntType(16), 2 * LANES), "zeroinitializer")
    with (
        code.loop(rows, I64(layout.registers * REGISTER_ROWS)) as row,
        code.loop(I64(0), _steps(code, depth)) as step,
    ):
        for each in range(BF16_PARTS):
            store(row, step, each, zero)
    with builder.if_then(code.splitter.store_state(part)), code.loop(I64(0), rows) as row:
        at = code.offset(source, builder.mul(row, row_bytes))
        to = code.offset(part, builder.add(I64(LINE), builder.mul(row, I64(layout.row_bytes))))
        _copy(code, at, to, depth)
    builder.ret_void()
    return function


def emit_split_columns(module: ir.Module, name: str, layout: PartLayout) -> ir.Function:
    """Emit the function name(source, row_bytes, part, depth), which packs a part of B from `depth` rows of
    float32, whose columns are those of the registers."""
    function = internal_function(module, name, [POINTER, I64, POINTER, I64])
    source, row_bytes, part, depth = function.args
    code = _PartCode(function, layout)
    builder = code.builder

    def put(pair: ir.Value, rows: int) -> None:
        at = code.offset(source, builder.mul(builder.mul(pair, I64(2)), row_bytes))
        for register in range(layout.registers):
            here = code.offset(at, I64(register * LINE))
            for row in range(2):
                later = builder.mul(row_bytes, I64(_PAIRS_AHEAD * 2 + row))
                code.prefetch(code.offset(here, later))
            evens = code.splitter.split_checked(code.load(here, _F32, LANES))
            odds = [number(_I32, LANES, 0)] * BF16_PARTS
            if rows > 1:
                odds = code.splitter.split_checked(code.load(code.offset(here, row_bytes), _F32, LANES))
            store(pair, register, code.splitter.pairs_of(evens, odds))

    def store(pair: ir.Value, register: int, values: Sequence[ir.Value]) -> None:
        step, row = builder.udiv(pair, I64(REGISTER_ROWS)), builder.urem(pair, I64(REGISTER_ROWS))
        for each, value in enumerate(values):
            builder.store(value, code.at(part, step, each, I64(register), row), align=LINE)

    pairs = builder.udiv(depth, I64(2))
    with code.loop(I64(0), pairs) as pair:
        put(pair, 2)
    with builder.if_then(builder.trunc(depth, ir.IntType(1))):
        put(pairs, 1)
    behind = builder.udiv(builder.add(depth, I64(1)), I64(2))
    zeros = [number(_I32, LANES, 0)] * BF16_PARTS
    with code.loop(behind, builder.mul(_steps(code, depth), I64(REGISTER_ROWS))) as pair:
        for register in range(layout.registers):
            store(pair, register, zeros)
    width = I64(layout.registers * LINE)
    with builder.if_then(code.splitter.store_state(part)), code.loop(I64(0), depth) as row:
        to = code.offset(part, builder.add(I64(LINE), builder.mul(row, width)))
        _copy(code, code.offset(source, builder.mul(row, row_bytes)), to, I64(layout.registers * LANES))
    builder.ret_void()
    return function


def emit_join_rows(module: ir.Module, name: str, layout: PartLayout) -> ir.Function:
    """Emit the function name(part, target, depth), which joins the rows of a part of A. They are
    `layout.row_bytes` apart."""
    function = internal_function(module, name, [POINTER, POINTER, I64])
    part, target, depth = function.args
    code = _PartCode(function, layout)
    builder = code.builder
    both = vector_type(ir.IntType(16), 2 * LANES)
    with code.loop(I64(0), I64(layout.registers * REGISTER_ROWS)) as row:
        to = code.offset(target, builder.mul(row, I64(layout.row_bytes)))
        register, within = builder.udiv(row, I64(REGISTER_ROWS)), builder.urem(row, I64(REGISTER_ROWS))
        with code.loop(I64(0), _steps(code, depth)) as step:
            parts = [
                code.splitter.separate(
                    builder.load(code.at(part, step, each, register, within), typ=both, align=LINE)
                )
                for each in range(BF16_PARTS)
            ]
            here = code.offset(to, builder.mul(step, I64(STEP * _F32.bytes)))
            for half, each in enumerate(zip(*parts, strict=True)):
                code.store(code.offset(here, I64(half * LINE)), code.splitter.join(each), _F32)
    builder.ret_void()
    return function


def emit_join_columns(module: ir.Module, name: str, layout: PartLayout) -> ir.Function:
    """Emit the function name(part, target, depth), which joins the columns of a part of B, one row after the
    other. A row more may be written."""
    function = internal_function(module, name, [POINTER, POINTER, I64])
    part, target, depth = function.args
    code = _PartCode(function, layout)
    builder = code.builder
    width = layout.registers * LINE
    with code.loop(I64(0), builder.udiv(builder.add(depth, I64(1)), I64(2))) as pair:
        to = code.offset(target, builder.mul(pair, I64(2 * width)))
        step, row = builder.udiv(pair, I64(REGISTER_ROWS)), builder.urem(pair, I64(REGISTER_ROWS))
        for register in range(layout.registers):
            pairs = [
                code.load(code.at(part, step, each, I64(register), row), _I32, LANES)
                for each in range(BF16_PARTS)
            ]
            for half, vector in enumerate(code.splitter.join_pairs(pairs)):
                code.store(code.offset(to, I64(half * width + register * LINE)), vector, _F32)
    builder.ret_void()
    return function


def _steps(code: Code, depth: ir.Value) -> ir.Value:
    return code.builder.udiv(code.builder.add(depth, I64(STEP - 1)), I64(STEP))


def _copy(code: Code, source: ir.Value, target: ir.Value, count: ir.Value) -> None:
    """Copy `count` float32."""

    def move(index: ir.Value, mask: ir.Value | None) -> None:
        distance = code.builder.mul(index, I64(_F32.bytes))
        code.store(
            code.offset(target, distance),
            code.load(code.offset(source, distance), _F32, LANES, mask),
            _F32,
            mask,
        )

    code.vector_loop(I64(0), count, move)


def _bits_of(value: float) -> int:
    """Return the bits of a power of 2 in float32."""
    exponent = value.hex().rpartition("p")[2]
    return (int(exponent) + 127) << 23
