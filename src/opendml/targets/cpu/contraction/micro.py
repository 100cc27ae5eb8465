"""The innermost loop of sums of products: a tile of results in registers, which take in the products of one
column of a, each element broadcast, and one row of b, in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.code import I1, I32, I64, POINTER, internal_function
from opendml.targets.cpu.contraction.arithmetic import BYTES, multiply_add, total_type
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.patterns import MicroKernel
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import intrinsic, llvm_type, number, splat

DISTANCE_BYTES = 8
"""Of the distance of what one product takes of an operand."""
_BASE_ROWS = 5
"""Rows whose distances from the first of them addresses can say."""
_LONG_STEP = 32
"""Multiply-adds in one step of the loop, at most, unless there are more of one product: enough to hide its
counting, few enough for the registers."""

_TURNS = 4
"""Products of a step of a loop that asks for several things in turns."""


@dataclass(frozen=True, slots=True)
class Strides:
    """Where the operands and the sums lie, in bytes: one row of a tile to the next, and along k. Along k, the
    operand whose distance is None lies anywhere; if that of rows of a is, an argument says it.

    `asked`: so many lines of what is read next are asked for with each product. `in_turns`: so many things
    are asked for instead, one line of each with every fourth product. `b_in_place`: an argument says the
    distance of b along k."""

    a_row: int | None
    a_depth: int | None
    b_depth: int | None
    c_row: int
    asked: int = 0
    in_turns: int = 0
    b_in_place: bool = False
    packed: ScalarType = F32
    """The type of the elements of a."""


def emit_micro_kernel(
    module: ir.Module, name: str, micro: MicroKernel, lanes: int, strides: Strides
) -> ir.Function:
    """Adds the function name(a, b, c, results, row_bytes, depth, adds) to the module: the sums of `depth`
    products (or as many words of them), added to what `c` holds if `adds`, into `results`, whose rows are
    `row_bytes` apart.

    Where an operand lies anywhere, a further argument points to its distances from there; another one to what
    is asked for, and the next says how far on it lies with each product; two more for each other thing.
    Of an operand in place the bytes between rows are last."""
    further = [POINTER] * (None in (strides.a_depth, strides.b_depth))
    further += [POINTER, I64] * _asked_places(strides)
    further += [I64] * (strides.a_row is None)
    further += [I64] * strides.b_in_place
    arguments = [POINTER, POINTER, POINTER, POINTER, I64, I64, I1, *further]
    function = internal_function(module, name, arguments)
    for argument in function.args[:2]:
        argument.add_attribute("noalias")
    _MicroCode(function, micro, lanes, strides).emit()
    return function


def _asked_places(strides: Strides) -> int:
    """How many things are asked for."""
    return strides.in_turns or int(strides.asked > 0)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the operands of the next product lie: a at the first of every _BASE_ROWS rows, or of all.
    `asked`: what is asked for."""

    a: tuple[ir.Value, ...]
    b: ir.Value
    asked: tuple[ir.Value, ...]

    def all(self) -> list[ir.Value]:
        return [*self.a, self.b, *self.asked]

    def of(self, values: Sequence[ir.Value]) -> _Places:
        """The same of other values, in their order."""
        count = len(self.a)
        return _Places(tuple(values[:count]), values[count], tuple(values[count + 1 :][: len(self.asked)]))


class _MicroCode:
    def __init__(self, function: ir.Function, micro: MicroKernel, lanes: int, strides: Strides) -> None:
        self.function, self.lanes, self.strides = function, lanes, strides
        self.rows, self.vectors = range(micro.rows), range(micro.vectors)
        self.products = micro.rows * micro.vectors
        self.step = _TURNS if strides.in_turns else min(4, max(1, _LONG_STEP // self.products))
        self.type = total_type(strides.packed)
        self.multiply_add = multiply_add(strides.packed)
        self.vector = llvm_type(self.type, lanes)
        self.blocks = {
            name: function.append_basic_block(name)
            for name in ("entry", "steps", "rest_start", "rest", "done", "add", "store")
        }
        self.builder = ir.IRBuilder(self.blocks["entry"])
        further = iter(function.args[7:])
        self.distances = next(further) if None in (strides.a_depth, strides.b_depth) else None
        asked = [(next(further), next(further)) for _ in range(_asked_places(strides))]
        self.asked, self.asked_steps = ([pair[part] for pair in asked] for part in range(2))
        if strides.in_turns:
            self.asked_steps = [self.builder.mul(step, I64(_TURNS)) for step in self.asked_steps]
        self.a_row = next(further) if strides.a_row is None else None
        self.b_row = next(further) if strides.b_in_place else None

    def emit(self) -> None:
        """Products are added from zero on, and their sums to what `c` holds: so rounding errors grow with the
        depth alone."""
        _, _, c, results, row_bytes, depth, adds, *_ = self.function.args
        places = self._first()
        steps = self.builder.udiv(depth, I64(self.step))
        rest = self.builder.urem(depth, I64(self.step))
        has_steps = self.builder.icmp_unsigned("!=", steps, I64(0))
        self.builder.cbranch(has_steps, self.blocks["steps"], self.blocks["rest_start"])
        zeros = [number(self.type, self.lanes, 0)] * self.products
        initial = [*places.all(), *zeros]
        state = self._loop("steps", "entry", "rest_start", steps, places, initial, self.step)
        self._at("rest_start")
        joined = self._merged("entry", initial, "steps", state)
        has_rest = self.builder.icmp_unsigned("!=", rest, I64(0))
        self.builder.cbranch(has_rest, self.blocks["rest"], self.blocks["done"])
        state = self._loop("rest", "rest_start", "done", rest, places, joined, 1)
        self._at("done")
        state = self._merged("rest_start", joined, "rest", state)
        totals = state[-self.products :]
        if self.strides.packed in BYTES:
            totals = self._less_subtracted(totals, *state[:2])
        self.builder.cbranch(adds, self.blocks["add"], self.blocks["store"])
        self._at("add")
        held_at = self._places(c, I64(self.strides.c_row))
        held = [self.builder.load(place, typ=self.vector, align=4) for place in held_at]
        add = self.builder.fadd if self.type.is_float else self.builder.add
        added = [add(*pair) for pair in zip(held, totals, strict=True)]
        self.builder.branch(self.blocks["store"])
        self._at("store")
        sums = self._merged("done", totals, "add", added)
        for place, value in zip(self._places(results, row_bytes), sums, strict=True):
            self.builder.store(value, place, align=4)
        self.builder.ret_void()

    def _first(self) -> _Places:
        """Where the operands of the first product lie."""
        a, b = self.function.args[:2]
        if self.strides.a_depth is None:
            a = self.distances
        if self.strides.b_depth is None:
            b = self.distances
        bases = [a]
        if self.a_row is not None:
            distances = [self.builder.mul(self.a_row, I64(row)) for row in self.rows[::_BASE_ROWS]]
            bases = [self._further(a, distance) for distance in distances]
        return _Places(tuple(bases), b, tuple(self.asked))

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
        """`count` steps, at least one, of so many products; the state is the places, then the totals."""
        self._at(name)
        counter = self.builder.phi(I64)
        variables = [self.builder.phi(value.type) for value in initial]
        places, totals = places.of(variables), variables[-self.products :]
        for product in range(unrolled):
            self._ask_for_next(places, product)
            totals = self._taken_in(places, totals)
            places = self._moved_on(places, product)
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

    def _taken_in(self, places: _Places, totals: Sequence[ir.Value]) -> list[ir.Value]:
        """The totals with one more product each."""
        b, size = self._found(1, places.b, self.strides.b_depth), F32.bytes * self.lanes
        row = [
            self.builder.load(self._offset(b, vector * size), typ=self.vector, align=4)
            for vector in self.vectors
        ]
        bases = self._bases(places)
        result: list[ir.Value] = []
        for row_number in self.rows:
            elements = self._elements(bases, row_number)
            for element, vector in zip(elements, row, strict=True):
                total = totals[len(result)]
                result.append(self.multiply_add(self.builder, total, element, vector, self.lanes))
        return result

    def _bases(self, places: _Places) -> Sequence[ir.Value]:
        """Where the elements of a lie: the first of every _BASE_ROWS rows, or of all, once for each vector if
        some are read again."""
        if self.a_row is not None:
            return places.a
        first = self._found(0, places.a[0], self.strides.a_depth)
        again = self.vectors[1:] if self._rows_read_again() else ()
        return [first, *(self._hidden(first) for _ in again)]

    def _elements(self, bases: Sequence[ir.Value], row: int) -> list[ir.Value]:
        """A row's element of a, for each vector."""
        if self.strides.a_row is None:
            bases, distance = [bases[row // _BASE_ROWS]], self.builder.mul(self.a_row, I64(row % _BASE_ROWS))
        else:
            bases, distance = bases if self._is_read_again(row) else bases[:1], I64(row * self.strides.a_row)
        places = [self._further(base, distance) for base in bases]
        loads = [self.builder.load(place, typ=llvm_type(self.type, 1), align=4) for place in places]
        values = [splat(self.builder, load, self.lanes) for load in loads]
        return values if len(values) > 1 else values * len(self.vectors)

    def _moved_on(self, places: _Places, product: int) -> _Places:
        """The places of the next product, behind one of a step."""
        # Counting from one index would lengthen all addresses: few processors read such operands at once.
        a, b = (
            DISTANCE_BYTES if each is None else each for each in (self.strides.a_depth, self.strides.b_depth)
        )
        return _Places(
            tuple(self._hidden(self._offset(place, a)) for place in places.a),
            self._hidden(self._further(places.b, I64(b) if self.b_row is None else self.b_row)),
            self._asked_further(places.asked, product),
        )

    def _asked_further(self, places: Sequence[ir.Value], product: int) -> tuple[ir.Value, ...]:
        """Where what is asked for lies behind a product of a step; in turns, at its end."""
        if self.strides.in_turns and product < _TURNS - 1:
            return tuple(places)
        return tuple(self._further(*pair) for pair in zip(places, self.asked_steps, strict=True))

    def _less_subtracted(self, totals: Sequence[ir.Value], a: ir.Value, b: ir.Value) -> list[ir.Value]:
        """Products of elements from which something is to be subtracted: it lies behind their sums, which
        are where a and b stand. (a - p) (b - q) is a b - a q - p (b - q)."""
        a_depth, b_depth = self.strides.a_depth, self.strides.b_depth
        if a_depth is None:
            raise TypeError("what is broadcast lies together, with its sums")
        b_step = DISTANCE_BYTES if b_depth is None else b_depth
        rows = [self._found(1, self._offset(b, row * b_step), b_depth) for row in range(2)]
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

    def _ask_for_next(self, places: _Places, product: int) -> None:
        """Asks for what is read next, with a product of a step."""
        if self.strides.in_turns:
            for place in places.asked[product : product + 1]:
                self._ask(place)
            return
        for place in places.asked:
            for line in range(self.strides.asked):
                self._ask(self._offset(place, line * LINE))

    def _ask(self, place: ir.Value) -> None:
        """Asks for a line, into the second cache; into the first where it is read soon and once."""
        operands = [place, I32(0), I32(3 if self.strides.b_in_place else 2), I32(1)]
        intrinsic(self.builder, "llvm.prefetch.p0", ir.VoidType(), operands)

    def _found(self, argument: int, pointer: ir.Value, depth: int | None) -> ir.Value:
        """Where an operand of the next product lies: where it lies anywhere, the pointer is that to its
        distance."""
        if depth is not None:
            return pointer
        return self._further(self.function.args[argument], self.builder.load(pointer, typ=I64))

    def _is_read_again(self, row: int) -> bool:
        """Whether each multiply-add of a row reads its element of a: so many rows, evenly."""
        rows, chosen = len(self.rows), self._rows_read_again()
        return (row + 1) * chosen // rows > row * chosen // rows

    def _rows_read_again(self) -> int:
        """Multiply-adds of AVX-512 broadcast an element as they read it, which saves the instruction that
        does: of so many rows, as two loads a cycle allow beside the multiply-adds, less some slack. LLVM
        writes these where nothing else uses what is read. None where an operand lies anywhere: one more read
        of each product says where, vectors there take two reads each, most of them, and without others it
        runs a tenth faster."""
        anywhere = None in (self.strides.a_depth, self.strides.b_depth)
        if self.lanes < 16 or len(self.vectors) == 1 or anywhere:
            return 0
        spare = self.products - len(self.rows) - len(self.vectors) - 2
        return max(0, spare // (len(self.vectors) - 1))

    def _hidden(self, place: ir.Value) -> ir.Value:
        """The same place, of which LLVM knows nothing; and reads stay before or behind it."""
        signature = ir.FunctionType(POINTER, [POINTER])
        return self.builder.asm(signature, "", "=r,0,~{memory}", [place], True)

    def _places(self, tile: ir.Value, row_bytes: ir.Value) -> list[ir.Value]:
        """Of the vectors of a tile whose rows are so many bytes apart."""
        size = F32.bytes * self.lanes
        rows = [
            self.builder.gep(tile, [self.builder.mul(row_bytes, I64(row))], source_etype=ir.IntType(8))
            for row in self.rows
        ]
        return [self._offset(row, vector * size) for row in rows for vector in self.vectors]

    def _offset(self, pointer: ir.Value, distance: int) -> ir.Value:
        return self._further(pointer, I64(distance))

    def _further(self, pointer: ir.Value, distance: ir.Value) -> ir.Value:
        return self.builder.gep(pointer, [distance], source_etype=ir.IntType(8))

    def _merged(
        self, first: str, values: Sequence[ir.Value], second: str, others: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The values of whichever of two blocks comes before this one."""
        result = []
        for value, other in zip(values, others, strict=True):
            result.append(self.builder.phi(value.type))
            result[-1].add_incoming(value, self.blocks[first])
            result[-1].add_incoming(other, self.blocks[second])
        return result

    def _at(self, block: str) -> None:
        self.builder.position_at_end(self.blocks[block])
