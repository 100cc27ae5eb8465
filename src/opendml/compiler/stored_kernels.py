"""Kernels with traced sizes as JSON, from which another process chooses schedules for other sizes.

Nodes are a table, in which each follows its operands. A node that several kernels share stays one node.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from opendml.compiler.kernel import Access, Kernel, KernelProgram, PreparedTensor, Repeat
from opendml.compiler.memory import Temporary
from opendml.compiler.recipe import Recipe
from opendml.program.node import (
    Attribute,
    Likelihood,
    LookupTable,
    Node,
    Operation,
    Precision,
    View,
    ordered,
)
from opendml.program.program import Layout, Program
from opendml.program.scalar_type import ScalarType

_NOT_A_NUMBER = "NaN"
_ENUMS: dict[str, type[Enum]] = {"Precision": Precision, "Likelihood": Likelihood}
_JSON_TYPES = frozenset({int, float, bool, str, list, type(None)})
"""Types of JSON of a number."""


def layouts_to_json(layouts: Sequence[Layout], written: Callable[[Any], Any]) -> list[Any]:
    """Return layouts as JSON. `written` makes JSON of their numbers (`WrittenSizes`)."""
    return [[each.type.name, [*map(written, each.sizes)], [*map(written, each.strides)]] for each in layouts]


def layouts_from_json(data: Sequence[Any], read: Callable[[Any], Any]) -> tuple[Layout, ...]:
    """Return the layouts that `layouts_to_json` has made JSON of. `read` makes numbers of JSON."""
    return tuple([
        Layout(ScalarType[type], tuple(map(read, sizes)), tuple(map(read, strides)))
        for type, sizes, strides in data
    ])  # fmt: skip


def program_to_json(
    program: Program, kernels: KernelProgram, written: Callable[[Any], Any]
) -> dict[str, Any]:
    """Return the kernels of a program as JSON, with its layouts, and the constants that they read.

    The other arguments and errors are those of `kernels_to_json`.
    """
    every = (*kernels.kernels, *kernels.initializers)
    read = {access.buffer for kernel in every for access in kernel.loads}
    return {
        "inputs": layouts_to_json(program.inputs, written),
        "outputs": layouts_to_json(program.outputs, written),
        "constants": sorted(program.constants & read),
        "kernels": kernels_to_json(kernels, written),
    }


def program_from_json(data: dict[str, Any], read: Callable[[Any], Any]) -> tuple[Program, KernelProgram]:
    """Return the layouts and constants of a program, without its results, and its kernels.

    The arguments and errors are those of `kernels_from_json`.
    """
    inputs, outputs = (layouts_from_json(data[each], read) for each in ("inputs", "outputs"))
    program = Program(inputs, outputs, (), frozenset(map(int, data["constants"])))
    return program, kernels_from_json(data["kernels"], read)


def kernels_to_json(kernels: KernelProgram, written: Callable[[Any], Any]) -> dict[str, Any]:
    """Return kernels as JSON.

    Args:
        kernels: the kernels.
        written: makes JSON of their numbers (`WrittenSizes`).

    Raises:
        TypeError: an attribute of a node has no form in JSON.
    """
    to_json = _Writer(written)
    return {
        "kernels": [*map(to_json.kernel, kernels.kernels)],
        "initializers": [*map(to_json.kernel, kernels.initializers)],
        "nodes": to_json.nodes,
        "counts": [kernels.input_count, kernels.output_count],
        "bytes": [written(kernels.arena_bytes), written(kernels.initializer_arena_bytes)],
        "prepared": [
            [written(each.size), each.recipe.text, each.recipe.constants] for each in kernels.prepared
        ],
        "repeats": [[each.first, each.length, each.count] for each in kernels.repeats],
        "temporaries": [
            [written(each.offset), written(each.size), each.first, each.last] for each in kernels.temporaries
        ],
    }


def kernels_from_json(data: dict[str, Any], read: Callable[[Any], Any]) -> KernelProgram:
    """Return the kernels that `kernels_to_json` has made JSON of.

    Args:
        data: the JSON.
        read: makes numbers of JSON (`ReadSizes`).

    Raises:
        LookupError, TypeError, ValueError: it is damaged.
    """
    from_json = _Reader(read, data["nodes"])
    input_count, output_count = data["counts"]
    arena_bytes, initializer_arena_bytes = map(read, data["bytes"])
    return KernelProgram(
        tuple(map(from_json.kernel, data["kernels"])),
        input_count,
        output_count,
        arena_bytes,
        tuple(map(from_json.kernel, data["initializers"])),
        initializer_arena_bytes,
        tuple([
            PreparedTensor(read(size), Recipe(text, tuple(constants)))
            for size, text, constants in data["prepared"]
        ]),
        tuple([Repeat(*each) for each in data["repeats"]]),
        tuple([
            Temporary(read(offset), read(size), first, last)
            for offset, size, first, last in data["temporaries"]
        ]),
    )  # fmt: skip


class _Writer:
    """Makes JSON of kernels, and of the table of their nodes."""

    def __init__(self, written: Callable[[Any], Any]) -> None:
        self._written = written
        self.nodes: list[Any] = []
        self._numbers: dict[int, int] = {}

    def kernel(self, kernel: Kernel) -> list[Any]:
        written = self._written
        for node in ordered(kernel.values):
            if id(node) not in self._numbers:
                self._numbers[id(node)] = len(self.nodes)
                self.nodes.append(self._node(node))
        return [
            [*map(written, kernel.domain)],
            kernel.axes,
            [*map(self._access, kernel.loads)],
            [*map(self._access, kernel.stores)],
            [self._numbers[id(each)] for each in kernel.values],
            [*map(written, kernel.numbers)],
        ]

    def _access(self, access: Access) -> list[Any]:
        written = self._written
        return [
            access.buffer,
            access.type.name,
            written(access.offset),
            [*map(written, access.strides)],
            access.fixed,
            access.steps,
            written(access.advance),
            access.four_bit,
        ]

    def _node(self, node: Node) -> list[Any]:
        operands = [self._numbers[id(each)] for each in node.operands]
        sizes, attribute = [*map(self._written, node.sizes)], self._attribute(node.attribute)
        return [node.operation.name, node.type.name, sizes, operands, attribute, node.origin]

    def _attribute(self, attribute: Any) -> Any:
        kind = type(attribute)
        if kind is tuple:
            return {"tuple": [*map(self._attribute, attribute)]}
        if kind is View:
            content = attribute.offsets, attribute.steps, attribute.indexed
            return {"View": [*map(self._attribute, content)]}
        if kind is LookupTable:
            return {"LookupTable": self._attribute(attribute.entries)}
        if kind.__name__ in _ENUMS:
            return {kind.__name__: attribute.name}
        if kind is float and attribute != attribute:
            return {_NOT_A_NUMBER: struct.pack("<d", attribute).hex()}
        found = self._written(attribute)
        if type(found) not in _JSON_TYPES:
            raise TypeError(f"an attribute of type {kind.__name__} has no form in JSON")
        return found


class _Reader:
    """Makes kernels of JSON, whose nodes are in a table."""

    def __init__(self, read: Callable[[Any], Any], nodes: Sequence[Any]) -> None:
        self._read, self._nodes = read, list[Node]()
        for operation, type, sizes, operands, attribute, origin in nodes:
            made = Node(
                Operation[operation],
                ScalarType[type],
                tuple([each if each.__class__ is int else read(each) for each in sizes]),
                tuple([self._nodes[each] for each in operands]),
                self._attribute(attribute),
                origin,
            )
            self._nodes.append(made)

    def kernel(self, data: Sequence[Any]) -> Kernel:
        domain, axes, loads, stores, values, numbers = data
        return Kernel(
            tuple(map(self._read, domain)),
            tuple(axes),
            tuple(map(self._access, loads)),
            tuple(map(self._access, stores)),
            tuple([self._nodes[each] for each in values]),
            tuple(map(self._read, numbers)),
        )

    def _access(self, data: Sequence[Any]) -> Access:
        buffer, type, offset, strides, fixed, steps, advance, four_bit = data
        read = self._read
        return Access(
            buffer,
            ScalarType[type],
            read(offset),
            tuple(map(read, strides)),
            fixed,
            steps,
            read(advance),
            four_bit,
        )

    def _attribute(self, data: Any) -> Attribute:
        if type(data) is not dict:
            return self._read(data)  # type: ignore[no-any-return]
        ((kind, content),) = data.items()
        if kind == "tuple":
            return tuple(map(self._attribute, content))  # type: ignore[arg-type]
        if kind == "View":
            return View(*map(self._attribute, content))  # type: ignore[arg-type]
        if kind == "LookupTable":
            return LookupTable(self._attribute(content))  # type: ignore[arg-type]
        if kind == _NOT_A_NUMBER:
            (number,) = struct.unpack("<d", bytes.fromhex(content))
            return float(number)
        return _ENUMS[kind][content]  # type: ignore[return-value]
