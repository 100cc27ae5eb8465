"""The input of a target: kernels over one iteration domain each, and the buffers between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from opendml.compiler.memory import Temporary
from opendml.compiler.recipe import Recipe
from opendml.late_dataclass import dataclass, light_dataclass, replace
from opendml.program.node import PLACINGS, REDUCTIONS, SCANS, Node, Operation, ordered, rebuild
from opendml.program.scalar_type import ScalarType


@light_dataclass(frozen=True, slots=True)
class Access:
    """A kernel's access to one buffer: the element at index i of the domain lies at offset + i .
    strides (bytes).

    An access without a buffer reads nothing. Its value is the offset, an integer that counts along the
    domain. A `fixed` content is the same in every run. `steps` of a recurrence find the same content. From
    one step to the next, the offset grows by `advance`. If the content is `four_bit`, each byte holds a
    number of 4 bits.
    """

    buffer: int | None
    type: ScalarType
    offset: int
    strides: tuple[int, ...]
    fixed: bool = False
    steps: int = 1
    advance: int = 0
    four_bit: bool = False


@light_dataclass(frozen=True, slots=True)
class Kernel:
    """One loop nest: for every index of the domain, `stores[k]` receives `values[k]`.

    In the values, SOURCE i stands for `loads[i]`, and PARAMETER i for `numbers[i]`, the bits of a float as a
    64-bit word. Reductions, or one scan, run over `axes` of the domain; a kernel without axes is
    element-wise. A store that does not vary along the axes is written once per group. One of PLACINGS runs
    along the axes of its kernel, and its store has another size along the first; values are made of POSITIONS
    alone, and of their number, where these are as many as elements. Attention (`compiler.attention`) contains
    sums of products over other dimensions than the axes.
    """

    domain: tuple[int, ...]
    axes: tuple[int, ...]
    loads: tuple[Access, ...]
    stores: tuple[Access, ...]
    values: tuple[Node, ...]
    numbers: tuple[int, ...] = ()

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The loads, then the stores."""
        return (*self.loads, *self.stores)

    def with_accesses(self, change: Callable[[Access], Access]) -> Kernel:
        """Return the kernel with each access changed."""
        loads, stores = tuple(map(change, self.loads)), tuple(map(change, self.stores))
        return replace(self, loads=loads, stores=stores)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Kernels of a program, from the number `first` on, that repeat the first `length` of them `count` times.

    Repetitions differ in the offsets of their accesses alone, each of which advances evenly.
    """

    first: int
    length: int
    count: int


@dataclass(frozen=True, slots=True)
class PreparedTensor:
    """A tensor of `size` bytes that is computed of constants, once."""

    size: int
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """Kernels in order, over a table of buffers.

    The table has the inputs, the outputs, one arena for the temporaries, then the `prepared` tensors. Kernels
    that are repeated are listed as often as they run. The `initializers` run once, over the same table. They
    read inputs that are constants, and write the prepared tensors. Their temporaries have an arena of their
    own.
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
    """The temporaries in the arena, with the first and the last kernel that access each."""

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


@dataclass(slots=True)
class KernelSequence:
    """Kernels in order, with the bytes of temporaries by the numbers of their buffers."""

    kernels: list[Kernel]
    repeats: list[Repeat]
    temporaries: dict[int, int]

    @property
    def repeated(self) -> set[int]:
        """The numbers of the kernels that belong to repeats."""
        ranges = (range(each.first, each.first + each.length * each.count) for each in self.repeats)
        return {number for each in ranges for number in each}


@lru_cache(maxsize=1024)
def fingerprint(roots: tuple[Node, ...]) -> str:
    """Return a text that is equal for equal graphs, whatever their sizes."""
    names: dict[int, int] = {}
    lines = []
    for node in ordered(roots):
        names[id(node)] = len(names)
        operands = ",".join(str(names[id(operand)]) for operand in node.operands)
        # Axes are those of the kernel. Scans have further attributes.
        attribute = "" if node.operation in REDUCTIONS | PLACINGS else repr(node.attribute)
        if node.operation in SCANS and isinstance(node.attribute, tuple):
            attribute = repr(node.attribute[1:])
        lines.append(f"{node.operation.name} {node.type.name} {attribute} {operands}")
    lines.append(",".join(str(names[id(root)]) for root in roots))
    return "\n".join(lines)


@lru_cache(maxsize=1024)
def operations_of(values: tuple[Node, ...]) -> frozenset[Operation]:
    """Return the operations of all nodes that the values of a kernel need."""
    return frozenset(node.operation for node in ordered(values))


def placing_of(values: Sequence[Node]) -> Node | None:
    """Return the node of PLACINGS that the values of a kernel need; None if there is none."""
    return next((node for node in ordered(values) if node.operation in PLACINGS), None)


def number_of(node: Node) -> int:
    """Return the number of the load that a SOURCE stands for, or of a PARAMETER."""
    if not isinstance(node.attribute, int):
        raise TypeError(f"{node} has no index")
    return node.attribute


def renumbered(
    values: Sequence[Node], loads: Mapping[int, int], numbers: Mapping[int, int] | None = None
) -> tuple[Node, ...]:
    """Return values with other numbers of SOURCEs and PARAMETERs, by the old numbers; the rest stays."""
    new_numbers = {Operation.SOURCE: loads, Operation.PARAMETER: numbers or {}}

    def changed(node: Node) -> Node:
        if node.operation not in new_numbers or number_of(node) not in new_numbers[node.operation]:
            return node
        number = new_numbers[node.operation][number_of(node)]
        return Node(node.operation, node.type, node.sizes, node.operands, number)

    return rebuild(values, changed)
