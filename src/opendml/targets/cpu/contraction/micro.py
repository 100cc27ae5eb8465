"""The innermost loop of sums of products: a tile of results in registers, which take in the products of one
column of a, each element broadcast, and one row of b, in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.code import I1, I32, I64, POINTER
from opendml.targets.cpu.contraction.arithmetic import BYTES, multiply_add, total_type
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.pattern import MicroKernel
from opendml.targets.cpu.values import intrinsic, llvm_type, number, splat

DISTANCE_BYTES = 8
"""Of the distance of what one product takes of an operand."""
_LONG_STEP = 32
"""Multiply-adds in one step of the loop, at most, unless there are more of one product: enough to hide its
counting, few enough for the registers."""


@dataclass(frozen=True, slots=True)
class Strides:
    """Where the packed operands and the sums lie, in bytes: one row of a tile to the next, and along k.
    Along k, the operand whose distance is None lies anywhere."""

    a_row: int
    a_depth: int | None
    b_depth: int | None
    c_row: int
    asks: bool = False
    """Whether what is read next is asked for."""
    packed: ScalarType = F32
    """The type of the elements of a."""


def emit_micro_kernel(
    module: ir.Module, name: str, micro: MicroKernel, lanes: int, strides: Strides
) -> ir.Function:
    """Adds the function name(a, b, c, results, row_bytes, depth, adds) to the module: the sums of `depth`
    products (or as many words of them), added to what `c` holds if `adds`, into `results`, whose rows are
    `row_bytes` apart.

    Where an operand lies anywhere, a further argument points to its distances from there; another one to what
    is asked for, and the last says how many bytes with each product."""
    further = [POINTER] * (None in (strides.a_depth, strides.b_depth))
    further += [POINTER, I64] * strides.asks
    signature = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, POINTER, POINTER, I64, I64, I1, *further])
    function = ir.Function(module, signature, name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    function.attributes.add("noinline")
    for argument in function.args[:2]:
        argument.add_attribute("noalias")
    _MicroCode(function, micro, lanes, strides).emit()
    return function


class _MicroCode:
    def __init__(self, function: ir.Function, micro: MicroKernel, lanes: int, strides: Strides) -> None:
        self.function, self.lanes, self.strides = function, lanes, strides
        self.rows, self.vectors = range(micro.rows), range(micro.vectors)
        self.products = micro.rows * micro.vectors
        self.step = min(4, max(1, _LONG_STEP // self.products))
        self.type = total_type(strides.packed)
        self.multiply_add = multiply_add(strides.packed)
        self.vector = llvm_type(self.type, lanes)
        self.blocks = {
            name: function.append_basic_block(name)
            for name in ("entry", "steps", "rest_start", "rest", "done", "add", "store")
        }
        self.builder = ir.IRBuilder(self.blocks["entry"])

    def emit(self) -> None:
        """Products are added from zero on, and their sums to what `c` holds: so rounding errors grow with the
        depth alone."""
        a, b, c, results, row_bytes, depth, adds, *further = self.function.args
        if self.strides.a_depth is None:
            a = further[0]
        if self.strides.b_depth is None:
            b = further[0]
        asked = further[-2:-1] if self.strides.asks else []
        steps = self.builder.udiv(depth, I64(self.step))
        rest = self.builder.urem(depth, I64(self.step))
        has_steps = self.builder.icmp_unsigned("!=", steps, I64(0))
        self.builder.cbranch(has_steps, self.blocks["steps"], self.blocks["rest_start"])
        zeros = [number(self.type, self.lanes, 0)] * self.products
        state = self._loop("steps", "entry", "rest_start", steps, [a, b, *asked, *zeros], self.step)
        self._at("rest_start")
        joined = self._merged("entry", [a, b, *asked, *zeros], "steps", state)
        has_rest = self.builder.icmp_unsigned("!=", rest, I64(0))
        self.builder.cbranch(has_rest, self.blocks["rest"], self.blocks["done"])
        state = self._loop("rest", "rest_start", "done", rest, joined, 1)
        self._at("done")
        state = self._merged("rest_start", joined, "rest", state)
        totals = state[-self.products :]
        if self.strides.packed in BYTES:
            totals = self._less_subtracted(totals, *state[:2])
        self.builder.cbranch(adds, self.blocks["add"], self.blocks["store"])
        self._at("add")
        places = self._places(c, I64(self.strides.c_row))
        held = [self.builder.load(place, typ=self.vector, align=4) for place in places]
        add = self.builder.fadd if self.type.is_float else self.builder.add
        added = [add(*pair) for pair in zip(held, totals, strict=True)]
        self.builder.branch(self.blocks["store"])
        self._at("store")
        sums = self._merged("done", totals, "add", added)
        for place, value in zip(self._places(results, row_bytes), sums, strict=True):
            self.builder.store(value, place, align=4)
        self.builder.ret_void()

    def _loop(
        self, name: str, before: str, behind: str, count: ir.Value, initial: Sequence[ir.Value], unrolled: int
    ) -> list[ir.Value]:
        """`count` steps, at least one; the state is where a and b stand, then the totals."""
        self._at(name)
        counter = self.builder.phi(I64)
        variables = [self.builder.phi(value.type) for value in initial]
        state = list(variables)
        for _ in range(unrolled):
            state = self._taken_in(state)
        left = self.builder.sub(counter, I64(1))
        for variable, start, value in zip(
            [counter, *variables], [count, *initial], [left, *state], strict=True
        ):
            variable.add_incoming(start, self.blocks[before])
            variable.add_incoming(value, self.blocks[name])
        goes_on = self.builder.icmp_unsigned("!=", left, I64(0))
        self.builder.cbranch(goes_on, self.blocks[name], self.blocks[behind])
        return state

    def _taken_in(self, state: Sequence[ir.Value]) -> list[ir.Value]:
        """The state with one more product of each result."""
        a, b, *asked = state[: -self.products]
        totals = list(state[-self.products :])
        for place in asked:
            self._ask(place)
        (a_place, a_depth), (b_place, b_depth) = (
            self._found(0, a, self.strides.a_depth),
            self._found(1, b, self.strides.b_depth),
        )
        size = F32.bytes * self.lanes
        row = [
            self.builder.load(self._offset(b_place, vector * size), typ=self.vector, align=4)
            for vector in self.vectors
        ]
        again = (
            [a_place, *(self._hidden(a_place) for _ in self.vectors[1:])] if self._rows_read_again() else []
        )
        for row_number in self.rows:
            elements = self._broadcast([a_place], row_number) * len(row)
            if self._is_read_again(row_number):
                elements = self._broadcast(again, row_number)
            for vector in self.vectors:
                at = row_number * len(self.vectors) + vector
                operands = elements[vector], row[vector]
                totals[at] = self.multiply_add(self.builder, totals[at], *operands, self.lanes)
        a, b = self._offset(a, a_depth), self._offset(b, b_depth)
        # Counting from one index would lengthen all addresses: few processors read such operands at once.
        step = self.function.args[-1]
        asked = [self.builder.gep(place, [step], source_etype=ir.IntType(8)) for place in asked]
        return [self._hidden(a), self._hidden(b), *asked, *totals]

    def _less_subtracted(self, totals: Sequence[ir.Value], a: ir.Value, b: ir.Value) -> list[ir.Value]:
        """Products of elements from which something is to be subtracted: it lies behind their sums, which
        are where a and b stand. (a - p) (b - q) is a b - a q - p (b - q)."""
        a_depth, b_depth = self.strides.a_depth, self.strides.b_depth
        if a_depth is None or b_depth is None:
            raise TypeError("operands with sums lie together")
        result = list(totals)
        for vector in self.vectors:
            at = vector * F32.bytes * self.lanes
            differences, q = (
                self.builder.load(self._offset(b, at + row * b_depth), typ=self.vector, align=4)
                for row in range(2)
            )
            for row in self.rows:
                (sums,), (p,) = (self._broadcast([self._offset(a, each * a_depth)], row) for each in range(2))
                position = row * len(self.vectors) + vector
                less = self.builder.add(self.builder.mul(sums, q), self.builder.mul(p, differences))
                result[position] = self.builder.sub(result[position], less)
        return result

    def _ask(self, place: ir.Value) -> None:
        """Asks for a line, into the second cache."""
        operands = [place, I32(0), I32(2), I32(1)]
        intrinsic(self.builder, "llvm.prefetch.p0", ir.VoidType(), operands)

    def _found(self, argument: int, pointer: ir.Value, depth: int | None) -> tuple[ir.Value, int]:
        """Where an operand of the next product lies, and the bytes to step on: where it lies anywhere, the
        pointer is that to its distance."""
        if depth is not None:
            return pointer, depth
        distance = self.builder.load(pointer, typ=I64)
        origin = self.function.args[argument]
        return self.builder.gep(origin, [distance], source_etype=ir.IntType(8)), DISTANCE_BYTES

    def _broadcast(self, places: Sequence[ir.Value], row: int) -> list[ir.Value]:
        """A row's element of a at each place."""
        element = llvm_type(self.type, 1)
        loads = [
            self.builder.load(self._offset(place, row * self.strides.a_row), typ=element, align=4)
            for place in places
        ]
        return [splat(self.builder, load, self.lanes) for load in loads]

    def _is_read_again(self, row: int) -> bool:
        """Whether each multiply-add of a row reads its element of a: so many rows, evenly."""
        rows, chosen = len(self.rows), self._rows_read_again()
        return (row + 1) * chosen // rows > row * chosen // rows

    def _rows_read_again(self) -> int:
        """Multiply-adds of AVX-512 broadcast an element as they read it, which saves the instruction that
        does: of so many rows, as two loads a cycle allow beside the multiply-adds, less some slack. LLVM
        writes these where nothing else uses what is read."""
        if self.lanes < 16 or len(self.vectors) == 1:
            return 0
        spare = self.products - len(self.rows) - len(self.vectors) - 2
        if self.strides.b_depth is None:
            # Vectors that lie anywhere take two reads each, most of them.
            spare -= len(self.vectors)
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
        return self.builder.gep(pointer, [I64(distance)], source_etype=ir.IntType(8))

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
