"""Kernels over bundles: a short loop over neighbours in memory inside of a long loop.

The short loop is unrolled, so that bundles are read or written as whole vectors. Kernels that double a width,
deinterleave the elements of a row, or make pixels of three channels have such loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.compiler.kernel import Access, Kernel, renumbered
from opendml.compiler.loops import LONG, WIDEST_BUNDLE
from opendml.late_dataclass import replace
from opendml.program.node import Node, ordered, rebuild
from opendml.program.sizes import Size, hint_of
from opendml.targets.common.guards import guards_of, loads_of
from opendml.targets.cpu.machine import machine

_MOST_NODES = 256
"""Nodes of a kernel whose loop is unrolled, at most: they bound the time of compilation."""


def interleaved(kernel: Kernel) -> Kernel:
    """Return the kernel without the loop over a bundle, if it has one."""
    if kernel.axes:
        return kernel
    # A size that changes is the width of no bundle, since code is made for each width.
    fixed = [each for each, count in enumerate(kernel.domain) if not isinstance(count, Size)]
    few = [each for each in fixed if 2 <= kernel.domain[each] <= WIDEST_BUNDLE]
    bundle = next((each for each in few if _is_bundle(kernel, each)), None)
    if bundle is None or len(ordered(kernel.values)) * kernel.domain[bundle] > _MOST_NODES:
        return kernel
    if _has_rows_of_vectors(kernel, bundle):
        return kernel
    return _unrolled(kernel, bundle)


def _is_bundle(kernel: Kernel, bundle: int) -> bool:
    """Return whether a dimension is a bundle of all results along another dimension, while all loads are
    contiguous along that; or the other way round."""
    loads = [access for access in kernel.loads if access.buffer is not None and any(access.strides)]
    width = kernel.domain[bundle]
    return any(
        hint_of(count) >= LONG
        and any(
            _are_bundles(these, bundle, along, width) and _are_neighbours(those, along)
            for these, those in ((kernel.stores, loads), (loads, kernel.stores))
        )
        for along, count in enumerate(kernel.domain)
    )


def _has_rows_of_vectors(kernel: Kernel, bundle: int) -> bool:
    """Return whether rows at computed distances, of an index each, are whole vectors along a dimension.

    Such rows take a third of the time that their elements take one by one, or less (8 FLOAT32 with AVX2; 8
    FLOAT16 take a tenth).
    """
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


def _unrolled(kernel: Kernel, bundle: int) -> Kernel:
    loads: list[Access] = []
    stores: list[Access] = []
    values: list[Node] = []
    for number in range(kernel.domain[bundle]):
        numbers = {}
        for source, access in enumerate(kernel.loads):
            at = _at(access, bundle, number)
            if at not in loads:
                loads.append(at)
            numbers[source] = loads.index(at)
        stores += [_at(access, bundle, number) for access in kernel.stores]
        values += renumbered(kernel.values, numbers)
    domain = tuple(1 if each == bundle else count for each, count in enumerate(kernel.domain))
    return replace(
        kernel,
        domain=domain,
        loads=tuple(loads),
        stores=tuple(stores),
        values=rebuild(values, lambda node: node),
    )


def _at(access: Access, bundle: int, number: int) -> Access:
    """Return an access at one of the steps."""
    strides = tuple(0 if each == bundle else stride for each, stride in enumerate(access.strides))
    return replace(access, offset=access.offset + number * access.strides[bundle], strides=strides)
