"""Micro-kernels in matrix registers (Intel's AMX): a tile of results, which takes in STEP products at a time
of numbers in bfloat16 parts. Those of integers are in `amx_int8.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I1, I8, I32, I64, POINTER, Code, internal_function
from opendml.targets.cpu.contraction.bf16_parts import (
    LANES,
    OF_FACTORS,
    Magnitudes,
    PartLayout,
    emit_join_columns,
    emit_join_rows,
)
from opendml.targets.cpu.contraction.fma import DISTANCE_BYTES, Strides, emit_micro_kernel
from opendml.targets.cpu.contraction.tiling import (
    BF16_PARTS,
    REGISTER_BYTES,
    REGISTER_ROWS,
    REGISTERS,
    STEP,
    MicroKernel,
)
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import intrinsic, number

_F32 = ScalarType.FLOAT32

Rows = tuple[ir.Value, ir.Value]
"""The address of a tile, and the bytes from one row to the next."""
Finish = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]
"""Makes the results of a row from its number and its sums."""

_SMALL = ((0, (2, 1)), (1, (1, 0)), (2, (0,)))
_LARGE = ((0, (0,)),)
"""Parts of B, and those of A by which each is multiplied. The products of the first parts are most of a sum.
They are added to all others, so that these are rounded as little as they count. The products that are left
out are below 2^-25 of the whole."""
_CONFIGURATION_BYTES = 64
"""Bytes of the operand of LDTILECFG."""
_PREFETCHED_ROWS = 8
"""Rows of results that are prefetched with STEP products."""
_STORED_ROWS = 4
"""Rows of sums in a step of the loop that stores them."""
_FLOAT_ROWS = 8
"""Rows of a tile in vector registers, if a part holds float32."""


def configure(code: Code) -> None:
    """Give all matrix registers REGISTER_ROWS rows of a cache line, in this thread."""
    builder = code.builder
    place = code.local(ir.ArrayType(I8, _CONFIGURATION_BYTES))
    content = [0] * _CONFIGURATION_BYTES
    content[0] = 1
    for register in range(REGISTERS):
        content[16 + 2 * register] = LINE
        content[48 + register] = REGISTER_ROWS
    builder.store(ir.array_of(I8, content), place)
    intrinsic(builder, "llvm.x86.ldtilecfg", ir.VOID, [place])


def release(code: Code) -> None:
    """Release the matrix registers."""
    intrinsic(code.builder, "llvm.x86.tilerelease", ir.VOID, [])


def keep_awake(code: Code) -> None:
    """Multiply whatever is in matrix registers. The unit sleeps after some 1,000 idle cycles, and takes as
    long to be as fast again."""
    registers = [I8(0), I8(REGISTERS - 2), I8(REGISTERS - 1)]
    intrinsic(code.builder, "llvm.x86.tdpbf16ps", ir.VOID, registers)


class RegisterTile:
    """Emits the function name(a, b, c, results, row_bytes, depth, adds, scratch, ...).

    It stores the sums of `depth` products of a part of A and one of B into `results`, whose rows are
    `row_bytes` apart, added to `c` if `adds`. Two further arguments are where a tile will be written later,
    and the bytes from one row to the next there.
    """

    _further: Sequence[ir.Type] = (POINTER, I64)

    def __init__(
        self, module: ir.Module, name: str, micro: MicroKernel, c_row_bytes: int, type: ScalarType
    ) -> None:
        """Create the function. `c_row_bytes` are those from one row of `c` to the next, `type` that of
        sums."""
        rows, columns = self.registers = micro.rows // REGISTER_ROWS, micro.vectors
        self.totals = [[row * columns + column for column in range(columns)] for row in range(rows)]
        """The registers of sums."""
        self.c_row_bytes, self.type = c_row_bytes, type
        self.row_bytes = micro.vectors * LINE
        self.tile_bytes = micro.rows * self.row_bytes
        arguments = [POINTER, POINTER, POINTER, POINTER, I64, I64, I1, POINTER, *self._further]
        self.function = internal_function(module, name, arguments)
        self._code = Code(self.function, LANES)
        self._builder = self._code.builder

    @property
    def scratch_bytes(self) -> int:
        """Bytes of memory that a call needs."""
        return self.tile_bytes

    def _clear_totals(self) -> None:
        for register in range(self.registers[0] * self.registers[1]):
            self._on_registers("tilezero", [register])

    def _store_totals(self, place: Rows) -> None:
        """Store the registers of sums row by row."""
        for row, registers in enumerate(self.totals):
            for column, register in enumerate(registers):
                before = self._builder.mul(place[1], I64(row * REGISTER_ROWS))
                at = self._code.offset(place[0], self._builder.add(before, I64(column * LINE)))
                self._on_registers("tilestored64", [register], at, place[1])

    def _prefetch_results(self, step: ir.Value, target: Sequence[ir.Value]) -> None:
        """Prefetch some rows of the memory that will be written."""
        place, row_bytes = target
        last = I64(self.registers[0] * REGISTER_ROWS - 1)
        first = self._builder.mul(step, I64(_PREFETCHED_ROWS))
        for each in range(_PREFETCHED_ROWS):
            row = self._code.minimum(self._builder.add(first, I64(each)), last)
            at = self._code.offset(place, self._builder.mul(row, row_bytes))
            for column in range(self.registers[1]):
                self._code.prefetch(self._code.offset(at, I64(column * LINE)), written=True)

    def _on_registers(self, name: str, registers: Sequence[int], *operands: ir.Value) -> None:
        numbers = [I8(register) for register in registers]
        intrinsic(self._builder, f"llvm.x86.{name}", ir.VOID, [*numbers, *operands])

    def _load(self, register: int, at: ir.Value, row_bytes: int) -> None:
        self._on_registers("tileloadd64", [register], at, I64(row_bytes))

    def _multiply(self, instruction: str) -> None:
        """Multiply the registers of A, behind those of sums, by those of B behind them."""
        rows, columns = self.registers
        first_a = rows * columns
        for row, registers in enumerate(self.totals):
            for column, total in enumerate(registers):
                self._on_registers(instruction, [total, first_a + row, first_a + rows + column])

    def _put(self, tile: ir.Value, finish: Finish) -> None:
        """Store the sums of a tile as `finish` makes them, added to `c` if the function adds."""
        _, _, c, results, row_bytes, _, adds, *_ = self.function.args
        with self._builder.if_else(adds) as (added, stored):
            with added:
                self._put_rows(tile, c, (results, row_bytes), finish)
            with stored:
                self._put_rows(tile, None, (results, row_bytes), finish)

    def _put_rows(self, tile: ir.Value, c: ir.Value | None, results: Rows, finish: Finish) -> None:
        builder, code = self._builder, self._code
        add = builder.fadd if self.type.is_float else builder.add
        distances = [I64(column * LINE) for column in range(self.registers[1])]
        with code.loop(I64(0), I64(self.registers[0] * REGISTER_ROWS), _STORED_ROWS) as first:
            for row in (builder.add(first, I64(each)) for each in range(_STORED_ROWS)):
                sums = code.offset(tile, builder.mul(row, I64(self.row_bytes)))
                place = code.offset(results[0], builder.mul(row, results[1]))
                totals = [code.load(code.offset(sums, each), self.type, LANES) for each in distances]
                for distance, value in zip(distances, finish(row, totals), strict=True):
                    total = value
                    if c is not None:
                        before = code.offset(c, builder.mul(row, I64(self.c_row_bytes)))
                        total = add(value, code.load(code.offset(before, distance), self.type, LANES))
                    code.store(code.offset(place, distance), total, self.type)


class Bf16Kernel(RegisterTile):
    """Multiplies bfloat16 parts. If the part of A or B holds float32, it multiplies float32 by vector
    FMAs."""

    def __init__(
        self,
        module: ir.Module,
        name: str,
        micro: MicroKernel,
        depth: int,
        c_row_bytes: int,
        magnitudes: Magnitudes = OF_FACTORS,
        fetches: bool = False,
    ) -> None:
        """Create the micro-kernel. If it `fetches`, further arguments say what is fetched meanwhile, and its
        bytes for STEP products."""
        if fetches:
            self._further = (*self._further, POINTER, I64)
        super().__init__(module, name, micro, c_row_bytes, _F32)
        self.a, self.b = (PartLayout(count, depth, magnitudes) for count in self.registers)
        strides = Strides(self.a.row_bytes, _F32.bytes, self.row_bytes, self.row_bytes)
        floats = MicroKernel(_FLOAT_ROWS, micro.vectors)
        self._float_kernel = emit_micro_kernel(module, f"{name}.plain", floats, LANES, strides)
        self._join_rows = emit_join_rows(module, f"{name}.rows", self.a)
        self._emit()

    @property
    def scratch_bytes(self) -> int:
        return self.tile_bytes + self.a.float_bytes + self.b.float_bytes + self.row_bytes

    def _emit(self) -> None:
        a, b, _, _, _, depth, *_ = self.function.args
        builder = self._builder
        states = [builder.load(place, typ=I32) for place in (a, b)]
        is_split = builder.icmp_unsigned("==", builder.or_(*states), I32(0))
        unscaled, place = self._code.local(ir.FLOAT), self._sums()
        with builder.if_else(is_split) as (parts, floats):
            with parts:
                self._multiply_parts((a, b), depth, place)
                builder.store(number(_F32, 1, self.a.magnitudes.scale**-2), unscaled)
            with floats:
                self._multiply_floats((a, b), states, depth, place)
                builder.store(number(_F32, 1, 1.0), unscaled)
        self._put_sums(self._code.broadcast(builder.load(unscaled, typ=ir.FLOAT)))
        builder.ret_void()

    def _sums(self) -> Rows:
        """Return where the sums of a tile are stored first."""
        return self.function.args[7], I64(self.row_bytes)

    def _put_sums(self, factor: ir.Value) -> None:
        """Store the sums, times a factor, as results."""
        tile = self.function.args[7]
        self._put(tile, lambda row, sums: [self._builder.fmul(each, factor) for each in sums])

    def _multiply_parts(self, operands: Sequence[ir.Value], depth: ir.Value, place: Rows) -> None:
        self._clear_totals()
        steps = self._builder.udiv(self._builder.add(depth, I64(STEP - 1)), I64(STEP))
        for pairs in (_SMALL, _LARGE):
            with self._code.loop(I64(0), steps) as step:
                b_at, a_at = (
                    self._code.offset(
                        part, self._builder.add(I64(LINE), self._builder.mul(step, I64(layout.step_bytes)))
                    )
                    for part, layout in zip(reversed(operands), (self.b, self.a), strict=True)
                )
                if pairs is _SMALL:
                    self._prefetch(step)
                for b_part, a_parts in pairs:
                    self._take_in((a_at, b_at), b_part, a_parts)
        self._store_totals(place)

    def _prefetch(self, step: ir.Value) -> None:
        place, row_bytes, *fetched = self.function.args[8:]
        self._prefetch_results(step, (place, row_bytes))
        if fetched:
            start, size = fetched
            first = self._code.offset(start, self._builder.mul(step, size))
            with self._code.loop(I64(0), size, LINE) as at:
                self._code.prefetch(self._code.offset(first, at), level=2)

    def _take_in(self, at: Sequence[ir.Value], b_part: int, a_parts: Sequence[int]) -> None:
        """Add the products of a bfloat16 part of B and some of A."""
        rows, columns = self.registers
        first_a = rows * columns
        for column in range(columns):
            here = self._code.offset(at[1], I64(b_part * self.b.bf16_bytes + column * REGISTER_BYTES))
            self._load(first_a + rows + column, here, LINE)
        for part in a_parts:
            for row in range(rows):
                here = self._code.offset(at[0], I64(part * self.a.bf16_bytes + row * REGISTER_BYTES))
                self._load(first_a + row, here, LINE)
            self._multiply("tdpbf16ps")

    def _multiply_floats(
        self, operands: Sequence[ir.Value], states: Sequence[ir.Value], depth: ir.Value, place: Rows
    ) -> None:
        """Multiply float32. A part that holds bfloat16 parts is joined before."""
        builder, (a, b), tile = self._builder, operands, self.function.args[7]
        a_scratch = self._code.offset(tile, I64(self.tile_bytes))
        b_scratch = self._code.offset(a_scratch, I64(self.a.float_bytes))
        a_holds, b_holds = (builder.icmp_unsigned("!=", state, I32(0)) for state in states)
        with builder.if_then(builder.not_(a_holds)):
            builder.call(self._join_rows, [a, a_scratch, depth])
        a_floats = builder.select(a_holds, self._code.offset(a, I64(LINE)), a_scratch)
        join_columns = emit_join_columns(self.function.module, f"{self.function.name}.columns", self.b)
        with builder.if_then(builder.not_(b_holds)):
            builder.call(join_columns, [b, b_scratch, depth])
        b_floats = builder.select(b_holds, self._code.offset(b, I64(LINE)), b_scratch)
        with self._code.loop(I64(0), I64(self.registers[0] * REGISTER_ROWS), _FLOAT_ROWS) as row:
            rows = self._code.offset(a_floats, builder.mul(row, I64(self.a.row_bytes)))
            sums = self._code.offset(place[0], builder.mul(row, place[1]))
            builder.call(self._float_kernel, [rows, b_floats, sums, sums, place[1], depth, I1(0)])


class ChainBf16Kernel(Bf16Kernel):
    """Multiplies bfloat16 parts in a chain, whose results lie in scratch memory. Sums that are added to
    nothing are stored there at once. The magnitudes have no scale, and nothing is prefetched."""

    _further = ()

    def _sums(self) -> Rows:
        _, _, _, results, row_bytes, _, adds, *_ = self.function.args
        own = super()._sums()
        return self._builder.select(adds, own[0], results), self._builder.select(adds, own[1], row_bytes)

    def _put_sums(self, factor: ir.Value) -> None:
        _, _, c, results, row_bytes, _, adds, tile = self.function.args
        with self._builder.if_then(adds):
            self._put_rows(tile, c, (results, row_bytes), lambda row, sums: sums)

    def _prefetch(self, step: ir.Value) -> None:
        """Prefetch nothing."""


def emit_copy_windows(module: ir.Module, name: str, layout: PartLayout, steps: int) -> ir.Function:
    """Emit the function name(image, distances, plane, state, part).

    It copies windows of an image into a part of B: those that begin at `image` and beside it, with their
    elements at `steps` of the distances.

    An image consists of planes of `plane` bytes. Those of a bfloat16 part have the pairs of STEP channels;
    the planes of the first part come first. If `state` says that the image is in float32, each channel is a
    plane. The copy moves 1.5 vectors for each vector of float32. It makes the rows of a tile consecutive
    cache lines. In the image each row would be in two lines, and all rows in different pages.
    """
    function = internal_function(module, name, [POINTER, POINTER, I64, I32, POINTER])
    image, distances, plane, state, part = function.args
    code = Code(function, LANES)
    builder = code.builder

    def copy(planes: int, place: Callable[[ir.Value, ir.Value, int], ir.Value]) -> None:
        """Copy planes of each step to the places by step, plane and column of registers."""
        with code.loop(I64(0), I64(steps)) as step:
            distance = builder.load(code.offset(distances, builder.mul(step, I64(DISTANCE_BYTES))), typ=I64)
            at = code.offset(image, distance)
            with code.loop(I64(0), I64(planes)) as number_of_plane:
                row = code.offset(at, builder.mul(number_of_plane, plane))
                for column in range(layout.registers):
                    value = code.load(code.offset(row, I64(column * LINE)), ScalarType.INT32, LANES)
                    code.store(place(step, number_of_plane, column), value, ScalarType.INT32)

    def in_parts(step: ir.Value, row: ir.Value, column: int) -> ir.Value:
        each, within = code.split(row, [I64(0), I64(REGISTER_ROWS)])
        distance = builder.add(
            builder.mul(step, I64(layout.step_bytes)), builder.mul(each, I64(layout.bf16_bytes))
        )
        distance = builder.add(distance, builder.mul(within, I64(LINE)))
        return code.offset(part, builder.add(distance, I64(LINE + column * REGISTER_BYTES)))

    def in_floats(step: ir.Value, channel: ir.Value, column: int) -> ir.Value:
        row = builder.add(builder.mul(step, I64(STEP)), channel)
        distance = builder.mul(row, I64(layout.registers * LINE))
        return code.offset(part, builder.add(distance, I64(LINE + column * LINE)))

    builder.store(state, part)
    with builder.if_else(builder.icmp_unsigned("==", state, I32(0))) as (parts, floats):
        with parts:
            copy(BF16_PARTS * REGISTER_ROWS, in_parts)
        with floats:
            copy(STEP, in_floats)
    builder.ret_void()
    return function
