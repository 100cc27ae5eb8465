"""Puts the kernels of products, of a softmax of these, and of products with its weights together: one kernel,
whose scores and weights never lie in memory.

Such a kernel runs over the dimensions of all three: those of the scores, what the first products sum, and
what the second ones add beside the queries. Its axes are the keys. A target says which of them it takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from opendml.compiler.kernel import Access, Kernel, Repeat, number_of, operations_of
from opendml.program.node import COLLECTIVE, REDUCTIONS, Node, Operation, ordered, rebuild
from opendml.program.scalar_type import ScalarType

Takes = Callable[[Kernel], bool]
"""Whether a target computes a chain as one kernel, rather than as three."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The nodes of such a kernel's value: `results` are the sums of `weighted` by the softmax of `scores`,
    which are made of the sums `products`."""

    products: Node
    scores: Node
    weighted: Node
    results: Node


def chain_of(values: Sequence[Node]) -> Chain | None:
    """The chain that a kernel's values are made of; None if they are none."""
    inside = [node for node in ordered(values) if node.operation in COLLECTIVE]
    sums = [node for node in inside if node.operation is Operation.CONTRACTION]
    kinds = Counter(node.operation for node in inside)
    if kinds != _CHAINED or any(node.type is not ScalarType.FLOAT32 for node in sums):
        return None
    products, results = sums
    if any(node.attribute != results.attribute for node in inside if node is not products):
        return None
    for weights, weighted in (results.operands, results.operands[::-1]):
        scores = _scores_of(_unwrapped(weights))
        if scores is not None:
            apart = [*values, scores, weighted, *products.operands]
            reduced = [node for node in ordered(apart, {id(products), id(results)}) if node in inside]
            return None if reduced else Chain(products, scores, weighted, results)
    return None


_CHAINED = Counter({Operation.CONTRACTION: 2, Operation.GREATEST: 1, Operation.SUM: 1})


def _scores_of(weights: Node) -> Node | None:
    """What a softmax is of: exp(x - greatest) times one over the sum of these; None if it is none."""
    if weights.operation is not Operation.MULTIPLY:
        return None
    exponential, share = weights.operands
    share = share.operands[0] if share.operation is Operation.CONVERT else share
    if exponential.operation is not Operation.EXPONENTIAL or share.operation is not Operation.DIVIDE:
        return None
    one, total = share.operands
    (distance,) = exponential.operands
    is_one = one.operation is Operation.CONSTANT and one.attribute == 1
    is_sum = total.operation is Operation.SUM and total.operands == (exponential,)
    if not (is_one and is_sum) or distance.operation is not Operation.SUBTRACT:
        return None
    scores, greatest = distance.operands
    is_relative = greatest.operation is Operation.GREATEST and greatest.operands == (scores,)
    return scores if is_relative else None


def _unwrapped(node: Node) -> Node:
    """Return the value below roundings to its own type."""
    while node.operation is Operation.ROUND:
        (node,) = node.operands
    return node


def chained(
    kernels: Sequence[Kernel], repeats: Sequence[Repeat], temporaries: Mapping[int, int], takes: Takes
) -> tuple[list[Kernel], list[Repeat], dict[int, int]]:
    """The kernels with the chains among them that a target takes, at the place of their last; how they are
    repeated; and the sizes of those temporaries that are left. A kernel is part of one chain at most."""
    writers, readers = _only_users(kernels, temporaries)
    result, left = dict(enumerate(kernels)), dict(temporaries)
    products = {number for number, kernel in result.items() if _multiplies(kernel)}
    parts_of_chains = set[int]()
    for weights, last in readers.items():
        middle = writers[weights]
        for scores in (buffer for buffer, reader in readers.items() if reader == middle):
            parts = writers[scores], middle, last
            is_none = not products.issuperset((parts[0], last)) or not parts_of_chains.isdisjoint(parts)
            if is_none or any(_is_repeated(part, repeats) for part in parts):
                continue
            chain = _together(*(kernels[part] for part in parts))
            if chain is not None and takes(chain):
                parts_of_chains.update(parts)
                result[last] = chain
                del result[parts[0]], result[middle], left[scores], left[weights]
    moved = [replace(each, first=sum(number < each.first for number in result)) for each in repeats]
    return [result[number] for number in sorted(result)], moved, left


def _multiplies(kernel: Kernel) -> bool:
    return Operation.CONTRACTION in operations_of(kernel.values)


def _is_repeated(number: int, repeats: Iterable[Repeat]) -> bool:
    return any(each.first <= number < each.first + each.length * each.count for each in repeats)


def _only_users(
    kernels: Sequence[Kernel], temporaries: Mapping[int, int]
) -> tuple[dict[int, int], dict[int, int]]:
    """The numbers of the kernels that write and read each temporary which one kernel writes and another one
    reads, by one access each."""
    writers, readers = (
        _alone(
            (access.buffer, number)
            for number, accesses in enumerate(each)
            for access in accesses
            if access.buffer is not None and access.buffer in temporaries
        )
        for each in ([kernel.stores for kernel in kernels], [kernel.loads for kernel in kernels])
    )
    both = writers.keys() & readers.keys()
    return {each: writers[each] for each in both}, {each: readers[each] for each in both}


def _alone(users: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The users of what has one user."""
    pairs = list(users)
    counts = Counter(buffer for buffer, _ in pairs)
    return {buffer: user for buffer, user in pairs if counts[buffer] == 1}


def _together(scores: Kernel, weights: Kernel, results: Kernel) -> Kernel | None:
    """Three kernels, each of which reads what the one before stores, as one; None if they are no chain."""
    if len(scores.stores) > 1 or len(weights.stores) > 1:
        return None
    long = [dimension for dimension, size in enumerate(scores.domain) if size > 1]
    domain = [scores.domain[dimension] for dimension in long]
    places: _Places = {dimension: ((place, 1),) for place, dimension in enumerate(long)}
    parts = [_Part(scores, places)]
    for kernel in (weights, results):
        read = _load_of(kernel, parts[-1].kernel.stores[0])
        found = None if read is None else _places(kernel.domain, kernel.loads[read], parts[-1], domain)
        if found is None:
            return None
        parts.append(_Part(kernel, found, read))
    loads: list[Access] = []
    values: tuple[Node, ...] = ()
    for part in parts:
        values = part.values(values, loads, domain)
    if chain_of(values) is None:
        return None
    last = parts[-1]
    axes = last.moved(results.axes)
    stores = tuple(last.access(store, len(domain)) for store in results.stores)
    return Kernel(tuple(domain), axes, tuple(loads), stores, values)


def _load_of(kernel: Kernel, store: Access) -> int | None:
    """The number of the load that reads what is stored as it is; None if there is none."""
    found = [
        number
        for number, load in enumerate(kernel.loads)
        if (load.buffer, load.type, load.offset) == (store.buffer, store.type, store.offset)
    ]
    guarded = {
        node.attribute
        for node in ordered(kernel.values)
        if node.operation is Operation.SOURCE and node.operands
    }
    return None if not found or found[0] in guarded else found[0]


_Places = dict[int, tuple[tuple[int, int], ...]]
"""The parts of each dimension of a kernel among the dimensions of the chain, the innermost first.

A part is its place, and the steps of the dimension in one step of the part.
"""


def _places(sizes: Sequence[int], load: Access, before: _Part, domain: list[int]) -> _Places | None:
    """Return the places of the dimensions of a kernel that loads what the kernel before stores.

    A dimension along which the load stands still is new. Each other one is one or several of those before.
    None if a dimension is neither, or if the kernel reads only a part.
    """
    store = before.kernel.stores[0]
    known = {
        store.strides[dimension] * steps: place
        for dimension, parts in before.places.items()
        for place, steps in parts
    }
    result: _Places = {}
    for dimension, size in enumerate(sizes):
        stride = load.strides[dimension]
        if size > 1 and stride == 0:
            result[dimension] = ((len(domain), 1),)
            domain.append(size)
        elif size > 1:
            parts, steps = [], 1
            while steps < size and stride * steps in known:
                place = known[stride * steps]
                parts.append((place, steps))
                steps *= domain[place]
            if steps != size:
                return None
            result[dimension] = tuple(parts)
    stored = {place for stride, place in known.items() if stride}
    return result if stored <= {place for parts in result.values() for place, _ in parts} else None


@dataclass(frozen=True, slots=True)
class _Part:
    """A kernel, the places of its dimensions among those of all, and which of its loads reads what the kernel
    before stores."""

    kernel: Kernel
    places: _Places
    read: int | None = None

    def access(self, access: Access, rank: int) -> Access:
        """An access of the kernel, over all dimensions."""
        strides = [0] * rank
        for dimension, parts in self.places.items():
            for place, steps in parts:
                strides[place] = access.strides[dimension] * steps
        return replace(access, strides=tuple(strides))

    def moved(self, axes: Iterable[int]) -> tuple[int, ...]:
        """The places of some dimensions, in order."""
        return tuple(sorted(place for axis in axes for place, _ in self.places.get(axis, ())))

    def values(self, before: Sequence[Node], loads: list[Access], domain: Sequence[int]) -> tuple[Node, ...]:
        """What the kernel stores, over all dimensions, made of what the kernel before stores; its other loads
        are added to those of all."""
        numbers: dict[int, int] = {}
        rank = len(domain)
        for number, load in enumerate(self.kernel.loads):
            if number != self.read:
                numbers[number] = len(loads)
                loads.append(self.access(load, rank))

        def moved(node: Node) -> Node:
            attribute = node.attribute
            if node.operation is Operation.SOURCE:
                if number_of(node) == self.read:
                    return before[0]
                attribute = numbers[number_of(node)]
            elif node.operation in REDUCTIONS and isinstance(attribute, tuple):
                attribute = self.moved(attribute)
            sizes = [1] * rank if node.sizes else []
            for dimension, parts in self.places.items():
                if node.sizes and node.sizes[dimension] > 1:
                    for place, _ in parts:
                        sizes[place] = domain[place]
            return Node(node.operation, node.type, tuple(sizes), node.operands, attribute)

        return rebuild(self.kernel.values, moved)
