"""Random nodes that place and choose elements, and those that make tensors of numbers."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from tests.fuzz.onnx_draft import ANY, BOOLEAN, FLOATS, NUMBERS, Draft, Made


def gather(draft: Draft) -> Made:
    """Elements by their places."""
    x = draft.pick(ANY, 1)
    axis = draft.axis(len(x.sizes))
    size = x.sizes[axis] or 1
    type = draft.choices.of((np.int64, np.int32))
    if draft.choices.below(2):
        sizes = [draft.size() for _ in range(draft.choices.below(3))]
        return Made(
            "Gather", [x.name, draft.new(sizes, type, -size, size - 1).name], {"axis": axis}, x.is_exact
        )
    sizes = [max(1, each - draft.choices.below(2)) for each in x.sizes]
    return Made(
        "GatherElements", [x.name, draft.new(sizes, type, -size, size - 1).name], {"axis": axis}, x.is_exact
    )


def gather_nd(draft: Draft) -> Made:
    """Slices by their places."""
    x = draft.pick(ANY, 1)
    batch = draft.choices.below(len(x.sizes)) if draft.choices.rarely(3) else 0
    count = draft.choices.between(1, len(x.sizes) - batch)
    least = min(x.sizes[batch : batch + count]) or 1
    indices = draft.new([*x.sizes[:batch], draft.size(), count], np.int64, -least, least - 1)
    return Made("GatherND", [x.name, indices.name], {"batch_dims": batch}, x.is_exact)


def scatter(draft: Draft) -> Made:
    """Elements that take others' places."""
    x = draft.pick(FLOATS, 1)
    if draft.choices.below(2):
        axis, size = draft.axis(len(x.sizes)), x.sizes
        count = size[axis]
        places = np.random.default_rng(draft.choices.below(99)).permuted(
            np.broadcast_to(
                np.moveaxis(np.arange(count)[:, None], 0, 0).reshape(
                    [count if a == axis % len(size) else 1 for a in range(len(size))]
                ),
                size,
            ),
            axis=axis,
        )
        indices = draft.given(places - count * draft.choices.below(2)).name
        updates = draft.new(size, x.type)
        reduction = draft.choices.of(("none", "add", "mul", "max", "min")) if draft.opset >= 18 else "none"
        attributes = {"axis": axis, "reduction": reduction}
        if draft.opset < 16:
            attributes.pop("reduction")
        return Made("ScatterElements", [x.name, indices, updates.name], attributes)
    count = draft.choices.between(1, len(x.sizes))
    places = np.stack(np.meshgrid(*map(np.arange, x.sizes[:count]), indexing="ij"), -1).reshape(-1, count)
    chosen = np.random.default_rng(draft.choices.below(99)).permutation(places)[: draft.choices.between(1, 4)]
    updates = draft.new([len(chosen), *x.sizes[count:]], x.type)
    return Made("ScatterND", [x.name, draft.stored_list(chosen), updates.name], {}, x.is_exact)


def made_of_numbers(draft: Draft) -> Made:
    """Tensors that numbers make."""
    operator = draft.choices.of(("Range", "ConstantOfShape", "Shape", "Size", "EyeLike"))
    if operator == "Range":
        type = draft.choices.of((np.float32, np.int64, np.int32))
        ends = ((-3, 3), (4, 9), (1, 3))
        return Made(operator, [draft.new([], type, *each).name for each in ends], {}, type is not np.float32)
    if operator == "ConstantOfShape":
        value = np.ones(1, draft.choices.of(ANY))
        attributes = {"value": numpy_helper.from_array(value)} if draft.choices.below(2) else {}
        sizes = [draft.size() for _ in range(draft.choices.below(4))]
        return Made(operator, [draft.stored_list(sizes)], attributes, True)
    if operator == "EyeLike":
        return Made(operator, [draft.pick(FLOATS, 2, 2).name], {"k": draft.choices.between(-2, 2)}, True)
    x = draft.pick(ANY)
    attributes = {}
    if operator == "Shape" and draft.opset >= 15 and draft.choices.below(2):
        attributes = {"start": draft.choices.between(-3, 3), "end": draft.choices.between(-3, 5)}
    return Made(operator, [x.name], attributes, True)


def choosing(draft: Draft) -> Made:
    """Sizes that depend on contents."""
    operator = draft.choices.of(("NonZero", "Compress", "Unique", "OneHot"))
    if operator == "NonZero":
        return Made(operator, [draft.pick(ANY, 1, exact=True).name], {}, True)
    if operator == "OneHot":
        indices = draft.new([draft.size()], np.int64, -3, 3)
        values = draft.new([2], draft.choices.of((np.float32, np.int64)))
        return Made(
            operator, [indices.name, draft.stored_list(4), values.name], {"axis": draft.axis(2)}, True
        )
    x = draft.pick(NUMBERS, 1, exact=True)
    axis = draft.axis(len(x.sizes))
    if operator == "Compress":
        return Made(operator, [x.name, draft.new([x.sizes[axis]], BOOLEAN).name], {"axis": axis}, True)
    return Made(operator, [x.name], {"sorted": draft.choices.below(2)}, True, draft.choices.between(1, 4))


def searching(draft: Draft) -> Made:
    """Greatest elements and where they are."""
    operator = draft.choices.of(("ArgMax", "ArgMin", "TopK"))
    x = draft.pick(FLOATS, 1, exact=True)
    axis = draft.axis(len(x.sizes))
    if operator == "TopK":
        count = draft.choices.between(1, max(1, min(x.sizes[axis], 3)))
        largest = draft.choices.below(2)
        return Made(
            operator, [x.name, draft.stored_list([count])], {"axis": axis, "largest": largest}, True, 2
        )
    attributes = {
        "axis": axis,
        "keepdims": draft.choices.below(2),
        "select_last_index": draft.choices.below(2),
    }
    return Made(operator, [x.name], attributes, True)
