"""The order of a kernel's loops."""

from __future__ import annotations

import pytest

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import loop_nest
from opendml.compiler.memory import ALIGNMENT, place
from opendml.program.node import source
from opendml.program.program import packed
from opendml.program.scalar_type import ScalarType

FLOAT32 = ScalarType.FLOAT32


def kernel(domain: tuple[int, ...], *strides: tuple[int, ...], axes: tuple[int, ...] = ()) -> Kernel:
    accesses = [Access(index, FLOAT32, 0, each) for index, each in enumerate(strides)]
    return Kernel(domain, axes, tuple(accesses[:-1]), (accesses[-1],), (source(0, FLOAT32, domain),))


def strides(*sizes: int) -> tuple[int, ...]:
    return packed(FLOAT32, sizes).strides


def test_packed_tensors_are_one_loop() -> None:
    nest = loop_nest(kernel((2, 3, 4), strides(2, 3, 4), strides(2, 3, 4)))
    assert (nest.groups, nest.rows, nest.inner.count) == ((), (), 24)


def test_padded_rows_stay_a_loop_of_their_own() -> None:
    nest = loop_nest(kernel((2, 3, 4), (60, 20, 4), strides(2, 3, 4)))
    assert [loop.count for loop in nest.groups] == [6]
    assert nest.inner.count == 4


def test_dimensions_of_size_one_vanish() -> None:
    nest = loop_nest(kernel((1, 5, 1), (0, 4, 0), (0, 4, 0)))
    assert (nest.groups, nest.inner.count) == ((), 5)


def test_permuted_tensors_are_walked_in_the_order_of_memory() -> None:
    nest = loop_nest(kernel((2, 3, 4, 5), (240, 4, 60, 12), (240, 4, 60, 12)))
    assert (nest.groups, nest.inner.count) == ((), 120)


def test_reduced_and_kept_dimensions_are_not_merged() -> None:
    nest = loop_nest(kernel((2, 3, 4, 5), strides(2, 3, 4, 5), strides(2, 3, 4, 5), axes=(2, 3)))
    assert ([loop.count for loop in nest.groups], nest.inner.count, nest.inner_reduced) == ([6], 20, True)


def test_groups_side_by_side_make_a_kept_dimension_innermost() -> None:
    nest = loop_nest(kernel((2, 3, 4, 5), strides(2, 3, 4, 5), strides(2, 3, 4, 5), axes=(1,)))
    assert (nest.inner.count, nest.inner_reduced) == (20, False)
    assert [loop.count for loop in nest.rows] == [3]


def test_small_operands_do_not_decide_which_loop_is_innermost() -> None:
    scale = (0, 4, 0, 0)
    sizes = (4, 256, 7, 56)
    nest = loop_nest(kernel(sizes, strides(*sizes), scale, scale, strides(*sizes), axes=(3,)))
    assert (nest.inner.count, nest.inner_reduced) == (56, True)


@pytest.mark.parametrize("seed", range(20))
def test_memory_plan_never_overlaps_what_is_alive_together(seed: int) -> None:
    state = seed * 7919 + 1
    sizes, lifetimes = [], []
    for _ in range(12):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        first = state >> 8 & 7
        sizes.append(1 + (state >> 12) % 5000)
        lifetimes.append((first, first + (state >> 20 & 3)))
    offsets, total = place(sizes, lifetimes)
    for one, (offset, size, (first, last)) in enumerate(zip(offsets, sizes, lifetimes, strict=True)):
        assert offset % ALIGNMENT == 0
        assert offset + size <= total
        for other in range(one):
            if lifetimes[other][0] <= last and first <= lifetimes[other][1]:
                assert offsets[other] + sizes[other] <= offset or offset + size <= offsets[other]
