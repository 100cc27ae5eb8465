"""Quotients within mathematical functions, whose divisors are tame: no need of IEEE's division there.

`kernels/exact.cuh` has what is printed for them: a reciprocal and one correction, within 1 ULP.
"""

from __future__ import annotations

from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType

NEAR = 1
"""The attribute of such a quotient."""
_TAME = frozenset({Operation.HYPERBOLIC_TANGENT, Operation.GAUSSIAN_ERROR_LINEAR_UNIT})
"""Functions that divide by numbers from 1 to 2^100 alone."""


def with_near_quotients(function: Node, expansion: Node) -> Node:
    """The expansion of a function, its own quotients marked."""
    if function.operation not in _TAME:
        return expansion
    changed = {id(operand): operand for operand in function.operands}
    for node in ordered([expansion], frozenset(changed)):
        operands = tuple(changed[id(operand)] for operand in node.operands)
        is_quotient = node.operation is Operation.DIVIDE and node.type is ScalarType.FLOAT32
        attribute = NEAR if is_quotient else node.attribute
        changed[id(node)] = Node(node.operation, node.type, node.sizes, operands, attribute)
    return changed[id(expansion)]
