"""Fuses the kernels of products, of a softmax of these, and of products with its weights: attention.

Scores and weights then never lie in memory. The kernel runs over the dimensions of the scores, those that the
first products sum, and those that the second products have beside the queries. Its axes are the keys. A
target says which of these kernels it computes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from opendml.compiler.kernel import Access, Kernel, KernelSequence, number_of, operations_of
from opendml.late_dataclass import dataclass
from opendml.program.node import COLLECTIVE, REDUCTIONS, Node, Operation, convert, ordered, rebuild
from opendml.program.scalar_type import ScalarType


@dataclass(frozen=True, slots=True)
class Attention:
    """The nodes of attention in a kernel: the softmax of `scores`, made of the sums `products`, weights
    `weighted`.

    `blind` replaces the weights of a query whose softmax is NaN, as all of its weights are then. None: they
    stay NaN.
    """

    products: Node
    scores: Node
    weighted: Node
    results: Node
    blind: Node | None = None


def attention_of(values: Sequence[Node]) -> Attention | None:
    """Return the nodes of attention that a kernel's values are made of; None if they are not."""
    inside = [node for node in ordered(values) if node.operation in COLLECTIVE]
    sums = [node for node in inside if node.operation is Operation.CONTRACTION]
    kinds = Counter(node.operation for node in inside)
    if kinds != _COLLECTIVE_COUNTS or any(node.type is not ScalarType.FLOAT32 for node in sums):
        return None
    products, results = sums
    if any(node.attribute != results.attribute for node in inside if node is not products):
        return None
    for weights, weighted in (results.operands, results.operands[::-1]):
        usual, blind = _divided(_unwrapped(weights))
        exact = _unwrapped(usual)
        scores = _scores_of(exact)
        if scores is not None and not _is_rounded_alone(weights, exact, results, values):
            apart = [*values, scores, weighted, *products.operands, *([] if blind is None else [blind])]
            reduced = [node for node in ordered(apart, {id(products), id(results)}) if node in inside]
            return None if reduced else Attention(products, scores, weighted, results, blind)
    return None


def _is_rounded_alone(weights: Node, exact: Node, results: Node, values: Sequence[Node]) -> bool:
    """Return whether weights are rounded to FLOAT16, but some values read results that are not."""
    if not _float16_conversions([weights], exact):
        return False
    return results in ordered(values, {id(node) for node in _float16_conversions(values, results)})


def _float16_conversions(roots: Sequence[Node], below: Node) -> list[Node]:
    """Return the conversions to FLOAT16 between some nodes and a node below them."""
    nodes = ordered(roots, {id(below)})
    return [node for node in nodes if node.operation is Operation.CONVERT and node.type is ScalarType.FLOAT16]


def _divided(weights: Node) -> tuple[Node, Node | None]:
    """Return weights, and what replaces those that are NaN; None if nothing does."""
    if weights.operation is Operation.SELECT:
        is_number, usual, blind = weights.operands
        own = _unwrapped(usual)
        if is_number.operation is Operation.EQUAL and all(
            _unwrapped(each) is own for each in is_number.operands
        ):
            return usual, convert(blind, ScalarType.FLOAT32)
    return weights, None


_COLLECTIVE_COUNTS = Counter({Operation.CONTRACTION: 2, Operation.GREATEST: 1, Operation.SUM: 1})


def _scores_of(weights: Node) -> Node | None:
    """Return the operand of a softmax: x of exp(x - greatest) * (1 / sum); None if it is none."""
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
    """Return the value below roundings to its own type, and below conversions between FLOAT16 and FLOAT32.

    A fused kernel does not round weights to FLOAT16, even if the graph does, provided that its results are
    FLOAT16. Final weights are known only after all keys, so rounding them would take a second pass over the
    keys. Rounding weights moves a result by at most 2^-11 of the greatest value, as much as rounding the
    result does. Results without this rounding are nearer to exact ones.
    """
    while node.operation is Operation.ROUND or (
        node.operation is Operation.CONVERT and {node.type, node.operands[0].type} <= _ROUNDED
    ):
        (node,) = node.operands
    return node


_ROUNDED = frozenset({ScalarType.FLOAT16, ScalarType.FLOAT32})


def with_attention(sequence: KernelSequence, is_computed: Callable[[Kernel], bool]) -> KernelSequence:
    """Return the kernels with attention that a target computes as one kernel, in the place of the last one.

    Each kernel is part of one attention at most. Kernels of recurrences stay as they are.
    """
    kernels, repeated = sequence.kernels, sequence.repeated
    writers, readers = _only_users(sequence)
    result, left = dict(enumerate(kernels)), dict(sequence.temporaries)
    contraction = Operation.CONTRACTION
    products = {number for number, each in result.items() if contraction in operations_of(each.values)}
    fused = set[int]()
    for weights, last in readers.items():
        middle = writers[weights]
        for scores in (buffer for buffer, reader in readers.items() if reader == middle):
            parts = writers[scores], middle, last
            if not products.issuperset((parts[0], last)) or not (fused | repeated).isdisjoint(parts):
                continue
            whole = _together(*(kernels[part] for part in parts))
            if whole is not None and is_computed(whole):
                fused.update(parts)
                result[last] = whole
                del result[parts[0]], result[middle], left[scores], left[weights]
    moved = [replace(each, first=sum(number < each.first for number in result)) for each in sequence.repeats]
    return KernelSequence([result[number] for number in sorted(result)], moved, left)


def _only_users(sequence: KernelSequence) -> tuple[dict[int, int], dict[int, int]]:
    """Return the numbers of the kernels that write and read temporaries, by their buffers.

    Only temporaries count that one access of one kernel writes, and one access of another one reads.
    """
    writers, readers = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for number, kernel in enumerate(sequence.kernels):
        for users, accesses in ((writers, kernel.stores), (readers, kernel.loads)):
            for access in accesses:
                if access.buffer is not None and access.buffer in sequence.temporaries:
                    users[access.buffer].append(number)
    both = [each for each in readers if len(readers[each]) == len(writers[each]) == 1]
    return {each: writers[each][0] for each in both}, {each: readers[each][0] for each in both}


def _together(scores: Kernel, weights: Kernel, results: Kernel) -> Kernel | None:
    """Return three kernels, each of which reads the results of the one before, as one; None if not
    attention."""
    if len(scores.stores) > 1 or len(weights.stores) > 1:
        return None
    long = [dimension for dimension, size in enumerate(scores.domain) if size > 1]
    domain = [scores.domain[dimension] for dimension in long]
    dimensions: _Dimensions = {dimension: ((number, 1),) for number, dimension in enumerate(long)}
    parts = [_Part(scores, dimensions)]
    for kernel in (weights, results):
        read = _load_of(kernel, parts[-1].kernel.stores[0])
        found = None if read is None else _dimensions(kernel.domain, kernel.loads[read], parts[-1], domain)
        if found is None:
            return None
        parts.append(_Part(kernel, found, read))
    loads: list[Access] = []
    values: tuple[Node, ...] = ()
    for part in parts:
        values = part.values(values, loads, domain)
    if attention_of(values) is None:
        return None
    last = parts[-1]
    axes = last.moved(results.axes)
    stores = tuple(last.access(store, len(domain)) for store in results.stores)
    return Kernel(tuple(domain), axes, tuple(loads), stores, values)


def _load_of(kernel: Kernel, store: Access) -> int | None:
    """Return the number of the unguarded load that reads a store; None if there is none."""
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


_Dimensions = dict[int, tuple[tuple[int, int], ...]]
"""The dimensions of attention that each dimension of a kernel consists of, the innermost first.

Each has its number, and the steps of the kernel's dimension in one of its steps.
"""


def _dimensions(sizes: Sequence[int], load: Access, before: _Part, domain: list[int]) -> _Dimensions | None:
    """Return the dimensions of attention that the dimensions of a kernel consist of.

    A dimension of `sizes` along which the `load` does not move is new in the `domain`. Each other one is one
    or several of the kernel before. None if a dimension is neither, or if the kernel reads only a part.
    """
    store = before.kernel.stores[0]
    known = {
        store.strides[dimension] * steps: number
        for dimension, parts in before.dimensions.items()
        for number, steps in parts
    }
    result: _Dimensions = {}
    for dimension, size in enumerate(sizes):
        stride = load.strides[dimension]
        if size > 1 and stride == 0:
            result[dimension] = ((len(domain), 1),)
            domain.append(size)
        elif size > 1:
            parts, steps = [], 1
            while steps < size and stride * steps in known:
                number = known[stride * steps]
                parts.append((number, steps))
                steps *= domain[number]
            if steps != size:
                return None
            result[dimension] = tuple(parts)
    stored = {number for stride, number in known.items() if stride}
    return result if stored <= {number for parts in result.values() for number, _ in parts} else None


@dataclass(frozen=True, slots=True)
class _Part:
    """A kernel of attention, its dimensions, and the number of the load that reads the kernel before."""

    kernel: Kernel
    dimensions: _Dimensions
    read: int | None = None

    def access(self, access: Access, rank: int) -> Access:
        """Return an access of the kernel, over all dimensions."""
        strides = [0] * rank
        for dimension, parts in self.dimensions.items():
            for number, steps in parts:
                strides[number] = access.strides[dimension] * steps
        return replace(access, strides=tuple(strides))

    def moved(self, axes: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers of some dimensions among those of attention, in order."""
        return tuple(sorted(number for axis in axes for number, _ in self.dimensions.get(axis, ())))

    def values(self, before: Sequence[Node], loads: list[Access], domain: Sequence[int]) -> tuple[Node, ...]:
        """Return the values over all dimensions of the `domain`, made of those `before`; add to the
        `loads`."""
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
            for dimension, parts in self.dimensions.items():
                if node.sizes and node.sizes[dimension] > 1:
                    for number, _ in parts:
                        sizes[number] = domain[number]
            return Node(node.operation, node.type, tuple(sizes), node.operands, attribute)

        return rebuild(self.kernel.values, moved)
