"""Kernels over pairs: a loop of two steps between neighbours in memory, inside of a long one, is put together
element by element, so that both are read or written as whole vectors.

So is what doubles a width, or takes a row's even and odd elements apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opendml.compiler.kernel import Access, Kernel, renumbered
from opendml.compiler.loops import LONG
from opendml.program.node import Node, ordered, rebuild

_MOST_NODES = 128
"""In the values of a kernel whose code is doubled."""


def interleaved(kernel: Kernel) -> Kernel:
    """The kernel without the loop over pairs, if it has one."""
    if kernel.axes or sum(1 for _ in ordered(kernel.values)) > _MOST_NODES:
        return kernel
    pair = next((each for each in range(len(kernel.domain)) if _is_pair(kernel, each)), None)
    return kernel if pair is None else _put_together(kernel, pair)


def _is_pair(kernel: Kernel, pair: int) -> bool:
    """Whether a dimension is two neighbours of all results, or of all that is read, between which another
    dimension moves; where both are alike, they are one long loop."""
    loads = [access for access in kernel.loads if access.buffer is not None and any(access.strides)]
    return kernel.domain[pair] == 2 and any(
        count >= LONG and _are_pairs(kernel.stores, pair, along) != _are_pairs(loads, pair, along)
        for along, count in enumerate(kernel.domain)
    )


def _are_pairs(accesses: Sequence[Access], pair: int, along: int) -> bool:
    return bool(accesses) and all(
        access.strides[pair] == access.type.bytes and access.strides[along] == 2 * access.type.bytes
        for access in accesses
    )


def _put_together(kernel: Kernel, pair: int) -> Kernel:
    loads: list[Access] = []
    stores: list[Access] = []
    values: list[Node] = []
    for number in range(2):
        places = {}
        for source, access in enumerate(kernel.loads):
            at = _at(access, pair, number)
            if at not in loads:
                loads.append(at)
            places[source] = loads.index(at)
        stores += [_at(access, pair, number) for access in kernel.stores]
        values += renumbered(kernel.values, places)
    domain = tuple(1 if each == pair else count for each, count in enumerate(kernel.domain))
    return replace(
        kernel,
        domain=domain,
        loads=tuple(loads),
        stores=tuple(stores),
        values=rebuild(values, lambda node: node),
    )


def _at(access: Access, pair: int, number: int) -> Access:
    """An access at one of the two steps."""
    strides = tuple(0 if each == pair else stride for each, stride in enumerate(access.strides))
    return replace(access, offset=access.offset + number * access.strides[pair], strides=strides)
