"""Kernels for certain sizes, made of kernels with traced sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from operator import is_
from typing import Any, TypeVar

from opendml.compiler.kernel import Access, Kernel
from opendml.late_dataclass import replace
from opendml.program.node import Node, ordered
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import Size, hint_of, is_traced, value_at

T = TypeVar("T")


def plain(data: T) -> T:
    """Return kernels, accesses, nodes, layouts or tuples of them with hints in place of traced sizes.

    What has no traced sizes stays the same object. No guard is recorded, so this serves choices by speed.
    """
    return _Replaced(hint_of)(data)  # type: ignore[no-any-return]


def with_plain_nodes(kernel: Kernel) -> Kernel:
    """Return a kernel whose values have hints in place of traced sizes of nodes.

    No schedule and no code depends on these sizes, because a kernel has a domain and strides. So values are
    the same objects for all sizes, and what is known about them is not found out again.
    """
    replaced = _Replaced(hint_of, in_attributes=False)
    return replace(kernel, values=tuple(map(replaced, kernel.values)))


def at_sizes(data: T, sizes: Mapping[str, int]) -> T:
    """Return kernels and their parts, as of `plain`, for dimensions by name.

    A dimension may be the size of a trace, so that some dimensions become plain numbers and others stay.
    """
    known = dict[Any, Any]()

    def value(size: Any) -> Any:
        if type(size) is not Size:
            return value_at(size, sizes)
        if size.polynomial not in known:
            known[size.polynomial] = value_at(size, sizes)
        return known[size.polynomial]

    return _Replaced(value)(data)  # type: ignore[no-any-return]


def numbers_in(data: Any) -> list[int]:
    """Return the traced numbers in data, in order. Equal ones are listed as often as they occur."""
    found = list[int]()

    def noted(number: int) -> int:
        found.append(number)
        return number

    _Replaced(noted)(data)
    return found


def with_numbers(data: T, numbers: Iterable[int]) -> T:
    """Return data with numbers in place of those that `numbers_in` lists."""
    rest = iter(numbers)
    return _Replaced(lambda _: next(rest))(data)  # type: ignore[no-any-return]


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass that its constructor takes; none for other classes."""
    return tuple([each.name for each in fields(kind) if each.init]) if is_dataclass(kind) else ()


_PLAIN = frozenset({int, bool, float, str, type(None), frozenset, ScalarType})
"""Types of most data that has no traced numbers in it."""


@lru_cache(maxsize=1024)
def _are_traced(roots: tuple[Node, ...]) -> bool:
    """Return whether there are traced numbers in nodes that some roots need."""
    return any(numbers_in(root) for root in roots)


class _Replaced:
    """A function that replaces traced numbers within immutable data, of nodes in their attributes too or in
    their sizes alone."""

    def __init__(self, value_of: Callable[[Any], Any], in_attributes: bool = True) -> None:
        self._value_of, self._in_attributes = value_of, in_attributes
        self._nodes: dict[int, Node] = {}

    def __call__(self, data: Any) -> Any:
        kind = type(data)
        if kind in _PLAIN:
            return data
        if is_traced(data):
            return self._value_of(data)
        if kind is tuple:
            if data and type(data[0]) is Node and not _are_traced(data):
                return data
            items = [each if type(each) in _PLAIN else self(each) for each in data]
            return data if all(map(is_, items, data)) else tuple(items)
        if kind is Access:
            return self._access(data)
        if kind is dict:
            return {name: self(each) for name, each in data.items()}
        if kind is Node:
            return self._node(data)
        changed = {}
        for name in _names(data.__class__):
            old = getattr(data, name)
            if type(old) not in _PLAIN and (new := self(old)) is not old:
                changed[name] = new
        return replace(data, **changed) if changed else data

    def _access(self, access: Access) -> Access:
        strides = self(access.strides)
        old = access.offset, access.steps, access.advance
        new = offset, steps, advance = [each if type(each) is int else self(each) for each in old]
        if strides is access.strides and all(map(is_, new, old)):
            return access
        rest = access.fixed, steps, advance, access.four_bit
        return Access(access.buffer, access.type, offset, strides, *rest)

    def _node(self, root: Node) -> Node:
        for node in ordered([root], self._nodes):
            operands = tuple([self._nodes[id(each)] for each in node.operands])
            sizes = self(node.sizes)
            attribute = self(node.attribute) if self._in_attributes else node.attribute
            is_same = sizes is node.sizes and attribute is node.attribute and operands == node.operands
            new = Node(node.operation, node.type, sizes, operands, attribute, node.origin)
            self._nodes[id(node)] = node if is_same else new
        return self._nodes[id(root)]
