"""Cuts a tensor program into kernels.

Every output is one kernel that recomputes nothing from memory: element-wise nodes are inlined, and reductions
over common axes of
the kernel's own domain stay inside it. Written to a temporary first are only a tensor that is reduced and
itself needs a
reduction, and a reduction over another domain or other axes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from opendml.compiler.kernel import Access, Kernel, KernelProgram
from opendml.compiler.memory import place
from opendml.program.node import REDUCTIONS, Node, Operation, ordered, source, with_operands
from opendml.program.program import Layout, Program, packed


def fuse(program: Program) -> KernelProgram:
    """The kernels of a program; its table of buffers is the inputs, the outputs, and one arena."""
    roots, inputs, outputs = program.results, program.inputs, program.outputs
    cuts = _cuts(roots)
    temporaries = {id(node): packed(node.type, node.sizes) for node in cuts}
    bodies = [_extract(root, temporaries) for root in [*cuts, *roots]]
    offsets, arena_bytes = place([_bytes(temporaries[id(node)]) for node in cuts], _lifetimes(cuts, bodies))
    arena = len(inputs) + len(outputs)
    places = {
        id(node): _Place(arena, offset, temporaries[id(node)])
        for node, offset in zip(cuts, offsets, strict=True)
    }
    targets = [places[id(node)] for node in cuts]
    targets += [_Place(len(inputs) + index, 0, layout) for index, layout in enumerate(outputs)]
    kernels = []
    for body, target in zip(bodies, targets, strict=True):
        loads = tuple(
            places[id(leaf)].access()
            if id(leaf) in places
            else _counter(leaf)
            if leaf.operation is Operation.INDEX
            else _Place(_index(leaf), 0, inputs[_index(leaf)]).access()
            for leaf in body.leaves
        )
        # A number fills whatever tensor it is stored to.
        domain = body.domain or target.layout.sizes
        kernels.append(Kernel(domain, body.axes, loads, (target.access(),), (body.value,)))
    return KernelProgram(tuple(kernels), len(inputs), len(outputs), arena_bytes)


def _counter(node: Node) -> Access:
    """The access that an INDEX is."""
    if not isinstance(node.attribute, tuple):
        raise TypeError(f"{node} has no strides")
    return Access(None, node.type, 0, node.attribute)


@dataclass(frozen=True, slots=True)
class _Place:
    """A tensor in the table of buffers."""

    buffer: int
    offset: int
    layout: Layout

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

    @property
    def domain(self) -> tuple[int, ...]:
        return _domain(self.value)

    @property
    def axes(self) -> tuple[int, ...]:
        reductions = (node for node in ordered([self.value]) if node.operation in REDUCTIONS)
        return next((node.attribute for node in reductions if isinstance(node.attribute, tuple)), ())


def _domain(root: Node) -> tuple[int, ...]:
    """The sizes over which the kernel of `root` runs."""
    return root.operands[0].sizes if root.operation in REDUCTIONS else root.sizes


def _cuts(roots: Sequence[Node]) -> list[Node]:
    """The nodes that become temporaries, in the order in which they are computed."""
    cuts: dict[int, Node] = {}
    for node in ordered(roots):
        if node.operation in REDUCTIONS and _reductions(node.operands[0], cuts):
            cuts[id(node.operands[0])] = node.operands[0]
    for root in [*cuts.values(), *roots]:
        inside = _reductions(root, cuts)
        own = [node for node in inside if node.operands[0].sizes == _domain(root)]
        cuts.update(
            (id(node), node) for node in inside if node not in own or node.attribute != own[0].attribute
        )
    return [node for node in ordered(roots) if id(node) in cuts]


def _reductions(root: Node, cuts: Container[int]) -> list[Node]:
    """The reductions that `root` needs without going through a temporary."""
    return [node for node in ordered([root], _Except(cuts, id(root))) if node.operation in REDUCTIONS]


@dataclass(frozen=True, slots=True)
class _Except:
    """All keys of a container but one."""

    keys: Container[int]
    left_out: int

    def __contains__(self, key: object) -> bool:
        return key != self.left_out and key in self.keys


def _extract(root: Node, temporaries: Mapping[int, Layout]) -> _Body:
    """The kernel that computes `root`: a copy of its graph, cut at the temporaries and the program's
    inputs."""
    copies: dict[int, Node] = {}
    leaves: list[Node] = []

    def copy_of(node: Node) -> Node:
        if id(node) not in copies:
            copies[id(node)] = source(len(leaves), node.type, node.sizes)
            leaves.append(node)
        return copies[id(node)]

    for node in ordered([root], _Except(temporaries, id(root))):
        if node.operation in (Operation.SOURCE, Operation.INDEX):
            copy_of(node)
        else:
            copies[id(node)] = with_operands(node, tuple(copy_of(operand) for operand in node.operands))
    return _Body(copies[id(root)], tuple(leaves))


def _lifetimes(cuts: Sequence[Node], bodies: Sequence[_Body]) -> list[tuple[int, int]]:
    """For each temporary, the kernel that writes it and the last that reads it."""
    return [
        (step, max(user for user, body in enumerate(bodies) if user == step or node in body.leaves))
        for step, node in enumerate(cuts)
    ]


def _index(node: Node) -> int:
    if not isinstance(node.attribute, int):
        raise TypeError(f"{node} has no index")
    return node.attribute


def _bytes(layout: Layout) -> int:
    return layout.element_count * layout.type.bytes
