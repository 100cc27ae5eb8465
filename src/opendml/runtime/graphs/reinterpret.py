"""Reinterpret the bytes of a tensor by moving its elements."""

from __future__ import annotations

import math

from opendml.program.node import Node, bitcast
from opendml.program.program import Layout
from opendml.program.view import permuted, reshaped, view


def reinterpreted(value: Node, written: Layout, read: Layout) -> Node | None:
    """Return the tensor with the layout `read` in the bytes of a value with the layout `written`.

    Return None if no movement of elements gives it: for a number, elements of other widths, and gaps.
    """
    order = _dense_order(written)
    if not value.sizes or value.type.bits != read.type.bits or order is None:
        return None
    value = bitcast(value, read.type)
    if (own := _dense_order(read)) is not None and read.element_count == written.element_count:
        lying = reshaped(permuted(value, order), [read.sizes[dimension] for dimension in own])
        return permuted(lying, sorted(range(len(own)), key=own.__getitem__))
    if read.span[1] > written.element_count * written.type.bytes:
        return None
    flat = reshaped(permuted(value, order), [written.element_count])
    steps = [stride // read.type.bytes for stride in read.strides]
    return view(flat, read.sizes, [0], [steps])


def _dense_order(layout: Layout) -> list[int] | None:
    """Return the dimensions by falling strides, or None if elements have gaps or overlap."""
    strides = [
        stride if size > 1 else math.inf for size, stride in zip(layout.sizes, layout.strides, strict=True)
    ]
    order = sorted(range(len(strides)), key=lambda dimension: -strides[dimension])
    step = layout.type.bytes
    for dimension in reversed(order):
        if layout.sizes[dimension] > 1:
            if layout.strides[dimension] != step:
                return None
            step *= layout.sizes[dimension]
    return order
