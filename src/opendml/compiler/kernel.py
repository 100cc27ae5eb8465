"""The input of a target: kernels over one iteration domain each, and the buffers between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from opendml.compiler.memory import Temporary
from opendml.program.node import PLACINGS, REDUCTIONS, SCANS, Node, Operation, ordered, rebuild
from opendml.program.scalar_type import ScalarType


@dataclass(frozen=True, slots=True)
class Access:
    """A kernel's access to one buffer: the element at index i of the domain lies at offset + i .
    strides (bytes).

    Without a buffer it reads nothing: its value is what the offset would be, an integer that counts along the
    domain. What is `fixed` is the same in every run, and what has several `steps` in so many of a
    recurrence; from one of its steps to the next, offsets grow by `advance`."""

    buffer: int | None
    type: ScalarType
    offset: int
    strides: tuple[int, ...]
    fixed: bool = False
    steps: int = 1
    advance: int = 0


@dataclass(frozen=True, slots=True)
class Kernel:
    """One loop nest: for every index of the domain, `stores[k]` receives `values[k]`.

    In the values, SOURCE i stands for `loads[i]`, and PARAMETER i for `numbers[i]`, the bits of a float as a
    64-bit word. Reductions, or one scan, run over `axes` of the domain; a kernel without axes is
    element-wise. A store that does not vary along the axes is written once per group. One of PLACINGS runs
    along the axes of its kernel, and its store has another size along the first; values are made of
    POSITIONS alone, and of their number, where these are as many as elements. A chain (`compiler.chains`)
    contains sums of products over other dimensions than the axes.
    """

    domain: tuple[int, ...]
    axes: tuple[int, ...]
    loads: tuple[Access, ...]
    stores: tuple[Access, ...]
    values: tuple[Node, ...]
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Repeat:
    """Of a program's kernels, from the number `first` on, `length` that run `count` times. Each time they
    differ in the offsets of their accesses alone, each of which advances evenly."""

    first: int
    length: int
    count: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """How some memory is made of constants. Equal texts over the same constants make the same bytes.

    Args:
        text: what is computed of the constants, which it numbers from 0 on; None: no text says it.
        constants: the numbers of the constants in the program, in the order of the text.
    """

    text: str | None
    constants: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PreparedTensor:
    """A tensor that is computed of constants, once."""

    size: int
    """Its bytes."""
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """Kernels in order, over a table of buffers: the inputs, the outputs, one arena for the temporaries, then
    the `prepared` tensors. Those that are repeated stand there as often as they run.

    The `initializers` run once, over the same table: they read inputs that are constants, and write the
    prepared tensors. Their temporaries have an arena of their own.
    """

    kernels: tuple[Kernel, ...]
    input_count: int
    output_count: int
    arena_bytes: int
    initializers: tuple[Kernel, ...] = ()
    initializer_arena_bytes: int = 0
    prepared: tuple[PreparedTensor, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    """Among the kernels, not the initializers."""
    temporaries: tuple[Temporary, ...] = ()
    """What lies in the arena, from which kernel to which."""

    @property
    def arena(self) -> int:
        """Index of the arena in the table of buffers."""
        return self.input_count + self.output_count

    @property
    def first_prepared(self) -> int:
        """Index of the first prepared tensor; the others follow."""
        return self.arena + 1

    @property
    def buffer_count(self) -> int:
        """The length of the table."""
        return self.first_prepared + len(self.prepared)


@lru_cache
def fingerprint(roots: tuple[Node, ...]) -> str:
    """A text that is equal for equal graphs, whatever their sizes."""
    names: dict[int, int] = {}
    lines = []
    for node in ordered(roots):
        names[id(node)] = len(names)
        operands = ",".join(str(names[id(operand)]) for operand in node.operands)
        # Of a scan all but the axis; the axes of reductions are the kernel's.
        attribute = "" if node.operation in REDUCTIONS | PLACINGS else repr(node.attribute)
        if node.operation in SCANS and isinstance(node.attribute, tuple):
            attribute = repr(node.attribute[1:])
        lines.append(f"{node.operation.name} {node.type.name} {attribute} {operands}")
    lines.append(",".join(str(names[id(root)]) for root in roots))
    return "\n".join(lines)


@lru_cache
def operations_of(values: tuple[Node, ...]) -> frozenset[Operation]:
    """The operations of all nodes that the values of a kernel need."""
    return frozenset(node.operation for node in ordered(values))


def placing_of(values: Sequence[Node]) -> Node | None:
    """The one of PLACINGS that the values of a kernel need, if they do."""
    return next((node for node in ordered(values) if node.operation in PLACINGS), None)


def number_of(node: Node) -> int:
    """The number of the load that a SOURCE stands for, or of a PARAMETER."""
    if not isinstance(node.attribute, int):
        raise TypeError(f"{node} has no index")
    return node.attribute


def renumbered(
    values: Sequence[Node], loads: Mapping[int, int], numbers: Mapping[int, int] | None = None
) -> tuple[Node, ...]:
    """Values whose SOURCEs and PARAMETERs have other numbers, by the old ones; those that have none stay."""
    places = {Operation.SOURCE: loads, Operation.PARAMETER: numbers or {}}

    def changed(node: Node) -> Node:
        if node.operation not in places or number_of(node) not in places[node.operation]:
            return node
        place = places[node.operation][number_of(node)]
        return Node(node.operation, node.type, node.sizes, node.operands, place)

    return rebuild(values, changed)
