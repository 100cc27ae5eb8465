"""Products of matrices."""

from __future__ import annotations

from opendml.spec.enums import MatrixTransform
from opendml.spec.rules.declared import rule, shape
from opendml.spec.rules.rule import Broken, Size, Sizes, expect
from opendml.spec.tensor_desc import TensorDesc

_PRODUCTS = (
    "GEMM",
    "MATRIX_MULTIPLY_INTEGER",
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
)


@rule(*_PRODUCTS, basic=True)
def matching_matrices(
    a_tensor: TensorDesc,
    b_tensor: TensorDesc,
    trans_a: MatrixTransform | None = None,
    trans_b: MatrixTransform | None = None,
) -> Broken:
    """A's columns are B's rows, and the leading dimensions are equal.

    Sizes are those of the matrices as stored, before a transposition, which only GEMM has. Matrices are
    repeated along leading dimensions by strides of 0 only.
    """
    leading = a_tensor.sizes[:-2]
    inner = a_tensor.sizes[-2 if trans_a is MatrixTransform.TRANSPOSE else -1]
    needed: tuple[Size, Size] = (None, inner) if trans_b is MatrixTransform.TRANSPOSE else (inner, None)
    reason = "the leading sizes and the K of {ATensor}"
    found = list(expect("b_tensor", b_tensor, (*leading, *needed), reason))
    if found and trans_b is MatrixTransform.NONE and b_tensor.sizes[-1] == inner:
        reason += "; with {TransB} TRANSPOSE it is the last size that must be K"
        found = list(expect("b_tensor", b_tensor, (*leading, *needed), reason))
    yield from found


@shape(*_PRODUCTS, reason="the product of {ATensor} and {BTensor}")
def product_sizes(
    a_tensor: TensorDesc,
    b_tensor: TensorDesc,
    trans_a: MatrixTransform = MatrixTransform.NONE,
    trans_b: MatrixTransform = MatrixTransform.NONE,
) -> Sizes:
    """(M, K) times (K, N) is (M, N), for each of the leading dimensions."""
    rows = a_tensor.sizes[-1 if trans_a is MatrixTransform.TRANSPOSE else -2]
    columns = b_tensor.sizes[-2 if trans_b is MatrixTransform.TRANSPOSE else -1]
    return (*a_tensor.sizes[:-2], rows, columns)


@rule("GEMM", basic=True)
def addend_of_product(
    a_tensor: TensorDesc,
    b_tensor: TensorDesc,
    c_tensor: TensorDesc,
    trans_a: MatrixTransform,
    trans_b: MatrixTransform,
) -> Broken:
    """C has the sizes of the product; a row or a column is repeated by strides of 0."""
    reason = "the product of {ATensor} and {BTensor}; strides of 0 repeat a row, as in np.broadcast_to"
    yield from expect("c_tensor", c_tensor, product_sizes(a_tensor, b_tensor, trans_a, trans_b), reason)
