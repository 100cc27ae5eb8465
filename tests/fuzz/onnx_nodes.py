"""Random nodes of ONNX, on tensors that a graph has so far: what `onnx_graphs` and `onnx_models` are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.fuzz.choices import Choices

Array = np.ndarray[Any, Any]

FLOATS = tuple(map(np.dtype, (np.float32, np.float16, np.float64)))
INTEGERS = tuple(map(np.dtype, (np.int64, np.int32, np.uint8, np.int8, np.uint32, np.int16, np.uint16)))
INTEGERS += (np.dtype(np.uint64),)
BOOLEAN = np.dtype(np.bool_)
ANY = (*FLOATS, *INTEGERS, BOOLEAN)
NUMBERS = (*FLOATS, *INTEGERS)


@dataclass(frozen=True)
class Tensor:
    """A tensor of the graph.

    Attributes:
        content: what the graph makes of it, or is given.
        is_exact: every evaluator computes the same bits, so where a function jumps does not matter.
    """

    name: str
    content: Array
    is_exact: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.content.shape

    @property
    def type(self) -> np.dtype[Any]:
        return self.content.dtype


@dataclass
class Draft:
    """A graph that is being made.

    Attributes:
        nodes: in their order.
        tensors: all that nodes may read.
        inputs: those that a run is given.
        stored: the initializers.
        ends: outputs that no node reads, as nobody says ahead what they are.
        names: how many there are.
    """

    choices: Choices
    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    stored: list[Tensor] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    names: int = 0

    def name(self) -> str:
        """A new name of a tensor."""
        self.names += 1
        return f"t{self.names}"

    def computed(self, operator: str, inputs: Sequence[str], content: Array, **attributes: Any) -> str:
        """The name of what a node makes of tensors, exactly so."""
        tensor = Tensor(self.name(), content, True)
        self.nodes.append(helper.make_node(operator, inputs, [tensor.name], **attributes))
        self.tensors.append(tensor)
        return tensor.name

    def given(self, content: Array) -> Tensor:
        """A tensor that is an input, an initializer, both of them, or a node's attribute."""
        tensor = Tensor(self.name(), content, True)
        kind = self.choices.of(("input", "input", "stored", "stored", "constant", "both"))
        if kind == "constant":
            value = numpy_helper.from_array(content, tensor.name)
            self.nodes.append(helper.make_node("Constant", [], [tensor.name], value=value))
        if kind in ("input", "both"):
            self.inputs.append(tensor)
        if kind in ("stored", "both"):
            self.stored.append(tensor)
        self.tensors.append(tensor)
        return tensor

    def stored_list(self, values: Sequence[float] | Array, type: Any = np.int64) -> str:
        """The name of a tensor that says sizes, axes or the like."""
        return self.given(np.asarray(values, type)).name

    def pick(
        self, types: Sequence[np.dtype[Any]] = FLOATS, least: int = 0, most: int = 5, exact: bool = False
    ) -> Tensor:
        """A tensor of one of the types and of so many dimensions: mostly one that is there."""
        fitting = [
            each
            for each in self.tensors
            if each.type in types and least <= len(each.sizes) <= most and (each.is_exact or not exact)
        ]
        if fitting and not self.choices.rarely(4):
            return fitting[-1 - self.choices.below(min(len(fitting), 6))]
        type = self.choices.of(types) if self.choices.rarely(3) else types[0]
        return self.new([self.size() for _ in range(self.choices.between(max(least, 1), max(most, 1)))], type)

    def new(self, sizes: Sequence[int], type: Any = np.float32, least: int = -8, most: int = 8) -> Tensor:
        """A tensor of small numbers; of floats quarters, and rarely what is no number."""
        random = np.random.default_rng(self.choices.below(1 << 16))
        type = np.dtype(type)
        if type == BOOLEAN:
            return self.given(random.integers(0, 2, sizes).astype(bool))
        if type.kind == "u":
            least = max(least, 0)
        content = np.asarray(random.integers(least, most, sizes, endpoint=True))
        if type.kind != "f":
            return self.given(content.astype(type))
        content = np.asarray(content / 4, type)
        if content.size and self.choices.rarely(24):
            content.flat[random.integers(content.size)] = self.choices.of((np.inf, -np.inf, np.nan, -0.0))
        return self.given(content)

    def size(self) -> int:
        """Of a dimension."""
        return self.choices.of((2, 3, 1, 4, 5, 7, 1, 17) if not self.choices.rarely(60) else (0,))

    def axis(self, rank: int) -> int:
        """An axis, counted from either end."""
        return self.choices.between(-rank, rank - 1) if rank else 0

    def like(self, sizes: Sequence[int], type: Any) -> Tensor:
        """A tensor that is broadcast to these sizes: one that is there, or one of them with some of 1."""
        fitting = [
            each for each in self.tensors if each.type == type and _is_broadcast(each.sizes, tuple(sizes))
        ]
        if fitting and self.choices.below(2):
            return self.choices.of(fitting[::-1])
        some = [1 if self.choices.rarely(4) else size for size in sizes]
        return self.new(some[self.choices.below(len(some) + 1) :], type)


def _is_broadcast(sizes: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(sizes, to) == to
    except ValueError:
        return False


@dataclass(frozen=True)
class Made:
    """A node to be: its operator, the names of its inputs, and whether all evaluators agree on each bit of it."""

    operator: str
    inputs: Sequence[str]
    attributes: dict[str, Any]
    is_exact: bool = False
    outputs: int = 1


Maker = Callable[[Draft], Made]

_SMOOTH = ("Tanh", "Sigmoid", "Exp", "Erf", "Softplus", "Softsign", "Sin", "Cos", "Atan", "Sqrt", "Log")
_SMOOTH += ("Reciprocal", "Tan", "Asin", "Acos", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Elu", "Selu")
_SMOOTH += ("Celu", "Gelu", "Mish", "HardSwish", "HardSigmoid", "Swish")
_STEPS = ("Floor", "Ceil", "Round", "Sign", "IsNaN", "IsInf", "ThresholdedRelu", "Shrink")
_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")


def smooth(draft: Draft) -> Made:
    """A function of each element."""
    operator, x = draft.choices.of(_SMOOTH), draft.pick()
    attributes: dict[str, Any] = {}
    if operator in ("Elu", "Celu") and draft.choices.below(2):
        attributes = {"alpha": draft.choices.of((0.5, 2.0))}
    if operator == "HardSigmoid" and draft.choices.below(2):
        attributes = {"alpha": 0.3, "beta": 0.4}
    if operator == "Gelu" and draft.choices.below(2):
        attributes = {"approximate": "tanh"}
    return Made(operator, [x.name], attributes)


def step(draft: Draft) -> Made:
    """A function of each element that jumps."""
    return Made(draft.choices.of(_STEPS), [draft.pick(exact=True).name], {}, True)


def sign(draft: Draft) -> Made:
    """A function of each element that is exact."""
    operator = draft.choices.of(("Relu", "Neg", "Abs", "Identity", "LeakyRelu"))
    x = draft.pick(FLOATS if operator in ("Relu", "LeakyRelu") else NUMBERS)
    return Made(operator, [x.name], {}, x.is_exact and operator != "LeakyRelu")


def binary(draft: Draft) -> Made:
    """An operation on two tensors that are broadcast."""
    operator = draft.choices.of(("Add", "Mul", "Sub", "Div", "Max", "Min", "Pow", "Mod", "PRelu"))
    x = draft.pick(FLOATS if operator == "PRelu" else NUMBERS, exact=operator == "Mod")
    y = draft.new(x.sizes, x.type, 1) if operator in ("Div", "Mod") else draft.like(x.sizes, x.type)
    if operator == "Mod":
        x = x if x.is_exact else draft.new(x.sizes, x.type)
        fmod = int(x.type.kind == "f" or draft.choices.below(2))
        return Made(operator, [x.name, y.name], {"fmod": fmod}, True)
    if operator == "Pow":
        y = draft.new(x.sizes[-1:], x.type, 0, 3 if x.type.kind != "f" else 8)
    inputs = [x.name, y.name]
    if operator in ("Add", "Mul", "Sub", "Max", "Min") and draft.choices.rarely(3):
        inputs.reverse()
    return Made(operator, inputs, {}, x.type.kind != "f" and x.is_exact and y.is_exact)


def variadic(draft: Draft) -> Made:
    """An operation on any number of tensors."""
    operator, x = draft.choices.of(("Sum", "Mean", "Max", "Min")), draft.pick()
    others = [draft.like(x.sizes, x.type).name for _ in range(draft.choices.below(3))]
    return Made(operator, draft.choices.shuffled([x.name, *others]), {})


def comparison(draft: Draft) -> Made:
    """Truth values of two tensors."""
    operator = draft.choices.of(("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"))
    x = draft.pick(NUMBERS, exact=True)
    y = draft.like(x.sizes, x.type)
    return Made(operator, [x.name, (y if y.is_exact else x).name], {}, True)


def logical(draft: Draft) -> Made:
    """An operation on truth values."""
    operator, x = draft.choices.of(("And", "Or", "Xor", "Not")), draft.pick((BOOLEAN,))
    return Made(operator, [x.name, *([] if operator == "Not" else [draft.like(x.sizes, BOOLEAN).name])], {}, True)


def bitwise(draft: Draft) -> Made:
    """An operation on bits."""
    operator = draft.choices.of(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"))
    if operator == "BitShift":
        x = draft.new([draft.size()], draft.choices.of((np.uint8, np.uint32, np.uint64, np.uint16)))
        way = draft.choices.of(("LEFT", "RIGHT"))
        return Made(operator, [x.name, draft.new(x.sizes, x.type, 0, 7).name], {"direction": way}, True)
    x = draft.pick(INTEGERS)
    more = [] if operator == "BitwiseNot" else [draft.like(x.sizes, x.type).name]
    return Made(operator, [x.name, *more], {}, True)


def where(draft: Draft) -> Made:
    """A choice between two tensors."""
    x = draft.pick(ANY)
    y, condition = draft.like(x.sizes, x.type), draft.like(x.sizes, BOOLEAN)
    both = draft.choices.shuffled([x, y])
    return Made("Where", [condition.name, *(each.name for each in both)], {}, x.is_exact and y.is_exact)


def clip(draft: Draft) -> Made:
    """A tensor between bounds, either of which may be absent."""
    x = draft.pick(NUMBERS)
    low, high = (draft.new([], x.type, *each).name if draft.choices.below(3) else "" for each in ((-4, 0), (1, 5)))
    return Made("Clip", [x.name, low, high], {}, x.is_exact)


def cast(draft: Draft) -> Made:
    """Another type."""
    to = draft.choices.of(ANY)
    x = draft.pick(ANY, exact=to.kind != "f")
    if x.type.kind == "f" and to.kind == "u":
        to = np.dtype(np.int32)
    if draft.choices.rarely(4):
        return Made("CastLike", [x.name, draft.new([1], to).name], {}, x.is_exact)
    return Made("Cast", [x.name], {"to": helper.np_dtype_to_tensor_dtype(to)}, x.is_exact)


def transpose(draft: Draft) -> Made:
    """Other axes."""
    x = draft.pick(ANY)
    order = draft.choices.shuffled(range(len(x.sizes)))
    return Made("Transpose", [x.name], {"perm": order} if draft.choices.below(4) and order else {}, x.is_exact)


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
        return Made("Squeeze", [x.name, draft.stored_list(ones[: draft.choices.between(1, len(ones))])], {}, x.is_exact)
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
    ends = [(draft.choices.between(-9, 9), draft.choices.between(-9, 9), draft.choices.of((1, 2, -1, -2, 3))) for _ in axes]
    if draft.choices.rarely(3):
        ends = [(0, 2**63 - 1, 1) if step > 0 else (-1, -(2**63), step) for *_, step in ends]
    starts, stops, steps = zip(*ends, strict=True)
    inputs = [x.name, draft.stored_list(starts), draft.stored_list(stops)]
    axes = [axis - len(x.sizes) * draft.choices.below(2) for axis in axes]
    return Made("Slice", [*inputs, draft.stored_list(axes), draft.stored_list(steps)], {}, x.is_exact)


def gather(draft: Draft) -> Made:
    """Elements by their places."""
    x = draft.pick(ANY, 1)
    axis = draft.axis(len(x.sizes))
    size = x.sizes[axis] or 1
    type = draft.choices.of((np.int64, np.int32))
    if draft.choices.below(2):
        sizes = [draft.size() for _ in range(draft.choices.below(3))]
        return Made("Gather", [x.name, draft.new(sizes, type, -size, size - 1).name], {"axis": axis}, x.is_exact)
    sizes = [max(1, each - draft.choices.below(2)) for each in x.sizes]
    return Made("GatherElements", [x.name, draft.new(sizes, type, -size, size - 1).name], {"axis": axis}, x.is_exact)


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
            np.broadcast_to(np.moveaxis(np.arange(count)[:, None], 0, 0).reshape([count if a == axis % len(size) else 1 for a in range(len(size))]), size), axis=axis
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
        return Made(operator, [indices.name, draft.stored_list(4), values.name], {"axis": draft.axis(2)}, True)
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
        return Made(operator, [x.name, draft.stored_list([count])], {"axis": axis, "largest": largest}, True, 2)
    attributes = {"axis": axis, "keepdims": draft.choices.below(2), "select_last_index": draft.choices.below(2)}
    return Made(operator, [x.name], attributes, True)


def running_sum(draft: Draft) -> Made:
    """Sums of all that stands before."""
    x = draft.pick((*FLOATS, np.dtype(np.int32), np.dtype(np.int64)), 1)
    attributes = {"exclusive": draft.choices.below(2), "reverse": draft.choices.below(2)}
    axis = draft.given(np.asarray(draft.axis(len(x.sizes)), np.int64))
    return Made("CumSum", [x.name, axis.name], attributes)


def reduction(draft: Draft) -> Made:
    """Sums and the like over axes."""
    name = draft.choices.of(_REDUCTIONS)
    x = draft.pick(FLOATS if name.startswith("Log") or name == "L2" else (*FLOATS, np.dtype(np.int32), np.dtype(np.int64)))
    axes = [axis - len(x.sizes) * draft.choices.below(2) for axis in draft.choices.some(range(len(x.sizes)))]
    attributes: dict[str, Any] = {"keepdims": draft.choices.below(2)}
    if name == "Sum" or draft.opset >= 18:
        if draft.choices.rarely(3):
            attributes["noop_with_empty_axes"] = draft.choices.below(2)
        return Made(f"Reduce{name}", [x.name, draft.stored_list(axes)] if axes or draft.choices.below(2) else [x.name], attributes)
    return Made(f"Reduce{name}", [x.name], {**attributes, **({"axes": axes} if axes else {})})


def softmax(draft: Draft) -> Made:
    """Weights along an axis."""
    operator = draft.choices.of(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"))
    x = draft.pick(FLOATS, 1, exact=operator == "Hardmax")
    return Made(operator, [x.name], {"axis": draft.axis(len(x.sizes))})


def product(draft: Draft) -> Made:
    """Products of matrices."""
    x = draft.pick((*FLOATS, np.dtype(np.int32)), 1, 4)
    inner, outer = x.sizes[-1], draft.size()
    if draft.choices.rarely(3) and len(x.sizes) == 2 and x.type.kind == "f":
        across = draft.choices.below(2)
        y = draft.new([outer, inner] if across else [inner, outer], x.type)
        inputs = [x.name, y.name]
        if draft.choices.below(2):
            inputs.append(draft.new(draft.choices.of(([outer], [1], [x.sizes[0], 1], [x.sizes[0], outer])), x.type).name)
        return Made("Gemm", inputs, {"transB": across, "alpha": draft.choices.of((1.0, 0.5)), "beta": draft.choices.of((1.0, 2.0))})
    if len(x.sizes) >= 2 and draft.choices.rarely(3):
        y = draft.new([x.sizes[-2]] if draft.choices.below(2) else [outer, x.sizes[-2]], x.type)
        return Made("MatMul", [y.name, x.name], {})
    batch = [1 if draft.choices.rarely(3) else size for size in x.sizes[:-2]]
    y = draft.new([*batch[draft.choices.below(len(batch) + 1) :], inner, *([outer] if draft.choices.below(6) else [])], x.type)
    if len(y.sizes) < 1:
        y = draft.new([inner], x.type)
    return Made("MatMul", [x.name, y.name], {})


def einsum(draft: Draft) -> Made:
    """Sums of products over letters."""
    x = draft.pick((np.dtype(np.float32),), 2, 3)
    a = "abc"[: len(x.sizes)]
    equation, letters = draft.choices.of(
        ((f"{a},{a[-1]}d->{a[:-1]}d", a[-1] + "d"), (f"{a},{a}->{a[0]}", a), (f"{a}->{a[::-1]}", ""), (f"...{a[-1]}->...", ""), (f"{a},{a[0]}->{a[1:]}", a[0]))
    )
    sizes = dict(zip(a, x.sizes, strict=True)) | {"d": 3}
    more = [draft.new([sizes[each] for each in letters]).name] if letters else []
    return Made("Einsum", [x.name, *more], {"equation": equation})


def window(draft: Draft) -> Made:
    """Convolutions and pooling."""
    operator = draft.choices.of(("Conv", "MaxPool", "AveragePool", "ConvTranspose", "LpPool", "GlobalAveragePool", "GlobalMaxPool"))
    x = draft.pick(FLOATS[:1] if draft.choices.below(4) else FLOATS[:2], 3, 4)
    spatial = x.sizes[2:]
    if operator.startswith("Global"):
        return Made(operator, [x.name], {})
    extents = [draft.choices.between(1, min(3, max(size, 1))) for size in spatial]
    attributes: dict[str, Any] = {"strides": [draft.choices.between(1, 2) for _ in spatial]}
    if operator not in ("Conv", "ConvTranspose") or draft.choices.below(2):
        attributes["kernel_shape"] = extents
    if draft.choices.rarely(4) and operator != "ConvTranspose":
        attributes["auto_pad"] = draft.choices.of(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif draft.choices.below(2):
        most = [min(1, extent - 1) for extent in extents]
        attributes["pads"] = [draft.choices.between(0, each) for each in (*most, *most)]
    if operator == "Conv":
        groups = draft.choices.of([each for each in (1, 2, 3, x.sizes[1]) if each and x.sizes[1] % each == 0])
        w = draft.new([groups * draft.choices.between(1, 2), x.sizes[1] // groups, *extents], x.type)
        inputs = [x.name, w.name] + ([draft.new(w.sizes[:1], x.type).name] if draft.choices.below(2) else [])
        return Made(operator, inputs, {**attributes, "group": groups})
    if operator == "ConvTranspose":
        w = draft.new([x.sizes[1], draft.choices.between(1, 2), *extents], x.type)
        return Made(operator, [x.name, w.name], attributes)
    if operator != "LpPool" and "auto_pad" not in attributes:
        attributes["ceil_mode"] = draft.choices.below(2)
    if operator == "AveragePool":
        attributes["count_include_pad"] = draft.choices.below(2)
    return Made(operator, [x.name], attributes)


def normalization(draft: Draft) -> Made:
    """Means and variances."""
    operator = draft.choices.of(("LayerNormalization", "BatchNormalization", "InstanceNormalization", "LRN", "MeanVarianceNormalization", "RMSNormalization", "GroupNormalization"))
    least = {"LayerNormalization": 1, "BatchNormalization": 2, "RMSNormalization": 1}.get(operator, 3)
    x = draft.pick((np.dtype(np.float32),), 4 if operator in ("LRN", "MeanVarianceNormalization") else least, 4)
    channels = x.sizes[1:2]
    if operator in ("LayerNormalization", "RMSNormalization"):
        axis = draft.axis(len(x.sizes))
        weights = [draft.new(x.sizes[axis:]).name for _ in range(draft.choices.between(1, 2))]
        return Made(operator, [x.name, *weights[: 2 if operator[0] == "L" else 1]], {"axis": axis})
    if operator == "BatchNormalization":
        return Made(operator, [x.name, *(draft.new(channels).name for _ in range(3)), draft.new(channels, np.float32, 1).name], {})
    if operator == "LRN":
        return Made(operator, [x.name], {"size": 3})
    if operator == "MeanVarianceNormalization":
        return Made(operator, [x.name], {"axes": draft.choices.some(range(4)) or [0]})
    if operator == "GroupNormalization":
        return Made(operator, [x.name, *(draft.new(channels).name for _ in range(2))], {"num_groups": draft.choices.of([each for each in (1, 2, 3) if channels[0] % each == 0])})
    return Made(operator, [x.name, *(draft.new(channels).name for _ in range(2))], {})


def resize(draft: Draft) -> Made:
    """Other resolutions."""
    x = draft.pick((np.dtype(np.float32),), 4, 4)
    mode = draft.choices.of(("nearest", "linear", "cubic"))
    coordinates = draft.choices.of(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attributes["nearest_mode"] = draft.choices.of(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"))
    if draft.choices.below(2):
        scales = [1.0, 1.0, draft.choices.of((2.0, 1.5, 0.5)), draft.choices.of((1.0, 2.0, 0.75))]
        return Made("Resize", [x.name, "", draft.stored_list(scales, np.float32)], attributes)
    return Made("Resize", [x.name, "", "", draft.stored_list([*x.sizes[:2], draft.choices.between(1, 7), draft.size()])], attributes)


def quantized(draft: Draft) -> Made:
    """To and from integers of 8 bits."""
    type = draft.choices.of((np.uint8, np.int8))
    operator = draft.choices.of(("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearMatMul"))
    scale = draft.given(np.asarray(draft.choices.of((0.25, 0.5, 2.0)), np.float32)).name
    point = draft.new([], type, 0, 8).name
    if operator == "QuantizeLinear":
        return Made(operator, [draft.pick((np.dtype(np.float32),), exact=True).name, scale, point], {}, True)
    if operator == "DynamicQuantizeLinear":
        return Made(operator, [draft.pick((np.dtype(np.float32),), 1, exact=True).name], {}, False, 3)
    x = draft.pick((np.dtype(type),), 0 if operator == "DequantizeLinear" else 2, 3)
    if operator == "DequantizeLinear":
        return Made(operator, [x.name, scale, point], {}, x.is_exact)
    y = draft.new([x.sizes[-1], draft.size()], type)
    if operator == "MatMulInteger":
        return Made(operator, [x.name, y.name, point, draft.new([], type, 0, 8).name], {}, True)
    return Made(operator, [x.name, scale, point, y.name, scale, point, scale, point], {}, False)


def recurrent(draft: Draft) -> Made:
    """Networks with a state."""
    operator = draft.choices.of(("LSTM", "GRU", "RNN"))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    x = draft.pick((np.dtype(np.float32),), 3, 3)
    if 0 in x.sizes:  # ONNX Runtime ends the process
        x = draft.new([2, 1, 3])
    hidden = draft.choices.between(1, 4)
    way = draft.choices.of(("forward", "reverse", "bidirectional"))
    count = 2 if way == "bidirectional" else 1
    inputs = [x.name, draft.new([count, gates * hidden, x.sizes[2]]).name, draft.new([count, gates * hidden, hidden]).name]
    inputs.append(draft.new([count, 2 * gates * hidden]).name if draft.choices.below(2) else "")
    inputs.append(draft.new([x.sizes[1]], np.int32, 1, max(1, x.sizes[0])).name if draft.choices.rarely(3) else "")
    inputs.append(draft.new([count, x.sizes[1], hidden]).name if draft.choices.rarely(3) else "")
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": way}
    if operator == "GRU":
        attributes["linear_before_reset"] = draft.choices.below(2)
    return Made(operator, inputs, attributes, False, 3 if operator == "LSTM" else 2)


def branch(draft: Draft) -> Made:
    """One of two graphs, which read what is outside."""
    x = draft.pick()
    y = draft.pick((x.type,))
    condition = draft.given(np.asarray(bool(draft.choices.below(2))))
    suffix = draft.name()

    def graph(operator: str, name: str) -> onnx.GraphProto:
        node = helper.make_node(operator, [name], [f"{operator}{suffix}"])
        return helper.make_graph([node], operator, [], [onnx.ValueInfoProto(name=f"{operator}{suffix}")])

    then, other = draft.choices.of((("Tanh", "Neg"), ("Abs", "Sigmoid"), ("Identity", "Abs")))
    return Made("If", [condition.name], {"then_branch": graph(then, x.name), "else_branch": graph(other, y.name)})


def loop(draft: Draft) -> Made:
    """A graph that runs again and again."""
    x, suffix = draft.pick(FLOATS, 1), draft.name()
    operator = draft.choices.of(("Add", "Mul", "Max"))
    y = draft.new(x.sizes[draft.choices.below(len(x.sizes) + 1) :], x.type)
    names = [f"{each}{suffix}" for each in ("i", "c", "s", "c2", "s2", "o")]
    i, c, s, c2, s2, o = names
    kind = helper.np_dtype_to_tensor_dtype(x.type)
    nodes = [
        helper.make_node("Identity", [c], [c2]),
        helper.make_node(operator, [s, y.name], [s2]),
        helper.make_node("Neg", [s], [o]),
    ]
    trips = draft.choices.of((2, 0, 1, 4))
    inputs = [helper.make_tensor_value_info(i, 7, []), helper.make_tensor_value_info(c, 9, []), helper.make_tensor_value_info(s, kind, x.sizes)]
    outputs = [helper.make_tensor_value_info(c2, 9, []), helper.make_tensor_value_info(s2, kind, x.sizes), helper.make_tensor_value_info(o, kind, x.sizes)]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    condition = draft.given(np.asarray(True)).name if draft.choices.below(2) else ""
    return Made("Loop", [draft.stored_list(trips), condition, x.name], {"body": body}, False, 2)


def scan(draft: Draft) -> Made:
    """A graph that runs for each part of a tensor."""
    x, suffix = draft.pick(FLOATS, 1, 4), draft.name()
    axis = draft.axis(len(x.sizes))
    sizes = list(x.sizes)
    del sizes[axis]
    start = draft.new(sizes, x.type)
    kind = helper.np_dtype_to_tensor_dtype(x.type)
    s, e, s2, o = (f"{each}{suffix}" for each in ("s", "e", "s2", "o"))
    nodes = [helper.make_node("Add", [s, e], [s2]), helper.make_node("Mul", [s, s2], [o])]
    info = [helper.make_tensor_value_info(name, kind, None) for name in (s, e, s2, o)]
    body = helper.make_graph(nodes, "body", info[:2], info[2:])
    attributes = {"body": body, "num_scan_inputs": 1, "scan_input_axes": [axis], "scan_input_directions": [draft.choices.below(2)]}
    if draft.choices.below(2):
        attributes |= {"scan_output_axes": [draft.axis(len(x.sizes))], "scan_output_directions": [draft.choices.below(2)]}
    return Made("Scan", [start.name, x.name], attributes, False, 2)


MAKERS: tuple[Maker, ...] = (
    smooth, sign, binary, binary, variadic, comparison, logical, bitwise, where, clip, cast, transpose, reshape,
    reshape_like, flatten, squeeze, unsqueeze, concat, split, slice, slice, gather, gather_nd, scatter, expand, pad, blocks,
    triangle, made_of_numbers, choosing, searching, running_sum, reduction, reduction, softmax, product, product,
    einsum, window, window, normalization, resize, quantized, recurrent, branch, loop, scan, step,
)
