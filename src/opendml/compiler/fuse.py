"""Cuts a tensor program into kernels.

Every output is one kernel that recomputes nothing from memory: element-wise nodes are inlined, and reductions
over common axes of the kernel's domain stay inside it, also of values that need such reductions themselves:
the kernel passes over a group once for each. Written to a temporary first are only reductions over another
domain or other axes, and what would need too many passes or reductions.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from opendml.compiler.kernel import Access, Kernel, KernelProgram
from opendml.compiler.memory import place
from opendml.compiler.numbers import Shared, with_parameters
from opendml.program.node import (
    COLLECTIVE,
    REDUCTIONS,
    SCANS,
    Node,
    Operation,
    constant,
    ordered,
    part,
    source,
    with_operands,
)
from opendml.program.program import Layout, Program, packed

MAXIMUM_PASSES = 3
"""Over a group, before its results: those of a softmax of a normalization."""
MAXIMUM_REDUCTIONS = 16
"""In a kernel: all states are live at once. Of 32, for want of registers, each takes half as long again, of
64 three times as long; and the time to compile grows faster than their number."""


def fuse(program: Program) -> KernelProgram:
    """The kernels of a program; its table of buffers is the inputs, the outputs, and one arena."""
    roots, inputs, outputs = program.results, program.inputs, program.outputs
    cuts = _cuts(roots)
    temporaries = {id(node): packed(node.type, node.sizes) for node in cuts}
    computed = [node.operands[0] if node.operation is Operation.PADDED else node for node in [*cuts, *roots]]
    bodies = [_extract(root, temporaries, _home(root, temporaries)) for root in computed]
    offsets, arena_bytes = place([_bytes(temporaries[id(node)]) for node in cuts], _lifetimes(cuts, bodies))
    arena = len(inputs) + len(outputs)
    places = {
        id(node): _Place(arena, offset, temporaries[id(node)])
        for node, offset in zip(cuts, offsets, strict=True)
    }
    targets = [_target(node, places[id(node)]) for node in cuts]
    targets += [_Place(len(inputs) + index, 0, layout) for index, layout in enumerate(outputs)]
    kernels = []
    shared: Shared = {}
    for node, body, target in zip([*cuts, *roots], bodies, targets, strict=True):
        if node.operation is Operation.PADDED:
            zeros = (constant(0, node.type),)
            kernels.append(Kernel(node.sizes, (), (), (places[id(node)].access(),), zeros))
        loads = tuple(_access(leaf, places, inputs) for leaf in body.leaves)
        # A number fills whatever tensor it is stored to.
        domain = body.home.domain or target.layout.sizes
        values, numbers = with_parameters((body.value,), shared)
        kernels.append(Kernel(domain, body.home.axes, loads, (target.access(),), values, numbers))
    return KernelProgram(tuple(kernels), len(inputs), len(outputs), arena_bytes)


def _target(node: Node, place: _Place) -> _Place:
    """The place within a temporary of the elements that are computed: inside the zeros around a tensor."""
    if node.operation is not Operation.PADDED:
        return place
    return place.part(part(node, _indices(node), node.operands[0].sizes))


def _access(leaf: Node, places: Mapping[int, _Place], inputs: Sequence[Layout]) -> Access:
    """A kernel's read of a temporary or an input, or its count of an INDEX."""
    if id(leaf) in places:
        return places[id(leaf)].access()
    if leaf.operation is Operation.PART:
        whole = leaf.operands[0]
        place = places.get(id(whole)) or _Place(_index(whole), 0, inputs[_index(whole)])
        return place.part(leaf).access()
    if leaf.operation is Operation.INDEX and isinstance(leaf.attribute, tuple):
        return Access(None, leaf.type, 0, leaf.attribute)
    index = _index(leaf)
    return _Place(index, 0, inputs[index]).access()


@dataclass(frozen=True, slots=True)
class _Place:
    """A tensor in the table of buffers."""

    buffer: int
    offset: int
    layout: Layout

    def part(self, node: Node) -> _Place:
        """The place of a PART of the tensor."""
        first = zip(_indices(node), self.layout.strides, strict=True)
        offset = self.offset + sum(index * stride for index, stride in first)
        return _Place(self.buffer, offset, Layout(node.type, node.sizes, self.layout.strides))

    def access(self) -> Access:
        strides = tuple(
            stride if extent > 1 else 0
            for stride, extent in zip(self.layout.strides, self.layout.sizes, strict=True)
        )
        return Access(self.buffer, self.layout.type, self.offset, strides)


@dataclass(frozen=True, slots=True)
class _Body:
    """One kernel before its buffers are placed: SOURCE i of `value` is the tensor `leaves[i]` of the
    program."""

    value: Node
    leaves: tuple[Node, ...]
    home: _Home


@dataclass(frozen=True, slots=True)
class _Home:
    """The sizes over which a kernel runs, and the nodes that it reduces or scans, all over the same axes."""

    domain: tuple[int, ...]
    axes: tuple[int, ...] = ()
    own: tuple[Node, ...] = ()


def _cuts(roots: Sequence[Node]) -> list[Node]:
    """The nodes that become temporaries, in the order in which they are computed."""
    cuts = {id(node): node for node in _in_memory(roots)}
    pending = [*roots, *cuts.values()]
    while pending:
        root = pending.pop()
        found = _foreign(root, cuts)
        cuts.update((id(node), node) for node in found)
        if found:
            pending += [root, *found]
    return [node for node in ordered(roots) if id(node) in cuts]


def _in_memory(roots: Sequence[Node]) -> Iterator[Node]:
    """The nodes that only lie in memory: padded tensors, and those read in parts, unless they are inputs."""
    for node in ordered(roots):
        if node.operation is Operation.PADDED:
            yield node
        elif node.operation is Operation.PART and node.operands[0].operation is not Operation.SOURCE:
            yield node.operands[0]


def _foreign(root: Node, cuts: Container[int]) -> list[Node]:
    """The nodes that the kernel of `root` cannot compute itself: a tensor that it reduces and that needs
    reductions over another domain or other axes, or more passes over a group than a kernel makes; parts of
    its result that have as many reductions as a kernel may have; then other such reductions."""
    own = {id(node): node for node in _home(root, cuts).own}
    many = _with_many_passes(root, own, cuts)
    if many:
        return many
    if len(own) > MAXIMUM_REDUCTIONS:
        return _with_few_reductions(root, list(own.values()), cuts)
    return [node for node in _collective(root, cuts) if id(node) not in own]


def _with_many_passes(root: Node, own: Container[int], cuts: Container[int]) -> list[Node]:
    """What to write to temporaries, so that no operand of its `own` reductions needs too many passes."""
    passes: dict[int, int] = {}
    found: list[Node] = []
    for node in _inside(root, cuts):
        below = max((passes.get(id(operand), 0) for operand in node.operands), default=0)
        if id(node) in own:
            operand = node.operands[0]
            if passes.get(id(operand), 0) >= MAXIMUM_PASSES:
                passes[id(operand)] = below = 0
                found.append(operand)
            below += 1
        elif node.operation in COLLECTIVE:
            below = MAXIMUM_PASSES
        passes[id(node)] = below
    return found


def _with_few_reductions(root: Node, own: Sequence[Node], cuts: Container[int]) -> list[Node]:
    """What to write to temporaries, so that nothing needs more of its `own` reductions than a kernel has."""
    bits = {id(node): 1 << number for number, node in enumerate(own)}
    needs: dict[int, int] = {}
    found: list[Node] = []
    for node in _inside(root, cuts):
        operands = sorted(node.operands, key=lambda operand: needs.get(id(operand), 0).bit_count())
        while (need := _united(bits.get(id(node), 0), operands, needs)).bit_count() > MAXIMUM_REDUCTIONS:
            found.append(operands.pop())
            needs[id(found[-1])] = 0
        needs[id(node)] = need
    return found


def _united(bits: int, operands: Sequence[Node], needs: Mapping[int, int]) -> int:
    for operand in operands:
        bits |= needs.get(id(operand), 0)
    return bits


def _home(root: Node, cuts: Container[int]) -> _Home:
    """The domain of the kernel of `root`: its own sizes or, if it is made of reductions to them, what these
    reduce."""
    inside = _collective(root, cuts)
    over = [node for node in inside if node.operands[0].sizes == root.sizes]
    to = [node for node in inside if node.sizes == root.sizes]
    candidates = [root] if root in inside else over or to
    if not candidates:
        return _Home(root.sizes)
    last = candidates[-1]
    domain = last.operands[0].sizes
    if last.operation in SCANS:
        return _Home(domain, _axes(last), (last,))
    own = [n for n in inside if n.operands[0].sizes == domain and n.attribute == last.attribute]
    return _Home(domain, _axes(last), tuple(node for node in own if node.operation in REDUCTIONS))


def _axes(node: Node) -> tuple[int, ...]:
    """The axes that a node reduces or scans."""
    if not isinstance(node.attribute, tuple):
        raise TypeError(f"{node} has no axes")
    return node.attribute[:1] if node.operation in SCANS else node.attribute


def _collective(root: Node, cuts: Container[int]) -> list[Node]:
    """The reductions and scans that `root` needs without going through a temporary."""
    return [node for node in _inside(root, cuts) if node.operation in COLLECTIVE]


def _inside(root: Node, cuts: Container[int]) -> Iterator[Node]:
    """The nodes that `root` needs without going through a temporary, and itself, operands first."""
    yield from ordered(root.operands, cuts)
    yield root


def _extract(root: Node, temporaries: Mapping[int, Layout], home: _Home) -> _Body:
    """The kernel that computes `root`: a copy of its graph, cut at the temporaries and the program's
    inputs."""
    copies: dict[int, Node] = {}
    leaves: list[Node] = []

    def copy_of(node: Node) -> Node:
        if id(node) not in copies:
            copies[id(node)] = source(len(leaves), node.type, node.sizes)
            leaves.append(node)
        return copies[id(node)]

    for node in _inside(root, temporaries):
        if node.operation not in (Operation.SOURCE, Operation.INDEX, Operation.PART):
            copies[id(node)] = with_operands(node, tuple(copy_of(operand) for operand in node.operands))
    return _Body(copy_of(root), tuple(leaves), home)


def _lifetimes(cuts: Sequence[Node], bodies: Sequence[_Body]) -> list[tuple[int, int]]:
    """For each temporary, the kernel that writes it and the last that reads it."""
    last = {id(node): step for step, node in enumerate(cuts)}
    for user, body in enumerate(bodies):
        last.update((id(node), user) for node in _read(body) if last.get(id(node), user) < user)
    return [(step, last[id(node)]) for step, node in enumerate(cuts)]


def _read(body: _Body) -> list[Node]:
    """The tensors that a kernel reads, at least parts of them."""
    return [leaf.operands[0] if leaf.operation is Operation.PART else leaf for leaf in body.leaves]


def _indices(node: Node) -> tuple[int, ...]:
    if not isinstance(node.attribute, tuple):
        raise TypeError(f"{node} has no indices")
    return node.attribute


def _index(node: Node) -> int:
    if not isinstance(node.attribute, int):
        raise TypeError(f"{node} has no index")
    return node.attribute


def _bytes(layout: Layout) -> int:
    return layout.element_count * layout.type.bytes
