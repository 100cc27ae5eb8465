"""MatMul, Gemm and Einsum of ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.onnx.models import Array, assert_same, computed, evaluated, feed, one_node


def _check(operator: str, inputs: list[Array | None], **options: Any) -> None:
    model = one_node(operator, inputs, **options)
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)))


def _array(sizes: list[int], type: Any = np.float32) -> Array:
    random = np.random.default_rng(sum(sizes) + len(sizes))
    if np.dtype(type).kind == "f":
        return random.standard_normal(sizes).astype(type)
    return random.integers(0, 100, sizes).astype(type)


@pytest.mark.parametrize("type", [np.float32, np.int32, np.uint64])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([3], [3]),
        ([3], [3, 4]),
        ([2, 3], [3]),
        ([2, 3], [3, 4]),
        ([5, 2, 3], [3, 4]),
        ([2, 3], [5, 3, 4]),
        ([5, 1, 2, 3], [6, 3, 4]),
        ([2, 1, 5, 2, 3], [3, 1, 3, 4]),
        ([3], [2, 5, 3, 4]),
    ],
)
def test_matmul_repeats_as_numpy_does(a: list[int], b: list[int], type: Any) -> None:
    _check("MatMul", [_array(a, type), _array(b, type)])


@pytest.mark.parametrize("c", [None, [], [1], [4], [1, 4], [2, 1], [2, 4]])
@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gemm_repeats_c(trans_a: int, trans_b: int, c: list[int] | None) -> None:
    a, b = _array([3, 2] if trans_a else [2, 3]), _array([4, 3] if trans_b else [3, 4])
    inputs = [a, b] if c is None else [a, b, _array(c)]
    _check("Gemm", inputs, transA=trans_a, transB=trans_b, alpha=0.5, beta=2.0)


def test_gemm_takes_integers() -> None:
    inputs = [_array([3, 2], np.int32), _array([3, 4], np.int32), _array([4], np.int32)]
    _check("Gemm", inputs, transA=1)


@pytest.mark.parametrize(
    ("equation", "sizes"),
    [
        ("ij->ji", [[2, 3]]),
        ("ij->i", [[2, 3]]),
        ("ij->", [[2, 3]]),
        ("ii->i", [[3, 3]]),
        ("...ii->...i", [[2, 3, 3]]),
        ("ii", [[3, 3]]),
        ("ba", [[2, 3]]),
        ("...ij->...ji", [[2, 4, 2, 3]]),
        ("ij,jk", [[2, 3], [3, 4]]),
        ("bij,bjk->bik", [[5, 2, 3], [5, 3, 4]]),
        ("...ij,...jk->...ik", [[5, 2, 3], [6, 1, 3, 4]]),
        ("i,j->ij", [[2], [3]]),
        ("i,i->", [[3], [3]]),
        ("ij,jk,kl->il", [[2, 3], [3, 4], [4, 5]]),
        ("bhqd,bhkd->bhqk", [[2, 3, 4, 5], [2, 3, 6, 5]]),
        ("ij,ij->ij", [[2, 3], [2, 3]]),
        ("ij,kl->", [[2, 3], [4, 5]]),
        (" a b , b -> a ", [[2, 3], [3]]),
        (",i->i", [[], [3]]),
        ("ij,j->ij", [[2, 1], [4]]),
        ("iji,jk->k", [[2, 3, 2], [3, 4]]),
        ("abcdefg,gh->abcdefh", [[1, 2, 1, 2, 1, 2, 3], [3, 2]]),
    ],
)
def test_einsum_multiplies_and_sums(equation: str, sizes: list[list[int]]) -> None:
    _check("Einsum", [_array(each) for each in sizes], equation=equation)


def test_einsum_of_integers() -> None:
    _check("Einsum", [_array([2, 3], np.int32), _array([3, 4], np.int32)], equation="ij,jk->ik")
