"""Fourier transforms as matrix products, and determinants."""

from __future__ import annotations

import math

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import inverse as inverse_order
from opendml.frontends.common.tensors import permuted, shaped
from opendml.frontends.common.types import FLOATS, NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result, numpy_type
from opendml.frontends.onnx.operators.matrix import product
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Array
from opendml.runtime.graphs.tensor import GraphTensor

_MOST_ELEMENTS = 1 << 24
"""The most elements of a transform's matrix. Longer lines are transformed faster otherwise."""


def fourier_matrix(count: int, parts: int, length: int, inverse: bool, onesided: bool) -> Array:
    """Return the matrix that multiplies `count` numbers to their transform of `length`.

    Numbers are interleaved real and imaginary parts if `parts` is 2. Missing ones are 0, those too many are
    left out.

    Raises:
        NotExpressible: it has too many elements.
    """
    if count * parts * length * 2 > _MOST_ELEMENTS:
        raise NotExpressible(f"a transform of {count} elements to {length} is a great matrix")
    unit = np.eye(count)
    rows = unit if parts == 1 else np.stack([unit, 1j * unit], 1).reshape(count * 2, count)
    if inverse and onesided:
        return np.fft.irfft(rows, length)
    result = np.fft.ifft(rows, length) if inverse else np.fft.fft(rows, length)
    kept = result[:, : length // 2 + 1] if onesided else result
    return np.stack([kept.real, kept.imag], -1).reshape(count * parts, -1)


def _times(node: OnnxConversion, rows: GraphTensor, matrix: Array) -> GraphTensor:
    if rows.data_type not in FLOATS:
        raise NotExpressible(f"elements of type {rows.data_type.name}")
    return product(rows, node.constant(matrix, numpy_type(rows)))


@converts("DFT", since=17)
def dft(node: OnnxConversion) -> Result:
    """Convert DFT along an axis, by default the last but one. From version 20 on it is input 2."""
    sizes, parts = node.sizes(0), node.sizes(0)[-1]
    given = node.attribute("axis") if node.version < 20 else node.known_integer(2) if node.has(2) else -2
    axis = node.axis(given, len(sizes))
    if axis == len(sizes) - 1 or parts not in (1, 2):
        raise NotExpressible(
            f"axis {axis} of {list(sizes)}, whose last dimension holds real and imaginary parts"
        )
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    usual = 2 * (sizes[axis] - 1) if inverse and onesided else sizes[axis]
    length = node.known_integer(1) if node.has(1) else usual
    if length < 1 or (onesided and parts != (2 if inverse else 1)):
        raise NotExpressible(f"dft_length {length} of {list(sizes)}, onesided {int(onesided)}")
    order = [*(each for each in range(len(sizes) - 1) if each != axis), axis, len(sizes) - 1]
    moved = permuted(node.tensor(0), order)
    rows = shaped(moved, (math.prod(moved.sizes[:-2]), sizes[axis] * parts))
    result = _times(node, rows, fourier_matrix(sizes[axis], parts, length, inverse, onesided))
    made = 1 if inverse and onesided else 2
    shape = (*moved.sizes[:-2], result.sizes[-1] // made, made)
    return permuted(shaped(result, shape), inverse_order(order))


@converts("STFT", since=17)
def stft(node: OnnxConversion) -> Result:
    """Convert STFT: transforms of frames of a signal."""
    sizes, step, onesided = node.sizes(0), node.known_integer(1), node.flag("onesided")
    if len(sizes) not in (2, 3) or sizes[2:] not in ((), (1,), (2,)):
        raise NotExpressible(f"a signal of sizes {list(sizes)}")
    batch, count, parts = (*sizes, 1)[:3]
    frame = node.known_integer(3) if node.has(3) else node.sizes(2)[0] if node.has(2) else count
    if not 1 <= frame <= count or step < 1 or (onesided and parts == 2):
        raise NotExpressible(f"frames of {frame} every {step} of {list(sizes)}, onesided {int(onesided)}")
    frames, strides = (count - frame) // step + 1, [count * parts, step * parts, parts, 1]
    parted = node.tensor(0).reinterpret([batch, frames, frame, parts], strides=strides)
    if node.has(2):
        if node.sizes(2) != (frame,):
            raise NotExpressible(f"a window of {list(node.sizes(2))} for frames of {frame}")
        parted = parted * shaped(node.tensor(2), (1, 1, frame, 1))
    rows = shaped(parted, (batch * frames, frame * parts))
    result = _times(node, rows, fourier_matrix(frame, parts, frame, False, onesided))
    return node.result(result, (batch, frames, result.sizes[-1] // 2, 2))


@converts("Det", since=11)
def det(node: OnnxConversion) -> Result:
    """Convert the determinants of matrices of up to three rows."""
    sizes = node.sizes(0)
    if len(sizes) < 2 or sizes[-1] != sizes[-2] or sizes[-1] > 3:
        raise NotExpressible(f"matrices of sizes {list(sizes)}")
    count, rows = math.prod(sizes[:-2]), sizes[-1]
    matrices = shaped(node.tensor(0), (count, rows * rows))
    elements = dml.split(matrices, axis=1, sizes=[1] * rows * rows) if rows > 1 else (matrices,)
    result = _determinant([list(elements[row * rows : (row + 1) * rows]) for row in range(rows)])
    return node.result(result, sizes[:-2])


def _determinant(rows: list[list[GraphTensor]]) -> GraphTensor:
    """Return a determinant, expanded along the first row."""
    result = rows[0][0]
    for column, element in enumerate(rows[0] if len(rows) > 1 else []):
        term = element * _determinant([row[:column] + row[column + 1 :] for row in rows[1:]])
        result = term if not column else result - term if column % 2 else result + term
    return result
