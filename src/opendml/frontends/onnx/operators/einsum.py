"""Einsum: operands are multiplied two by two, each time by one matrix product."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import permuted, shaped
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.operators.matrix import product
from opendml.frontends.onnx.registry import converts
from opendml.late_dataclass import dataclass
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.tensor_desc import packed_strides

Labels = tuple[str, ...]


@dataclass(frozen=True)
class LabelledTensor:
    """A tensor and the labels of its dimensions, each once."""

    tensor: GraphTensor
    labels: Labels

    def ordered(self, *groups: Sequence[str]) -> GraphTensor:
        """Return the tensor with one dimension for each group of labels."""
        order = [self.labels.index(label) for group in groups for label in group]
        moved = permuted(self.tensor, order) if order else self.tensor
        return shaped(moved, [math.prod(self.sizes[label] for label in group) for group in groups])

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by labels."""
        return dict(zip(self.labels, self.tensor.sizes, strict=False))


@converts("Einsum", since=12, to="GEMM ELEMENT_WISE_MULTIPLY REDUCE")
def einsum(node: OnnxConversion) -> Result:
    """Convert Einsum: the sum, over all labels that the output lacks, of products of elements."""
    ranks = [len(node.sizes(number)) for number in range(node.input_count)]
    terms, output = parsed(node.required("equation"), ranks)
    operands = _repeated([_operand(node.tensor(number), labels) for number, labels in enumerate(terms)])
    while len(operands) > 1:
        pairs = itertools.combinations(operands, 2)  # First the one of the fewest products.
        left, right = min(pairs, key=lambda pair: math.prod({**pair[0].sizes, **pair[1].sizes}.values()))
        operands = [each for each in operands if each is not left and each is not right]
        others = set(output).union(*(each.labels for each in operands))
        operands.append(_multiplied(left, right, others))
    result = _summed(operands[0], set(output))
    if set(result.labels) != set(output):
        raise NotExpressible(f"equation {node.required('equation')!r}: its output has labels of no operand")
    sizes = [result.sizes[label] for label in output]
    return node.result(result.ordered(*((label,) for label in output)), sizes)


def parsed(equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """Return the labels of the operands and of the output. Dimensions under an ellipsis have labels of their
    own, counted from the last.

    Raises:
        NotExpressible: the equation does not fit the operands.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    written = left.split(",")
    if len(written) != len(ranks) or not re.fullmatch(r"([A-Za-z]|\.\.\.|,)*", left):
        raise NotExpressible(f"equation {equation!r} of {len(ranks)} operands")
    terms = [_labels(term, rank) for term, rank in zip(written, ranks, strict=True)]
    hidden = max(([each for each in labels if each.startswith(".")] for labels in terms), key=len)
    if not arrow:
        letters = [label for label in left if label.isalpha()]
        return terms, (*hidden, *sorted(label for label in letters if letters.count(label) == 1))
    if ("..." in left) != ("..." in right) and hidden:
        raise NotExpressible(f"equation {equation!r} sums over the dimensions of an ellipsis")
    output = _labels(right, len(right.replace("...", "")) + len(hidden))
    if len(set(output)) != len(output):
        raise NotExpressible(f"equation {equation!r} repeats a label in its output")
    return terms, output


def _labels(term: str, rank: int) -> Labels:
    front, dots, back = term.partition("...")
    hidden = rank - len(front) - len(back)
    if hidden < 0 or (hidden and not dots):
        raise NotExpressible(f"{term!r} of an operand of {rank} dimensions")
    return (*front, *(f".{number}" for number in range(hidden, 0, -1)), *back)


def _operand(tensor: GraphTensor, labels: Labels) -> LabelledTensor:
    """Return a tensor with each label once: repeated ones are a diagonal."""
    if len(set(labels)) == len(labels):
        return LabelledTensor(tensor, labels)
    sizes: dict[str, int] = {}
    strides = dict.fromkeys(labels, 0)
    for label, size, stride in zip(labels, tensor.sizes, packed_strides(tensor.sizes), strict=True):
        if sizes.setdefault(label, size) != size:
            raise NotExpressible(f"label {label!r} stands for sizes {sizes[label]} and {size}")
        strides[label] += stride
    kept = tuple(sizes)
    return LabelledTensor(
        tensor.reinterpret(list(sizes.values()), strides=[strides[label] for label in kept]), kept
    )


def _repeated(operands: Sequence[LabelledTensor]) -> list[LabelledTensor]:
    """Return the operands without dimensions of size 1 that others repeat."""
    sizes: dict[str, int] = {}
    for operand in operands:
        for label, size in operand.sizes.items():
            sizes[label] = max(size, sizes.get(label, 1))
    for operand in operands:
        for label, size in operand.sizes.items():
            if size not in (1, sizes[label]):
                raise NotExpressible(f"label {label!r} stands for sizes {size} and {sizes[label]}")
    return [
        _without(each, {label for label, size in each.sizes.items() if size != sizes[label]})
        for each in operands
    ]


def _without(operand: LabelledTensor, dropped: set[str]) -> LabelledTensor:
    """Return the operand without some dimensions of size 1."""
    labels = tuple(label for label in operand.labels if label not in dropped)
    return LabelledTensor(shaped(operand.tensor, [operand.sizes[label] for label in labels]), labels)


def _summed(operand: LabelledTensor, kept: set[str]) -> LabelledTensor:
    """Sum an operand over the labels that are not kept."""
    axes = [axis for axis, label in enumerate(operand.labels) if label not in kept]
    if not axes:
        return operand
    reduced = dml.reduce(operand.tensor, function="SUM", axes=axes)
    return _without(LabelledTensor(reduced, operand.labels), set(operand.labels) - kept)


def _multiplied(left: LabelledTensor, right: LabelledTensor, kept: set[str]) -> LabelledTensor:
    """Multiply two operands, and sum over the labels that are not kept."""
    left, right = _summed(left, {*kept, *right.labels}), _summed(right, {*kept, *left.labels})
    shared = [label for label in left.labels if label in right.labels]
    batch = [label for label in shared if label in kept]
    inner = [label for label in shared if label not in kept]
    rows = [label for label in left.labels if label not in shared]
    columns = [label for label in right.labels if label not in shared]
    a, b = left.ordered(batch, rows, inner), right.ordered(batch, inner, columns)
    result = product(a, b) if inner else a * b
    sizes = {**left.sizes, **right.sizes}
    labels = (*batch, *rows, *columns)
    return LabelledTensor(shaped(result, [sizes[label] for label in labels]), labels)
