"""The floor of products: multiply-adds of vectors that never leave their registers, on all threads."""

from __future__ import annotations

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64, POINTER
from opendml.targets.cpu.contraction.arithmetic import multiply_add, total_type
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.machine_code import compile_object, load_object
from opendml.targets.cpu.values import llvm_type, number

_MOST_SUMS = 24
"""Independent sums, if registers hold them: two multiply-adds for each cycle until the first has its
result, and more."""
_UNROLLED = 4
"""Multiply-adds of each sum in one turn of the loop, whose counting then costs nothing."""
_TURNS = 80_000


class Peak:
    """Runs the loop on every thread at once, and times it there, so that starting threads counts nowhere.

    Args:
        threads: how many run it.
        packed: the type of what is multiplied, FLOAT32 or INT8; four products of 8 bits share a lane.
    """

    def __init__(self, threads: int, packed: ScalarType = ScalarType.FLOAT32) -> None:
        self._packed, self._type = packed, total_type(packed)
        self._lanes = machine().vector_bytes // self._type.bytes
        self._sums = min(_MOST_SUMS, machine().registers - 2)
        addresses = load_object(compile_object(self._assembly()), ("peak",))
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(addresses["peak"])
        self._rooms = [ctypes.create_string_buffer(self._sums * 64 + 64) for _ in range(threads)]

    def operations(self) -> float:
        """Return the operations in a second; a multiply-add is two."""
        barrier = threading.Barrier(len(self._rooms))
        with ThreadPoolExecutor(len(self._rooms)) as pool:
            return sum(pool.map(partial(self._speed, barrier), self._rooms))

    def _speed(self, barrier: threading.Barrier, room: ctypes.Array[ctypes.c_char]) -> float:
        """Of one thread, which begins when all are there."""
        address = ctypes.addressof(room)
        barrier.wait()
        begun = perf_counter()
        self._run(_TURNS, address)
        products = self._lanes * (self._type.bytes // self._packed.bytes)
        return 2 * self._sums * _UNROLLED * products * _TURNS / (perf_counter() - begun)

    def _assembly(self) -> str:
        function = ir.Function(module := ir.Module(machine().triple), ir.VOID, [I64, POINTER], "peak")
        entry, loop, done = (function.append_basic_block(name) for name in ("entry", "loop", "done"))
        vector = llvm_type(self._type, self._lanes)
        multiply = multiply_add(self._packed)
        builder = ir.IRBuilder(entry)
        a = builder.load(function.args[1], typ=vector, align=4)
        builder.branch(loop)
        builder.position_at_end(loop)
        step = builder.phi(I64)
        sums = [builder.phi(vector) for _ in range(self._sums)]
        following: list[ir.Value] = list(sums)
        for _ in range(_UNROLLED):
            following = [multiply(builder, each, a, a, self._lanes) for each in following]
        step.add_incoming(I64(0), entry)
        after = builder.add(step, I64(1))
        step.add_incoming(after, loop)
        for index, (before, each) in enumerate(zip(sums, following, strict=True)):
            before.add_incoming(number(self._type, self._lanes, index), entry)
            before.add_incoming(each, loop)
        builder.cbranch(builder.icmp_signed("<", after, function.args[0]), loop, done)
        builder.position_at_end(done)
        for index, each in enumerate(following):
            place = builder.gep(function.args[1], [I64(64 * index)], source_etype=ir.IntType(8))
            builder.store(each, place, align=4)
        builder.ret_void()
        return str(module)
