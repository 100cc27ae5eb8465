"""Nodes of a tensor program: sources, constants, element-wise operations and reductions.

A program is a directed acyclic graph of immutable nodes. A node has an element type and sizes; scalar
expressions are nodes without dimensions. Operands of element-wise nodes broadcast as in NumPy, with equal
numbers of dimensions or none. What the nodes compute on a machine is the targets' business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from enum import Enum, auto

from opendml.late_dataclass import dataclass
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.sizes import as_number, is_traced, is_unit


class Operation(Enum):
    """The closed set of primitives."""

    __hash__ = object.__hash__  # Enum's own is slow, and nodes are looked up by it all the time

    SOURCE = auto()
    """An input of the program or kernel; `attribute` is its index. In kernels it may have operands: a truth
    value, without which nothing is read and the value is 0, then an INT32 or INT64 of bytes by which each
    element lies further on."""
    CONSTANT = auto()
    """A number; `attribute` is its value."""
    PARAMETER = auto()
    """A finite number of floats that a kernel is given at run time; `attribute` is its index."""
    INDEX = auto()
    """`attribute[0]` + i . `attribute[1:]` at the index i, wrapped in its type: with the strides of a packed
    tensor, the number of the element. Without dimensions, an integer that code does not depend on."""

    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    """Integers are truncated; divided by zero they give all bits one, and the least by -1 gives itself."""
    REMAINDER = auto()
    """a - b trunc(a / b), exactly, with the sign of a. Where b is zero, floats give NaN, integers a."""
    MULTIPLY_ADD = auto()
    """a * b + c, rounded once."""
    MINIMUM = auto()
    """NaN if either is NaN; of two zeros, either."""
    MAXIMUM = auto()
    NEGATE = auto()
    ABSOLUTE = auto()
    SQUARE_ROOT = auto()
    ROUND_EVEN = auto()
    FLOOR = auto()
    TRUNCATE = auto()

    LESS = auto()
    LESS_EQUAL = auto()
    EQUAL = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    NOT = auto()
    COUNT_BITS = auto()
    """The count of bits of an integer that are one, in its own type."""
    SELECT = auto()
    """The second operand where the first is true, the third elsewhere."""

    CONVERT = auto()
    """The value in another type. Floats are rounded to nearest even. Floats become integers by truncation,
    those out of range the nearest integer in range, NaN zero. Integers wrap."""
    BITCAST = auto()
    """The bits of the value in another type of equal width."""
    ROUND = auto()
    """The float as its own type has it. Only the reference target computes anything here, as it rounds
    nowhere else. No expansion of a function looks behind it for a rounding error."""
    EXPAND = auto()
    """The number of the operand, which has no dimensions, at every index of the node's sizes."""
    MATERIALIZE = auto()
    """The operand, written to memory once. No kernel that reads it computes it again."""
    SHIFT_LEFT = auto()
    """The first operand shifted by the second, which is less than the width."""
    SHIFT_RIGHT = auto()
    """By less than the width; arithmetic on signed integers, logical on unsigned ones."""
    LOOKUP = auto()
    """The FLOAT32 in the `LookupTable` in `attribute` at the index in the low bits of the operand, an INT32.
    A table has 8 entries, the FLOAT32 that a register of 256 bits holds, or 16. Only targets that look up
    tables in registers expand functions into it."""
    SCALE = auto()
    """The first operand times 2 to the power of the second, a whole number or infinite, rounded once; both
    FLOAT32, as are the next two. Only targets that have instructions for these expand functions into them."""
    EXPONENT = auto()
    """The n for which 2^-n times the magnitude is from 1 to 2; -infinity of zero, infinity of infinity."""
    SIGNIFICAND = auto()
    """2^-n times the operand for that n; 1 of zero and infinity, NaN of negative numbers."""

    EXPONENTIAL = auto()
    EXPONENTIAL_MINUS_ONE = auto()
    SCALED_EXPONENTIAL = auto()
    """exp of the first operand times the second, a finite number, as if exp alone could not overflow nor be
    denormal."""
    LOGARITHM = auto()
    LOGARITHM_ONE_PLUS = auto()
    HYPERBOLIC_TANGENT = auto()
    ERROR_FUNCTION = auto()
    LOGARITHM_ONE_PLUS_EXPONENTIAL = auto()
    """log(1 + exp(x)) for x that is not above zero."""
    GAUSSIAN_ERROR_LINEAR_UNIT = auto()
    """x (1 + erf(x / sqrt 2)) / 2; NaN at -infinity, where it is -infinity times 0."""
    POWER = auto()
    """The first operand to the power of the second, with the special values of C."""
    SINE = auto()
    COSINE = auto()
    TANGENT = auto()
    ARC_SINE = auto()
    ARC_COSINE = auto()
    ARC_TANGENT_YX = auto()
    """The angle of the point (x, y), from -pi to pi, with the special values of C; y is the first operand."""
    HYPERBOLIC_SINE = auto()
    HYPERBOLIC_COSINE = auto()
    INVERSE_HYPERBOLIC_SINE = auto()
    INVERSE_HYPERBOLIC_COSINE = auto()
    INVERSE_HYPERBOLIC_TANGENT = auto()

    MEAN = auto()
    """Mean over the axes in `attribute`, which keep the size 1; FLOAT64."""
    VARIANCE = auto()
    """Population variance over the axes in `attribute`, which keep the size 1; FLOAT64."""
    SUM = auto()
    """The sum over the axes in `attribute`, which keep the size 1: of floats in FLOAT64, of integers wrapping
    in their type."""
    PRODUCT = auto()
    """The product over the axes in `attribute`, with the axes and types of SUM."""
    LEAST = auto()
    """The least element over the axes in `attribute`, which keep the size 1; NaN if one is."""
    GREATEST = auto()

    FIRST_LEAST = auto()
    """The least second operand, the `position` over the axes in `attribute`, at which the first has its least
    element. NaN counts as less than all numbers here, and as greater in the search for the greatest."""
    LAST_LEAST = auto()
    """The greatest such position."""
    FIRST_GREATEST = auto()
    LAST_GREATEST = auto()

    RUNNING_SUM = auto()
    """The sum of all elements up to each along an axis; typed as SUM. `attribute`: the axis, whether the
    element itself is left out, and whether to count from the last element down."""
    RUNNING_PRODUCT = auto()

    CONTRACTION = auto()
    """The sum of the products of two operands of its type over the axes in `attribute`, which keep the size
    1: of floats in FLOAT32, of integers wrapping. The operands broadcast."""

    SCATTER = auto()
    """For each index along an axis the last position at which the operand, an integer, is that index, or -1.
    `attribute`: the axis, and its size in the result. Integers out of range count nowhere."""
    SCATTER_SUM = auto()
    """For each index the sum of the second operand, INT64, where the first is that index. `attribute`: axes,
    of which the first has the indices and the others the size 1, and the number of indices."""
    SCATTER_LAST = auto()
    """The third operand, overwritten along an axis: the first operand has the index of each element of the
    second, and the last one stays. `attribute`: the axis and its size. In kernels it has two operands, and
    overwrites what is in memory."""
    POSITIONS = auto()
    """The positions along an axis at which the operand, a truth value, holds, in their order, and behind them
    -1. `attribute`: the axis, and its size."""
    TOP = auto()
    """The positions of the least elements along an axis, in their order, the first of equal ones first. The
    operand is UINT32 or UINT64. `attribute`: the axis, and how many are found."""

    VIEW = auto()
    """Elements of the first operand, at the indices that the `View` in `attribute` says. A second operand is
    true where there is one; elsewhere the value is 0. Further ones are indices to add."""
    RESHAPE = auto()
    """The elements of the operand in row-major order, in other sizes."""
    JOIN = auto()
    """The operands, of which there are two or more, one after the other along the axis `attribute`."""

    RECURRENCE = auto()
    """The first operand, then along the first dimension the results of the steps of the `Recurrence` in
    `attribute`, each made from the result before."""


STORED = frozenset({Operation.JOIN, Operation.MATERIALIZE})
"""Operations that only place their operands in memory."""
COMPARISONS = frozenset({Operation.LESS, Operation.LESS_EQUAL, Operation.EQUAL})


def _between(first: Operation, last: Operation) -> frozenset[Operation]:
    """Return neighbours in the list of operations."""
    operations = list(Operation)
    return frozenset(operations[operations.index(first) : operations.index(last) + 1])


SEARCHES = _between(Operation.FIRST_LEAST, Operation.LAST_GREATEST)
REDUCTIONS = _between(Operation.MEAN, Operation.LAST_GREATEST) | {Operation.CONTRACTION}
SCANS = frozenset({Operation.RUNNING_SUM, Operation.RUNNING_PRODUCT})
PLACINGS = _between(Operation.SCATTER, Operation.TOP)
"""Operations that give lines along an axis another size. Each has a kernel of its own."""
COLLECTIVE = REDUCTIONS | SCANS | PLACINGS
FUNCTIONS = _between(Operation.EXPONENTIAL, Operation.INVERSE_HYPERBOLIC_TANGENT)
"""Functions that targets expand into other operations."""


class Precision(Enum):
    """The accuracy that a target may choose for a DIVIDE, a SQUARE_ROOT or a function.

    A node without one needs the quotient or the root of IEEE 754, or the accuracy that
    `program.vector_math` states for its function.
    """

    NEAR = auto()
    """Within 1 ULP, for operands with magnitudes from 2^-100 to 2^100."""
    ROUGH = auto()
    """Within 2 ULP, for the same operands. What takes the result makes up for the error."""
    NARROW = auto()
    """A relative error of 2^-15, because only FLOAT16 results depend on it. A root stays that of IEEE 754."""
    BFLOAT16 = auto()
    """A relative error of 2^-15, because it is rounded to BFLOAT16. Results below 2^-126 may be zero."""
    BY_RECIPROCAL = auto()
    """The product of the numerator and the rounded reciprocal of a constant divisor, within 2 ULP."""


class SumBound(Enum):
    """The error that a sum, or a product, may have relative to the magnitudes that are added.

    A target chooses any accumulator that keeps the bound: FLOAT64, pairs of FLOAT32
    (`targets.common.float_pairs`), or FLOAT32 for PER_TERM.
    """

    EXACT = 0.0
    ROUNDED_ONCE = 2.0**-44
    """A result in FLOAT32 has one rounding, whatever the order of the terms."""
    PER_TERM = 2.0**-24
    """For each term: products are added in FLOAT32, as libraries of matrix products do."""


class Likelihood(Enum):
    """The frequency with which the condition of a SELECT holds. Without one nothing is known."""

    RARE = auto()
    """The condition hardly ever holds. A target may compute the second operand only where it does."""


@dataclass(frozen=True, slots=True)
class View:
    """The index in a tensor that a VIEW reads for the index i of its result.

    Along dimension d it is offsets[d] + steps[d] . i, plus an index operand if d is in `indexed`.
    """

    offsets: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    indexed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a tensor that a step sees: `sizes` elements from `first` on, and with every step `advance`
    further."""

    first: tuple[int, ...]
    sizes: tuple[int, ...]
    advance: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recurrence:
    """The steps of a RECURRENCE. Objects are compared by identity.

    In `body` SOURCE 0 is the result of the step before, and SOURCE i is operand i of the RECURRENCE, seen
    through `windows[i - 1]`.
    """

    count: int
    body: Node
    windows: tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class LookupTable:
    """The FLOAT32 that a LOOKUP finds by an index."""

    entries: tuple[float, ...]


Attribute = int | float | tuple[int, ...] | View | Recurrence | LookupTable | Precision | Likelihood | None
Number = int | float


def _operator(operation: Operation, reflected: bool = False) -> Callable[[Node, Node | Number], Node]:
    """Return the method of Python's operator for an operation, whose operands may be exchanged."""
    if reflected:
        return lambda node, other: apply(operation, other, node)
    return lambda node, other: apply(operation, node, other)


class Node:
    """One value of a tensor program. Immutable; compared by identity (`rebuild` shares equal nodes).

    `origin` is what it was made for, the name of an operator; None where nobody asks. Rewrites hand it on,
    and nothing else depends on it.
    """

    __slots__ = ("attribute", "operands", "operation", "origin", "sizes", "type")

    def __init__(
        self,
        operation: Operation,
        type: ScalarType,
        sizes: tuple[int, ...] = (),
        operands: tuple[Node, ...] = (),
        attribute: Attribute = None,
        origin: str | None = None,
    ) -> None:
        self.operation = operation
        self.type = type
        self.sizes = sizes
        self.operands = operands
        self.attribute = attribute
        self.origin = origin

    @property
    def number(self) -> int | float:
        """The value of a CONSTANT."""
        if not isinstance(self.attribute, (int, float)):
            raise TypeError(f"{self} has no value")
        return self.attribute

    def __repr__(self) -> str:
        detail = "" if self.attribute is None else f", {self.attribute}"
        return f"<{self.operation.name} {self.type.name}{list(self.sizes)}{detail}>"

    __add__ = _operator(Operation.ADD)
    __radd__ = _operator(Operation.ADD, reflected=True)
    __sub__ = _operator(Operation.SUBTRACT)
    __rsub__ = _operator(Operation.SUBTRACT, reflected=True)
    __mul__ = _operator(Operation.MULTIPLY)
    __rmul__ = _operator(Operation.MULTIPLY, reflected=True)
    __truediv__ = _operator(Operation.DIVIDE)
    __rtruediv__ = _operator(Operation.DIVIDE, reflected=True)
    __lt__ = _operator(Operation.LESS)
    __le__ = _operator(Operation.LESS_EQUAL)
    __gt__ = _operator(Operation.LESS, reflected=True)
    __ge__ = _operator(Operation.LESS_EQUAL, reflected=True)

    def __neg__(self) -> Node:
        return apply(Operation.NEGATE, self)

    def __abs__(self) -> Node:
        return apply(Operation.ABSOLUTE, self)


def source(index: int, type: ScalarType, sizes: Sequence[int] = (), operands: Sequence[Node] = ()) -> Node:
    """Return the `index`-th input; in a kernel perhaps guarded."""
    return Node(Operation.SOURCE, type, tuple(sizes), tuple(operands), index)


def constant(value: Number, type: ScalarType) -> Node:
    """Return a number of the given type, without dimensions.

    An integer that is a traced size is an INDEX, because integers that are constants are part of the code.
    """
    if not type.is_float and isinstance(value, int) and is_traced(value):
        return index(type, (), value, ())
    return Node(Operation.CONSTANT, type, attribute=as_number(value) if type.is_float else int(value))


def apply(operation: Operation, *operands: Node | Number) -> Node:
    """Return an element-wise node; numbers take the type of the operands beside them."""
    values = operands[1:] if operation is Operation.SELECT else operands
    type = next(node.type for node in values if isinstance(node, Node))
    nodes = tuple(node if isinstance(node, Node) else constant(node, type) for node in operands)
    if any(node.type is not type for node in nodes[len(operands) - len(values) :]):
        raise TypeError(f"{operation.name} of {', '.join(node.type.name for node in nodes)}")
    result = ScalarType.BOOLEAN if operation in COMPARISONS else type
    return Node(operation, result, broadcast(node.sizes for node in nodes), nodes)


def convert(value: Node, type: ScalarType) -> Node:
    """Return `value` in another element type, or itself where it has that type."""
    return value if value.type is type else Node(Operation.CONVERT, type, value.sizes, (value,))


def bitcast(value: Node, type: ScalarType) -> Node:
    """Return the bits of `value` read as another type of the same width, or itself where it has that type."""
    return value if value.type is type else Node(Operation.BITCAST, type, value.sizes, (value,))


def expanded(value: Node, sizes: tuple[int, ...]) -> Node:
    """Return a number as a tensor of `sizes`. A value that has dimensions is returned as it is."""
    return value if value.sizes or not sizes else Node(Operation.EXPAND, value.type, sizes, (value,))


def index(type: ScalarType, sizes: Sequence[int], offset: int, strides: Sequence[int]) -> Node:
    """Return offset + i . strides at each index i of a tensor, wrapped in an integer type."""
    moving = [0 if is_unit(size) else stride for size, stride in zip(sizes, strides, strict=True)]
    return Node(Operation.INDEX, type, tuple(sizes), attribute=(offset, *moving))


def counted(sizes: Sequence[int], offset: int, strides: Sequence[int]) -> Node:
    """Return an index of a type that holds it."""
    reaches = [abs(stride) * (size - 1) for size, stride in zip(sizes, strides, strict=True)]
    return index(counting(abs(offset) + sum(reaches)), sizes, offset, strides)


def element_number(sizes: Sequence[int]) -> Node:
    """Return the number of each element of a tensor in row-major order, as INT64."""
    strides = [math.prod(sizes[dimension + 1 :]) for dimension in range(len(sizes))]
    return index(ScalarType.INT64, sizes, 0, strides)


def reduction(operation: Operation, value: Node, axes: Iterable[int]) -> Node:
    """Return a reduction of `value` over `axes`, which keep the size 1."""
    reduced = tuple(sorted(axes))
    sizes = tuple(1 if axis in reduced else size for axis, size in enumerate(value.sizes))
    if operation in SEARCHES:
        places = position(value.sizes, reduced)
        return Node(operation, places.type, sizes, (value, places), reduced)
    keeps_type = operation in (Operation.LEAST, Operation.GREATEST) or not value.type.is_float
    type = value.type if keeps_type else ScalarType.FLOAT64
    return Node(operation, type, sizes, (value,), reduced)


def contraction(a: Node, b: Node, axes: Iterable[int]) -> Node:
    """Return the sum of a * b over `axes`, which keep the size 1; both are FLOAT32, or integers of one
    type."""
    domain = broadcast([a.sizes, b.sizes])
    reduced = tuple(sorted(axis for axis in axes if not is_unit(domain[axis])))
    if not reduced:
        return a * b
    sizes = tuple(1 if axis in reduced else size for axis, size in enumerate(domain))
    return Node(Operation.CONTRACTION, a.type, sizes, (a, b), reduced)


def position(sizes: Sequence[int], axes: Sequence[int]) -> Node:
    """Return the row-major index over `axes` of each element of a tensor of `sizes`, of a type that holds
    their number too."""
    counted = [size if axis in axes else 1 for axis, size in enumerate(sizes)]
    strides = [0 if is_unit(size) else math.prod(counted[axis + 1 :]) for axis, size in enumerate(counted)]
    return index(counting(math.prod(counted)), sizes, 0, strides)


def scan(operation: Operation, value: Node, axis: int, exclusive: bool, reverse: bool) -> Node:
    """Return a running sum or product of `value` along an axis."""
    type = ScalarType.FLOAT64 if value.type.is_float else value.type
    return Node(operation, type, value.sizes, (value,), (axis, int(exclusive), int(reverse)))


def recurrence(
    count: int,
    initial: Node,
    read: Sequence[tuple[Node, Window]],
    step: Callable[[Node, Sequence[Node]], Node],
) -> Node:
    """Return `initial`, of size 1 along the first dimension, then what each of `count` steps makes of the
    last.

    Args:
        count: how many steps there are.
        initial: what the first step starts from.
        read: tensors, and the windows through which the steps see them.
        step: from what the last step has made, and the windows' parts, to what this one makes, of the same
            type and sizes.
    """
    state = source(0, initial.type, initial.sizes)
    parts = [source(number, value.type, window.sizes) for number, (value, window) in enumerate(read, 1)]
    steps = Recurrence(count, step(state, parts), tuple(window for _, window in read))
    operands = (initial, *(value for value, _ in read))
    return Node(Operation.RECURRENCE, initial.type, (count + 1, *initial.sizes[1:]), operands, steps)


def placing(operation: Operation, value: Node, axis: int, count: int) -> Node:
    """Return a SCATTER, POSITIONS or TOP of `value` along an axis, which gets `count` elements, of a type
    that holds the number of positions too."""
    sizes = tuple(count if each == axis else size for each, size in enumerate(value.sizes))
    return Node(operation, counting(value.sizes[axis]), sizes, (value,), (axis, count))


def scattered_sum(places: Node, values: Node, axes: Sequence[int], count: int) -> Node:
    """Return the sums of INT64 `values` that have the same of `count` places, which the first of the axes
    gets."""
    domain = broadcast([places.sizes, values.sizes])
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(domain))
    sizes = (*kept[: axes[0]], count, *kept[axes[0] + 1 :])
    return Node(Operation.SCATTER_SUM, values.type, sizes, (places, values), (*axes, count))


def scattered_last(places: Node, values: Node, before: Node, axis: int) -> Node:
    """Return `before`, but along an axis at the places of some `values` the last of these."""
    return Node(
        Operation.SCATTER_LAST,
        before.type,
        before.sizes,
        (places, values, before),
        (axis, before.sizes[axis]),
    )


def broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common sizes of operands; a size of 1 repeats, operands without dimensions fit all."""
    result: tuple[int, ...] = ()
    for sizes in shapes:
        if not result or not sizes or sizes is result:
            result = result or sizes
            continue
        known = [_common_size(*each) for each in zip(sizes, result, strict=False)]
        common = [each for each in known if each is not None]
        if len(common) < len(sizes) or len(sizes) != len(result):
            raise TypeError(f"sizes {list(result)} and {list(sizes)} do not broadcast")
        result = tuple(common)
    return result


def _common_size(first: int, second: int) -> int | None:
    """Return the size to which two broadcast; None: they differ. A traced size may be 1 beside a plain 1."""
    if first is second or (type(second) is int and second == 1):
        return first
    return second if first == 1 or first == second else first if second == 1 else None


def ordered(roots: Iterable[Node], known: Container[int] = ()) -> list[Node]:
    """Return every node that the roots need, each once, operands first; nodes whose identity is `known` are
    left out."""
    seen: set[int] = set()
    found: list[Node] = []
    # Behind None is a node whose operands are done.
    pending: list[Node | None] = [*roots]
    pending.reverse()
    while pending:
        node = pending.pop()
        if node is None:
            found.append(pending.pop())  # type: ignore[arg-type]
        elif (key := id(node)) not in seen and key not in known:
            seen.add(key)
            operands = node.operands
            if len(operands) > 1:
                pending += (node, None, *operands[::-1])
            elif operands and id(operands[0]) not in seen:
                pending += (node, None, operands[0])
            else:
                found.append(node)
    return found


def is_rare(node: Node) -> bool:
    """Return whether a node is a SELECT whose condition hardly ever holds."""
    return node.attribute is Likelihood.RARE


def always_needed(roots: Iterable[Node], known: Container[int] = ()) -> set[int]:
    """Return the identities of the nodes that `roots` need while no condition of a rare selection holds.

    Nodes whose identities are `known`, and nodes that only these need, are left out.
    """
    needed: set[int] = set()
    pending = list(roots)
    while pending:
        node = pending.pop()
        if id(node) not in needed and id(node) not in known:
            needed.add(id(node))
            pending.extend(node.operands[::2] if is_rare(node) else node.operands)
    return needed


def rebuild(
    roots: Sequence[Node], change: Callable[[Node], Node], kept: Container[int] = ()
) -> tuple[Node, ...]:
    """Return the graph with `change` applied to every node, operands first; equal nodes become one.

    Nodes whose identities are `kept` are not changed, only their operands are.
    """
    unique: dict[tuple[object, ...], Node] = {}
    shared: dict[int, Node] = {}

    def share(node: Node) -> None:
        operands = tuple(shared[id(operand)] for operand in node.operands)
        candidate = node if operands == node.operands else with_operands(node, operands)
        # A number's own text tells 0.0 from -0.0 and makes NaN equal to itself.
        attribute = node.attribute if node.attribute is None else repr(node.attribute)
        key = (node.operation, node.type, node.sizes, attribute, *map(id, operands))
        result = unique.setdefault(key, candidate)
        shared[id(node)] = shared[id(result)] = result

    changed: dict[int, Node] = {}
    originals = ordered(roots)
    alive = []  # identities are keys: no node may be collected while this runs
    for node in originals:
        operands = tuple(changed[id(operand)] for operand in node.operands)
        result = node if operands == node.operands else with_operands(node, operands)
        if id(node) not in kept:
            result = change(result)
        alive.append(result)
        if node.origin is not None:
            claim(result, node.origin)
        if id(result) not in shared:
            are_known = all(id(operand) in shared for operand in result.operands)
            for part in [result] if are_known else ordered([result], shared):
                share(part)
        changed[id(node)] = shared[id(result)]
    return tuple(changed[id(root)] for root in roots)


def with_operands(node: Node, operands: tuple[Node, ...]) -> Node:
    """Return the node's operation over other operands."""
    return Node(node.operation, node.type, node.sizes, operands, node.attribute, node.origin)


def claim(root: Node, origin: str) -> None:
    """Make `origin` the origin of a node and of all below it, up to those that have one. What programs read
    has none."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.origin is None and node.operation is not Operation.SOURCE:
            node.origin = origin
            pending += node.operands
            if isinstance(node.attribute, Recurrence):
                pending.append(node.attribute.body)
