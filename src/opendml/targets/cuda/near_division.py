"""Quotients and square roots within mathematical functions that need not be IEEE's: of tame numbers, and of
narrow functions.

`kernels/quotients.cuh` has what is printed for them: for tame numbers a reciprocal (of the root) and one
correction, within 1 ULP, or the reciprocal alone.
"""

from __future__ import annotations

from opendml.program.node import Node, Operation, Precision, ordered
from opendml.program.scalar_type import ScalarType

TAME = {
    Operation.HYPERBOLIC_TANGENT: Precision.NEAR,
    Operation.GAUSSIAN_ERROR_LINEAR_UNIT: Precision.ROUGH,
    Operation.POWER: Precision.ROUGH,
    Operation.INVERSE_HYPERBOLIC_SINE: Precision.NEAR,
    Operation.INVERSE_HYPERBOLIC_COSINE: Precision.NEAR,
    Operation.INVERSE_HYPERBOLIC_TANGENT: Precision.NEAR,
}
"""Functions that divide by numbers from 2^-100 to 2^100 alone, and take roots of these, zero and less, or do
not use what comes of others; and how exact that must be: what takes rough ones makes up for what these are
off. Where they are narrow, all may be rough."""
_CHANGED = (Operation.DIVIDE, Operation.SQUARE_ROOT)


def with_quotients(function: Node, expansion: Node, precision: Precision) -> Node:
    """Return the expansion of a function with a precision for its own quotients and square roots."""
    changed = {id(operand): operand for operand in function.operands}
    for node in ordered([expansion], frozenset(changed)):
        operands = tuple(changed[id(operand)] for operand in node.operands)
        is_changed = node.operation in _CHANGED and node.type is ScalarType.FLOAT32
        own = precision if is_changed else node.attribute
        changed[id(node)] = Node(node.operation, node.type, node.sizes, operands, own)
    return changed[id(expansion)]
