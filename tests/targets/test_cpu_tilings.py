"""The search for tilings passes over most of them, and finds what trying all would."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel, operations_of
from opendml.compiler.simplify import simplify
from opendml.program.node import Node, Operation, contraction, convert
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.contraction import schedule
from opendml.targets.cpu.contraction.costs import lane_count
from opendml.targets.cpu.contraction.roles import roles_of
from opendml.targets.cpu.contraction.schedule import (
    NEARLY,
    Priced,
    candidates,
    chosen_tiles,
    columns_of_all,
    families_of,
    sums_alike,
)
from opendml.targets.cpu.contraction.tiles import Tiles, packed_ahead
from opendml.targets.cpu.contraction.tilings import UsualForm, few_rows_in_strips, usual_form
from opendml.targets.cpu.machine import Machine, assumed
from tests.nodes import convolution, matrix_product, operands_of, program
from tools.cuda_contraction_cases import contraction_cases
from tools.machines import PROCESSORS
from tools.schedule_cases import kernels

F32 = ScalarType.FLOAT32
THREADS = (1, 4, 8)
MACHINES: dict[str, Machine] = {
    **PROCESSORS,
    "amx, eight threads": replace(PROCESSORS["amx"], threads=8),
}


def kernels_of(result: Node) -> Iterator[Kernel]:
    given = program(result)
    for kernel in fuse(replace(given, results=simplify(given.results))).kernels:
        if Operation.CONTRACTION in operations_of(kernel.values):
            yield kernel


def random_product(random: Random) -> Node:
    size = [random.choice((1, 2, 5, 7, 16, 33, 64, 100, 200, 256, 385, 1000, 2048)) for _ in range(3)]
    turned = random.random() < 0.5, random.random() < 0.5
    return matrix_product(F32, (size[0], size[1], size[2]), *turned, random.choice((1, 1, 3, 12)))


def random_convolution(random: Random) -> Node:
    channels, filters, side = random.choice((1, 3, 16, 64)), random.choice((4, 32, 96)), random.randint(5, 40)
    window, stride = random.choice((1, 3, 3, 5)), random.choice((1, 1, 2))
    images = random.choice((1, 2, 5)), channels, side, side + random.randint(0, 3)
    padding = random.choice((0, window // 2))
    return convolution(F32, images, (filters, window, window), stride=stride, before=padding, after=padding)


def as_constant(kernel: Kernel, number: int, random: Random) -> Kernel:
    """The kernel with an operand that is a constant, or the same in all steps of a recurrence."""
    change = {"fixed": True} if random.random() < 0.7 else {"steps": 7}
    loads = [replace(load, **change) if load.buffer == number else load for load in kernel.loads]
    return replace(kernel, loads=tuple(loads))


def all_kernels() -> Iterator[Kernel]:
    for _, kernel in kernels("amx"):
        if Operation.CONTRACTION in operations_of(kernel.values):
            yield kernel
    random = Random(4)
    for count in range(6):
        result = (random_product if count % 2 else random_convolution)(random)
        for kernel in kernels_of(result):
            yield kernel
            yield as_constant(kernel, random.randrange(2), random)


def large_products() -> Iterator[Kernel]:
    """Those of whose tilings more are for more threads, and of few rows."""
    random = Random(5)
    for m, n, k in ((196, 512, 1024), (784, 128, 512), (64, 2304, 768), (50, 3072, 768), (5, 3072, 768)):
        for turned in (False, True):
            for kernel in kernels_of(matrix_product(F32, (m, n, k), b_turned=turned)):
                yield kernel
                yield as_constant(kernel, 1, random)


def tried(kernel: Kernel, all_threads: Sequence[int]) -> list[Tiles | None]:
    """The tiles that win where all are tried, by the number of threads."""
    both_roles = (roles_of(kernel, exchanged) for exchanged in (False, True))
    few = [few_rows_in_strips(roles, lane_count()) for roles in both_roles if roles]
    if any(few):
        return [next(filter(None, few)) for _ in all_threads]
    families = list(families_of(kernel))
    ways = [(priced, list(priced.candidates())) for priced in families]
    for priced, found in ways:
        assert all(priced.family.least <= way.work for way in found)
        assert all(priced.least_of_all <= way.order for way in found)
    everything = [next(candidates(kernel)), *(way for _, found in ways for way in found)]
    best = min(everything, key=lambda way: way.order).tiles
    if best is None:
        return [None for _ in all_threads]
    alike = [
        (priced, way.tiles)
        for priced, found in ways
        for way in found
        if way.tiles and sums_alike(way.tiles, best)
    ]
    if best.in_registers and best.seen:
        columns = columns_of_all(best, families)
        alike = [(priced, tiles) for priced, tiles in alike if tiles.columns == columns]
    alike += [
        (priced, priced.fixed_strips.of(tiles))
        for priced, tiles in alike
        if priced.fixed_strips and packed_ahead(tiles) is None
    ]
    return [cheapest_or_usual(alike, threads) for threads in all_threads]


def cheapest_or_usual(ways: Sequence[tuple[Priced, Tiles]], threads: int) -> Tiles:
    """The tiles that cost least, or those with a constant in a usual form that cost little more."""
    costs = [(priced.on_threads(tiles, threads), tiles) for priced, tiles in ways]
    cost, chosen = min(costs, key=lambda each: each[0])
    for form in UsualForm:
        usual = [each for each in costs if usual_form(each[1]) is form]
        nearest, tiles = min(usual, key=lambda each: each[0], default=((math.inf, 0.0), chosen))
        if nearest[0] <= NEARLY * cost[0]:
            return tiles
    return chosen


def facts(tiles: Tiles | None) -> object:
    """All that tiles are, but for their roles, of which only which operand is which can differ."""
    if tiles is None:
        return None
    numbers = [getattr(tiles, name) for name in Tiles.__slots__ if name not in ("roles", "seen")]
    seen = tiles.seen and (tiles.seen.broadcast, tiles.seen.image)
    return numbers, seen, tiles.roles.a.loads, tiles.roles.b.loads


@pytest.mark.parametrize("name", MACHINES)
def test_the_search_finds_what_trying_all_does_and_bounds_are_bounds(name: str) -> None:
    with assumed(MACHINES[name]):
        for kernel in (*all_kernels(), *large_products()):
            chosen = [chosen_tiles(kernel, threads) for threads in THREADS]
            assert list(map(facts, chosen)) == list(map(facts, tried(kernel, THREADS)))


@pytest.mark.parametrize("name", MACHINES)
def test_few_rows_read_a_large_constant_from_the_strips_of_many(name: str) -> None:
    with assumed(MACHINES[name]):
        for m, turned in product((2, 5, 8, 64, 200), (False, True)):
            (kernel,) = kernels_of(matrix_product(F32, (m, 3072, 768), b_turned=turned))
            loads = [replace(load, fixed=load.buffer == 1) for load in kernel.loads]
            for threads in THREADS:
                tiles = chosen_tiles(replace(kernel, loads=tuple(loads)), threads)
                assert tiles
                assert usual_form(tiles) is UsualForm.STRIPS
                assert tiles.in_strips == (m <= 8)


INTEGERS = [case for case in contraction_cases() if "INT" in case.name]


@pytest.mark.parametrize("name", ["avx512", "amx, eight threads"])
def test_the_search_finds_what_trying_all_does_of_integers(name: str) -> None:
    assert INTEGERS
    with assumed(MACHINES[name]):
        for case in INTEGERS:
            for result in case.program.results:
                for kernel in kernels_of(result):
                    assert [facts(chosen_tiles(kernel, 2))] == list(map(facts, tried(kernel, [2])))


def test_bytes_whose_zero_point_is_subtracted_are_not_read_in_place() -> None:
    bytes_of_both = operands_of((ScalarType.UINT8, ScalarType.UINT8), (40, 48, 200), False, False)
    rows, columns = (convert(each, ScalarType.INT32) for each in bytes_of_both)
    total = contraction(rows - 3, columns, (3,))
    with assumed(MACHINES["amx, eight threads"]):
        (kernel,) = kernels_of(total)
        assert facts(chosen_tiles(kernel, 8)) == facts(tried(kernel, [8])[0])
        assert not any(tiles.in_place for priced in families_of(kernel) for tiles in priced.tiles())


@pytest.mark.parametrize("name", PROCESSORS)
def test_few_of_all_candidates_are_priced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    priced, everything = 0, 0
    candidate, on_threads = Priced.candidate, Priced.on_threads

    def counted(of: Priced, tiles: Tiles) -> schedule.Candidate:
        nonlocal priced
        priced += 1
        return candidate(of, tiles)

    def counted_on_threads(of: Priced, tiles: Tiles, threads: int) -> tuple[int, float]:
        nonlocal priced
        priced += 1
        return on_threads(of, tiles, threads)

    with assumed(PROCESSORS[name]):
        for _, kernel in kernels(name):
            if Operation.CONTRACTION in operations_of(kernel.values):
                everything += sum(1 for _ in candidates(kernel))
                with monkeypatch.context() as patch:
                    patch.setattr(Priced, "candidate", counted)
                    patch.setattr(Priced, "on_threads", counted_on_threads)
                    chosen_tiles(kernel, 2)
    assert 0 < priced < everything / 3
