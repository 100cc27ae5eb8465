"""Memory that callers bind: where it is, how much of it, and which of it may overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.program import Layout


@dataclass(frozen=True, slots=True)
class Range:
    """Some bytes of host memory, and the object that keeps them alive."""

    address: int
    size: int
    owner: Any

    def overlaps(self, other: Range) -> bool:
        """Whether the two share a byte."""
        return self.address < other.address + other.size and other.address < self.address + self.size


def buffer_range(buffer: Any, layout: Layout, writable: bool, name: str) -> Range:
    """The memory of `buffer`, checked against the tensor that is bound to it.

    Args:
        buffer: a contiguous NumPy array or any object with the buffer protocol; its type and shape do not
        matter.
        layout: the tensor.
        writable: the tensor is an output.
        name: what messages call the binding.

    Raises:
        InvalidArgument: no buffer, not contiguous, read-only for an output, too small, or not aligned to the
        elements.
    """
    try:
        memory = np.asarray(buffer) if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise InvalidArgument(
            f"{name}: {type(buffer).__name__}; a contiguous buffer is needed ({error})"
        ) from error
    if not (memory.flags.c_contiguous or memory.flags.f_contiguous):
        raise InvalidArgument(f"{name}: an array that is not contiguous; strides belong into the TensorDesc")
    if writable and not memory.flags.writeable:
        raise InvalidArgument(f"{name}: a read-only buffer; an output must be writable")
    # DirectML rounds sizes up to 4 bytes; only what the elements occupy is ever touched, so that is enough
    # here.
    size = layout.span[1]
    if memory.nbytes < size:
        raise InvalidArgument(f"{name}: {memory.nbytes} bytes; the tensor needs {size}")
    address = memory.ctypes.data
    if address % layout.type.bytes:
        raise InvalidArgument(
            f"{name}: address {address:#x}; {layout.type.name} needs a multiple of {layout.type.bytes}"
        )
    return Range(address, size, memory)


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
