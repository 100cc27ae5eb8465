"""Kernels to walk in every way, at odd sizes and over memory of any alignment, and their check against the
reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np

from opendml import FLOAT16, FLOAT32, INT32, UINT8, Device, TensorDataType, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import tensors_of
from opendml.spec.enums import AxisDirection, ReduceFunction
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import reach
from opendml.targets.cpu.machine import machine
from tests.running import elements, numpy_type, run

SMALL_CACHES = replace(machine(), l2_bytes=64 * 1024, last_cache_bytes=64 * 1024)
"""As if this machine had hardly any caches: results of some thousand elements are streamed past them then."""
GUARD = 0xA5
LINE = 64
REDUCED = [
    ReduceFunction.AVERAGE,
    ReduceFunction.L2,
    ReduceFunction.LOG_SUM_EXP,
    ReduceFunction.MAX,
    ReduceFunction.MULTIPLY,
]


@dataclass(frozen=True)
class Walk:
    """Sizes, the axes that are reduced (the first of them scanned) in them, and the strides of all tensors of
    these sizes."""

    sizes: tuple[int, ...]
    axes: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{list(self.sizes)} over {list(self.axes)}{' strided' if self.strides else ''}"

    def tensor(self, data_type: TensorDataType) -> TensorDesc:
        """A tensor of these sizes."""
        return TensorDesc(data_type, self.sizes, self.strides)

    def reduced(self, data_type: TensorDataType) -> TensorDesc:
        """A tensor with one element for each group."""
        return TensorDesc(data_type, [1 if i in self.axes else size for i, size in enumerate(self.sizes)])


WALKS = [
    Walk((37, 1025), (1,)),
    Walk((131, 519), (1,), (600, 1)),
    Walk((19, 7, 11, 21), (0, 1, 3)),
    Walk((5, 33, 71), (1, 2), (33 * 71, 1, 33)),
    Walk((9, 40_003), (1,)),
    Walk((3, 301, 45), (1, 2), (301 * 48, 48, 1)),
    Walk((3, 20_003), (1,), (60_010, 3)),
    Walk((3, 9, 61, 777), (1, 3)),
    Walk((20, 9, 45), (1,)),
    Walk((15, 519), (0,)),
    Walk((7, 13, 2049), (1,)),
    Walk((140, 9, 601), (1,)),
    Walk((301, 523), (0,)),
    Walk((107, 2049), (0,), (2064, 1)),
    Walk((12_001, 3), (0,)),
]


def reductions(walk: Walk) -> Iterator[OperatorDesc]:
    for function in REDUCED:
        yield descs.Reduce(walk.tensor(FLOAT32), walk.reduced(FLOAT32), function=function, axes=walk.axes)
    for data_type in (FLOAT16, INT32):
        x, result = walk.tensor(data_type), walk.reduced(data_type)
        yield descs.Reduce(x, result, function=ReduceFunction.SUM, axes=walk.axes)


def searches(walk: Walk) -> Iterator[OperatorDesc]:
    output = walk.reduced(TensorDataType.INT64)
    for search in (descs.Argmin, descs.Argmax):
        for direction in AxisDirection:
            yield search(walk.tensor(FLOAT32), output, axes=walk.axes, axis_direction=direction)
    yield descs.Argmax(walk.tensor(UINT8), output, axes=walk.axes)


def softmaxes(walk: Walk) -> Iterator[OperatorDesc]:
    tensor, narrow = walk.tensor(FLOAT32), walk.tensor(FLOAT16)
    for activation in (descs.ActivationSoftmax1, descs.ActivationLogSoftmax1, descs.ActivationHardmax1):
        yield activation(tensor, tensor, axes=walk.axes)
    yield descs.ActivationSoftmax1(narrow, narrow, axes=walk.axes)


def normalizations(walk: Walk) -> Iterator[OperatorDesc]:
    for data_type in (FLOAT32, FLOAT16):
        tensor = walk.tensor(data_type)
        for parameter in (None, tensor, walk.reduced(data_type)) if data_type is FLOAT32 else (None,):
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
    tensor = walk.tensor(FLOAT32)
    for direction, exclusive in product(AxisDirection, (False, True)):
        way: dict[str, Any] = {"axis": walk.axes[0], "axis_direction": direction}
        yield descs.CumulativeSummation(tensor, tensor, **way, has_exclusive_sum=exclusive)
        yield descs.CumulativeProduct(tensor, tensor, **way, has_exclusive_product=exclusive)
    for data_type in (FLOAT16, INT32):
        tensor = walk.tensor(data_type)
        yield descs.CumulativeSummation(tensor, tensor, axis=walk.axes[0], axis_direction=direction)


def images(walk: Walk) -> Iterator[OperatorDesc]:
    """Operators that are no walk over groups, over the same sizes: activations, operators of two tensors, and
    casts; transposed ones too."""
    x, scalar = walk.tensor(FLOAT32), TensorDesc(FLOAT32, walk.sizes, [0] * len(walk.sizes))
    backwards = [math.prod(walk.sizes[:axis]) for axis in range(len(walk.sizes))]
    across = TensorDesc(FLOAT32, walk.sizes, backwards)
    yield descs.ActivationTanh(x, x)
    yield descs.ActivationTanh(x, across)
    yield descs.ActivationTanh(across, x)
    for other in (x, across, scalar):
        yield descs.ElementWiseSubtract(x, other, x)
    for given, wanted in permutations((FLOAT32, FLOAT16, UINT8), 2):
        yield descs.Cast(walk.tensor(given), walk.tensor(wanted))


Family = Callable[[Walk], Iterator[OperatorDesc]]
FAMILIES: list[Family] = [images, reductions, searches, softmaxes, normalizations, scans]


def walked(family: Family, walk: Walk) -> list[OperatorDesc]:
    """Every other operator of a family: walks take turns, so that each operator meets half of them."""
    return list(family(walk))[WALKS.index(walk) % 2 :: 2]


def memory_at(offset: int, tensor: TensorDesc) -> tuple[Array, Array]:
    """Bytes that hold a tensor so many elements behind the start of a cache line, and the tensor's own."""
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


def check(desc: OperatorDesc, device: Device) -> None:
    """The operator over memory at all `places` equals the reference, with the same bits at each, and writes
    nothing beside its output's elements."""
    tensors = tensors_of(desc, "INPUT_TENSOR")
    values = [tensor and values_for(desc, tensor, seed) for seed, tensor in enumerate(tensors)]
    (output,) = tensors_of(desc, "OUTPUT_TENSOR")
    assert output is not None
    wanted = run(desc, values, "reference")
    compiled = device.compile_operator(device.create_operator(desc))
    first: Array | None = None
    for offsets in places(len([value for value in values if value is not None]) + 1):
        numbers = iter(offsets)
        inputs: list[Array | None] = []
        for tensor, value in zip(tensors, values, strict=True):
            memory = None if tensor is None else memory_at(next(numbers), tensor)[1]
            if memory is not None:
                memory[:] = value
            inputs.append(memory)
        raw, memory = memory_at(next(numbers), output)
        compiled.bind(inputs, [memory]).dispatch()
        result, bits = elements(memory, output), memory.view(f"u{memory.itemsize}")
        if first is None:
            assert_close(result, wanted, str(desc))
            first = bits.copy()
        assert (bits == first).all(), f"{desc} depends on where its tensors lie"
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


def places(tensor_count: int) -> list[list[int]]:
    """Places of tensors behind cache lines: all at their start, each alone elsewhere, all elsewhere and
    apart."""
    alone = [[3 if each == other else 0 for each in range(tensor_count)] for other in range(tensor_count)]
    return [[0] * tensor_count, *alone, [5 * each + 1 for each in range(tensor_count)]]
