"""Memory that callers bind: where it is, how much of it, and which of it may overlap."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.program import Layout
from opendml.runtime.places import cuda_device_of
from opendml.spec.four_bit import NUMPY_NAMES


@dataclass(frozen=True, slots=True)
class Range:
    """Some bytes, and the object that keeps them alive. `device` is the number of the CUDA device that they
    are on, None for host memory.
    """

    address: int
    size: int
    owner: Any
    device: int | None = None

    def overlaps(self, other: Range) -> bool:
        """Whether the two share a byte."""
        return (
            self.device == other.device
            and self.address < other.address + other.size
            and other.address < self.address + self.size
        )


def buffer_range(buffer: Any, layout: Layout, writable: bool, name: str) -> Range:
    """The memory of `buffer`, checked against the tensor that is bound to it.

    Args:
        buffer: a contiguous NumPy array, any object with the buffer protocol, or an array on a CUDA device;
        its type and shape do not matter.
        layout: the tensor.
        writable: the tensor is an output.
        name: what messages call the binding.

    Raises:
        InvalidArgument: no buffer, not contiguous, read-only for an output, too small, or not aligned to the
        elements.
    """
    given = whole_buffer(buffer, writable, name)
    # DirectML rounds sizes up to 4 bytes; only what the elements occupy is ever touched, so that is enough
    # here.
    size = layout.span[1]
    if given.size < size:
        raise InvalidArgument(f"{name}: {given.size} bytes; the tensor needs {size}")
    if given.address % layout.type.bytes:
        raise InvalidArgument(
            f"{name}: address {given.address:#x}; {layout.type.name} needs a multiple of {layout.type.bytes}"
        )
    return Range(given.address, size, given.owner, given.device)


def whole_buffer(buffer: Any, writable: bool, name: str) -> Range:
    """All bytes of a buffer.

    Raises:
        InvalidArgument: no buffer, not contiguous, or read-only for an output.
    """
    on_device = not isinstance(buffer, np.ndarray) and cuda_device_of(buffer) is not None
    given, contiguous, read_only = _device_bytes(buffer, name) if on_device else _host_bytes(buffer, name)
    if not contiguous:
        raise InvalidArgument(f"{name}: an array that is not contiguous; strides belong into the TensorDesc")
    if writable and read_only:
        raise InvalidArgument(f"{name}: a read-only buffer; an output must be writable")
    return given


def copy_bytes(source: Range, target: Range) -> None:
    """Copies the bytes of one range to the start of another, and waits. Either may be on a CUDA device."""
    index = target.device if source.device is None else source.device
    if index is None:
        ctypes.memmove(target.address, source.address, source.size)
        return
    from opendml.targets.cuda.driver import device

    device(index).copy(target.address, source.address, source.size)


def _host_bytes(buffer: Any, name: str) -> tuple[Range, bool, bool]:
    """All bytes of a buffer in host memory; whether they are contiguous, and read-only."""
    if not isinstance(buffer, np.ndarray) and hasattr(buffer, "__dlpack__"):
        from opendml.runtime.foreign import as_numpy

        buffer = as_numpy(buffer, name)
    try:
        memory = np.asarray(buffer) if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise InvalidArgument(
            f"{name}: {type(buffer).__name__}; a contiguous buffer is needed ({error})"
        ) from error
    if memory.dtype.name in NUMPY_NAMES:
        raise InvalidArgument(
            f"{name}: an array of {memory.dtype}, each in a byte; opendml.to_buffer makes a buffer of it"
        )
    contiguous = memory.flags.c_contiguous or memory.flags.f_contiguous
    return Range(memory.ctypes.data, memory.nbytes, memory), contiguous, not memory.flags.writeable


def _device_bytes(buffer: Any, name: str) -> tuple[Range, bool, bool]:
    """All bytes of an array on a CUDA device; whether they are contiguous, and read-only."""
    from opendml.targets.cuda.arrays import ready_memory

    memory = ready_memory(buffer, name)
    low, high = memory.layout.span
    contiguous = low == 0 and high == memory.layout.element_count * memory.layout.type.bytes
    return Range(memory.address, high, memory, memory.device), contiguous, not memory.writable


def check_overlap(
    owner: str,
    inputs: Sequence[tuple[str, Range, Layout] | None],
    outputs: Sequence[tuple[str, Range, Layout]],
    in_place: frozenset[str],
    shares: Callable[[Range, Range], bool] = Range.overlaps,
) -> None:
    """Rejects bindings of `owner` that overlap where DirectML does not allow it.

    An output may lie exactly on an input named in `in_place` that has the same layout; no other output may
    share memory with an
    input or with another output, as `shares` tells.

    Raises:
        InvalidArgument: two bindings overlap.
    """
    for index, (name, output, layout) in enumerate(outputs):
        for other_name, other, _ in outputs[:index]:
            if shares(output, other):
                raise InvalidArgument(f"{owner}.{name}: overlaps {other_name}; outputs must not share memory")
        for item in inputs:
            if item is None or not shares(output, item[1]):
                continue
            input_name, input, input_layout = item
            if input_name not in in_place:
                allowed = (
                    f"only {', '.join(sorted(in_place))} may be"
                    if in_place
                    else "this operator does not run in place"
                )
                raise InvalidArgument(f"{owner}.{name}: shares memory with {input_name}; {allowed}")
            if output.address != input.address or layout != input_layout:
                raise InvalidArgument(
                    f"{owner}.{name}: overlaps {input_name} in part; "
                    "in place means the same memory, laid out alike"
                )
