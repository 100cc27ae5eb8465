"""FLOAT32 as matrix registers (Intel's AMX) multiply it: in three pieces of bfloat16, of which six products
make one of FLOAT32. Here is the code that takes numbers apart, and puts them together again.

A part of a panel (of a strip) is a line that says how it is, and for every STEP products the registers of
each piece: rows of a along k, or rows of words of two neighbours along k of columns of b. Where a number is
too large or too small to be taken apart, the part holds FLOAT32 instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.code import I32, I64, POINTER, Code, internal_function
from opendml.targets.cpu.contraction.patterns import PIECES, REGISTER_BYTES, REGISTER_ROWS, STEP
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import Literal, intrinsic, llvm_type, number, vector_constant, vector_type

_F32, _I32 = ScalarType.FLOAT32, ScalarType.INT32
LANES = REGISTER_ROWS
"""Of vectors beside matrix registers."""

_ROWS_AHEAD, _WORDS_AHEAD = 4, 12
"""Rows, and words of two rows, by which what is taken apart is asked for before it is read."""


@dataclass(frozen=True, slots=True)
class Magnitudes:
    """Those, apart from zero, of numbers that are taken apart, which are multiplied by `scale` before: all
    their pieces and products then are normal numbers, or too small to count, and no sum overflows."""

    least: float
    most: float
    scale: float = 1.0


OF_FACTORS = Magnitudes(2.0**-79, 2.0**29, 2.0**30)
"""What activations and gradients have of small numbers counts, and of large ones less."""


@dataclass(frozen=True, slots=True)
class PartLayout:
    """Where what belongs to a part lies: one of so many registers' rows (or columns), and so many products at
    most."""

    registers: int
    depth: int
    magnitudes: Magnitudes = OF_FACTORS

    @property
    def piece_bytes(self) -> int:
        """From one piece of STEP products to the next."""
        return self.registers * REGISTER_BYTES

    @property
    def step_bytes(self) -> int:
        return PIECES * self.piece_bytes

    @property
    def row_bytes(self) -> int:
        """From one row of a to the next, in FLOAT32."""
        return -(-self.depth // STEP) * STEP * _F32.bytes + LINE

    @property
    def float_bytes(self) -> int:
        """Of a's rows, or b's, in FLOAT32; no more than of pieces."""
        return self.registers * REGISTER_ROWS * self.row_bytes


class Splitter:
    """Emits code that takes numbers apart, and puts them together again."""

    def __init__(self, code: Code, magnitudes: Magnitudes = OF_FACTORS) -> None:
        self.code, self.builder, self.magnitudes = code, code.builder, magnitudes
        self._worst = code.local(llvm_type(_I32, LANES))
        self.begin()

    def begin(self) -> None:
        """Forgets what was taken apart before."""
        self.code.set(self._worst, number(_I32, LANES, 0))

    def taken_apart(self, vector: ir.Value) -> list[ir.Value]:
        """The pieces of a vector, which is judged."""
        self._judge(vector)
        return self.pieces_of(vector)

    def pieces_of(self, vector: ir.Value) -> list[ir.Value]:
        """The pieces of a vector: the upper halves of words whose lower ones are zero."""
        rest = self.builder.fmul(vector, number(_F32, LANES, self.magnitudes.scale))
        pieces = []
        for _ in range(PIECES - 1):
            rounded = self.builder.add(self._bits(rest), number(_I32, LANES, 0x8000))
            pieces.append(self.builder.and_(rounded, number(_I32, LANES, -0x10000)))
            rest = self.builder.fsub(rest, self._float(pieces[-1]))
        return [*pieces, self._bits(rest)]

    def put_together(self, pieces: Sequence[ir.Value]) -> ir.Value:
        """The vector that was taken apart."""
        first, second, third = map(self._float, pieces)
        whole = self.builder.fadd(self.builder.fadd(first, second), third)
        return self.builder.fmul(whole, number(_F32, LANES, 1 / self.magnitudes.scale))

    def _judge(self, vector: ir.Value) -> None:
        """Remembers how far beyond the least magnitude the worst number is: of a lesser one, very far."""
        magnitude = self.builder.and_(self._bits(vector), number(_I32, LANES, 0x7FFFFFFF))
        beyond = self.builder.sub(magnitude, number(_I32, LANES, _bits_of(self.magnitudes.least)))
        zero = number(_I32, LANES, 0)
        beyond = self.builder.select(self.builder.icmp_unsigned("==", magnitude, zero), zero, beyond)
        vector_type = llvm_type(_I32, LANES)
        operands = [self.builder.load(self._worst, typ=vector_type), beyond]
        worst = intrinsic(self.builder, f"llvm.umax.v{LANES}i32", vector_type, operands)
        self.code.set(self._worst, worst)

    def judged(self, state: ir.Value) -> ir.Value:
        """Whether some number was too large or too small, which the word `state` says from now on."""
        worst = self.builder.load(self._worst, typ=llvm_type(_I32, LANES))
        worst = intrinsic(self.builder, f"llvm.vector.reduce.umax.v{LANES}i32", I32, [worst])
        least, most = _bits_of(self.magnitudes.least), _bits_of(self.magnitudes.most)
        holds = self.builder.icmp_unsigned(">", worst, I32(most - least))
        self.builder.store(self.builder.zext(holds, I32), state)
        return holds

    def words(self, evens: Sequence[ir.Value], odds: Sequence[ir.Value]) -> list[ir.Value]:
        """Of each piece the words of two vectors, lane by lane."""
        halves = number(_I32, LANES, 16)
        return [
            self.builder.or_(self.builder.lshr(even, halves), odd)
            for even, odd in zip(evens, odds, strict=True)
        ]

    def of_words(self, words: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value]:
        """The two vectors that are in words of each piece."""
        halves, upper = number(_I32, LANES, 16), number(_I32, LANES, -0x10000)
        return (
            self.put_together([self.builder.shl(word, halves) for word in words]),
            self.put_together([self.builder.and_(word, upper) for word in words]),
        )

    def side_by_side(self, first: ir.Value, second: ir.Value) -> ir.Value:
        """The upper halves of two vectors' words, one vector after the other."""
        short = vector_type(ir.IntType(16), 2 * LANES)
        lanes = vector_constant(I32, range(1, 4 * LANES, 2))
        halves = [self.builder.bitcast(each, short) for each in (first, second)]
        return self.builder.shuffle_vector(*halves, lanes)

    def taken_from_side(self, both: ir.Value) -> list[ir.Value]:
        """Of two such vectors' halves the words of each."""
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


class _PieceCode(Code):
    """Emits a function that takes the numbers of a part apart, or puts them together."""

    def __init__(self, function: ir.Function, layout: PartLayout) -> None:
        super().__init__(function, LANES)
        self.layout, self.splitter = layout, Splitter(self, layout.magnitudes)

    def at(self, part: ir.Value, step: ir.Value, piece: int, register: ir.Value, row: ir.Value) -> ir.Value:
        """The address of a row of a register."""
        distance = self.builder.mul(step, I64(self.layout.step_bytes))
        distance = self.builder.add(distance, self.builder.mul(register, I64(REGISTER_BYTES)))
        distance = self.builder.add(distance, self.builder.mul(row, I64(LINE)))
        return self.offset(part, self.builder.add(distance, I64(LINE + piece * self.layout.piece_bytes)))


def emit_split_rows(module: ir.Module, name: str, layout: PartLayout) -> ir.Function:
    """Adds the function name(source, row_bytes, part, rows, depth) to the module: a part of a panel from
    `rows` rows of `depth` FLOAT32; rows that it lacks are zero."""
    function = internal_function(module, name, [POINTER, I64, POINTER, I64, I64])
    source, row_bytes, part, rows, depth = function.args
    code = _PieceCode(function, layout)
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
            code.splitter.taken_apart(
                code.load(code.offset(at, I64(half * LINE)), _F32, LANES, None if is_whole else masks[half])
            )
            for half in range(2)
        ]
        for piece, pair in enumerate(zip(*halves, strict=True)):
            store(row, step, piece, code.splitter.side_by_side(*pair))

    def store(row: ir.Value, step: ir.Value, piece: int, value: ir.Value) -> None:
        register, within = builder.udiv(row, I64(REGISTER_ROWS)), builder.urem(row, I64(REGISTER_ROWS))
        builder.store(value, code.at(part, step, piece, register, within), align=LINE)

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
        for piece in range(PIECES):
            store(row, step, piece, zero)
    with builder.if_then(code.splitter.judged(part)), code.loop(I64(0), rows) as row:
        at = code.offset(source, builder.mul(row, row_bytes))
        to = code.offset(part, builder.add(I64(LINE), builder.mul(row, I64(layout.row_bytes))))
        _copy(code, at, to, depth)
    builder.ret_void()
    return function


def emit_split_columns(module: ir.Module, name: str, layout: PartLayout) -> ir.Function:
    """Adds the function name(source, row_bytes, part, depth) to the module: a part of a strip from `depth`
    rows of FLOAT32, as many as its registers have columns."""
    function = internal_function(module, name, [POINTER, I64, POINTER, I64])
    source, row_bytes, part, depth = function.args
    code = _PieceCode(function, layout)
    builder = code.builder

    def put(word: ir.Value, rows: int) -> None:
        at = code.offset(source, builder.mul(builder.mul(word, I64(2)), row_bytes))
        for register in range(layout.registers):
            here = code.offset(at, I64(register * LINE))
            for row in range(2):
                later = builder.mul(row_bytes, I64(_WORDS_AHEAD * 2 + row))
                code.prefetch(code.offset(here, later))
            evens = code.splitter.taken_apart(code.load(here, _F32, LANES))
            odds = [number(_I32, LANES, 0)] * PIECES
            if rows > 1:
                odds = code.splitter.taken_apart(code.load(code.offset(here, row_bytes), _F32, LANES))
            store(word, register, code.splitter.words(evens, odds))

    def store(word: ir.Value, register: int, words: Sequence[ir.Value]) -> None:
        step, row = builder.udiv(word, I64(REGISTER_ROWS)), builder.urem(word, I64(REGISTER_ROWS))
        for piece, value in enumerate(words):
            builder.store(value, code.at(part, step, piece, I64(register), row), align=LINE)

    pairs = builder.udiv(depth, I64(2))
    with code.loop(I64(0), pairs) as word:
        put(word, 2)
    with builder.if_then(builder.trunc(depth, ir.IntType(1))):
        put(pairs, 1)
    behind = builder.udiv(builder.add(depth, I64(1)), I64(2))
    zeros = [number(_I32, LANES, 0)] * PIECES
    with code.loop(behind, builder.mul(_steps(code, depth), I64(REGISTER_ROWS))) as word:
        for register in range(layout.registers):
            store(word, register, zeros)
    width = I64(layout.registers * LINE)
    with builder.if_then(code.splitter.judged(part)), code.loop(I64(0), depth) as row:
        to = code.offset(part, builder.add(I64(LINE), builder.mul(row, width)))
        _copy(code, code.offset(source, builder.mul(row, row_bytes)), to, I64(layout.registers * LANES))
    builder.ret_void()
    return function


def emit_join_rows(module: ir.Module, name: str, layout: PartLayout) -> ir.Function:
    """Adds the function name(part, target, depth) to the module, which puts the rows of a part together,
    `layout.row_bytes` apart."""
    function = internal_function(module, name, [POINTER, POINTER, I64])
    part, target, depth = function.args
    code = _PieceCode(function, layout)
    builder = code.builder
    both = vector_type(ir.IntType(16), 2 * LANES)
    with code.loop(I64(0), I64(layout.registers * REGISTER_ROWS)) as row:
        to = code.offset(target, builder.mul(row, I64(layout.row_bytes)))
        register, within = builder.udiv(row, I64(REGISTER_ROWS)), builder.urem(row, I64(REGISTER_ROWS))
        with code.loop(I64(0), _steps(code, depth)) as step:
            pieces = [
                code.splitter.taken_from_side(
                    builder.load(code.at(part, step, piece, register, within), typ=both, align=LINE)
                )
                for piece in range(PIECES)
            ]
            here = code.offset(to, builder.mul(step, I64(STEP * _F32.bytes)))
            for half, each in enumerate(zip(*pieces, strict=True)):
                code.store(code.offset(here, I64(half * LINE)), code.splitter.put_together(each), _F32)
    builder.ret_void()
    return function


def emit_join_columns(module: ir.Module, name: str, layout: PartLayout) -> ir.Function:
    """Adds the function name(part, target, depth) to the module, which puts the columns of a part together,
    one row after the other; a row more may be written."""
    function = internal_function(module, name, [POINTER, POINTER, I64])
    part, target, depth = function.args
    code = _PieceCode(function, layout)
    builder = code.builder
    width = layout.registers * LINE
    with code.loop(I64(0), builder.udiv(builder.add(depth, I64(1)), I64(2))) as word:
        to = code.offset(target, builder.mul(word, I64(2 * width)))
        step, row = builder.udiv(word, I64(REGISTER_ROWS)), builder.urem(word, I64(REGISTER_ROWS))
        for register in range(layout.registers):
            words = [
                code.load(code.at(part, step, piece, I64(register), row), _I32, LANES)
                for piece in range(PIECES)
            ]
            for number_of_row, vector in enumerate(code.splitter.of_words(words)):
                code.store(code.offset(to, I64(number_of_row * width + register * LINE)), vector, _F32)
    builder.ret_void()
    return function


def _steps(code: Code, depth: ir.Value) -> ir.Value:
    return code.builder.udiv(code.builder.add(depth, I64(STEP - 1)), I64(STEP))


def _copy(code: Code, source: ir.Value, target: ir.Value, count: ir.Value) -> None:
    """So many FLOAT32."""

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
    """Of a power of 2 in FLOAT32."""
    exponent = value.hex().rpartition("p")[2]
    return (int(exponent) + 127) << 23
