"""Forms of kernels, and a memo of what is found out about them.

How a kernel is scheduled depends on its values, sizes and strides. It does not depend on which buffers it
accesses, where in these its tensors lie, or which numbers its values have. Its form is the kernel without
those three. Kernels of equal form are scheduled once in a process. Their launches differ in a `ValueBinding`.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, Generic, TypeVar

from opendml.across_forks import remembering
from opendml.compiler.kernel import Access, Kernel
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, View, ordered
from opendml.program.sizes import Size, hint_of, hints_of
from opendml.program.trace import Answers, Trace

Result = TypeVar("Result")

NEAR = 64
"""Bytes up to which the distance of two accesses counts for any schedule: a line of a cache."""
_MOST_ENTRIES = 2048
"""Forms of a memo, at most: eight sizes of MobileNetV2, ResNet-50 and BERT have 200, of 10 KB each."""
_MOST_PARTS = 256 * 1024
"""Nodes and strides of a memo's forms, at most: with the launches each takes some 115 bytes, 30 MB in all."""


@dataclass(frozen=True, slots=True)
class ValueBinding:
    """The buffers and offsets of a form's tensors, and the numbers of its values, in one kernel."""

    buffers: tuple[int, ...]
    offsets: tuple[int, ...]
    numbers: tuple[int, ...]


def form_of(kernel: Kernel, tensors: Sequence[int] | None = None) -> tuple[Kernel, ValueBinding]:
    """Return the form of a kernel, and what binds the form to it.

    In the form, accesses that may touch the same bytes, or begin near each other, are of one tensor; its
    number is their buffer, and their offsets count from its first access. Counters keep their offsets. The
    results of a reduction are of tensors of their own: windows that reach past an image seem to touch a
    result behind it.

    Args:
        kernel: the kernel, perhaps with traced sizes.
        tensors: the tensors of the accesses, as of `tensors_of`; None finds them.
    """
    accesses = kernel.accesses
    tensors = tensors_of(kernel) if tensors is None else tensors
    buffers: list[int] = []
    offsets: list[int] = []
    places = dict[int, int]()
    result = []
    for access, tensor in zip(accesses, tensors, strict=True):
        if access.buffer is not None:
            if tensor not in places:
                places[tensor] = len(buffers)
                buffers.append(access.buffer)
                offsets.append(access.offset)
            place = places[tensor]
            own = access.fixed, access.steps, access.advance, access.four_bit
            offset = access.offset - offsets[place]
            access = Access(place, access.type, offset, access.strides, *own)
        result.append(access)
    loads, numbers = len(kernel.loads), tuple(range(len(kernel.numbers)))
    form = Kernel(
        kernel.domain, kernel.axes, tuple(result[:loads]), tuple(result[loads:]), kernel.values, numbers
    )
    return form, ValueBinding(tuple(buffers), tuple(offsets), kernel.numbers)


def tensors_of(kernel: Kernel, memo: dict[Hashable, list[int]] | None = None) -> tuple[int, ...]:
    """Return for each access of a kernel the number of one that lies in the same tensor.

    Args:
        kernel: the kernel, perhaps with traced sizes, for whose hints it is.
        memo: receives results, which the kernels of a plan share.
    """
    accesses = kernel.accesses
    apart = len(kernel.loads) if kernel.axes else len(accesses)
    groups = [(access.buffer, number < apart) for number, access in enumerate(accesses)]
    counts = Counter(groups)
    shared = [number for number, each in enumerate(groups) if each[0] is not None and counts[each] > 1]
    result = list(range(len(accesses)))
    if not shared:
        return tuple(result)
    key = kernel.domain, tuple([accesses[each] for each in shared]), tuple([groups[each] for each in shared])
    found = None if memo is None else memo.get(key)
    if found is None:
        found = _tensors(*key)
        if memo is not None:
            memo[key] = found
    for number, tensor in zip(shared, found, strict=True):
        result[number] = shared[tensor]
    return tuple(result)


def _tensors(domain: Sequence[int], accesses: Sequence[Access], groups: Sequence[Hashable]) -> list[int]:
    """Return for each access the number of one of its group that lies in the same tensor."""
    result, domain = list(range(len(accesses))), hints_of(domain)
    members: dict[Hashable, list[tuple[int, int, int]]] = {}
    reaches: dict[tuple[int, ...], tuple[int, int]] = {}  # Most accesses of a kernel move alike.
    for number, (access, group) in enumerate(zip(accesses, groups, strict=True)):
        reach = reaches.get(access.strides)
        if reach is None:
            reach = reaches[access.strides] = _reach(access.strides, domain)
        offset = access.offset if type(access.offset) is int else hint_of(access.offset)
        last = offset + max(NEAR, reach[1] + access.type.bytes - 1)
        members.setdefault(group, []).append((offset + reach[0], last, number))
    for spans in members.values():
        spans.sort()
        _, end, tensor = spans[0]
        for first, last, number in spans[1:]:
            if first > end:
                tensor = number
            end = max(end, last)
            result[number] = tensor
    return result


def _reach(strides: Sequence[int], domain: Sequence[int]) -> tuple[int, int]:
    """Return how far accesses with some strides move below and above their offset."""
    moved = [(size - 1) * stride for size, stride in zip(domain, hints_of(strides), strict=True)]
    return sum([each for each in moved if each < 0]), sum([each for each in moved if each > 0])


def span_of(access: Access, domain: Sequence[int]) -> tuple[int, int]:
    """Return the first and the last byte of a buffer that an access over a domain of plain sizes may
    touch."""
    below, above = _reach(access.strides, domain)
    return access.offset + below, access.offset + above + access.type.bytes - 1


@lru_cache(maxsize=1024)
def structure_of(values: tuple[Node, ...]) -> tuple[Hashable, ...]:
    """Return a value that is equal for graphs that are equal in all, sizes and numbers included."""
    names: dict[int, int] = {}
    parts: list[Hashable] = []
    for node in ordered(values):
        names[id(node)] = len(names)
        operands = [names[id(operand)] for operand in node.operands]
        parts.append((node.operation, node.type, node.sizes, _exact(node.attribute), *operands))
    return *parts, tuple([names[id(root)] for root in values])


def _exact(attribute: object) -> Hashable:
    """Return a value that is equal for equal attributes alone: 1 is not 1.0, and 0.0 is not -0.0."""
    if isinstance(attribute, float):
        return struct.pack("<d", attribute)
    if isinstance(attribute, View):
        return View, attribute.offsets, attribute.steps, attribute.indexed
    return attribute


def key_of(form: Kernel) -> tuple[Any, ...]:
    """Return a key that is equal for equal forms, whose numbers do not count."""
    return structure_of(form.values), form.domain, form.axes, form.loads, form.stores


def trace_of(kernel: Kernel) -> Trace | None:
    """Return the trace of a kernel's sizes; None: all are plain numbers."""
    numbers = (
        *kernel.domain,
        *[each for access in kernel.accesses for each in (access.offset, *access.strides)],
    )
    return next((each.trace for each in numbers if type(each) is Size), None)


def recording(trace: Trace | None) -> AbstractContextManager[Answers]:
    """Record the results of comparisons of sizes in a block (`Trace.recording`). Plain numbers have none."""
    return nullcontext(Answers()) if trace is None else trace.recording()


class Memo(Generic[Result]):
    """A memo of results for forms of kernels in this process. It forgets the least recently used."""

    def __init__(self, most_entries: int = _MOST_ENTRIES, most_parts: int = _MOST_PARTS) -> None:
        self._most = most_entries, most_parts
        self._found: OrderedDict[Hashable, tuple[Result, int]] = OrderedDict()
        self._parts = 0

    def __len__(self) -> int:
        return len(self._found)

    def get(self, form: Kernel, circumstances: Hashable, find: Callable[[], Result]) -> Result:
        """Return the result of `find` for a form, perhaps of an earlier call.

        Args:
            form: the form of a kernel, whose numbers do not count.
            circumstances: all that the result depends on beside the form.
            find: is called where the result is not known. Two threads may call it at once.
        """
        structure, *_ = own = key_of(form)
        key = *own, circumstances
        with remembering:
            known = self._found.get(key)
            if known is not None:
                self._found.move_to_end(key)
                return known[0]
        result = find()
        parts = len(structure) + len(form.domain) * (len(form.loads) + len(form.stores))
        with remembering:
            if key not in self._found:
                self._found[key] = result, parts
                self._parts += parts
            while self._found and (len(self._found) > self._most[0] or self._parts > self._most[1]):
                _, (_, forgotten) = self._found.popitem(last=False)
                # A handler of a signal that schedules may have come between: nothing is left of nothing.
                self._parts = self._parts - forgotten if self._found else 0
        return result

    def clear(self) -> None:
        """Forget all results."""
        with remembering:
            self._found.clear()
            self._parts = 0
