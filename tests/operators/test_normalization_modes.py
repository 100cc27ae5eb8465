"""Every way in which the CPU walks a normalization is reached, and gives the same values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from opendml import FLOAT16, FLOAT32, Device, TensorDataType, TensorDesc, descs
from opendml.targets.cpu.pattern import CpuMode
from tests.operators.normalizing import assert_normalized, desc_of, modes, random_values
from tests.running import FLOATS, laid_out, numpy_type, run, same_bits

ROWS = {CpuMode.ROWS}
COLUMNS = {CpuMode.COLUMNS}
SPLIT_ROWS = {CpuMode.ROWS_PARTIAL, CpuMode.ROWS_COMBINE, CpuMode.ROWS_MAP}
SPLIT_COLUMNS = {CpuMode.COLUMNS_PARTIAL, CpuMode.COLUMNS_COMBINE, CpuMode.COLUMNS_MAP}

# The sizes are such that they lead to these modes whatever the size of the caches.
WALKS: list[tuple[list[int], list[int], set[CpuMode]]] = [
    ([7], [0], ROWS),
    ([5, 9], [1], ROWS),
    ([100, 3], [1], ROWS),
    ([3, 4, 5, 6], [2, 3], ROWS),
    ([2, 70, 7, 9], [0, 2, 3], ROWS),
    ([40, 8000], [1], ROWS),
    ([70000], [0], SPLIT_ROWS),
    ([3, 70001], [1], SPLIT_ROWS),
    ([2, 3, 200, 130], [1, 2, 3], SPLIT_ROWS),
    ([9, 2, 120, 70], [0, 2, 3], SPLIT_ROWS),
    ([3, 1_000_003], [1], SPLIT_ROWS),
    ([9, 50], [0], COLUMNS),
    ([4, 9, 50], [1], COLUMNS),
    ([20, 11, 1037], [1], COLUMNS),
    ([2, 3, 40, 7], [1], COLUMNS),
    ([3, 5, 4, 70], [0, 2], COLUMNS),
    ([5000, 64], [0], SPLIT_COLUMNS),
    ([5001, 37], [0], SPLIT_COLUMNS),
    ([2, 9000, 17], [1], SPLIT_COLUMNS),
    ([300, 3, 90, 20], [0, 2], SPLIT_COLUMNS),
]

every_walk = pytest.mark.parametrize(
    ("sizes", "axes", "expected_modes"), WALKS, ids=[f"{s}-{a}" for s, a, _ in WALKS]
)


@every_walk
@pytest.mark.parametrize("data_type", FLOATS)
def test_every_walk_is_exact(
    sizes: Sequence[int],
    axes: Sequence[int],
    expected_modes: set[CpuMode],
    data_type: TensorDataType,
    device: Device,
) -> None:
    if data_type is FLOAT32:
        assert set(modes(desc_of(data_type, sizes, axes))) == expected_modes
    some = [size if axis in axes else 1 for axis, size in enumerate(sizes)]
    others = [1 if axis in axes else size for axis, size in enumerate(sizes)]
    shapes: list[tuple[Sequence[int] | None, Sequence[int] | None]] = [
        (None, None),
        (some, others),
        (others, sizes),
    ]
    for scale, bias in shapes:
        desc = desc_of(data_type, sizes, axes, scale, bias)
        type = numpy_type(desc.input_tensor)
        x = random_values(1, sizes, type, 5.0, 2.0)
        s, b = (None if given is None else random_values(2, given, type) for given in (scale, bias))
        assert_normalized(run(desc, [x, s, b], device), desc, x, s, b)


@every_walk
def test_every_walk_gives_the_same_bits_on_any_number_of_threads(
    sizes: Sequence[int], axes: Sequence[int], expected_modes: set[CpuMode]
) -> None:
    x = random_values(1, sizes, np.float32, 5.0, 2.0)
    desc = desc_of(FLOAT32, sizes, axes, sizes, sizes, fused_activation=descs.ActivationRelu())
    assert set(modes(desc)) == expected_modes
    results = [run(desc, [x, x, x], Device("cpu", threads=threads)) for threads in (1, 2, 3, 8)]
    assert all(same_bits(result, results[0]) for result in results[1:])


@every_walk
def test_every_walk_reads_permuted_and_writes_padded_memory(
    sizes: Sequence[int], axes: Sequence[int], expected_modes: set[CpuMode], device: Device
) -> None:
    x = random_values(1, sizes, np.float32, 5.0, 2.0)
    dimensions = range(len(sizes))
    permuted = TensorDesc(FLOAT32, sizes, _strides_of(sizes, dimensions, 0))
    padded = TensorDesc(FLOAT32, sizes, _strides_of(sizes, dimensions[::-1], 3))
    desc = desc_of(FLOAT32, sizes, axes).replace(input_tensor=permuted, output_tensor=padded)
    result = run(desc, [laid_out(x, permuted), None, None], device)
    assert_normalized(result, desc, x, None, None)


def _strides_of(sizes: Sequence[int], inner_to_outer: Sequence[int], padding: int) -> list[int]:
    """Strides with the dimensions in that order, and `padding` elements between rows."""
    strides = [0] * len(sizes)
    step = 1
    for position, dimension in enumerate(inner_to_outer):
        strides[dimension] = step
        step *= sizes[dimension] + (padding if position == 0 else 0)
    return strides


def test_float16_of_these_sizes_is_split_too() -> None:
    assert set(modes(desc_of(FLOAT16, [300_000], [0]))) == SPLIT_ROWS
    assert set(modes(desc_of(FLOAT16, [50_000, 16], [0]))) == SPLIT_COLUMNS


@pytest.mark.parametrize(
    ("sizes", "axes"),
    [([300_000], [0]), ([50_000, 16], [0]), ([40, 8000], [1]), ([20, 11, 1037], [1])],
    ids=str,
)
def test_float16_gives_the_same_bits_on_any_number_of_threads(sizes: list[int], axes: list[int]) -> None:
    x = random_values(1, sizes, np.float16, 50.0, 2.0)
    desc = desc_of(FLOAT16, sizes, axes)
    results = [run(desc, [x, None, None], Device("cpu", threads=threads)) for threads in (1, 2, 3)]
    assert all(same_bits(result, results[0]) for result in results[1:])


def test_all_modes_of_normalization_are_reached() -> None:
    placing = ("scan", "scatter", "positions", "top")
    others = {mode for mode in CpuMode if mode.value.split()[0] in (*placing, "contraction")}
    others |= {CpuMode.POINTWISE, CpuMode.SHARED_ROWS, CpuMode.SHORT_ROWS, CpuMode.TRANSPOSED}
    assert set(CpuMode) - others == ROWS | COLUMNS | SPLIT_ROWS | SPLIT_COLUMNS
