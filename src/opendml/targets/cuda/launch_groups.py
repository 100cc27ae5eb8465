"""Finds kernels that run side by side in one launch.

Products of few rows have fewer tiles than a device has multiprocessors: those of queries, keys and values of
one sequence, for example. Such kernels have equal forms and do not depend on each other. One launch then runs
them all. Each has parameters of its own, and the blocks of a part of the multiprocessors.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from opendml.compiler.kernel import Access, Kernel
from opendml.targets.common.candidates import cheapest_estimate
from opendml.targets.common.forms import form_of, span_of, structure_of
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import WARPGROUP_MODES
from opendml.targets.cuda.planned_launch import VECTOR_BYTES
from opendml.targets.cuda.schedule import schedule, table_of

MOST_KERNELS = 4
"""Kernels of a launch, at most: each has up to 700 of the 4096 bytes of parameters."""
_MOST_DISTANCE = 8
"""Kernels between two of a launch, at most, so that the search takes linear time."""


def launch_groups(
    kernels: Sequence[Kernel], apart: Container[int], machine: CudaMachine
) -> list[tuple[int, ...]]:
    """Return the numbers of the kernels of each launch, in order. A launch has the place of its first kernel.

    Args:
        kernels: those of a dispatch.
        apart: numbers of kernels that have launches of their own.
        machine: the device.
    """
    groups: list[list[int]] = []
    for number, kernel in enumerate(kernels):
        place = (
            None if number in apart or not _may_share(kernel, machine) else _place(groups, number, kernels)
        )
        if place is not None and _pays(kernel, len(groups[place]) + 1, machine):
            groups[place].append(number)
        else:
            groups.append([number])
    return [tuple(group) for group in groups]


def launch_of_group(
    kernel: Kernel, count: int, machine: CudaMachine, alignments: Sequence[int]
) -> CudaLaunch:
    """Return the launch of `count` kernels of the form of one, for accesses that are aligned so."""
    launch = schedule(kernel, _part_of(machine, count), alignments)
    constants = {**dict(launch.pattern.constants), "KERNELS": count}
    return replace(launch, kernels=count, pattern=replace(launch.pattern, constants=tuple(constants.items())))


def _part_of(machine: CudaMachine, count: int) -> CudaMachine:
    return replace(machine, multiprocessors=machine.multiprocessors // count)


def _may_share(kernel: Kernel, machine: CudaMachine) -> bool:
    return machine.multiplies_by_warpgroups and kind_of(kernel) is KernelKind.CONTRACTION


def _place(groups: Sequence[Sequence[int]], number: int, kernels: Sequence[Kernel]) -> int | None:
    """Return the last group that a kernel can join: of its form, and independent of all since then."""
    kernel = kernels[number]
    for place in range(len(groups) - 1, max(-1, len(groups) - 1 - _MOST_DISTANCE), -1):
        group = groups[place]
        if any(_depend(kernels[each], kernel) for each in group):
            return None
        if len(group) < MOST_KERNELS and _key(kernels[group[0]]) == _key(kernel):
            return place
    return None


def _key(kernel: Kernel) -> object:
    form, binding = form_of(kernel)
    return structure_of(form.values), form.domain, form.axes, form.loads, form.stores, binding.numbers


def _depend(first: Kernel, second: Kernel) -> bool:
    """Return whether two kernels have to run one after the other: one writes what the other accesses."""
    return any(
        _overlap(written, first.domain, access, second.domain)
        for written in first.stores
        for access in second.accesses
    ) or any(
        _overlap(written, second.domain, load, first.domain)
        for written in second.stores
        for load in first.loads
    )


def _overlap(a: Access, of_a: Sequence[int], b: Access, of_b: Sequence[int]) -> bool:
    if a.buffer is None or a.buffer != b.buffer:
        return False
    (first, last), (other_first, other_last) = span_of(a, of_a), span_of(b, of_b)
    return first <= other_last and other_first <= last


def _pays(kernel: Kernel, count: int, machine: CudaMachine) -> bool:
    """Return whether one launch of some kernels takes less time than one of fewer and another launch."""
    alone, fewer, together = (_cycles(kernel, _part_of(machine, each)) for each in (1, count - 1, count))
    if together >= fewer + alone:
        return False
    launch = launch_of_group(kernel, count, machine, _aligned(kernel))
    return launch.pattern.mode in WARPGROUP_MODES and not launch.scratch_bytes


def _cycles(kernel: Kernel, machine: CudaMachine) -> float:
    _, estimate = cheapest_estimate(*table_of(kernel, machine, _aligned(kernel)))
    return estimate.cycles


def _aligned(kernel: Kernel) -> list[int]:
    return [VECTOR_BYTES] * len(kernel.accesses)
