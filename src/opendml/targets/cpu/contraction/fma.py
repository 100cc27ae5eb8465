"""The micro-kernel of vector multiply-adds. A tile of results in registers takes in the products of
one column of A, each element broadcast, and one row of B, in vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opendml.late_dataclass import dataclass
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I1, I32, I64, POINTER, internal_function
from opendml.targets.cpu.contraction.arithmetic import BYTES, F32, multiply_add, total_type
from opendml.targets.cpu.contraction.narrow import Narrow
from opendml.targets.cpu.contraction.tiling import MicroKernel
from opendml.targets.cpu.contraction.widening import Widening
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import intrinsic, llvm_type, number, splat

DISTANCE_BYTES = 8
"""Bytes of a distance in a table of the elements of a window."""
_BASE_ROWS = 5
"""Rows whose distances from the first of them fit the addresses of instructions."""
_LONG_STEP = 32
"""Multiply-adds in one step of the loop, at most, unless one product has more: enough to hide its counting,
few enough for the registers."""


@dataclass(frozen=True, slots=True)
class Strides:
    """The distances of the operands and sums, in bytes: from one row of a tile to the next, and along k.

    An operand whose distance along k is None is found by a table of distances. If `a_row` is None, an
    argument states it; if `b_in_place`, one states the distance of B along k. `prefetched` lines of a
    stream are prefetched with each product.
    """

    a_row: int | None
    a_depth: int | None
    b_depth: int | None
    c_row: int
    prefetched: int = 0
    b_in_place: bool = False
    is_read_once: bool = False
    """True if the stream is read soon, and once: it is prefetched into the first cache."""
    packed: ScalarType = F32
    """The type of the elements of A."""
    narrow: Narrow | None = None
    """The form of B if the micro-kernel widens it. An argument states where its parameters lie."""
    continues: bool = False
    """True if products are added to the sums before them one by one, as if all were of one part."""
    panels: int = 1
    """The panels of B that a tile reads side by side. If there are several, the last argument states the
    bytes from one to the next."""


def emit_micro_kernel(
    module: ir.Module, name: str, micro: MicroKernel, lanes: int, strides: Strides
) -> ir.Function:
    """Emit the function name(a, b, c, results, row_bytes, depth, adds, ...). It stores the sums of `depth`
    products (or groups of them) into `results`, whose rows are `row_bytes` apart, added to `c` if `adds`.

    The further arguments are those of `_further_arguments`, in this order.
    """
    further = _further_arguments(strides)
    arguments = [POINTER, POINTER, POINTER, POINTER, I64, I64, I1]
    function = internal_function(module, name, [*arguments, *further.values()])
    for argument in function.args[:2]:
        argument.add_attribute("noalias")
    values = dict(zip(further, function.args[len(arguments) :], strict=True))
    _MicroCode(function, micro, lanes, strides, values).emit()
    return function


def _further_arguments(strides: Strides) -> dict[str, ir.Type]:
    """Return the arguments that only some micro-kernels have, with their types.

    They are a table of distances; where a prefetched stream begins, and its bytes for each product; the bytes
    between rows of A in place, and of B; the parameters of a narrow B; and the bytes between panels of B.
    """
    arguments = {
        "distances": (POINTER, None in (strides.a_depth, strides.b_depth)),
        "stream": (POINTER, strides.prefetched > 0),
        "stream_step": (I64, strides.prefetched > 0),
        "a_row": (I64, strides.a_row is None),
        "b_row": (I64, strides.b_in_place),
        "parameters": (POINTER, strides.narrow is not None),
        "panel_bytes": (I64, strides.panels > 1),
    }
    return {name: type for name, (type, is_present) in arguments.items() if is_present}


@dataclass(frozen=True, slots=True)
class _Places:
    """The addresses of the operands of the next product: of A those of the first of every _BASE_ROWS rows, or
    one for all rows. `stream` is what is prefetched, if anything."""

    a: tuple[ir.Value, ...]
    b: ir.Value
    stream: tuple[ir.Value, ...]

    def all(self) -> list[ir.Value]:
        return [*self.a, self.b, *self.stream]

    def replaced(self, values: Sequence[ir.Value]) -> _Places:
        """Return the same addresses, with other values in the order of `all`."""
        count = len(self.a)
        return _Places(tuple(values[:count]), values[count], tuple(values[count + 1 :][: len(self.stream)]))


class _MicroCode:
    """Emits the code of a micro-kernel of vector multiply-adds."""

    def __init__(
        self,
        function: ir.Function,
        micro: MicroKernel,
        lanes: int,
        strides: Strides,
        further: Mapping[str, ir.Value],
    ) -> None:
        self.function, self.lanes, self.strides = function, lanes, strides
        self.rows, self.vectors = range(micro.rows), range(micro.vectors)
        self.products = micro.rows * micro.vectors
        self.step = min(4, max(1, _LONG_STEP // self.products))
        self.type = total_type(strides.packed)
        self.multiply_add = multiply_add(strides.packed)
        self.vector = llvm_type(self.type, lanes)
        begin, end = (("held", "begin"), ()) if strides.continues else ((), ("add",))
        self.blocks = {
            name: function.append_basic_block(name)
            for name in ("entry", *begin, "steps", "rest_start", "rest", "done", *end, "store")
        }
        self.builder = ir.IRBuilder(self.blocks["entry"])
        self.distances = further.get("distances")
        self.stream, self.stream_step = further.get("stream"), further.get("stream_step")
        self.a_row, self.b_row = further.get("a_row"), further.get("b_row")
        panel_bytes = further.get("panel_bytes", I64(0))
        self.panels = [self.builder.mul(panel_bytes, I64(panel)) for panel in range(strides.panels)]
        self.widenings = []
        if strides.narrow is not None:
            places = [self._offset(further["parameters"], panel) for panel in self.panels]
            self.widenings = [Widening(self.builder, strides.narrow, lanes, place) for place in places]

    def emit(self) -> None:
        """Emit the function. Products are added from zero on, and their sums to `c`. So rounding errors grow
        with the depth alone. If the micro-kernel continues, they are added from `c` on."""
        _, _, _, results, row_bytes, depth, *_ = self.function.args
        places = self._first_places()
        totals, before = [number(self.type, self.lanes, 0)] * self.products, "entry"
        if self.strides.continues:
            totals, before = self._with_held(totals, "entry", "held", "begin"), "begin"
        steps = self.builder.udiv(depth, I64(self.step))
        rest = self.builder.urem(depth, I64(self.step))
        has_steps = self.builder.icmp_unsigned("!=", steps, I64(0))
        self.builder.cbranch(has_steps, self.blocks["steps"], self.blocks["rest_start"])
        initial = [*places.all(), *totals]
        state = self._loop("steps", before, "rest_start", steps, places, initial, self.step)
        self._begin_block("rest_start")
        joined = self._merged(before, initial, "steps", state)
        has_rest = self.builder.icmp_unsigned("!=", rest, I64(0))
        self.builder.cbranch(has_rest, self.blocks["rest"], self.blocks["done"])
        state = self._loop("rest", "rest_start", "done", rest, places, joined, 1)
        self._begin_block("done")
        state = self._merged("rest_start", joined, "rest", state)
        totals = state[-self.products :]
        if self.strides.packed in BYTES:
            totals = self._less_subtracted(totals, *state[:2])
        if self.strides.continues:
            self.builder.branch(self.blocks["store"])
            self._begin_block("store")
        else:
            totals = self._with_held(totals, "done", "add", "store")
        for place, value in zip(self._places(results, row_bytes), totals, strict=True):
            self.builder.store(value, place, align=4)
        self.builder.ret_void()

    def _with_held(
        self, totals: Sequence[ir.Value], before: str, held_block: str, behind: str
    ) -> list[ir.Value]:
        """Return the totals added to the sums in `c` if the function `adds`, else the totals. Go on behind
        the block that adds them."""
        _, _, c, _, _, _, adds, *_ = self.function.args
        self.builder.cbranch(adds, self.blocks[held_block], self.blocks[behind])
        self._begin_block(held_block)
        held_at = self._places(c, I64(self.strides.c_row))
        held = [self.builder.load(place, typ=self.vector, align=4) for place in held_at]
        if not self.strides.continues:
            add = self.builder.fadd if self.type.is_float else self.builder.add
            held = [add(*pair) for pair in zip(held, totals, strict=True)]
        self.builder.branch(self.blocks[behind])
        self._begin_block(behind)
        return self._merged(before, totals, held_block, held)

    def _first_places(self) -> _Places:
        """Return the addresses of the operands of the first product."""
        a: ir.Value
        b: ir.Value
        a, b = self.function.args[:2]
        if self.distances is not None and self.strides.a_depth is None:
            a = self.distances
        if self.distances is not None and self.strides.b_depth is None:
            b = self.distances
        bases: list[ir.Value] = [a]
        if self.a_row is not None:
            distances = [self.builder.mul(self.a_row, I64(row)) for row in self.rows[::_BASE_ROWS]]
            bases = [self._offset(a, distance) for distance in distances]
        return _Places(tuple(bases), b, () if self.stream is None else (self.stream,))

    def _loop(
        self,
        name: str,
        before: str,
        behind: str,
        count: ir.Value,
        places: _Places,
        initial: Sequence[ir.Value],
        unrolled: int,
    ) -> list[ir.Value]:
        """Emit `count` steps, at least one, of `unrolled` products. Its state is the places and the
        totals."""
        self._begin_block(name)
        counter = self.builder.phi(I64)
        variables = [self.builder.phi(value.type) for value in initial]
        places, totals = places.replaced(variables), list[ir.Value](variables[-self.products :])
        for _ in range(unrolled):
            self._prefetch_next(places)
            totals = self._add_products(places, totals)
            places = self._move(places)
        state = [*places.all(), *totals]
        left = self.builder.sub(counter, I64(1))
        for variable, start, value in zip(
            [counter, *variables], [count, *initial], [left, *state], strict=True
        ):
            variable.add_incoming(start, self.blocks[before])
            variable.add_incoming(value, self.blocks[name])
        goes_on = self.builder.icmp_unsigned("!=", left, I64(0))
        self.builder.cbranch(goes_on, self.blocks[name], self.blocks[behind])
        return state

    def _add_products(self, places: _Places, totals: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the totals with one more product each."""
        row = self._row_of_b(places)
        bases = self._bases(places)
        result: list[ir.Value] = []
        for row_number in self.rows:
            elements = self._elements(bases, row_number)
            for element, vector in zip(elements, row, strict=True):
                total = totals[len(result)]
                result.append(self.multiply_add(self.builder, total, element, vector, self.lanes))
        return result

    def _row_of_b(self, places: _Places) -> list[ir.Value]:
        """Return the vectors of a row of B."""
        if self.widenings:
            rows = [
                widening.rows(self._offset(places.b, panel))
                for widening, panel in zip(self.widenings, self.panels, strict=True)
            ]
            return [vector for (row,) in rows for vector in row]
        b, size = self._address(1, places.b, self.strides.b_depth), F32.bytes * self.lanes
        panels = [self._offset(b, panel) for panel in self.panels]
        return [
            self.builder.load(self._offset(panel, vector * size), typ=self.vector, align=4)
            for panel in panels
            for vector in self.vectors[: len(self.vectors) // len(panels)]
        ]

    def _bases(self, places: _Places) -> Sequence[ir.Value]:
        """Return the places of the elements of A: of the first of every _BASE_ROWS rows, or of all, once for
        each vector if some are read again."""
        if self.a_row is not None:
            return places.a
        first = self._address(0, places.a[0], self.strides.a_depth)
        again = self.vectors[1:] if self._rows_read_again() else ()
        return [first, *(self._hidden(first) for _ in again)]

    def _elements(self, bases: Sequence[ir.Value], row: int) -> list[ir.Value]:
        """Return a row's element of A, for each vector."""
        if self.a_row is not None:
            bases, distance = [bases[row // _BASE_ROWS]], self.builder.mul(self.a_row, I64(row % _BASE_ROWS))
        else:
            bases = bases if self._is_read_again(row) else bases[:1]
            distance = I64(row * (self.strides.a_row or 0))
        places = [self._offset(base, distance) for base in bases]
        loads = [self.builder.load(place, typ=llvm_type(self.type, 1), align=4) for place in places]
        values = [splat(self.builder, load, self.lanes) for load in loads]
        return values if len(values) > 1 else values * len(self.vectors)

    def _move(self, places: _Places) -> _Places:
        """Return the places of the next product."""
        # Counting from one index would lengthen all addresses: few processors read such operands at once.
        a, b = (
            DISTANCE_BYTES if each is None else each for each in (self.strides.a_depth, self.strides.b_depth)
        )
        step = 0 if self.stream_step is None else self.stream_step
        return _Places(
            tuple(self._hidden(self._offset(place, a)) for place in places.a),
            self._hidden(self._offset(places.b, b if self.b_row is None else self.b_row)),
            tuple(self._offset(place, step) for place in places.stream),
        )

    def _less_subtracted(self, totals: Sequence[ir.Value], a: ir.Value, b: ir.Value) -> list[ir.Value]:
        """Return the totals of 8-bit elements less what is subtracted from these: (a - p) (b - q) is
        a b - a q - p (b - q). Sums along k lie behind the groups, where A and B are then; behind them what is
        subtracted."""
        a_depth, b_depth = self.strides.a_depth, self.strides.b_depth
        if a_depth is None:
            raise TypeError("packed elements of A lie together, with their sums")
        b_step = DISTANCE_BYTES if b_depth is None else b_depth
        rows = [self._address(1, self._offset(b, row * b_step), b_depth) for row in range(2)]
        result = list(totals)
        for vector in self.vectors:
            at = vector * F32.bytes * self.lanes
            differences, q = (
                self.builder.load(self._offset(row, at), typ=self.vector, align=4) for row in rows
            )
            for row in self.rows:
                sums, p = (self._elements([self._offset(a, each * a_depth)], row)[0] for each in range(2))
                position = row * len(self.vectors) + vector
                less = self.builder.add(self.builder.mul(sums, q), self.builder.mul(p, differences))
                result[position] = self.builder.sub(result[position], less)
        return result

    def _prefetch_next(self, places: _Places) -> None:
        """Prefetch lines of the stream."""
        for place in places.stream:
            for line in range(self.strides.prefetched):
                at, level = self._offset(place, line * LINE), 3 if self.strides.is_read_once else 2
                operands = [at, I32(0), I32(level), I32(1)]
                intrinsic(self.builder, "llvm.prefetch.p0", ir.VOID, operands)

    def _address(self, argument: int, pointer: ir.Value, depth: int | None) -> ir.Value:
        """Return the address of an operand of the next product. With a table, the pointer is that to its
        distance from the operand, the argument of that number."""
        if depth is not None:
            return pointer
        return self._offset(self.function.args[argument], self.builder.load(pointer, typ=I64))

    def _is_read_again(self, row: int) -> bool:
        """Return whether each multiply-add of a row reads its element of A. These rows are spread evenly."""
        rows, chosen = len(self.rows), self._rows_read_again()
        return (row + 1) * chosen // rows > row * chosen // rows

    def _rows_read_again(self) -> int:
        """Return the number of rows whose multiply-adds broadcast their element of A as they read it.

        AVX-512 can, which saves an instruction. Two loads a cycle beside the multiply-adds allow this for
        some rows; a few loads are left as slack. LLVM writes such instructions if nothing else uses the
        element. With a table of distances there are none. One more read of each product finds the distance,
        and most vectors take two reads. So the loop runs a tenth faster (Intel Xeon with AVX-512).
        """
        anywhere = None in (self.strides.a_depth, self.strides.b_depth)
        if self.lanes < 16 or len(self.vectors) == 1 or anywhere:
            return 0
        spare = self.products - len(self.rows) - len(self.vectors) - 2
        return max(0, spare // (len(self.vectors) - 1))

    def _hidden(self, place: ir.Value) -> ir.Value:
        """Return a place of which LLVM knows nothing. Reads stay before or behind it."""
        return self.builder.asm(POINTER, "=r,0,~{memory}", [place], has_effects=True)

    def _places(self, tile: ir.Value, row_bytes: ir.Value) -> list[ir.Value]:
        """Return the places of the vectors of a tile whose rows are `row_bytes` apart."""
        size = F32.bytes * self.lanes
        rows = [self._offset(tile, self.builder.mul(row_bytes, I64(row))) for row in self.rows]
        return [self._offset(row, vector * size) for row in rows for vector in self.vectors]

    def _offset(self, pointer: ir.Value, distance: ir.Value | int) -> ir.Value:
        """Return the address that is some bytes further on."""
        bytes = I64(distance) if isinstance(distance, int) else distance
        return self.builder.gep(pointer, [bytes], source_etype=ir.IntType(8))

    def _merged(
        self, first: str, values: Sequence[ir.Value], second: str, others: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Return the values of whichever of two blocks comes before this one."""
        result = list[ir.Value]()
        for value, other in zip(values, others, strict=True):
            result.append(merged := self.builder.phi(value.type))
            merged.add_incoming(value, self.blocks[first])
            merged.add_incoming(other, self.blocks[second])
        return result

    def _begin_block(self, block: str) -> None:
        self.builder.position_at_end(self.blocks[block])
