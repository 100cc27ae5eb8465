"""Pools of instances for several sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opendml.targets.sized_instances import SizedInstances

Array = np.ndarray[Any, Any]


class Instance:
    """An instance that counts how often its sizes are written."""

    def __init__(self) -> None:
        self.values: Array | None = None
        self.count = 0

    def resize(self, values: Array) -> None:
        self.values, self.count = values, self.count + 1


@pytest.fixture
def made() -> list[Instance]:
    return []


def runs(made: list[Instance], most: int) -> Callable[[Array], None]:
    """Return a function that takes an instance for some values, and gives it back."""

    def make() -> Any:
        made.append(Instance())
        return made[-1]

    pool = SizedInstances(make, most)

    def run(values: Array) -> None:
        instance: Any = pool.take(values)
        assert instance.values is values
        pool.free.append(instance)

    return run


def test_rare_sizes_share_an_instance(made: list[Instance]) -> None:
    run, sizes = runs(made, 4), [np.array([size]) for size in range(8)]
    for values in sizes * 3:
        run(values)
    assert [each.count for each in made] == [24]


def test_sizes_that_come_often_get_instances_of_their_own(made: list[Instance]) -> None:
    run, (first, second, *others) = runs(made, 4), [np.array([size]) for size in range(6)]
    for _ in range(20):
        run(first)
        run(second)
    assert len(made) == 2
    assert sum(each.count for each in made) < 10
    for values in (others[0], first, second):
        run(values)
    for values in others * 2:
        run(values)
        written = sum(each.count for each in made)
        run(first)
        run(second)
        assert sum(each.count for each in made) == written  # A rare size takes no place of another one.
    assert len(made) == 3
    for _ in range(20):
        for values in (first, second, *others):
            run(values)
    assert len(made) == 4


def test_there_is_one_instance_where_writing_sizes_takes_no_time(made: list[Instance]) -> None:
    run = runs(made, 1)
    for values in [np.array([1]), np.array([2])] * 20:
        run(values)
    assert len(made) == 1
