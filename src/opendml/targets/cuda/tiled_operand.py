"""Decides how operands of contractions go to shared memory in tiles, and how loops move accesses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from opendml.compiler.kernel import Kernel, number_of
from opendml.compiler.loops import Loop
from opendml.compiler.prices import operation_count
from opendml.program.node import Node, Operation, ordered
from opendml.targets.common.differences import BYTES
from opendml.targets.common.guards import guards_of, loads_of
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.contraction_source import SHORT_TYPES
from opendml.targets.cuda.pattern import CudaAccess
from opendml.targets.cuda.planned_launch import VECTOR_BYTES

_LOAD_INSTRUCTIONS, _GUARD_INSTRUCTIONS = 8, 10
"""Instructions for each unit of an operand that is loaded, and more where it is guarded or computed."""
_STORE_INSTRUCTIONS = 4
"""Instructions that pack a unit of a computed operand and store it in shared memory; an estimate."""
_NEAR = 4
"""Greatest distance, in elements, of rows of an operand that neighbouring threads load rather than
neighbours along several loops."""

_QUAD = 4
"""Bytes of a word: neighbours along k, which are stored together, and neighbours that are loaded together
where these lie along the rows."""


class TiledOperand:
    """An operand whose `rows` lie beside what is summed, `k`; tensor cores take elements of 16 bits, and
    integers of 8 bits, which then lie along k.

    An operand that is only loaded is copied. Of one that is computed, a thread computes `unit` neighbours of
    its largest tensor at a time; `steps` says how each of its loads moves within such a unit.
    """

    def __init__(
        self,
        value: Node,
        kernel: Kernel,
        alignments: Sequence[int],
        batch: Sequence[Loop],
        rows: Sequence[Loop],
        k: Sequence[Loop],
    ) -> None:
        self.element_bytes = value.type.bytes
        is_short, self._bytes = value.type in SHORT_TYPES, value.type in BYTES
        self._alignments, self._batch = alignments, batch
        self._loaded = value.operation is Operation.SOURCE
        self._load = _data_load(value, kernel)
        self.load_bytes = kernel.loads[self._load].type.bytes
        self._loops = {"k": k, "rows": rows}
        by_rows = len(k) > 1 and self._step("rows") <= _NEAR * self.load_bytes
        self.along_k = self._step("k") < self._step("rows") and not by_rows
        self._plain = self._loaded and not value.operands
        self._work = 0 if self._loaded else _work(value)
        self.by_row = self._bytes or (self.along_k and is_short)
        turned = self.along_k is not self.by_row
        widest = self._widest() if self._plain and (self._bytes or not turned) else 1
        turned_bytes = turned and self._bytes
        self.copied = self._loaded and widest * self.element_bytes >= 4 and not turned_bytes
        along = math.prod(loop.count for loop in (k if self.along_k else rows))
        in_words = turned_bytes and widest >= _QUAD and along % _QUAD == 0
        self.unit = widest if self.copied else _QUAD if in_words else 1
        self._partial = self.copied and along % self.unit > 0
        self.steps: Mapping[int, Step] = {}
        if not self._loaded and (self.along_k or not self._bytes) and _is_unguarded(value, kernel):
            self.unit = self._widest_computed()
            if self.unit > 1:
                self.steps = {number: self._step_in_unit(number, kernel) for number in loads_of([value])}
                self._partial = along % self.unit > 0

    def constants(self) -> dict[str, int]:
        """Return the constants of the code."""
        return {
            "ALONG_K": int(self.along_k),
            "COPIED": int(self.copied),
            "COMPUTED": int(bool(self.steps)),
            "PARTIAL": int(self._partial),
            "BY_ROW": int(self.by_row),
            "UNIT": self.unit,
            "QUAD": _QUAD if self._bytes and not self.copied and not self.steps else 1,
        }

    def bytes(self, rows: int, depth: int) -> int:
        """Return the bytes of shared memory of one tile of the operand."""
        padding = VECTOR_BYTES // self.element_bytes
        if self.by_row:
            return rows * (depth + padding) * self.element_bytes
        return depth * (rows + padding) * self.element_bytes

    def loading(self, rows: int, depth: int) -> float:
        """Return about how many instructions of single threads load one tile of the operand."""
        if self.steps:
            each = len(self.steps) * _LOAD_INSTRUCTIONS + _STORE_INSTRUCTIONS
        else:
            each = _LOAD_INSTRUCTIONS if self._plain else _LOAD_INSTRUCTIONS + _GUARD_INSTRUCTIONS
        return rows * depth * (each / self.unit + self._work)

    def lane_steps(self) -> dict[str, int]:
        """Return the parameters that say how far loads of a computed operand move from lane to lane."""
        inner = self._fast[-1].strides if self.steps else ()
        return {f"step{number}": inner[number] for number in self.steps}

    @property
    def _fast(self) -> Sequence[Loop]:
        """Return the loops along which units lie."""
        return self._loops["k" if self.along_k else "rows"]

    def _widest_computed(self) -> int:
        """Return how many neighbours a thread computes at a time: of the largest tensor they lie together."""
        unit = VECTOR_BYTES // self.element_bytes
        while unit > 1 and not self._is_together(self._load, unit * self.load_bytes, unit):
            unit //= 2
        return unit

    def _is_together(self, number: int, bytes: int, unit: int) -> bool:
        """Return whether a load reads the neighbours of a unit with aligned accesses. Units lie within the
        innermost loop, and run over the end of that alone."""
        aligned, fast = min(bytes, VECTOR_BYTES), self._fast
        if not fast or fast[-1].strides[number] * unit != bytes or (len(fast) > 1 and fast[-1].count % unit):
            return False
        slow = self._loops["rows" if self.along_k else "k"]
        outer = [loop.strides[number] for loop in (*self._batch, *slow, *fast[:-1])]
        return all(step % aligned == 0 for step in (self._alignments[number], *outer))

    def _step_in_unit(self, number: int, kernel: Kernel) -> Step:
        """Return how a load moves within a unit of a computed operand."""
        if not self._fast[-1].strides[number]:
            return Step.NONE
        bytes = self.unit * kernel.loads[number].type.bytes
        return Step.CONTIGUOUS if self._is_together(number, bytes, self.unit) else Step.STRIDED

    def _step(self, direction: str) -> int:
        """Return the bytes between neighbours along a direction."""
        loops = self._loops[direction]
        return (abs(loops[-1].strides[self._load]) if loops else 0) or 2**62

    def _widest(self) -> int:
        """Return the number of elements that can be copied at once."""
        number = self._load
        fast, slow = self._loops["k"], self._loops["rows"]
        fast, slow = (fast, slow) if self.along_k else (slow, fast)
        # The loops that are one in memory, innermost first.
        run, rest = 1, list(fast)
        while rest and rest[-1].strides[number] == run * self.element_bytes:
            run *= rest.pop().count
        unit = VECTOR_BYTES // self.element_bytes
        while unit > 1:
            needed = unit * self.element_bytes
            aligned = self._alignments[number] % needed == 0
            outer = (*self._batch, *slow, *rest)
            aligned = aligned and all(loop.strides[number] % needed == 0 for loop in outer)
            # A unit runs over the end of all loops alone.
            if aligned and (run % unit == 0 or (run > 1 and not rest)):
                break
            unit //= 2
        return unit


def _data_load(value: Node, kernel: Kernel) -> int:
    """Return the load whose strides decide how an operand is read: that of its largest tensor."""
    numbers = [
        number_of(node)
        for node in ordered([value])
        if node.operation is Operation.SOURCE and kernel.loads[number_of(node)].buffer is not None
    ]

    def moved(number: int) -> int:
        strides = zip(kernel.loads[number].strides, kernel.domain, strict=True)
        return math.prod(count for stride, count in strides if stride)

    return max(numbers, key=moved)


def _work(value: Node) -> int:
    """Return about how many instructions an element of a computed operand takes."""
    loaded = {id(node) for node in ordered([value]) if node.operation is Operation.SOURCE}
    return operation_count([node.operation for node in ordered([value], loaded) if node.sizes])


def _is_unguarded(value: Node, kernel: Kernel) -> bool:
    """Return whether a value is computed of elements in memory alone, which it reads unconditionally."""
    return not any(
        node.operands or kernel.loads[number_of(node)].buffer is None
        for node in ordered([value])
        if node.operation is Operation.SOURCE
    )


def access_patterns(
    kernel: Kernel, groups: Sequence[Loop], rows: Sequence[Loop], operands: Sequence[TiledOperand]
) -> tuple[CudaAccess, ...]:
    """Return how the accesses of a kernel move: along the loops over tiles, `groups`, along those within
    them, `rows`, each alone, and within units of the `operands`."""
    guards = guards_of(kernel.values)
    steps = {number: step for operand in operands for number, step in operand.steps.items()}
    return tuple(
        CudaAccess(
            access.type,
            steps.get(number, Step.NONE),
            tuple(loop.strides[number] != 0 for loop in groups),
            tuple(loop.strides[number] != 0 for loop in rows),
            counter=access.buffer is None,
            guarded=number in guards,
        )
        for number, access in enumerate((*kernel.loads, *kernel.stores))
    )
