"""Programs for the checks of the CUDA target that move data: slices, paddings, windows, gathers, joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opendml.program.functions import (
    deviation,
    exp,
    index_of_maximum,
    maximum,
    mean,
    reduce_maximum,
    reduce_minimum,
    reduce_sum,
    running_sum,
    variance,
)
from opendml.program.node import Node, Operation, convert, index, ordered, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, joined, padded, permuted, reshaped, sliced, windows
from tools.cuda_case import Case

FLOAT32, FLOAT16 = ScalarType.FLOAT32, ScalarType.FLOAT16
INT32, INT64 = ScalarType.INT32, ScalarType.INT64


def program(*results: Node) -> Program:
    """The program over packed tensors."""
    sources = {node.attribute: node for node in ordered(results) if node.operation is Operation.SOURCE}
    inputs = [packed(sources[number].type, sources[number].sizes) for number in range(len(sources))]
    return Program(tuple(inputs), tuple(packed(each.type, each.sizes) for each in results), results)


def view_cases() -> Iterator[Case]:
    """All of them."""
    for type in (FLOAT32, FLOAT16):
        for name, result in _moved(source(0, type, (2, 9, 33, 40))):
            if type is FLOAT32 or "padded" in name:
                yield Case(f"view {type.name} {name}", program(result))
    beyond = padded(source(0, FLOAT32, (2, 2, 2)), (1, 2, -2), (62, -2, 1), 1.5)
    yield Case("view of padding alone, in two types", program(beyond, convert(beyond, FLOAT16)))
    yield from _transposed()
    yield from _gathers()
    yield from _windows()
    yield from _numbers()


def _moved(x: Node) -> Iterator[tuple[str, Node]]:
    yield "slice", sliced(x, (1, 1, 32, 38), (1, 4, 11, 13), (1, 2, -3, -2))
    yield "rows", sliced(x, (0, 1, 3, 8), (2, 7, 30, 32))
    yield "padded", padded(x, (0, 1, 2, 3), (1, 0, 4, 5), 1.5)
    yield "padded rows", padded(x, (0, 0, 2, 0), (0, 1, 1, 0), 2.0)
    yield "padded less", padded(x, (0, 0, -2, 3), (0, 0, 4, -7))
    yield "padded and transposed", permuted(padded(x, (0, 0, 1, 2), (0, 0, 1, 3)), (0, 3, 1, 2))
    yield "joined", joined([sliced(x, (0, 0, 0, 1), (2, 9, 33, 7)), padded(x, (0,) * 4, (0, 0, 0, 1)), x], 3)
    yield "turned blocks", reshaped(permuted(reshaped(x, (2, 9, 33, 10, 4)), (0, 4, 1, 2, 3)), (8, 297, 10))


def _transposed() -> Iterator[Case]:
    """Squares in units of all widths, within a matrix and over its ends."""
    for type in (ScalarType.UINT8, FLOAT16, FLOAT32, ScalarType.FLOAT64):
        for sizes in ((2, 160, 208), (1, 90, 150), (1, 121, 77)):
            turned = permuted(source(0, type, sizes), (0, 2, 1))
            yield Case(f"view {type.name} transposed {sizes}", program(turned))
    x, y, z = source(0, FLOAT16, (144, 96)), source(1, FLOAT32, (96, 144)), source(2, FLOAT16, (96, 144))
    mixed = maximum(maximum(convert(permuted(x, (1, 0)), FLOAT32), y), convert(z, FLOAT32))
    yield Case("view transposed and straight", program(mixed))
    yield Case("view transposed offset", program(permuted(x, (1, 0))), offset=4)


def _gathers() -> Iterator[Case]:
    for type, sizes, rows in ((INT32, (64, 48), (37, 1)), (INT64, (40, 33), (29, 1))):
        table, chosen = source(0, FLOAT32, sizes), source(1, type, rows)
        # Many indices lie outside, on both sides.
        rows_of = gathered(table, (rows[0], sizes[1]), {0: chosen}, steps=((0, 0), (0, 1)), fill=-1.0)
        yield Case(f"view gathered rows {type.name}", program(rows_of * 2.0), mean=20, deviation=25)
        total = reduce_sum(rows_of, [1])
        yield Case(f"view sum of gathered rows {type.name}", program(total), mean=20, deviation=25)
    x, chosen = source(0, FLOAT16, (5, 60)), source(1, INT32, (5, 77))
    elements = gathered(x, (5, 77), {1: chosen}, steps=((1, 0), (0, 0)))
    yield Case("view gathered elements", program(elements), mean=30, deviation=30)
    columns = gathered(
        source(0, FLOAT16, (60, 1024)),
        (4100, 1024),
        {0: source(1, INT32, (4100, 1024))},
        steps=((0, 0), (0, 1)),
    )
    yield Case("view gathered in panels", program(columns), mean=30, deviation=30)
    again = gathered(elements, (70, 5), {0: source(2, INT32, (70, 1))}, steps=((0, 0), (0, 1)))
    yield Case("view gathered from gathered", program(again), mean=2, deviation=3)
    places = [source(number, ScalarType.UINT8, (40, 30)) for number in (1, 2)]
    point = gathered(x, (40, 30), dict(enumerate(places)))
    yield Case("view gathered points", program(convert(point, FLOAT32)), mean=3, deviation=3)
    best = index_of_maximum(source(0, FLOAT32, (90, 50)), [1])
    chosen_by = gathered(source(1, FLOAT32, (40, 1)), (90, 1), {0: best})
    yield Case("view gathered at the greatest", program(chosen_by))


def _windows() -> Iterator[Case]:
    for type, sizes in ((FLOAT32, (2, 5, 30, 37)), (FLOAT16, (2, 3, 21, 40))):
        x = source(0, type, sizes)
        counts = (sizes[2] // 2, (sizes[3] + 1) // 2)
        greatest = windows(x, counts, (3, 3), (2, 2), (1, 1), (1, 1), -60000.0)
        yield Case(
            f"view window greatest {type.name}", program(reduce_maximum(convert(greatest, FLOAT32), [4, 5]))
        )
        each = windows(x, sizes[2:], (3, 2), (1, 1), (2, 1), (2, 0))
        average = reduce_sum(convert(each, FLOAT32), [4, 5]) * (1 / 6)
        yield Case(f"view window average {type.name}", program(convert(average, FLOAT32)))
    x = source(0, FLOAT32, (6, 20, 50))
    around = padded(x, (0, 1, 3), (0, 0, 2), 1.0)
    normalized = deviation(around, mean(around, [2])) * convert(variance(around, [2]), FLOAT32)
    yield Case("normalization of padded rows", program(normalized))
    across = deviation(around, mean(around, [1])) * convert(variance(around, [1]), FLOAT32)
    yield Case("normalization of padded columns", program(across))
    terms = (source(number, FLOAT32, (8, 255, 49)) for number in range(3))
    total = next(terms) + next(terms) + next(terms)
    yield Case("normalization of columns of a sum", program(deviation(total, mean(total, [1]))))
    shifted = around - reduce_maximum(around, [2])
    yield Case(
        "view softmax of padded",
        program(exp(shifted) / convert(reduce_sum(exp(shifted), [2]), FLOAT32)),
        ulps=24,
    )
    scanned = running_sum(convert(around, FLOAT32), 2, exclusive=True, reverse=True)
    yield Case("view running sum of padded", program(convert(scanned, FLOAT32)), absolute=1e-4)
    yield Case(
        "view least of a window", program(reduce_minimum(windows(x, (48,), (3,), (1,), (1,), (0,)), [3]))
    )


def _numbers() -> Iterator[Case]:
    """Counted numbers of all types, from an offset on, and beyond the ends of the type."""
    for type in (ScalarType.UINT32, ScalarType.UINT64, INT32, INT64):
        for offset in (-5, 2**31 - 20, 2 ** min(type.bits, 63) - 9):
            sizes: Sequence[int] = (7, 33)
            number = index(type, sizes, offset, (100, -3))
            yield Case(f"view number {type.name} {offset}", program(number + source(0, type, sizes)))
