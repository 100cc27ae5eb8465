"""The innermost loop of sums of products in matrix registers: a tile of results in some of them, which take
in STEP products at a time of numbers in pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.code import I1, I8, I32, I64, POINTER, Code, internal_function
from opendml.targets.cpu.contraction.micro import DISTANCE_BYTES, Strides, emit_micro_kernel
from opendml.targets.cpu.contraction.patterns import (
    PIECES,
    REGISTER_BYTES,
    REGISTER_ROWS,
    REGISTERS,
    STEP,
    MicroKernel,
)
from opendml.targets.cpu.contraction.pieces import (
    LANES,
    OF_FACTORS,
    Magnitudes,
    PartLayout,
    emit_join_columns,
    emit_join_rows,
)
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import intrinsic, number

_F32 = ScalarType.FLOAT32

Rows = tuple[ir.Value, ir.Value]
"""Where a tile lies, and the bytes from one row to the next."""
Finished = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]
"""What is made of a row's sums, by the row's number."""

_SMALL = ((0, (2, 1)), (1, (1, 0)), (2, (0,)))
_LARGE = ((0, (0,)),)
"""Pieces of b, and those of a by which each is multiplied. The products of the first pieces, most of a sum,
are added to all others: so these are rounded as little as they count. What is left out is below 2^-25 of a
product."""
_CONFIGURATION_BYTES = 64
_ROWS_ASKED = 8
"""Rows of results that are asked for with STEP products."""
_ROWS_PUT_TOGETHER = 4
"""Rows of sums in a step of the loop that puts them down."""
_PLAIN_ROWS = 8
"""Of a tile in vector registers, where a part holds FLOAT32."""


def configure(code: Code) -> None:
    """Makes matrix registers of REGISTER_ROWS rows of a line, from here on in this thread."""
    builder = code.builder
    place = code.local(ir.ArrayType(I8, _CONFIGURATION_BYTES))
    content = [0] * _CONFIGURATION_BYTES
    content[0] = 1
    for register in range(REGISTERS):
        content[16 + 2 * register] = LINE
        content[48 + register] = REGISTER_ROWS
    builder.store(ir.Constant(ir.ArrayType(I8, _CONFIGURATION_BYTES), content), place)
    intrinsic(builder, "llvm.x86.ldtilecfg", ir.VoidType(), [place])


def release(code: Code) -> None:
    """Says that nobody needs their contents any more."""
    intrinsic(code.builder, "llvm.x86.tilerelease", ir.VoidType(), [])


def keep_awake(code: Code) -> None:
    """Multiplies whatever is in matrix registers: the unit that multiplies sleeps where it has nothing to do
    for some 1,000 cycles, and takes as long to be as fast again."""
    registers = [I8(0), I8(REGISTERS - 2), I8(REGISTERS - 1)]
    intrinsic(code.builder, "llvm.x86.tdpbf16ps", ir.VoidType(), registers)


class RegisterTile:
    """Adds the function name(a, b, c, results, row_bytes, depth, adds, scratch) to a module: the sums of
    `depth` products of a part of a panel and one of a strip, added to what `c` holds if `adds`, into
    `results`, whose rows are `row_bytes` apart. Further arguments are where a tile will be written later, and
    the bytes from one row to the next there.

    Here is what such functions have in common."""

    _further: Sequence[ir.Type] = (POINTER, I64)

    def __init__(
        self, module: ir.Module, name: str, micro: MicroKernel, held_row_bytes: int, type: ScalarType
    ) -> None:
        """`held_row_bytes`: from one row of `c` to the next; `type`: that of sums."""
        rows, columns = self.registers = micro.rows // REGISTER_ROWS, micro.vectors
        self.totals = [[row * columns + column for column in range(columns)] for row in range(rows)]
        """The registers of sums."""
        self.held_row_bytes, self.type = held_row_bytes, type
        self.row_bytes = micro.vectors * LINE
        self.tile_bytes = micro.rows * self.row_bytes
        arguments = [POINTER, POINTER, POINTER, POINTER, I64, I64, I1, POINTER, *self._further]
        self.function = internal_function(module, name, arguments)
        self._code = Code(self.function, LANES)
        self._builder = self._code.builder

    def _clear_totals(self) -> None:
        for register in range(self.registers[0] * self.registers[1]):
            self._on_registers("tilezero", [register])

    def _keep_totals(self, place: Rows) -> None:
        """Into memory, row by row."""
        for row, registers in enumerate(self.totals):
            for column, register in enumerate(registers):
                before = self._builder.mul(place[1], I64(row * REGISTER_ROWS))
                at = self._code.offset(place[0], self._builder.add(before, I64(column * LINE)))
                self._on_registers("tilestored64", [register], at, place[1])

    def _ask_for_results(self, step: ir.Value, asked: Sequence[ir.Value]) -> None:
        """Asks for some rows of what will be written."""
        place, row_bytes = asked
        last = I64(self.registers[0] * REGISTER_ROWS - 1)
        first = self._builder.mul(step, I64(_ROWS_ASKED))
        for each in range(_ROWS_ASKED):
            row = self._code.minimum(self._builder.add(first, I64(each)), last)
            at = self._code.offset(place, self._builder.mul(row, row_bytes))
            for column in range(self.registers[1]):
                self._code.prefetch(self._code.offset(at, I64(column * LINE)), written=True)

    def _on_registers(self, name: str, registers: Sequence[int], *operands: ir.Value) -> None:
        numbers = [I8(register) for register in registers]
        intrinsic(self._builder, f"llvm.x86.{name}", ir.VoidType(), [*numbers, *operands])

    def _put_down(self, tile: ir.Value, target: Sequence[ir.Value], finished: Finished) -> None:
        """The sums of a tile as `finished` makes them, added to what is held, if anything is."""
        held, results, row_bytes, adds = target
        with self._builder.if_else(adds) as (added, stored):
            with added:
                self._put_rows(tile, held, (results, row_bytes), finished)
            with stored:
                self._put_rows(tile, None, (results, row_bytes), finished)

    def _put_rows(
        self,
        tile: ir.Value,
        held: ir.Value | None,
        results: Rows,
        finished: Finished,
    ) -> None:
        builder, code = self._builder, self._code
        add = builder.fadd if self.type.is_float else builder.add
        distances = [I64(column * LINE) for column in range(self.registers[1])]
        with code.loop(I64(0), I64(self.registers[0] * REGISTER_ROWS), _ROWS_PUT_TOGETHER) as first:
            for row in (builder.add(first, I64(each)) for each in range(_ROWS_PUT_TOGETHER)):
                sums = code.offset(tile, builder.mul(row, I64(self.row_bytes)))
                place = code.offset(results[0], builder.mul(row, results[1]))
                totals = [code.load(code.offset(sums, each), self.type, LANES) for each in distances]
                for distance, value in zip(distances, finished(row, totals), strict=True):
                    total = value
                    if held is not None:
                        before = code.offset(held, builder.mul(row, I64(self.held_row_bytes)))
                        total = add(value, code.load(code.offset(before, distance), self.type, LANES))
                    code.store(code.offset(place, distance), total, self.type)


class MatrixMicroKernel(RegisterTile):
    """Of numbers in pieces. Where one of the parts holds FLOAT32, the products are added one by one, of
    FLOAT32."""

    def __init__(
        self,
        module: ir.Module,
        name: str,
        micro: MicroKernel,
        depth: int,
        held_row_bytes: int,
        magnitudes: Magnitudes = OF_FACTORS,
        fetches: bool = False,
    ) -> None:
        """Create the micro-kernel. If it `fetches`, further arguments say what is fetched meanwhile, and its
        bytes for STEP products."""
        if fetches:
            self._further = (*self._further, POINTER, I64)
        super().__init__(module, name, micro, held_row_bytes, _F32)
        self.a, self.b = (PartLayout(count, depth, magnitudes) for count in self.registers)
        strides = Strides(self.a.row_bytes, _F32.bytes, self.row_bytes, self.row_bytes)
        plain = MicroKernel(_PLAIN_ROWS, micro.vectors)
        self._plain = emit_micro_kernel(module, f"{name}.plain", plain, LANES, strides)
        self._join_rows = emit_join_rows(module, f"{name}.rows", self.a)
        self._emit()

    @property
    def scratch_bytes(self) -> int:
        """What a call needs for itself."""
        return self.tile_bytes + self.a.float_bytes + self.b.float_bytes + self.row_bytes

    def _emit(self) -> None:
        a, b, _, _, _, depth, *_ = self.function.args
        builder = self._builder
        states = [builder.load(place, typ=I32) for place in (a, b)]
        in_pieces = builder.icmp_unsigned("==", builder.or_(*states), I32(0))
        unscaled, place = self._code.local(ir.FloatType()), self._sums()
        with builder.if_else(in_pieces) as (pieces, plain):
            with pieces:
                self._multiply_pieces(a, depth, place)
                builder.store(number(_F32, 1, self.a.magnitudes.scale**-2), unscaled)
            with plain:
                self._multiply_floats(a, states, depth, place)
                builder.store(number(_F32, 1, 1.0), unscaled)
        self._put_sums(self._code.broadcast(builder.load(unscaled, typ=ir.FloatType())))
        builder.ret_void()

    def _sums(self) -> Rows:
        """Where the sums of a tile are put first."""
        return self.function.args[7], I64(self.row_bytes)

    def _put_sums(self, factor: ir.Value) -> None:
        """The sums, times a factor, where they belong."""
        _, _, c, results, row_bytes, _, adds, tile, *_ = self.function.args
        target = c, results, row_bytes, adds
        self._put_down(tile, target, lambda row, sums: [self._builder.fmul(each, factor) for each in sums])

    def _multiply_pieces(self, a: ir.Value, depth: ir.Value, place: Rows) -> None:
        self._clear_totals()
        steps = self._builder.udiv(self._builder.add(depth, I64(STEP - 1)), I64(STEP))
        for pairs in (_SMALL, _LARGE):
            with self._code.loop(I64(0), steps) as step:
                b_at = self._b_at(step)
                distance = self._builder.mul(step, I64(self.a.step_bytes))
                a_at = self._code.offset(a, self._builder.add(I64(LINE), distance))
                if pairs is _SMALL:
                    self._ask(step)
                for b_piece, a_pieces in pairs:
                    self._take_in((a_at, b_at), b_piece, a_pieces)
        self._keep_totals(place)

    def _ask(self, step: ir.Value) -> None:
        place, row_bytes, *fetched = self.function.args[8:]
        self._ask_for_results(step, (place, row_bytes))
        if fetched:
            start, size = fetched
            first = self._code.offset(start, self._builder.mul(step, size))
            with self._code.loop(I64(0), size, LINE) as at:
                self._code.prefetch(self._code.offset(first, at), level=2)

    def _take_in(self, at: Sequence[ir.Value], b_piece: int, a_pieces: Sequence[int]) -> None:
        """The products of a piece of b with some of a."""
        rows, columns = self.registers
        first_a = rows * columns
        first_b = first_a + rows
        for column in range(columns):
            self._load_b(first_b + column, at[1], b_piece, column)
        for piece in a_pieces:
            for row in range(rows):
                here = self._code.offset(at[0], I64(piece * self.a.piece_bytes + row * REGISTER_BYTES))
                self._on_registers("tileloadd64", [first_a + row], here, I64(LINE))
            for row, registers in enumerate(self.totals):
                for column, total in enumerate(registers):
                    self._on_registers("tdpbf16ps", [total, first_a + row, first_b + column])

    def _b_at(self, step: ir.Value) -> ir.Value:
        """Where the next STEP rows of b lie."""
        distance = self._builder.mul(step, I64(self.b.step_bytes))
        return self._code.offset(self.function.args[1], self._builder.add(I64(LINE), distance))

    def _load_b(self, register: int, at: ir.Value, piece: int, column: int) -> None:
        here = self._code.offset(at, I64(piece * self.b.piece_bytes + column * REGISTER_BYTES))
        self._on_registers("tileloadd64", [register], here, I64(LINE))

    def _multiply_floats(self, a: ir.Value, states: Sequence[ir.Value], depth: ir.Value, place: Rows) -> None:
        """The same of FLOAT32, which are put together where a part holds pieces."""
        builder, tile = self._builder, self.function.args[7]
        a_room = self._code.offset(tile, I64(self.tile_bytes))
        b_room = self._code.offset(a_room, I64(self.a.float_bytes))
        a_holds, b_holds = (builder.icmp_unsigned("!=", state, I32(0)) for state in states)
        with builder.if_then(builder.not_(a_holds)):
            builder.call(self._join_rows, [a, a_room, depth])
        a_floats = builder.select(a_holds, self._code.offset(a, I64(LINE)), a_room)
        b_floats = self._floats_of_b(b_holds, b_room, depth)
        with self._code.loop(I64(0), I64(self.registers[0] * REGISTER_ROWS), _PLAIN_ROWS) as row:
            rows = self._code.offset(a_floats, builder.mul(row, I64(self.a.row_bytes)))
            sums = self._code.offset(place[0], builder.mul(row, place[1]))
            operands = [rows, b_floats, sums, sums, place[1], depth, I1(0)]
            builder.call(self._plain, operands)

    def _floats_of_b(self, holds: ir.Value, room: ir.Value, depth: ir.Value) -> ir.Value:
        """Where the rows of b are, in FLOAT32, one behind the other."""
        b, builder = self.function.args[1], self._builder
        join = emit_join_columns(self.function.module, f"{self.function.name}.columns", self.b)
        with builder.if_then(builder.not_(holds)):
            builder.call(join, [b, room, depth])
        return builder.select(holds, self._code.offset(b, I64(LINE)), room)


class ChainMatrixMicroKernel(MatrixMicroKernel):
    """The same of a chain, whose results lie in a room: those that are added to nothing are put there at
    once. Its magnitudes have no scale."""

    _further = ()

    def _sums(self) -> Rows:
        _, _, _, results, row_bytes, _, adds, *_ = self.function.args
        held = super()._sums()
        return self._builder.select(adds, held[0], results), self._builder.select(adds, held[1], row_bytes)

    def _put_sums(self, factor: ir.Value) -> None:
        _, _, c, results, row_bytes, _, adds, tile = self.function.args
        with self._builder.if_then(adds):
            self._put_rows(tile, c, (results, row_bytes), lambda row, sums: sums)

    def _ask(self, step: ir.Value) -> None:
        """They are there."""


def emit_window_strip(module: ir.Module, name: str, layout: PartLayout, steps: int) -> ir.Function:
    """Emit the function name(image, distances, plane, state, part), which copies windows of an image into a
    part of a strip: the windows that begin at `image` and beside it, with their elements at `steps` of the
    distances.

    An image consists of planes of words of each pair of channels: of STEP channels those of the first piece,
    then of the others. In FLOAT32, which `state` says, each channel is a plane. `plane`: the bytes of one.
    The copy moves 1.5 vectors for each vector of FLOAT32. It makes the rows of a tile consecutive cache
    lines. If tiles were read from the image, each row would be in two lines, and all rows in different pages.
    """
    function = internal_function(module, name, [POINTER, POINTER, I64, I32, POINTER])
    image, distances, plane, state, part = function.args
    code = Code(function, LANES)
    builder = code.builder

    def copy(planes: int, place: Callable[[ir.Value, ir.Value, int], ir.Value]) -> None:
        """Copy so many planes of each step, to the places by step, plane and column of registers."""
        with code.loop(I64(0), I64(steps)) as step:
            distance = builder.load(code.offset(distances, builder.mul(step, I64(DISTANCE_BYTES))), typ=I64)
            at = code.offset(image, distance)
            with code.loop(I64(0), I64(planes)) as number_of_plane:
                row = code.offset(at, builder.mul(number_of_plane, plane))
                for column in range(layout.registers):
                    value = code.load(code.offset(row, I64(column * LINE)), ScalarType.INT32, LANES)
                    code.store(place(step, number_of_plane, column), value, ScalarType.INT32)

    def in_pieces(step: ir.Value, row: ir.Value, column: int) -> ir.Value:
        piece, within = code.split(row, [I64(0), I64(REGISTER_ROWS)])
        distance = builder.add(
            builder.mul(step, I64(layout.step_bytes)), builder.mul(piece, I64(layout.piece_bytes))
        )
        distance = builder.add(distance, builder.mul(within, I64(LINE)))
        return code.offset(part, builder.add(distance, I64(LINE + column * REGISTER_BYTES)))

    def in_floats(step: ir.Value, channel: ir.Value, column: int) -> ir.Value:
        row = builder.add(builder.mul(step, I64(STEP)), channel)
        distance = builder.mul(row, I64(layout.registers * LINE))
        return code.offset(part, builder.add(distance, I64(LINE + column * LINE)))

    builder.store(state, part)
    with builder.if_else(builder.icmp_unsigned("==", state, I32(0))) as (pieces, floats):
        with pieces:
            copy(PIECES * REGISTER_ROWS, in_pieces)
        with floats:
            copy(STEP, in_floats)
    builder.ret_void()
    return function
