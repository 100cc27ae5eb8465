"""The roles of the parts and loops of a kernel of sums of products: operands, epilogue, rows, columns,
depth."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from opendml.across_forks import cached_property
from opendml.compiler.kernel import Access, Kernel, number_of, renumbered
from opendml.compiler.loops import loops_over, merged_neighbours
from opendml.late_dataclass import dataclass, light_dataclass
from opendml.program.node import REDUCTIONS, Node, Operation, ordered, rebuild, source
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import hint_of
from opendml.targets.common.roles import product_roles
from opendml.targets.cpu.contraction.integers import packed_operands
from opendml.targets.cpu.contraction.narrow import Narrow, narrow_of

Varying = Collection[int] | None
"""The dimensions whose sizes vary among kernels that share code and packed constants; None: the sizes of all
kernels are fixed, and each has what is best for it alone."""


def varies(varying: Varying, *dimensions: Iterable[int]) -> bool:
    """Return whether some of these dimensions vary."""
    return varying is not None and any(each in varying for some in dimensions for each in some)


@light_dataclass(frozen=True)
class Roles:
    """A sum of products of an operand A, whose elements are broadcast, and B, whose vectors are loaded.

    The three kernels run over one domain and have no axes. The last load of the epilogue is the sum, which is
    not in memory yet. Dimensions are listed outermost first.
    """

    a: Kernel
    b: Kernel
    types: tuple[ScalarType, ScalarType]
    """The types in which A and B are packed."""
    epilogue: Kernel
    outer: tuple[int, ...]
    """The dimensions that are neither of rows and columns of one product, nor summed."""
    rows: tuple[int, ...]
    """The dimensions along which A moves and B does not: m."""
    columns: tuple[int, ...]
    """The dimensions along which B moves and A does not: n. The epilogue walks them as one."""
    depth: tuple[int, ...]
    """The dimensions that are summed: k."""
    exchanged: bool = False
    """True if B is the first operand."""

    @cached_property
    def sizes(self) -> tuple[int, int, int, int]:
        """The number of products, and the rows, columns and depth of each."""
        outer, m, n, k = map(self.count, (self.outer, self.rows, self.columns, self.depth))
        return outer, m, n, k

    @cached_property
    def narrow(self) -> tuple[Narrow, Kernel] | None:
        """The form in which B stays in a narrow type, and the kernel of what is packed; None if B is not
        narrow."""
        return narrow_of(self.b, self.columns, self.depth)

    @property
    def group(self) -> int:
        """The neighbours along k that share 32 bits."""
        return 4 // self.types[0].bytes

    @property
    def k_groups(self) -> int:
        """The groups of each row and column along k."""
        return -(-self.count(self.depth) // self.group)

    def count(self, dimensions: Iterable[int]) -> int:
        """Return the product of the sizes of dimensions."""
        domain, product = self.a.domain, 1
        for dimension in dimensions:
            product *= domain[dimension]
        return product


def roles_of(kernel: Kernel, exchanged: bool) -> Roles | None:
    """Return the roles of a kernel whose one reduction is a sum of products in a type that tiles can sum;
    None for other kernels. If `exchanged`, B is the first operand.

    Results may lie along the summed axes, as those of attention to one key: its weight is multiplied by
    values that have the size of the key. Tiles store nothing there.
    """
    total = _total_of(kernel.values)
    if total is None or any(store.strides[axis] for store in kernel.stores for axis in kernel.axes):
        return None
    first, second = reversed(total.operands) if exchanged else total.operands
    packed = packed_operands(kernel, first, second)
    if packed is None:
        return None
    a, b = (part_of(kernel, each.values) for each in packed)
    epilogue = epilogue_of(kernel, kernel.values, total, kernel.stores)
    found = product_roles(kernel, first, second)
    kept = by_stride(kernel.stores, (*found.batch, *found.m, *found.n))
    rows, columns = (
        _walked_as_one(epilogue, tuple([each for each in kept if each in own])) for own in (found.m, found.n)
    )
    outer = tuple(number for number in kept if number not in rows and number not in columns)
    depth = by_stride(a.loads or b.loads, found.k)
    types = packed[0].type, packed[1].type
    return Roles(a, b, types, epilogue, outer, rows, columns, depth, exchanged)


@lru_cache(maxsize=1024)
def _total_of(values: tuple[Node, ...]) -> Node | None:
    """Return the one reduction of some values, if it is a sum of products; else None.

    It is found once for all sizes of a kernel.
    """
    reductions = [node for node in ordered(values) if node.operation in REDUCTIONS]
    is_sum = len(reductions) == 1 and reductions[0].operation is Operation.CONTRACTION
    return reductions[0] if is_sum else None


def part_of(kernel: Kernel, roots: tuple[Node, ...]) -> Kernel:
    """Return the kernel that computes some values of another one, and stores none."""
    own = _own_values(roots)
    return Kernel(kernel.domain, (), own.loads_of(kernel), (), own.values, own.numbers_of(kernel))


def epilogue_of(kernel: Kernel, roots: tuple[Node, ...], total: Node, stores: tuple[Access, ...]) -> Kernel:
    """Return the kernel that stores some values of another one, which need one contraction. Its last load is
    the sums."""
    own = _own_values(roots, total)
    sums = Access(None, total.type, 0, (0,) * len(kernel.domain))
    loads = (*own.loads_of(kernel), sums)
    return Kernel(kernel.domain, (), loads, stores, own.values, own.numbers_of(kernel))


@dataclass(frozen=True, slots=True)
class _OwnValues:
    """Values of a kernel with loads and numbers of their own, in the order of those of the kernel."""

    values: tuple[Node, ...]
    loads: tuple[int, ...]
    numbers: tuple[int, ...]

    def loads_of(self, kernel: Kernel) -> tuple[Access, ...]:
        return tuple([kernel.loads[number] for number in self.loads])

    def numbers_of(self, kernel: Kernel) -> tuple[int, ...]:
        return tuple([kernel.numbers[number] for number in self.numbers])


@lru_cache(maxsize=1024)
def _own_values(roots: tuple[Node, ...], total: Node | None = None) -> _OwnValues:
    """Return values over the loads and numbers that they need, renumbered. A total becomes their last load.

    It is found once for the graph of a kernel, and serves all of its sizes.
    """
    nodes = ordered(roots, () if total is None else {id(total)})
    loads = _places(node for node in nodes if node.operation is Operation.SOURCE)
    numbers = _places(node for node in nodes if node.operation is Operation.PARAMETER)
    values = renumbered(roots, loads, numbers)
    if total is not None:
        leaf = source(len(loads), total.type, total.sizes)
        values = rebuild(values, lambda node: leaf if node.operation is Operation.CONTRACTION else node)
    return _OwnValues(values, tuple(loads), tuple(numbers))


def _places(nodes: Iterable[Node]) -> dict[int, int]:
    """Return new numbers of nodes, by their old ones."""
    return {number: place for place, number in enumerate(dict.fromkeys(map(number_of, nodes)))}


def moves(kernel: Kernel, dimension: int) -> bool:
    """Return whether some access moves along a dimension."""
    return any(load.strides[dimension] for load in kernel.loads)


def by_stride(accesses: Sequence[Access], dimensions: Iterable[int]) -> tuple[int, ...]:
    """Return dimensions in order, those first along which the first of some accesses moves most."""
    order = sorted(dimensions)
    if not accesses or len(order) < 2:
        return tuple(order)
    strides = {each: abs(accesses[0].strides[each]) for each in order}
    order = [each for _, each in sorted([(-hint_of(stride), each) for each, stride in strides.items()])]
    for first, second in pairwise(order):
        # Traced sizes record here that they have this order, with `python -O` too.
        more, less = strides[first], strides[second]
        if not (more >= less if first < second else more > less):
            raise AssertionError("comparisons of sizes agree with their hints")
    return tuple(order)


def _walked_as_one(kernel: Kernel, dimensions: tuple[int, ...]) -> tuple[int, ...]:
    """Return the innermost dimensions that all accesses walk as one."""
    for first in range(len(dimensions)):
        if len(merged_neighbours(loops_over(kernel, dimensions[first:]))) == 1:
            return dimensions[first:]
    return ()
