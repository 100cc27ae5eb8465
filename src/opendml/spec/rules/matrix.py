"""Products of matrices."""

from __future__ import annotations

from opendml.spec.enums import MatrixTransform
from opendml.spec.rules.declared import Broken, rule
from opendml.spec.rules.sizes import Size, expect
from opendml.spec.tensor_desc import TensorDesc


@rule("MATRIX_MULTIPLY_INTEGER", "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", "QUANTIZED_LINEAR_MATRIX_MULTIPLY")
@rule("GEMM")
def product_sizes(
    a_tensor: TensorDesc,
    b_tensor: TensorDesc,
    output_tensor: TensorDesc,
    trans_a: MatrixTransform = MatrixTransform.NONE,
    trans_b: MatrixTransform = MatrixTransform.NONE,
) -> Broken:
    """(M, K) times (K, N) is (M, N), for each of the leading dimensions, which are equal.

    Sizes are those of the matrices as stored, before a transposition. Matrices are repeated along leading
    dimensions by strides of 0 only.
    """
    *leading, rows, inner = a_tensor.sizes
    if trans_a is MatrixTransform.TRANSPOSE:
        rows, inner = inner, rows
    needed: tuple[Size, Size] = (inner, None)
    columns = b_tensor.sizes[-1]
    if trans_b is MatrixTransform.TRANSPOSE:
        needed, columns = (None, inner), b_tensor.sizes[-2]
    yield from expect("b_tensor", b_tensor, (*leading, *needed), "the leading sizes and the K of ATensor")
    yield from expect(
        "output_tensor", output_tensor, (*leading, rows, columns), "the product of ATensor and BTensor"
    )
