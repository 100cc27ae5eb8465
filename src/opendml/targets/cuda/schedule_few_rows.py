"""Schedules attention of few queries over many keys, as in decoding with a cache.

Keys and values are read once, in their own type: FLOAT16, FLOAT32, or BFLOAT16 in the bits of UINT16. Blocks
share the keys of a matrix if there are too few matrices for all multiprocessors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import index

from opendml.compiler.kernel import Kernel, number_of
from opendml.compiler.loops import Loop
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.guards import guards_of, loads_of
from opendml.targets.common.launch import loop_words, power_of_two
from opendml.targets.common.pattern import Step
from opendml.targets.common.roles import AttentionRoles, attention_roles, count_of, loops_from_results
from opendml.targets.cuda.costs import read_by
from opendml.targets.cuda.launch import CudaLaunch, check_fit, tiled_pattern
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaAccess, CudaMode
from opendml.targets.cuda.planned_launch import VECTOR_BYTES

MOST_ROWS = 15
"""Queries that share keys, at most: a thread holds the results of all of them for its columns."""
_ROW_COUNTS = (1, 2, 4, 8, 12, MOST_ROWS)
"""Numbers of queries for which code is generated. Other numbers are padded to the next one."""
_WIDEST = 256
"""Most elements of a query or a value: the columns of 32 lanes."""
_WIDTHS = (VECTOR_BYTES, 8, 4)
"""Bytes of an asynchronous copy (cp.async)."""
_THREADS, _STAGES = 128, 3
"""Threads of a block, and steps of keys in the ring of each of its warps. With 4 blocks on a multiprocessor,
128 KiB are on their way, several times what the latency of an H100 needs."""
_KEYS = 4
"""Keys that a team of lanes takes in at a time."""
_MOST_BLOCKS, _REGISTERS_OF_ROW = 4, 12
"""Blocks that share a multiprocessor, at most, and registers of a thread for each query, about."""
_MOST_REGISTERS = 255
"""Registers of a thread, at most."""
_MOST_SLICES = 128
"""Slices of the keys of a matrix, at most; an estimate."""
_ROW_INSTRUCTIONS = 12
"""Instructions of a lane for each query and key, beside multiply-adds; counted."""
_BLOCK_RATE, _MOST_RATE = 60.0, 105.0
"""Instructions of single threads in a cycle: of a block, whose warps wait for their own results (measured on
an H100 with 4 queries: 61), and of all blocks on a multiprocessor."""
_APART = 0.25
"""The part of the shorter of two times, reading and computing, that does not overlap with the longer one;
fitted on an H100 with 1 to 12 queries."""
_BLOCK_BYTES = 16.0
"""Bytes that a block alone reads in a cycle: the stages of its rings in the latency of memory (H100: 17)."""
_BEGIN_CYCLES, _MERGE_CYCLES, _SLICE_CYCLES = 3000, 2500, 30
"""Cycles to begin a block, to merge slices, and for each slice that is merged; estimates."""


@dataclass(frozen=True, slots=True)
class FewRowsChoice:
    """A way to compute attention of few queries.

    Args:
        rows: the queries of the code.
        units: the elements of keys and of values that a lane reads at a time. They depend on sizes alone, so
            that alignment changes no bit of the results.
        copies: the bytes that one instruction copies of them.
        slices: the blocks that share the keys of a matrix.
    """

    rows: int
    units: tuple[int, int]
    copies: tuple[int, int]
    slices: int


class FewRowsShape:
    """The loops and operands of a softmax between products, for few queries."""

    def __init__(self, kernel: Kernel, roles: AttentionRoles, alignments: Sequence[int]) -> None:
        self.kernel, self._alignments = kernel, alignments
        self._queries_first = roles.nodes.products.operands[0] is roles.queries
        self._has_blind = roles.nodes.blind is not None
        own = roles.batch, roles.m, roles.n, roles.depth, roles.k
        self._batch, self._m, self._n, self._depth, self._keys = (
            loops_from_results(kernel, dimensions) for dimensions in own
        )
        self._operands = roles.keys, roles.nodes.weighted
        self._blind = roles.nodes.blind
        self.batch_count, self.m, self.keys = map(count_of, (self._batch, self._m, self._keys))

    @classmethod
    def of(cls, kernel: Kernel, alignments: Sequence[int]) -> FewRowsShape | None:
        """Return the shape of a kernel; None if it is not attention of few queries, or has no such launch."""
        for roles in attention_roles(kernel):
            found = cls(kernel, roles, alignments)
            if found._is_taken():
                return found
        return None

    def _is_taken(self) -> bool:
        """Return whether there are few queries, and keys and values that lie along their elements."""
        if self.m > MOST_ROWS or len(self._depth) != 1 or len(self._n) != 1:
            return False
        if max(self._depth[0].count, self._n[0].count) > _WIDEST or self.keys >= 2**30:
            return False
        blind = [] if self._blind is None else [self._blind]
        if any(any(self.kernel.loads[number].strides) for number in loads_of(blind)):
            return False
        if not all(map(self._is_read, self._operands, self._along())):
            return False
        units = [unit for unit in self._units() if unit is not None]
        return len(units) == len(self._operands) and None not in self._copies(units)

    def _is_read(self, operand: Node, along: Loop) -> bool:
        """Return whether copies can read the largest tensor of an operand."""
        return operand.type is ScalarType.FLOAT32 and len(self._copied(operand, along)) == 1

    def _copied(self, operand: Node, along: Loop) -> list[int]:
        """Return the loads of an operand that differ between keys, are contiguous along their elements, and
        read unconditionally."""
        loads = [node for node in ordered([operand]) if node.operation is Operation.SOURCE]
        return [
            number
            for number in (number_of(node) for node in loads if not node.operands)
            if self.kernel.loads[number].buffer is not None
            and along.strides[number] == self.kernel.loads[number].type.bytes
            and any(loop.strides[number] for loop in self._keys)
        ]

    def _units(self) -> list[int | None]:
        """Return the elements of keys and of values that a lane reads; None: rows do not end with units."""
        return [
            next((each // size for each in _WIDTHS if along.count * size % each == 0), None)
            for size, along in zip(self._sizes(), self._along(), strict=True)
        ]

    def _copies(self, units: Sequence[int]) -> list[int | None]:
        """Return the most bytes of units that one instruction copies; None: rows are not aligned."""
        return [
            next((width for width in _WIDTHS if width <= unit * size and self._is_aligned(load, width)), None)
            for load, size, unit in zip(self._loads(), self._sizes(), units, strict=True)
        ]

    def _sizes(self) -> list[int]:
        """Return the bytes of an element of keys and of values."""
        return [self.kernel.loads[number].type.bytes for number in self._loads()]

    def _along(self) -> tuple[Loop, Loop]:
        """Return the loops along the elements of keys and of values."""
        return self._depth[0], self._n[0]

    def _loads(self) -> list[int]:
        """Return the loads of keys and of values that are copied."""
        both = zip(self._operands, self._along(), strict=True)
        return [number for operand, along in both for number in self._copied(operand, along)]

    def _is_aligned(self, load: int, width: int) -> bool:
        """Return whether all rows of an operand begin at multiples of `width` bytes."""
        outer = [loop.strides[load] for loop in (*self._batch, *self._keys)]
        return self._alignments[load] % width == 0 and all(stride % width == 0 for stride in outer)

    def choice(self, machine: CudaMachine) -> tuple[FewRowsChoice, float]:
        """Return the way that takes the least time, and its cycles."""
        rows = next(each for each in _ROW_COUNTS if each >= self.m)
        k_unit, v_unit = (unit for unit in self._units() if unit is not None)
        units = k_unit, v_unit
        k_copy, v_copy = (width for width in self._copies(units) if width is not None)
        choice = FewRowsChoice(rows, units, (k_copy, v_copy), 1)
        code = _Code(self, choice)
        most = min(_MOST_SLICES, -(-self.keys // code.step))
        costs = [(self._cycles(code, slices, machine), slices) for slices in range(1, most + 1)]
        cycles, slices = min(costs)
        return replace(choice, slices=slices), cycles

    def _cycles(self, code: _Code, slices: int, machine: CudaMachine) -> float:
        """Return the estimated cycles of the kernel if blocks take a slice of the keys each."""
        all_steps = -(-self.keys // code.step)
        steps = -(-all_steps // slices)
        items = self.batch_count * -(-self.keys // (steps * code.step))
        resident = machine.multiprocessors * code.blocks(machine)
        # Blocks of the last wave have the bandwidth for themselves, as far as a multiprocessor reaches.
        whole, rest = divmod(items, resident)
        cycles = 0.0
        for blocks, waves in ((resident, whole), (rest, 1)):
            if blocks and waves:
                keys, busy = blocks * steps * code.step, min(blocks, machine.multiprocessors)
                bytes, count = keys * code.key_bytes, keys * code.key_instructions
                rate = min(_MOST_RATE, _BLOCK_RATE * blocks / busy)
                read = max(read_by(machine, bytes, busy), bytes / (_BLOCK_BYTES * blocks))
                computed = count / (rate * busy)
                cycles += waves * (max(read, computed) + _APART * min(read, computed))
        merging = (_MERGE_CYCLES + slices * _SLICE_CYCLES) * (slices > 1)
        return _BEGIN_CYCLES + cycles + merging

    def launch(self, choice: FewRowsChoice, machine: CudaMachine) -> CudaLaunch:
        """Return the launch of a choice.

        Raises:
            ValueError: the choice cannot compute the kernel.
        """
        check_fit(self, self.m <= choice.rows)
        parts = zip(self._loads(), self._sizes(), self._along(), choice.units, choice.copies, strict=True)
        for load, size, along, unit, width in parts:
            check_fit(self, along.count % unit == 0 and width <= unit * size)
            check_fit(self, self._is_aligned(load, width))
        code = _Code(self, choice)
        all_steps = -(-self.keys // code.step)
        own = -(-all_steps // choice.slices) * code.step
        slices = -(-self.keys // own)
        grid = self.batch_count * slices
        rows = *self._m, *self._n, *self._depth, *self._keys
        constants = {
            "THREADS": _THREADS,
            "BLOCKS": code.blocks(machine),
            "ROWS": choice.rows,
            "KEYS": _KEYS,
            "STAGES": _STAGES,
            "LANES": code.lanes,
            "MOST_STATES": _MOST_SLICES,
            "K_UNIT": choice.units[0],
            "V_UNIT": choice.units[1],
            "K_COPY": choice.copies[0],
            "V_COPY": choice.copies[1],
            "K_PARTS": code.parts[0],
            "V_PARTS": code.parts[1],
            "K_LOAD": self._loads()[0],
            "V_LOAD": self._loads()[1],
            "SPLIT": int(choice.slices > 1),
            "BLIND": int(self._has_blind),
            "NARROW": int(all(store.type is not ScalarType.FLOAT32 for store in self.kernel.stores)),
            "QUERIES_FIRST": int(self._queries_first),
            "LOOPS_M": len(self._m),
            "LOOPS_N": len(self._n),
            "LOOPS_DEPTH": len(self._depth),
            "LOOPS_KEYS": len(self._keys),
        }
        guards = guards_of(self.kernel.values)
        patterns = [
            CudaAccess(
                access.type,
                Step.NONE,
                tuple(loop.strides[number] != 0 for loop in self._batch),
                tuple(loop.strides[number] != 0 for loop in rows),
                counter=access.buffer is None,
                guarded=number in guards,
            )
            for number, access in enumerate(self.kernel.accesses)
        ]
        loops = (*self._batch, *rows)
        pattern = tiled_pattern(CudaMode.FEW_ROWS_CHAIN, self.kernel, patterns, loops, grid, constants)
        words = launch_words(
            pattern.mode,
            m=self.m,
            n=self._n[0].count,
            keys=self.keys,
            depth=self._depth[0].count,
            slice_keys=own,
            run_items=slices,
        )
        is_split = choice.slices > 1
        return CudaLaunch(
            pattern,
            grid,
            _THREADS,
            loop_words(self.kernel, self._batch, rows) | words,
            shared_bytes=code.shared_bytes,
            counters_bytes=4 * self.batch_count * is_split,
            scratch_bytes=4 * grid * self.m * code.state * is_split,
        )


class _Code:
    """The numbers that follow from a choice: those of the code, and the costs of a key."""

    def __init__(self, shape: FewRowsShape, choice: FewRowsChoice) -> None:
        self._rows = choice.rows
        # The code is made for these numbers.
        counts = [index(loop.count) for loop in shape._along()]
        units = [-(-count // unit) for count, unit in zip(counts, choice.units, strict=True)]
        self.lanes = min(32, max(_KEYS, power_of_two(max(units))))
        self.parts = [-(-count // self.lanes) for count in units]
        padded = [parts * self.lanes * unit for parts, unit in zip(self.parts, choice.units, strict=True)]
        self._depth, self._width = padded
        self.step = _THREADS // self.lanes * _KEYS
        """The keys that a block takes in at a time."""
        sizes = shape._sizes()
        self.key_bytes = sum(count * size for count, size in zip(counts, sizes, strict=True))
        self._stage_bytes = sum(count * size for count, size in zip(padded, sizes, strict=True)) * self.step
        self.key_instructions = (
            self._depth * (1 + self._rows)
            + self._width * (1 + 1.25 * self._rows)
            + self.lanes * self._rows * _ROW_INSTRUCTIONS
        )

    @property
    def state(self) -> int:
        """The numbers of the state of a query."""
        return self._width + 4

    @property
    def shared_bytes(self) -> int:
        """The bytes of shared memory of a block: queries, and the ring or the states of warps."""
        queries = 4 * (self._rows * self._depth + -(-self._rows // 4) * 4)
        states = 4 * self._rows * (_THREADS // 32 * self.state + _MOST_SLICES + 2)
        return queries + max(_STAGES * self._stage_bytes, states)

    def blocks(self, machine: CudaMachine) -> int:
        """Return the blocks that share a multiprocessor."""
        columns = self._width // self.lanes
        registers = min(64 + self._rows * (columns + _REGISTERS_OF_ROW), _MOST_REGISTERS)
        fitting = min(
            machine.shared_bytes // (self.shared_bytes + 1024), machine.registers // (_THREADS * registers)
        )
        return max(1, min(_MOST_BLOCKS, fitting))
