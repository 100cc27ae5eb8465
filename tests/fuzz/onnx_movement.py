"""Random nodes that move elements."""

from __future__ import annotations

import numpy as np

from tests.fuzz.onnx_draft import ANY, BOOLEAN, NUMBERS, Draft, Made


def transpose(draft: Draft) -> Made:
    """Other axes."""
    x = draft.pick(ANY)
    order = draft.choices.shuffled(range(len(x.sizes)))
    return Made(
        "Transpose", [x.name], {"perm": order} if draft.choices.below(4) and order else {}, x.is_exact
    )


def reshape(draft: Draft) -> Made:
    """Other sizes, one of which may be left open or copied."""
    x = draft.pick(ANY)
    count, sizes = x.content.size, list[int]()
    rest = count
    for _ in range(draft.choices.below(4)):
        factors = [each for each in (1, 2, 3, 4, 5, 7) if rest % each == 0]
        sizes.append(draft.choices.of(factors))
        rest //= sizes[-1]
    sizes.insert(draft.choices.below(len(sizes) + 1), rest)
    if rest and draft.choices.below(2):
        sizes[draft.choices.below(len(sizes))] = -1
    if x.sizes and sizes[0] == x.sizes[0] and draft.choices.below(2):
        sizes[0] = 0
    return Made("Reshape", [x.name, draft.stored_list(sizes)], {}, x.is_exact)


def reshape_like(draft: Draft) -> Made:
    """Sizes that other nodes compute, as exporters write them."""
    x = draft.pick(ANY, 1)
    shape = draft.computed("Shape", [x.name], np.asarray(x.sizes, np.int64))
    first = draft.computed("Gather", [shape, draft.stored_list([0])], np.asarray(x.sizes[:1], np.int64))
    sizes = [*x.sizes[:1], -1]
    both = draft.computed("Concat", [first, draft.stored_list([-1])], np.asarray(sizes, np.int64), axis=0)
    return Made("Reshape", [x.name, both], {}, x.is_exact)


def flatten(draft: Draft) -> Made:
    """A matrix."""
    x = draft.pick(ANY, 1)
    return Made("Flatten", [x.name], {"axis": draft.axis(len(x.sizes))}, x.is_exact)


def squeeze(draft: Draft) -> Made:
    """Fewer dimensions."""
    x = draft.pick(ANY)
    ones = [axis - len(x.sizes) * draft.choices.below(2) for axis, size in enumerate(x.sizes) if size == 1]
    if ones and draft.choices.below(2):
        return Made(
            "Squeeze",
            [x.name, draft.stored_list(ones[: draft.choices.between(1, len(ones))])],
            {},
            x.is_exact,
        )
    return Made("Squeeze", [x.name], {}, x.is_exact)


def unsqueeze(draft: Draft) -> Made:
    """More dimensions."""
    x, count = draft.pick(ANY, 0, 4), draft.choices.between(1, 2)
    rank = len(x.sizes) + count
    axes = draft.choices.shuffled(range(rank))[:count]
    axes = [axis - rank * draft.choices.below(2) for axis in axes]
    return Made("Unsqueeze", [x.name, draft.stored_list(axes)], {}, x.is_exact)


def concat(draft: Draft) -> Made:
    """Tensors in a row."""
    x = draft.pick(ANY, 1)
    axis = draft.axis(len(x.sizes))
    parts = [x]
    for _ in range(draft.choices.below(3)):
        sizes = list(x.sizes)
        sizes[axis] = draft.size()
        parts.append(draft.choices.of((x, draft.new(sizes, x.type))))
    return Made("Concat", [each.name for each in draft.choices.shuffled(parts)], {"axis": axis}, x.is_exact)


def split(draft: Draft) -> Made:
    """Parts of a tensor."""
    x = draft.pick(ANY, 1)
    axis = draft.axis(len(x.sizes))
    size = x.sizes[axis]
    if draft.choices.below(2):
        first = draft.choices.below(size + 1)
        parts = [first, size - first]
        return Made("Split", [x.name, draft.stored_list(parts)], {"axis": axis}, x.is_exact, 2)
    count = draft.choices.between(1, min(max(size, 1), 3))
    more = {"num_outputs": count} if draft.opset >= 18 else {}
    return Made("Split", [x.name], {"axis": axis, **more}, x.is_exact, count)


def slice(draft: Draft) -> Made:
    """Parts of axes, forwards or backwards, within or beyond their ends."""
    x = draft.pick(ANY, 1)
    axes = draft.choices.some(range(len(x.sizes))) or [0]
    ends = [
        (draft.choices.between(-9, 9), draft.choices.between(-9, 9), draft.choices.of((1, 2, -1, -2, 3)))
        for _ in axes
    ]
    if draft.choices.rarely(3):
        ends = [(0, 2**63 - 1, 1) if step > 0 else (-1, -(2**63), step) for *_, step in ends]
    starts, stops, steps = zip(*ends, strict=True)
    inputs = [x.name, draft.stored_list(starts), draft.stored_list(stops)]
    axes = [axis - len(x.sizes) * draft.choices.below(2) for axis in axes]
    return Made("Slice", [*inputs, draft.stored_list(axes), draft.stored_list(steps)], {}, x.is_exact)


def expand(draft: Draft) -> Made:
    """Repeated elements."""
    x = draft.pick(ANY)
    if draft.choices.below(2):
        repeats = [draft.choices.between(1, 3) for _ in x.sizes]
        return Made("Tile", [x.name, draft.stored_list(repeats)], {}, x.is_exact)
    sizes = [draft.size() if size == 1 else draft.choices.of((size, 1)) for size in x.sizes]
    sizes = [*[draft.size() for _ in range(draft.choices.below(2))], *sizes]
    return Made("Expand", [x.name, draft.stored_list(sizes)], {}, x.is_exact)


def pad(draft: Draft) -> Made:
    """Elements around others, or fewer."""
    x = draft.pick(NUMBERS, 1)
    modes = ("constant", "edge", "reflect", "wrap")
    mode = draft.choices.of(modes[: 4 if draft.opset >= 19 else 3])
    low = -1 if mode == "constant" and min(x.sizes) > 2 else 0
    high = 2 if mode in ("constant", "edge") else min(2, max(min(x.sizes) - 1, 0))
    axes = draft.choices.some(range(len(x.sizes))) if draft.opset >= 18 and draft.choices.rarely(3) else None
    count = len(x.sizes if axes is None else axes)
    inputs = [x.name, draft.stored_list([draft.choices.between(low, high) for _ in range(2 * count)])]
    inputs.append(draft.new([], x.type).name if mode == "constant" and draft.choices.below(2) else "")
    inputs += [] if axes is None else [draft.stored_list(axes)]
    return Made("Pad", inputs, {"mode": mode}, x.is_exact)


def blocks(draft: Draft) -> Made:
    """Depth and space."""
    size = draft.choices.between(1, 2)
    if draft.choices.below(2):
        x = draft.new([draft.size(), draft.size() * size * size, draft.size(), draft.size()])
        mode = draft.choices.of(("DCR", "CRD"))
        return Made("DepthToSpace", [x.name], {"blocksize": size, "mode": mode}, True)
    x = draft.new([draft.size(), draft.size(), draft.size() * size, draft.size() * size])
    return Made("SpaceToDepth", [x.name], {"blocksize": size}, True)


def triangle(draft: Draft) -> Made:
    """Half a matrix."""
    x = draft.pick((*NUMBERS, BOOLEAN), 2)
    inputs = [x.name] + ([draft.new([], np.int64, -3, 3).name] if draft.choices.below(2) else [])
    return Made("Trilu", inputs, {"upper": draft.choices.below(2)}, x.is_exact)
