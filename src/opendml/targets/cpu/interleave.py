"""Kernels over bundles: a loop of a few steps between neighbours in memory, inside of a long one, is put
together element by element, so that all are read or written as whole vectors.

So is what doubles a width, takes a row's even and odd elements apart, or makes pixels of three channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opendml.compiler.kernel import Access, Kernel, renumbered
from opendml.compiler.loops import LONG, WIDEST_BUNDLE
from opendml.program.node import Node, ordered, rebuild
from opendml.targets.common.guards import guards_of, loads_of
from opendml.targets.cpu.machine import machine

_MOST_NODES = 256
"""In the values of a kernel whose code has been multiplied."""


def interleaved(kernel: Kernel) -> Kernel:
    """The kernel without the loop over a bundle, if it has one."""
    if kernel.axes:
        return kernel
    few = [each for each, count in enumerate(kernel.domain) if 2 <= count <= WIDEST_BUNDLE]
    bundle = next((each for each in few if _is_bundle(kernel, each)), None)
    if bundle is None or len(ordered(kernel.values)) * kernel.domain[bundle] > _MOST_NODES:
        return kernel
    if _has_rows_of_vectors(kernel, bundle):
        return kernel
    return _put_together(kernel, bundle)


def _is_bundle(kernel: Kernel, bundle: int) -> bool:
    """Whether a dimension is a few neighbours of all results, between which another dimension moves, along
    which neighbours of all that is read lie; or the other way round."""
    loads = [access for access in kernel.loads if access.buffer is not None and any(access.strides)]
    width = kernel.domain[bundle]
    return any(
        count >= LONG
        and any(
            _are_bundles(these, bundle, along, width) and _are_neighbours(those, along)
            for these, those in ((kernel.stores, loads), (loads, kernel.stores))
        )
        for along, count in enumerate(kernel.domain)
    )


def _has_rows_of_vectors(kernel: Kernel, bundle: int) -> bool:
    """Whether rows at computed distances, of an index each, are whole vectors along a dimension: these take a
    third of the time that their elements take one by one, or less (of 8 FLOAT32 with AVX2; of 8 FLOAT16 a
    tenth)."""
    width = kernel.domain[bundle]
    if width < LONG or width % (machine().vector_bytes // 4):
        return False
    return any(
        kernel.loads[number].strides[bundle] == kernel.loads[number].type.bytes
        and not any(kernel.loads[each].strides[bundle] for each in loads_of(distance))
        for number, (_, *distance) in guards_of(kernel.values).items()
        if distance
    )


def _are_neighbours(accesses: Sequence[Access], along: int) -> bool:
    return all(access.strides[along] in (0, access.type.bytes) for access in accesses)


def _are_bundles(accesses: Sequence[Access], bundle: int, along: int, width: int) -> bool:
    return bool(accesses) and all(
        access.strides[bundle] == access.type.bytes and access.strides[along] == width * access.type.bytes
        for access in accesses
    )


def _put_together(kernel: Kernel, bundle: int) -> Kernel:
    loads: list[Access] = []
    stores: list[Access] = []
    values: list[Node] = []
    for number in range(kernel.domain[bundle]):
        places = {}
        for source, access in enumerate(kernel.loads):
            at = _at(access, bundle, number)
            if at not in loads:
                loads.append(at)
            places[source] = loads.index(at)
        stores += [_at(access, bundle, number) for access in kernel.stores]
        values += renumbered(kernel.values, places)
    domain = tuple(1 if each == bundle else count for each, count in enumerate(kernel.domain))
    return replace(
        kernel,
        domain=domain,
        loads=tuple(loads),
        stores=tuple(stores),
        values=rebuild(values, lambda node: node),
    )


def _at(access: Access, bundle: int, number: int) -> Access:
    """An access at one of the steps."""
    strides = tuple(0 if each == bundle else stride for each, stride in enumerate(access.strides))
    return replace(access, offset=access.offset + number * access.strides[bundle], strides=strides)
