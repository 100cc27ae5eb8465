"""Programs for the checks of the CUDA target that scatter, or find the greatest elements or those other than
zero: calls of public operators, and graphs of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import opendml as dml
from opendml.program.program import Program
from opendml.spec.enums import AxisDirection
from tools.cuda_case import Case
from tools.operator_case import Form, graph_program

TOPS: tuple[tuple[tuple[int, ...], int, int], ...] = (
    ((5, 83), 1, 9),
    ((2, 1000), 1, 64),
    ((3, 40, 7), 1, 40),
    ((2, 70001), 1, 1000),
    ((2, 70001), 1, 1500),
    ((3, 20000), 1, 20000),
    ((300, 2049), 1, 3),
    ((2, 300000), 1, 64),
    ((1, 100001), 1, 5),
    ((3, 9000), 1, 4000),
    ((9000, 10), 0, 64),
    ((70, 40, 24), 1, 5),
)
"""Sizes, the axis, and how many are wanted."""
COUNTED: tuple[tuple[str, tuple[int, ...]], ...] = (
    *(("FLOAT32", sizes) for sizes in ((1,), (1, 1), (70, 30), (5, 70, 80), (2, 3, 4, 5))),
    *(("INT32", sizes) for sizes in ((3, 511), (2, 8192), (1, 40_007), (300, 70), (5, 70, 33))),
    ("UINT8", (70, 3000)),
)
"""Types and sizes in which elements other than zero are found."""
PLACED: tuple[tuple[str, tuple[int, ...], int, int], ...] = (
    *((type, (40, 50, 33), axis, 20) for type in ("INT32", "INT64") for axis in range(3)),
    ("INT32", (2, 300), 1, 30_000),
    ("INT32", (30, 1024), 0, 10_000),
    ("INT32", (70, 1021), 0, 300),
    ("INT32", (140, 5000), 1, 40),
    ("INT32", (140, 300), 1, 30_000),
    ("INT32", (140, 4000), 1, 30_000),
)
"""The type of indices, their sizes, the axis of the places, and how many there are."""
DECREASING = AxisDirection.DECREASING


def placing_cases() -> Iterator[Case]:
    """Yield all of them."""
    for sizes, axis, count in TOPS:
        for type, direction in zip(("FLOAT32", "INT64"), AxisDirection, strict=True):
            name = f"top {count} {type} {sizes} {direction.name}"
            yield Case(name, _top(type, sizes, axis, count, direction), special=True)
    yield from _further_tops()
    for type, sizes in COUNTED:
        program = Form("NONZERO_COORDINATES", "", {"input": sizes}).case(type).program
        yield Case(f"nonzero coordinates {type} {sizes}", program)
    for type, sizes, axis, count in PLACED:
        placed = tuple(count if number == axis else size for number, size in enumerate(sizes))
        tensors = {"input": placed, "indices": sizes, "updates": sizes}
        form = Form("SCATTER", "", tensors, {"axis": axis}, types={"indices": type})
        yield _of_places(f"scatter {type} {sizes} axis {axis} to {count}", form.case("FLOAT32").program)
    turned = ("FLOAT32", (20, 300)), ("INT32", (300, 40)), ("FLOAT32", (40, 300))
    yield _of_places("scatter turned", graph_program(_scattered, *turned))


def _further_tops() -> Iterator[Case]:
    """Yield further cases: other types, equal elements, elements of which the last are wanted, and such as
    are not all in memory."""
    sizes = 2, 40000
    for type in ("FLOAT16", "UINT8"):
        yield Case(f"top 100 {type}", _top(type, sizes, 1, 100, DECREASING))
    for type in ("FLOAT32", "INT64"):
        equal = _top(type, sizes, 1, 100, DECREASING)
        yield Case(f"top 100 {type} equal", equal, mean=3.0, deviation=0.0)
    yield Case("top 100 rising", graph_program(_top_of_rising, ("UINT32", sizes)))
    yield Case("top 100 padded", graph_program(_top_of_padded, ("FLOAT32", sizes)))
    yield Case("top 7 UINT32", _top("UINT32", (3, 1000), 1, 7, AxisDirection.INCREASING), special=True)


def _top(type: str, sizes: tuple[int, ...], axis: int, count: int, direction: AxisDirection) -> Program:
    attributes = {"axis": axis, "k": count, "axis_direction": direction}
    return Form("TOP_K1", "", {"input": sizes}, attributes).case(type).program


def _top_of_rising(x: Any) -> Any:
    return tuple(dml.top_k1(dml.cumulative_summation(x, axis=1), axis=1, k=100))


def _top_of_padded(x: Any) -> Any:
    return tuple(dml.top_k1(dml.padding(x, start_padding=[0, 7], end_padding=[1, 30]), axis=1, k=100))


def _scattered(x: Any, indices: Any, updates: Any) -> Any:
    return dml.scatter(x, indices.transpose(1, 0), updates, axis=0)


def _of_places(name: str, program: Program) -> Case:
    """Return a case whose inputs are places, some of which lie outside."""
    return Case(name, program, mean=9.0, deviation=9.0)
