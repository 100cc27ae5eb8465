"""Programs for the checks of the CUDA target that move data: slices, paddings, windows, gathers, joins, as
graphs of public operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import opendml as dml
from tools.cuda_case import Case
from tools.operator_case import Form, Sizes, graph_program

FLOAT32, FLOAT16 = "FLOAT32", "FLOAT16"
Build = Callable[..., Any]


def view_cases() -> Iterator[Case]:
    """Yield all of them."""
    for type in (FLOAT32, FLOAT16):
        for name, build in _moved():
            if type is FLOAT32 or "padded" in name:
                yield _case(f"{type} {name}", build, (type, (2, 9, 33, 40)))
    yield _case("of padding alone, in two types", _padding_alone, (FLOAT32, (2, 2, 2)))
    yield from _transposed()
    yield from _gathers()
    yield from _windows()
    yield from _padded_groups()
    yield from _numbers()


def _case(name: str, build: Build, *inputs: tuple[str, Sizes], **details: Any) -> Case:
    return Case(f"view {name}", graph_program(build, *inputs), **details)


def _padded(x: Any, start: Sequence[int], end: Sequence[int], value: float = 0.0) -> Any:
    return dml.padding(x, padding_value=value, start_padding=start, end_padding=end)


def _moved() -> Iterator[tuple[str, Build]]:
    yield "slice", lambda x: x[1:, 1::2, 32::-3, 38:12:-2]
    yield "rows", lambda x: x[:, 1:8, 3:, 8:]
    yield "padded", lambda x: _padded(x, (0, 1, 2, 3), (1, 0, 4, 5), 1.5)
    yield "padded rows", lambda x: _padded(x, (0, 0, 2, 0), (0, 1, 1, 0), 2.0)
    yield "padded less", lambda x: _padded(x[:, :, 2:, :33], (0, 0, 0, 3), (0, 0, 4, 0))
    yield (
        "padded and transposed",
        lambda x: _padded(x, (0, 0, 1, 2), (0, 0, 1, 3)).transpose(0, 3, 1, 2),
    )
    yield "joined", _joined
    yield (
        "turned blocks",
        lambda x: x.reshape([2, 9, 33, 10, 4]).transpose(0, 4, 1, 2, 3).reshape([8, 297, 10]),
    )


def _joined(x: Any) -> Any:
    return dml.join([x[:, :, :, 1:8], _padded(x, (0,) * 4, (0, 0, 0, 1)), x], axis=3)


def _padding_alone(x: Any) -> Any:
    beyond = _padded(x, (1, 2, 0), (62, 0, 1), 1.5)[:, :2]
    return beyond, dml.cast(beyond, output_type=FLOAT16)


def _transposed() -> Iterator[Case]:
    """Yield squares in units of all widths, within a matrix and over its ends."""
    for type in ("UINT8", FLOAT16, FLOAT32, "FLOAT64"):
        for sizes in ((2, 160, 208), (1, 90, 150), (1, 121, 77)):
            yield _case(f"{type} transposed {sizes}", lambda x: x.transpose(0, 2, 1), (type, sizes))
    inputs = (FLOAT16, (144, 96)), (FLOAT32, (96, 144)), (FLOAT16, (96, 144))
    yield _case("transposed and straight", _greatest_of_transposed, *inputs)
    yield _case("transposed offset", lambda x: x.transpose(1, 0), inputs[0], offset=4)


def _greatest_of_transposed(x: Any, y: Any, z: Any) -> Any:
    x, z = dml.cast(x.transpose(1, 0), output_type=FLOAT32), dml.cast(z, output_type=FLOAT32)
    return dml.element_wise_max(dml.element_wise_max(x, y), z)


def _rows(table: Any, chosen: Any) -> Any:
    return dml.gather(table, chosen, axis=0, index_dimensions=1)


def _gathers() -> Iterator[Case]:
    for type, sizes, count in (("INT32", (64, 48), 37), ("INT64", (40, 33), 29)):
        # Many indices lie outside, on both sides.
        inputs, wide = ((FLOAT32, sizes), (type, (1, count))), {"mean": 20, "deviation": 25}
        yield _case(f"gathered rows {type}", lambda x, at: _rows(x, at) * 2.0, *inputs, **wide)
        yield _case(f"sum of gathered rows {type}", _sum_of_rows, *inputs, **wide)
    elements = (FLOAT16, (5, 60)), ("INT32", (5, 77))
    yield _case("gathered elements", _elements, *elements, mean=30, deviation=30)
    columns = (FLOAT16, (60, 1024)), ("INT32", (4100, 1024))
    yield _case("gathered in panels", _elements_of_columns, *columns, mean=30, deviation=30)
    again = ("INT32", (1, 70))
    yield _case("gathered from gathered", _elements_of_rows, *elements, again, mean=2, deviation=3)
    pairs = ("INT32", (1, 1200, 2))
    yield _case("gathered points", _points, (FLOAT16, (1, 5, 60)), pairs, mean=3, deviation=3)
    yield _case("gathered at the greatest", _at_the_greatest, (FLOAT32, (90, 50)), (FLOAT32, (40, 1)))


def _sum_of_rows(table: Any, chosen: Any) -> Any:
    return dml.reduce(_rows(table, chosen), function="SUM", axes=[1])


def _elements(x: Any, chosen: Any) -> Any:
    return dml.gather_elements(x, chosen, axis=1)


def _elements_of_columns(x: Any, chosen: Any) -> Any:
    return dml.gather_elements(x, chosen, axis=0)


def _elements_of_rows(x: Any, chosen: Any, again: Any) -> Any:
    return _rows(_elements(x, chosen), again)


def _points(x: Any, chosen: Any) -> Any:
    points = dml.gather_nd(x[0], chosen[0], input_dimension_count=2, indices_dimension_count=2)
    return dml.cast(points, output_type=FLOAT32)


def _at_the_greatest(x: Any, table: Any) -> Any:
    best = dml.argmax(x, axes=[1], output_type="INT32")
    return _rows(table, best.reshape([1, 90]))


def _windows() -> Iterator[Case]:
    for type, sizes in ((FLOAT32, (2, 5, 30, 37)), (FLOAT16, (2, 3, 21, 40))):
        window: dict[str, Any] = {"window_size": (3, 3), "strides": (2, 2), "start_padding": (1, 1)}
        greatest = Form("MAX_POOLING", "", {"input": sizes}, window | {"end_padding": (0, 1)})
        yield Case(f"view window greatest {type}", greatest.case(type).program)
        window = {"window_size": (3, 2), "strides": (1, 1), "dilations": (2, 1), "include_padding": True}
        margins = {"start_padding": (2, 0), "end_padding": (2, 1)}
        average = Form("AVERAGE_POOLING1", "", {"input": sizes}, window | margins)
        yield Case(f"view window average {type}", average.case(type).program, absolute=1e-6)
    yield _case("least of a window", _least_of_windows, (FLOAT32, (1, 6, 20, 50)))


def _least_of_windows(x: Any) -> Any:
    window: dict[str, Any] = {"window_size": (1, 3), "strides": (1, 1)}
    none = (0, 0)
    return -dml.max_pooling(-x, **window, start_padding=none, end_padding=none)


def _padded_groups() -> Iterator[Case]:
    x = (FLOAT32, (6, 20, 50))

    def around(x: Any) -> Any:
        return _padded(x, (0, 1, 3), (0, 0, 2), 1.0)

    for what, axis in (("rows", 2), ("columns", 1)):
        normalized = graph_program(
            lambda x, axis=axis: dml.mean_variance_normalization1(around(x), axes=[axis]), x
        )
        yield Case(f"normalization of padded {what}", normalized)
    centered = graph_program(
        lambda x, y, z: dml.mean_variance_normalization1(x + y + z, axes=[1], normalize_variance=False),
        *((FLOAT32, (8, 255, 49)),) * 3,
    )
    yield Case("normalization of columns of a sum", centered)
    yield _case("softmax of padded", lambda x: dml.activation_softmax1(around(x), axes=[2]), x, ulps=24)
    yield _case("running sum of padded", lambda x: _running(around(x)), x, absolute=1e-4)


def _running(x: Any) -> Any:
    return dml.cumulative_summation(x, axis=2, axis_direction="DECREASING", has_exclusive_sum=True)


def _numbers() -> Iterator[Case]:
    """Yield counted numbers of all types, from an offset on, and beyond the ends of the type."""
    for type, bits in (("UINT32", 32), ("UINT64", 63), ("INT32", 32), ("INT64", 63)):
        for first in (
            0 if type[0] == "U" else -5,
            2**31 - 20,
            2**bits - 9 if type[0] == "U" else 2 ** (bits - 1) - 9,
        ):
            attributes = {"value_start": first, "value_delta": 3}
            counted = Form("FILL_VALUE_SEQUENCE", "", {"output": (7, 33)}, attributes)
            yield Case(f"view number {type} {first}", counted.case(type).program)
