"""Every way in which the CPU walks its kernels, at odd sizes and over memory of any alignment, against the
reference: each operator family, streamed or not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from opendml import FLOAT16, FLOAT32, INT32, UINT8, Device, TensorDataType, TensorDesc, descs
from opendml.runtime.host_array import Array
from opendml.runtime.program import tensors_of
from opendml.spec.enums import AxisDirection, ReduceFunction
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import reach
from opendml.targets.cpu import launch as launch_module
from opendml.targets.cpu import schedule_groups as schedule_module
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import Mode, Pattern
from tests.running import elements, launches, numpy_type, run

SMALL_CACHES = replace(machine(), l2_bytes=64 * 1024, last_cache_bytes=64 * 1024)
"""As if this machine had hardly any caches: results of some thousand elements are streamed past them then."""
GUARD = 0xA5
LINE = 64


@dataclass(frozen=True)
class Walk:
    """Sizes, the axes that are reduced or scanned in them, and how that is done: with one result for a group,
    with one for each element, and where one axis is scanned. Without modes it is not scanned."""

    sizes: tuple[int, ...]
    axes: tuple[int, ...]
    group: frozenset[Mode]
    element: frozenset[Mode]
    scanned: frozenset[Mode] = frozenset()
    strides: tuple[int, ...] | None = None
    """Of all tensors of these sizes."""

    def __str__(self) -> str:
        return f"{list(self.sizes)} over {list(self.axes)}{' strided' if self.strides else ''}"

    def tensor(self, data_type: TensorDataType) -> TensorDesc:
        """A tensor of these sizes."""
        return TensorDesc(data_type, self.sizes, self.strides)

    def reduced(self, data_type: TensorDataType) -> TensorDesc:
        """A tensor with one element for each group."""
        return TensorDesc(data_type, [1 if i in self.axes else size for i, size in enumerate(self.sizes)])


ROWS, COLUMNS = frozenset({Mode.ROWS}), frozenset({Mode.COLUMNS})
SCAN_ROWS, SCAN_COLUMNS = frozenset({Mode.SCAN_ROWS}), frozenset({Mode.SCAN_COLUMNS})
SPLIT_ROWS = frozenset({Mode.ROWS_PARTIAL, Mode.ROWS_COMBINE})
SPLIT_COLUMNS = frozenset({Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE})
SPLIT_SCAN_ROWS = frozenset({Mode.ROWS_PARTIAL, Mode.SCAN_ROWS_COMBINE, Mode.SCAN_ROWS_MAP})
SPLIT_SCAN_COLUMNS = frozenset({Mode.COLUMNS_PARTIAL, Mode.SCAN_COLUMNS_COMBINE, Mode.SCAN_COLUMNS_MAP})
MAPPED_ROWS, MAPPED_COLUMNS = SPLIT_ROWS | {Mode.ROWS_MAP}, SPLIT_COLUMNS | {Mode.COLUMNS_MAP}

WALKS = [
    Walk((37, 1025), (1,), ROWS, ROWS, SCAN_ROWS),
    Walk((131, 519), (1,), ROWS, ROWS, SCAN_ROWS, (600, 1)),
    Walk((19, 7, 11, 21), (0, 1, 3), ROWS, ROWS),
    Walk((9, 40_003), (1,), SPLIT_ROWS, MAPPED_ROWS, SPLIT_SCAN_ROWS),
    Walk((3, 5, 61, 777), (1, 3), SPLIT_ROWS, MAPPED_ROWS),
    Walk((15, 519), (0,), COLUMNS, COLUMNS, SCAN_COLUMNS),
    Walk((7, 13, 2049), (1,), COLUMNS, COLUMNS, SCAN_COLUMNS),
    Walk((130, 9, 2047), (1,), COLUMNS, COLUMNS, SCAN_COLUMNS),
    Walk((2, 9, 45, 601), (0, 2), COLUMNS, MAPPED_COLUMNS),
    Walk((301, 523), (0,), SPLIT_COLUMNS, MAPPED_COLUMNS, SPLIT_SCAN_COLUMNS),
    Walk((107, 2049), (0,), SPLIT_COLUMNS, MAPPED_COLUMNS, SPLIT_SCAN_COLUMNS, (2064, 1)),
    Walk((40_001, 3), (0,), SPLIT_COLUMNS, MAPPED_COLUMNS, SPLIT_SCAN_COLUMNS),
]


def reductions(walk: Walk) -> Iterator[OperatorDesc]:
    for function in ReduceFunction:
        search = function in (ReduceFunction.ARGMIN, ReduceFunction.ARGMAX)
        for data_type in (FLOAT32,) if search else (FLOAT32, FLOAT16):
            output = walk.reduced(TensorDataType.UINT32 if search else data_type)
            yield descs.Reduce(walk.tensor(data_type), output, function=function, axes=walk.axes)
    whole = walk.tensor(INT32), walk.reduced(INT32)
    yield descs.Reduce(*whole, function=ReduceFunction.SUM, axes=walk.axes)


def searches(walk: Walk) -> Iterator[OperatorDesc]:
    output = walk.reduced(TensorDataType.INT64)
    for search in (descs.Argmin, descs.Argmax):
        for direction in AxisDirection:
            for data_type in (FLOAT32, UINT8):
                yield search(walk.tensor(data_type), output, axes=walk.axes, axis_direction=direction)


def softmaxes(walk: Walk) -> Iterator[OperatorDesc]:
    for activation in (descs.ActivationSoftmax1, descs.ActivationLogSoftmax1, descs.ActivationHardmax1):
        for data_type in (FLOAT32, FLOAT16):
            tensor = walk.tensor(data_type)
            yield activation(tensor, tensor, axes=walk.axes)


def normalizations(walk: Walk) -> Iterator[OperatorDesc]:
    for data_type in (FLOAT32, FLOAT16):
        tensor = walk.tensor(data_type)
        for parameter in (None, tensor, walk.reduced(data_type)):
            sizes = parameter and parameter.sizes
            yield descs.MeanVarianceNormalization1(
                tensor,
                sizes and TensorDesc(data_type, sizes),
                sizes and TensorDesc(data_type, sizes),
                tensor,
                axes=walk.axes,
                normalize_variance=parameter is not tensor,
                fused_activation=descs.ActivationRelu(),
            )
    if len(walk.axes) == 1:
        (axis,) = walk.axes
        yield descs.LpNormalization(tensor, tensor, axis=axis, epsilon=1e-5, p=2)


def scans(walk: Walk) -> Iterator[OperatorDesc]:
    for direction in AxisDirection:
        for exclusive in (False, True):
            for data_type in (FLOAT32, FLOAT16, INT32):
                tensor = walk.tensor(data_type)
                way: dict[str, Any] = {"axis": walk.axes[0], "axis_direction": direction}
                yield descs.CumulativeSummation(tensor, tensor, **way, has_exclusive_sum=exclusive)
                if data_type is not FLOAT16:
                    yield descs.CumulativeProduct(tensor, tensor, **way, has_exclusive_product=exclusive)


FAMILIES = [reductions, searches, softmaxes, normalizations, scans]


def modes_of(desc: OperatorDesc) -> frozenset[Mode]:
    return frozenset(launch.pattern.mode for launch in launches(desc))


def memory_at(offset: int, tensor: TensorDesc) -> tuple[Array, Array]:
    """Bytes that hold a tensor so many elements behind the start of a cache line, and the tensor's own part of
    them."""
    size = reach(tensor.sizes, tensor.effective_strides) * numpy_type(tensor).itemsize
    raw = np.full(size + 6 * LINE, GUARD, np.uint8)
    first = -raw.ctypes.data % LINE + LINE + offset * numpy_type(tensor).itemsize
    return raw, raw[first : first + size].view(numpy_type(tensor))


def values_for(desc: OperatorDesc, tensor: TensorDesc, seed: int) -> Array:
    """Memory for an input whose running products, too, stay where they can be compared."""
    count = reach(tensor.sizes, tensor.effective_strides)
    type = numpy_type(tensor)
    random = np.random.default_rng(seed)
    if type.kind != "f":
        return random.integers(0, 120, count).astype(type)
    near_one = "PRODUCT" in desc.operator or getattr(desc, "function", None) is ReduceFunction.MULTIPLY
    product_deviation = 1 / math.sqrt(math.prod(tensor.sizes))
    values = random.standard_normal(count) * (product_deviation if near_one else 1.0)
    if near_one or getattr(desc, "function", None) is ReduceFunction.LOG_SUM:
        values = np.abs(values) if not near_one else values + 1.0
    return values.astype(type)


def check(desc: OperatorDesc, offsets: Sequence[Sequence[int]], device: Device) -> None:
    """The operator over memory so many elements behind cache lines equals the reference and writes nothing
    beside its output's elements."""
    tensors = tensors_of(desc, "INPUT_TENSOR")
    values = [tensor and values_for(desc, tensor, seed) for seed, tensor in enumerate(tensors)]
    (output,) = tensors_of(desc, "OUTPUT_TENSOR")
    assert output is not None
    wanted = run(desc, values, "reference")
    compiled = device.compile_operator(device.create_operator(desc))
    for places in offsets:
        numbers = iter(places)
        inputs: list[Array | None] = []
        for tensor, value in zip(tensors, values, strict=True):
            memory = None if tensor is None else memory_at(next(numbers), tensor)[1]
            if memory is not None:
                memory[:] = value
            inputs.append(memory)
        raw, memory = memory_at(next(numbers), output)
        compiled.bind(inputs, [memory]).dispatch()
        assert_close(elements(memory, output), wanted, str(desc))
        bits = memory.view(f"u{memory.itemsize}")
        elements(bits, output)[...] = int.from_bytes([GUARD] * memory.itemsize, "little")
        assert (raw == GUARD).all(), f"{desc} writes beside its output"


def assert_close(result: Array, wanted: Array, what: str) -> None:
    """Equal integers; floats but for the roundings of their parts."""
    if result.dtype.kind != "f":
        np.testing.assert_array_equal(result, wanted, what)
        return
    resolution = float(np.finfo(result.dtype).eps)
    scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
    np.testing.assert_allclose(result, wanted, rtol=8 * resolution, atol=2 * resolution * scale, err_msg=what)
