"""Launches are constructed from choices and sizes by integer arithmetic alone, on every target."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import pytest

from opendml.compiler.kernel import Kernel
from opendml.program.node import Node
from opendml.targets.common.candidates import Decision, Table, decide
from opendml.targets.common.forms import structure_of
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cpu import schedule as cpu
from opendml.targets.cpu.machine import assumed
from opendml.targets.cuda import schedule as cuda
from tools.machines import DEVICES, PROCESSORS
from tools.schedule_cases import kernels

PRODUCTS = (KernelKind.CONTRACTION, KernelKind.ATTENTION)
"""Kinds whose tiles are constructed from estimates of cycles too."""
Guards = list[tuple[Callable[[Any, Any], Any], Any, Any, bool]]


class Traced(int):
    """An integer that keeps the arithmetic by which it was made from a size, and records comparisons.

    It cannot become a float, and a value that loses its arithmetic differs for another size.
    """

    make: Callable[[int], int]
    guards: Guards

    def __float__(self) -> float:
        raise AssertionError("a construction converts a size to a float")

    def __truediv__(self, other: object) -> float:
        raise AssertionError("a construction divides a size to a float")

    __rtruediv__ = __truediv__


def traced(value: int, make: Callable[[int], int], guards: Guards) -> Traced:
    """Return a traced integer; `make` computes it from another size."""
    result = Traced(value)
    result.make, result.guards = make, guards
    return result


def at(value: Any, size: int) -> Any:
    """Return a value, with all traced integers computed for a size."""
    if isinstance(value, Traced):
        return value.make(size)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        found = {name: at(each, size) for name, each in changed.items()}
        return replace(value, **found) if any(found[name] is not changed[name] for name in found) else value
    if isinstance(value, tuple) and value and all(isinstance(each, Node) for each in value):
        return structure_of(value)
    if isinstance(value, tuple):
        own = [at(each, size) for each in value]
        return type(value)(*own) if hasattr(value, "_fields") else tuple(own)
    if isinstance(value, list):
        return [at(each, size) for each in value]
    if isinstance(value, Mapping):
        return {name: at(each, size) for name, each in value.items()}
    return value


def _arithmetic(compute: Callable[..., int]) -> Callable[..., Any]:
    def method(self: Traced, *others: Any) -> Any:
        if not all(isinstance(other, int) for other in others):
            return NotImplemented
        value = compute(int(self), *map(int, others))
        return traced(
            value, lambda size: compute(self.make(size), *(at(o, size) for o in others)), self.guards
        )

    return method


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Traced, Any], Any]:
    def method(self: Traced, other: Any) -> Any:
        result = compare(int(self), int(other) if isinstance(other, Traced) else other)
        self.guards.append((compare, self, other, bool(result)))
        return result

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "and_", "or_", "neg", "abs"):
    _own: Any = getattr(operator, _name)
    setattr(Traced, f"__{_name.strip('_')}__", _arithmetic(_own))
    if _name not in ("neg", "abs"):
        setattr(Traced, f"__r{_name.strip('_')}__", _arithmetic(lambda a, b, own=_own: own(b, a)))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Traced, f"__{_name}__", _comparison(getattr(operator, _name)))
Traced.__divmod__ = lambda self, other: (self // other, self % other)  # type: ignore[method-assign, assignment]
Traced.__bool__ = lambda self: bool(self != 0)  # type: ignore[method-assign]
Traced.__hash__ = int.__hash__  # type: ignore[method-assign, assignment]


def table_on(machine: str, kernel: Kernel) -> tuple[Table[Any, Any], Any]:
    """Return the candidates for a kernel on a machine of that name, and their query."""
    if machine in PROCESSORS:
        return cpu.table_of(kernel)
    return cuda.table_of(kernel, DEVICES[machine], [256] * (len(kernel.loads) + len(kernel.stores)))


def resized(kernel: Kernel, dimension: int, size: int) -> Kernel:
    """Return the kernel with another size of one dimension of its domain."""
    return replace(kernel, domain=(*kernel.domain[:dimension], size, *kernel.domain[dimension + 1 :]))


def is_plain(choice: object) -> bool:
    """Return whether a choice has only integers, members of enumerations and such choices."""
    if is_dataclass(choice):
        return all(is_plain(getattr(choice, each.name)) for each in fields(choice))
    return choice is None or isinstance(choice, int | Enum)


def compared_sizes(machine: str, kernel: Kernel, decision: Decision[Any]) -> Iterator[int]:
    """Yield dimensions of which another size has the launches that a trace gives, which is checked."""
    for dimension, size in enumerate(kernel.domain):
        guards: Guards = []
        if size == 1:
            continue
        given = resized(kernel, dimension, traced(size, lambda size: size, guards))
        launches = decision.construct(table_on(machine, given)[1])
        for other in (size, 2 * size, size + size // 2, size + 1):
            if all(bool(test(at(a, other), at(b, other))) is result for test, a, b, result in list(guards)):
                plain = decision.construct(table_on(machine, resized(kernel, dimension, other))[1])
                assert at(launches, other) == at(plain, other), f"dimension {dimension} of {kernel.domain}"
                if other != size:
                    yield dimension


@pytest.mark.parametrize("machine", ["avx512", "sm_90"])
def test_launches_follow_from_choices_and_sizes_by_integer_arithmetic(machine: str) -> None:
    every, compared = set[str](), set[str]()
    with assumed(PROCESSORS["avx512"]):
        for _, kernel in kernels(machine):
            if kind_of(kernel) in PRODUCTS:
                continue
            decision = decide(*table_on(machine, kernel))
            # Reductions on CUDA keep the units of a group with the choice.
            if kind_of(kernel) is not KernelKind.REDUCTION or machine in PROCESSORS:
                assert all(is_plain(choice) for _, choice in decision.path)
            name = decision.path[-1][0].name
            every.add(name)
            compared |= {name for _ in compared_sizes(machine, kernel, decision)}
    assert every == compared
