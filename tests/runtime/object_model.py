"""Operators, buffers and dispatches in DirectML's way, for the tests of the object model."""

from __future__ import annotations

from typing import Any

import numpy as np

from opendml import (
    FLOAT32,
    BufferArrayBinding,
    CompiledOperator,
    Device,
    ExecutionFlags,
    OperatorDesc,
    TensorDesc,
    TensorFlags,
    descs,
)
from opendml.runtime.memory.host_array import Array

SIZES = [2, 3, 4]
PACKED = TensorDesc(FLOAT32, SIZES)
OWNED = TensorDesc(FLOAT32, SIZES, flags=TensorFlags.OWNED_BY_DML)
VALUES = np.linspace(-3, 3, 24, dtype=np.float32).reshape(SIZES)
SCALE = np.linspace(0.5, 2, 24, dtype=np.float32).reshape(SIZES)
BIAS = np.linspace(1, -1, 24, dtype=np.float32).reshape(SIZES)


def compiled(
    device: Device, desc: OperatorDesc, flags: ExecutionFlags = ExecutionFlags.NONE
) -> CompiledOperator:
    return device.compile_operator(device.create_operator(desc), flags)


def celu(device: Device, flags: ExecutionFlags = ExecutionFlags.NONE) -> CompiledOperator:
    return compiled(device, descs.ActivationCelu(PACKED, PACKED, alpha=0.5), flags)


def normalization(
    device: Device, flags: ExecutionFlags = ExecutionFlags.NONE, tensor: TensorDesc = OWNED
) -> CompiledOperator:
    """Normalization over the last axis; scale and bias are handed over at initialization."""
    desc = descs.MeanVarianceNormalization1(PACKED, tensor, tensor, PACKED, axes=[2])
    return compiled(device, desc, flags)


def normalized() -> Array:
    """What `normalization` makes of VALUES, SCALE and BIAS, in float64."""
    x = VALUES.astype(np.float64)
    centered = x - x.mean(2, keepdims=True)
    return np.asarray(SCALE * centered / np.sqrt(x.var(2, keepdims=True) + 1e-5) + BIAS)


def elu(x: Array, alpha: float = 0.5) -> Array:
    """CELU in float64."""
    return np.asarray(np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x.astype(np.float64) / alpha)))


def initialized(device: Device, operator: CompiledOperator, inputs: list[Any] | None = None) -> Any:
    """Initializes the operator; its persistent resource, or None."""
    size = operator.binding_properties.persistent_resource_size
    persistent = device.create_buffer(size) if size else None
    initializer = device.create_operator_initializer([operator])
    table = device.create_binding_table(initializer)
    table.bind_inputs([BufferArrayBinding(inputs) if inputs else None])
    table.bind_outputs([persistent])
    recorder = device.create_command_recorder()
    recorder.record_dispatch(initializer, table)
    device.execute(recorder)
    return persistent


def zeros(device: Device) -> Any:
    """Room for one of the tensors, on the device."""
    return device.upload(np.zeros(SIZES, np.float32))
