"""Launches are constructed from choices and sizes by integer arithmetic alone, on every target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from random import Random
from typing import Any

import pytest

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import innermost_loop
from opendml.compiler.sized import at_sizes
from opendml.compiler.sized import plain as hinted
from opendml.program.atoms import Dimension
from opendml.program.size_values import Conditions, Values
from opendml.program.sizes import is_traced
from opendml.program.trace import Trace
from opendml.targets.common.candidates import Decision, Table, decide
from opendml.targets.common.pattern import KernelPattern
from opendml.targets.cpu import schedule as cpu
from opendml.targets.cpu.launch import innermost_loop_of, loops_of
from opendml.targets.cpu.machine import assumed
from opendml.targets.cuda import schedule as cuda
from opendml.targets.cuda.planning import fused
from opendml.targets.cuda.traced_launches import TracedLaunches
from tests.plans import NETWORKS, traced_program
from tools.machines import DEVICES, PROCESSORS
from tools.schedule_cases import kernels


def plain(value: Any, sizes: Mapping[str, int]) -> Any:
    """Return launches as plain data, with all traced sizes evaluated, and without patterns."""
    if is_traced(value):
        (found,) = Values([value])(sizes).tolist()
        return found
    if isinstance(value, KernelPattern):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name), sizes) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(each, sizes) for name, each in value.items()}
    return [plain(each, sizes) for each in value] if isinstance(value, tuple | list) else value


def patterns(launches: Any) -> list[str]:
    """Return the texts of the patterns of launches. Code is made of them, so they have no traced sizes."""
    texts = [each.pattern.text() for each in (launches if isinstance(launches, list) else [launches])]
    assert not any("traced" in text for text in texts)
    return texts


def table_on(machine: str, kernel: Kernel, like: Kernel | None = None) -> tuple[Table[Any, Any], Any]:
    """Return the candidates for a kernel on a machine of that name, and their query.

    The innermost loop is that of the kernel `like` it.
    """
    if machine in PROCESSORS:
        return cpu.table_of(kernel, like and innermost_loop_of(like, loops_of(kernel)).number)
    alignments = [256] * len(kernel.accesses)
    return cuda.table_of(kernel, DEVICES[machine], alignments, like and innermost_loop(like).number)


def resized(kernel: Kernel, dimension: int, size: int) -> Kernel:
    """Return the kernel with another size of a dimension. Strides around the dimension grow with it."""
    before = kernel.domain[dimension]
    domain = (*kernel.domain[:dimension], size, *kernel.domain[dimension + 1 :])

    def moved(access: Access) -> Access:
        own = abs(access.strides[dimension])

        def stride(number: int, each: int) -> int:
            is_around = own and number != dimension and abs(each) >= own * before and each % before == 0
            return each // before * size if is_around else each

        return replace(access, strides=tuple(stride(*each) for each in enumerate(access.strides)))

    return replace(kernel.with_accesses(moved), domain=domain)


def is_plain(choice: object) -> bool:
    """Return whether a choice has only integers, members of enumerations, and tuples of these."""
    if is_dataclass(choice):
        return all(is_plain(getattr(choice, each.name)) for each in fields(choice))
    if isinstance(choice, tuple):
        return all(map(is_plain, choice))
    return choice is None or isinstance(choice, int | Enum)


def compared_sizes(machine: str, kernel: Kernel, decision: Decision[Any]) -> Iterator[int]:
    """Yield dimensions of which another size has the launches that a trace gives, which is checked."""

    def constructed(dimension: int, size: int) -> Any:
        return decision.construct(table_on(machine, resized(kernel, dimension, size), kernel)[1])

    for dimension, size in enumerate(kernel.domain):
        if size < 2:
            continue
        trace = Trace({"traced": Dimension(size)})
        launches = constructed(dimension, trace.size("traced"))
        meets = Conditions(trace.guards)
        for other in (size, 2 * size, size + size // 2, size + 1):
            if meets({"traced": other}):
                exact = constructed(dimension, other)
                # Code for a small number, or for a bundle of few lines, is not made for a size that changes.
                if patterns(exact) != patterns(launches):
                    exact = constructed(dimension, Trace({"traced": Dimension(other)}).size("traced"))
                sizes = {"traced": other}
                assert plain(launches, sizes) == plain(exact, sizes), f"{dimension} of {kernel.domain}"
                # On CPUs patterns also say what is faster for the size that was traced.
                assert machine in PROCESSORS or patterns(exact) == patterns(launches)
                if other != size:
                    yield dimension


@pytest.mark.parametrize("machine", ["avx512", "avx2", "amx", "sm_80", "sm_90"])
def test_launches_follow_from_choices_and_sizes_by_integer_arithmetic(machine: str) -> None:
    every, compared = set[str](), set[str]()
    with assumed(PROCESSORS.get(machine, PROCESSORS["avx512"])):
        for _, kernel in kernels(machine):
            decision = decide(*table_on(machine, kernel))
            assert all(is_plain(choice) for _, choice in decision.path)
            name = decision.path[-1][0].name
            every.add(name)
            compared |= {name for _ in compared_sizes(machine, kernel, decision)}
    assert every == compared


@pytest.mark.parametrize("machine", ["sm_80", "sm_90"])
@pytest.mark.parametrize("type", ["FLOAT16", "FLOAT32"])
@pytest.mark.parametrize("make", NETWORKS)
def test_launches_of_traced_graphs_are_those_of_exact_ones(make: Any, type: str, machine: str) -> None:
    device, hints = DEVICES[machine], {"batch": 6, "length": 120, "keys": 248}
    program, trace = traced_program(make, type, hints)
    ranges = {name: Dimension(hints[name], 2, 2 * hints[name]) for name in trace.dimensions}
    with trace.within(ranges) as guards:
        kernels = fused(program, device).kernels
        found = [(kernel, hinted(kernel), [16] * len(kernel.accesses)) for kernel in kernels]
        of_forms = TracedLaunches(device).of(kernels)
        launches = [launch.bound(kernel.binding) for kernel, launch, _ in of_forms]
    meets, count, random = Conditions(guards), 0, Random(1)
    for number in range(40):
        step = 1 + number % 2 * 7
        sizes = {name: random.randrange(step, 2 * hints[name], step) + step for name in ranges}
        if not meets(sizes):
            continue
        count += 1
        for (kernel, like, aligned), launch in zip(found, launches, strict=True):
            decision, _ = cuda.scheduled(like, device, aligned)
            exact = cuda.table_of(at_sizes(kernel, sizes), device, aligned, innermost_loop(like).number)[1]
            assert plain(launch, sizes) == plain(decision.construct(exact), sizes)
    assert count >= 8, "\n".join([f"{count} of 40 sizes meet", *map(str, guards.items())])


@pytest.mark.parametrize("machine", ["sm_80", "sm_90"])
@pytest.mark.parametrize("type", ["FLOAT16", "FLOAT32"])
@pytest.mark.parametrize("make", NETWORKS)
def test_launches_of_another_bucket_are_those_that_a_bucket_constructs(
    make: Any, type: str, machine: str
) -> None:
    device, random, reused = DEVICES[machine], Random(2), 0
    program, trace = traced_program(make, type, {"batch": 6, "length": 120, "keys": 248})
    kernels = fused(program, device).kernels
    shared, before = TracedLaunches(device), set[int]()
    for _ in range(24):
        step = random.choice([1, 4, 8])
        hints = {name: random.randrange(step, 400, step) + step for name in trace.dimensions}
        ranges = {name: Dimension(hints[name], 1, 2 * hints[name]) for name in trace.dimensions}
        with trace.within(ranges) as guards:
            found = shared.of(kernels)
        with trace.within(ranges) as own_guards:
            own = TracedLaunches(device).of(kernels)
        # All comparisons of a launch are guards of each bucket that uses it.
        assert {str(each) for each in own_guards} <= {str(each) for each in guards}
        for (kernel, launch, _), (_, constructed, _) in zip(found, own, strict=True):
            assert patterns(launch) == patterns(constructed)
            bound, binding = constructed.bound(kernel.binding), kernel.binding
            assert plain(launch.bound(binding), hints) == plain(bound, hints)
            reused += id(launch) in before
        before |= {id(launch) for _, launch, _ in found}
    assert reused
