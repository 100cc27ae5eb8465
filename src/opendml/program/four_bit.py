"""Elements of 4 bits as nodes: two share a byte of a buffer, the first in its low half; in arrays each has a
byte of its own."""

from __future__ import annotations

from opendml.errors import Unsupported
from opendml.program.node import (
    Node,
    Operation,
    View,
    apply,
    constant,
    convert,
    index,
)
from opendml.program.program import Layout
from opendml.program.scalar_type import ScalarType
from opendml.program.view import padded, permuted, reshaped, sliced
from opendml.spec.tensor_desc import packed_strides

_HALF = 4
"""The bits of an element."""


def unpacked(data: Node, layout: Layout) -> Node:
    """Return the elements of 4 bits in the bytes `data`, whose element at index i is the one with the number
    i . layout.strides."""
    wide = data.sizes[0] > 2**30
    number = index(ScalarType.INT64 if wide else ScalarType.INT32, layout.sizes, 0, layout.strides)
    place = convert(apply(Operation.SHIFT_RIGHT, number, 1), ScalarType.INT64)
    whole = View((0,), ((0,) * len(layout.sizes),), (0,))
    always = constant(1, ScalarType.BOOLEAN)
    pair = Node(Operation.VIEW, data.type, layout.sizes, (data, always, place), whole)
    is_high = apply(Operation.AND, convert(number, data.type), 1)
    return convert(apply(Operation.SHIFT_RIGHT, pair, is_high * _HALF), layout.type)


def in_halves(value: Node, layout: Layout) -> Node:
    """Return the bytes that hold elements of 4 bits, which lie as `layout` says; of an odd number the last
    half is zero.

    Raises:
        Unsupported: there are gaps between them: their neighbours in a byte would be written too.
    """
    moving = [stride if size > 1 else 0 for size, stride in zip(layout.sizes, layout.strides, strict=True)]
    order = sorted(range(len(moving)), key=lambda dimension: -moving[dimension])
    sizes = [layout.sizes[dimension] for dimension in order]
    wanted = [step if size > 1 else 0 for size, step in zip(sizes, packed_strides(sizes), strict=True)]
    if [moving[dimension] for dimension in order] != wanted:
        raise Unsupported(
            f"{layout.type.name}: an output with strides {list(layout.strides)}; "
            "elements of 4 bits that are written must follow each other without gaps"
        )
    count = layout.element_count
    low = high = convert(value, ScalarType.UINT8)
    if value.sizes:
        flat = padded(reshaped(permuted(low, order), [count]), [0], [count % 2])
        low, high = (sliced(flat, [first], [(count + 1) // 2], [2]) for first in (0, 1))
    return apply(Operation.OR, apply(Operation.AND, low, 15), apply(Operation.SHIFT_LEFT, high, _HALF))
