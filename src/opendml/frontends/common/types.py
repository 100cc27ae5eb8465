"""The tensors that DirectML has: types of elements, and the number of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.errors import Error
from opendml.spec.element_types import element_type, is_bfloat16_type
from opendml.spec.enums import TENSOR_DIMENSION_COUNT_MAX1, TensorDataType

FLOATS = (TensorDataType.FLOAT32, TensorDataType.FLOAT16)
"""The floating-point types that most of DirectML's operators compute with."""


class NotExpressible(Error):  # noqa: N818 - says a fact about a node, caught where graphs are divided
    """DirectML's operators cannot express a node; the message says why."""


def data_type_of(type: object, what: str = "the tensor") -> TensorDataType:
    """Return DirectML's type for a type of NumPy, of ml_dtypes or of PyTorch. Truth values are UINT8.

    Args:
        what: the name of the tensor in the message.

    Raises:
        NotExpressible: DirectML has no such type.
    """
    found = element_type(type)
    if found is None:
        raise NotExpressible(f"{what} is of type {str(type).rpartition('.')[2]}")
    return found


def computed_type_of(type: object, what: str = "the tensor") -> TensorDataType:
    """Return the type that graphs compute a type in: FLOAT32 for bfloat16, else DirectML's type of that name.

    Args:
        what: the name of the tensor in the message.

    Raises:
        NotExpressible: DirectML has no such type.
    """
    return TensorDataType.FLOAT32 if is_bfloat16_type(type) else data_type_of(type, what)


def require_expressible(sizes: Sequence[int], what: str) -> None:
    """Check that DirectML has tensors of these sizes.

    Raises:
        NotExpressible: there are no elements, or more than 8 dimensions.
    """
    if 0 in sizes:
        raise NotExpressible(f"{what} of sizes {list(sizes)} has no elements")
    require_rank(len(sizes), what)


def require_rank(rank: int, what: str) -> None:
    """Check that DirectML has tensors of `rank` dimensions.

    The elements of a tensor of more could be seen in fewer dimensions. That is left out, since such nodes are
    rare, and the framework runs them.

    Raises:
        NotExpressible: there are more than 8.
    """
    if rank > TENSOR_DIMENSION_COUNT_MAX1:
        raise NotExpressible(f"{what} has {rank} dimensions")
