"""Immediate calls on PyTorch's tensors in host memory."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import opendml as dml  # noqa: E402
from opendml.program.scalar_type import ScalarType  # noqa: E402
from opendml.runtime.memory.torch_tensors import TorchTensors  # noqa: E402


@pytest.mark.parametrize(
    "type", [torch.float32, torch.float16, torch.int32, torch.int64, torch.uint8, torch.int8]
)
def test_results_have_the_types_of_tensors(type: Any) -> None:
    x = torch.arange(6).to(type).reshape(2, 3)
    for _ in range(2):  # compiled, then known
        result = dml.element_wise_add(x, x.T.contiguous().T)
        assert torch.equal(result, x + x)
        assert result.dtype is type


def test_strides_views_and_outputs_are_used_in_place() -> None:
    x, out = torch.randn(4, 6), torch.zeros(3, 4).T
    for _ in range(2):
        assert dml.element_wise_abs(x[:, ::2], out=out) is out
        assert torch.equal(out, x[:, ::2].abs())
        y = x.clone()
        assert torch.equal(dml.element_wise_abs(y, out=y), x.abs())
        assert torch.equal(dml.element_wise_abs(x[0].expand(3, 6)), x[0].abs().expand(3, 6))
        with pytest.raises(dml.InvalidArgument, match="out"):
            dml.element_wise_abs(y[:3], out=y[1:])


def test_parameters_are_read_where_no_gradients_are_wanted() -> None:
    weight = torch.nn.Parameter(torch.randn(3))
    with torch.no_grad():
        for _ in range(2):
            assert torch.equal(dml.element_wise_abs(weight), weight.abs())
        dml.element_wise_abs(weight, out=weight)
    with torch.inference_mode():
        assert torch.equal(dml.element_wise_abs(weight), weight)
    for given in (weight, weight * 2):
        with pytest.raises(
            dml.InvalidArgument, match=r"requires a gradient; use detach\(\), or torch.no_grad"
        ):
            dml.element_wise_abs(given)
    assert torch.equal(dml.element_wise_abs(weight.detach()), weight)
    wide = torch.nn.Parameter(torch.randn(3, dtype=torch.bfloat16))
    with torch.no_grad(), pytest.raises(dml.InvalidArgument, match="bfloat16"):
        dml.element_wise_abs(wide)


def test_tensors_without_dimensions_or_elements_give_such_tensors() -> None:
    for _ in range(2):
        result = dml.element_wise_abs(torch.tensor(-2.0))
        assert result.shape == ()
        assert result.item() == 2
        assert dml.element_wise_add(torch.tensor(1.0), torch.ones(3)).tolist() == [2, 2, 2]
        for sizes in ((0,), (2, 0, 3)):
            empty = dml.element_wise_add(torch.empty(sizes), torch.empty(sizes))
            assert empty.shape == sizes
            assert empty.dtype is torch.float32
        assert dml.element_wise_logical_less_than(torch.empty(0), torch.empty(0)).dtype is torch.bool


def test_comparisons_return_booleans() -> None:
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    for _ in range(2):
        less = dml.element_wise_logical_less_than(x, y)
        assert less.dtype is torch.bool
        assert torch.equal(less, x < y)
        assert torch.equal(x[less], x[x < y])
        assert dml.element_wise_is_nan(x).dtype is torch.bool
        assert torch.equal(dml.element_wise_logical_not(less), x >= y)
    out = torch.empty(2, 3, dtype=torch.bool)
    assert torch.equal(dml.element_wise_logical_greater_than(x, y, out=out), x > y)
    as_numbers = torch.empty(2, 3, dtype=torch.uint8)
    assert torch.equal(dml.element_wise_logical_greater_than(x, y, out=as_numbers), (x > y).byte())


def test_several_outputs_and_attributes_are_told_apart() -> None:
    x = torch.tensor([3.0, 1.0, 2.0])
    for k in (1, 2, 1):
        found = dml.top_k1(x, axis=0, k=k, axis_direction="DECREASING")
        assert found[0].tolist() == [3.0, 2.0][:k]
        assert isinstance(found[1], torch.Tensor)
    for alpha in (1.0, 2.0, 1.0):
        assert dml.activation_linear(x, alpha=alpha, beta=0.0).tolist() == (x * alpha).tolist()


def test_tensors_beside_arrays_and_numbers_work() -> None:
    x = torch.ones(3)
    assert dml.element_wise_add(x, 2.0).tolist() == [3, 3, 3]
    assert dml.element_wise_add(x, x.numpy()).tolist() == [2, 2, 2]
    assert isinstance(dml.join([x, x], axis=0), torch.Tensor)


def test_a_later_call_compares_its_tensors_with_those_of_the_plan() -> None:
    """Everything that a plan depends on may differ in the next call of the same form."""
    x = torch.randn(3, 4)
    for _ in range(2):
        for given in (
            x,
            torch.randn(4, 3).T,
            x[:, :1],
            x.double()[:, ::2].float(),
            x.half(),
            x.int(),
            x.numpy(),
        ):
            result = dml.element_wise_abs(given)
            assert torch.equal(torch.as_tensor(result), torch.as_tensor(given).abs())
            assert torch.equal(dml.element_wise_add(x, x[:, :1]), x + x[:, :1])
            assert torch.equal(dml.element_wise_add(x, x[:1]), x + x[:1])
        wanted = x.clone().requires_grad_()
        with torch.no_grad():
            for _ in range(2):
                assert torch.equal(dml.element_wise_abs(wanted), x.abs())
        with pytest.raises(dml.InvalidArgument, match="requires a gradient"):
            dml.element_wise_abs(wanted)
        negated = torch.complex(x, x).conj().imag
        with pytest.raises(dml.InvalidArgument, match="negative bit"):
            dml.element_wise_abs(negated)
        with torch.inference_mode():
            assert torch.equal(dml.element_wise_abs(x), x.abs())
            assert torch.equal(dml.element_wise_abs(x + 1), (x + 1).abs())
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(dml.element_wise_abs(x), x.abs())
        freed = torch.randn(3, 4)
        freed.untyped_storage().resize_(0)
        with pytest.raises(dml.InvalidArgument, match="without memory"):
            dml.element_wise_abs(freed)
        with pytest.raises(dml.InvalidArgument):
            torch.func.vmap(dml.element_wise_abs)(x.repeat(2, 1, 1))


def test_misaligned_tensors_are_refused_after_others() -> None:
    whole = torch.zeros(4 * 8 + 1, dtype=torch.uint8)
    for _ in range(2):
        assert dml.element_wise_abs(whole[: 4 * 8].view(torch.float32)).shape == (8,)
    misaligned = torch.frombuffer(bytearray(33), dtype=torch.float32, count=8, offset=1)
    with pytest.raises(dml.InvalidArgument, match="align"):
        dml.element_wise_abs(misaligned)


def test_comparisons_are_made_by_the_guards_of_this_version_of_pytorch() -> None:
    reader, x = TorchTensors(torch), torch.randn(3)
    fits = reader.comparison((x, x + 1))
    assert fits is not None
    assert fits(x + 1, x)
    assert not fits(x, x[:2])
    assert reader.comparison((x, None)) is None
    assert reader.comparison((x, x)) is None  # One that never holds would be made in each call.


def test_results_are_made_as_the_programs_of_inductor_make_them(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, guards = TorchTensors(torch), torch._C._dynamo.guards
    for sizes in ((), (3,), (2, 0, 3), (2, 3)):
        made = reader.maker(sizes, ScalarType.FLOAT16, is_truth=False)
        truth = reader.maker(sizes, ScalarType.UINT8, is_truth=True)
        with monkeypatch.context() as patch:
            patch.delattr(guards, "_empty_strided_cpu")
            other = reader.maker(sizes, ScalarType.FLOAT16, is_truth=False)
        assert (made.func, other.func) == (guards._empty_strided_cpu, torch.empty)
        with torch.inference_mode():
            assert made().is_inference()
        for each in (made(), truth(), other()):
            plain = torch.empty(sizes)
            assert (each.shape, each.stride(), each.device) == (plain.shape, plain.stride(), plain.device)
        assert (made().dtype, truth().dtype, other().dtype) == (torch.float16, torch.bool, torch.float16)


def test_a_tensor_may_be_given_twice_before_and_after_others() -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    for given in ((x, x), (x, y), (y, y), (y, x)):
        assert torch.equal(dml.element_wise_multiply(*given), given[0] * given[1])


def test_attributes_of_another_form_are_not_taken_for_those_of_an_earlier_call() -> None:
    for x in (torch.randn(2, 3), np.ones((2, 3), np.float32)):
        for _ in range(2):
            assert dml.cumulative_summation(x, axis=1).shape == (2, 3)
            with pytest.raises(dml.InvalidArgument, match="axis"):
                dml.cumulative_summation(x, axis=[1])
            assert tuple(dml.reduce(x, function="SUM", axes=[1]).shape) == (2, 1)
            for axes in (1, [True], [1.0], "1"):
                with pytest.raises(dml.InvalidArgument, match="axes"):
                    dml.reduce(x, function="SUM", axes=axes)
            assert dml.activation_linear(x, alpha=0.0, beta=1.0)[0, 0] == 1
            with pytest.raises(dml.InvalidArgument, match="alpha"):
                dml.activation_linear(x, alpha="0.0", beta=1.0)
            for alpha in (1.0, 1, np.float32(1)):
                assert dml.activation_linear(x, alpha=alpha, beta=0.5).shape == (2, 3)
            with pytest.raises(dml.InvalidArgument, match="alpha"):
                dml.activation_linear(x, alpha=True, beta=0.5)
            for zero in (0.0, -0.0, 0.0):
                lowest = dml.element_wise_clip(x * 0 - 1, min=zero, max=1.0)
                assert np.signbit(np.asarray(lowest)).all() == np.signbit(zero)


def test_arguments_about_outputs_and_absent_tensors_are_told_apart() -> None:
    x, dense, options = torch.randn(1, 2, 5), torch.randn(2, 3), {"trans_b": "TRANSPOSE"}
    for _ in range(3):
        for type, dtype in (("INT32", torch.int32), (np.float16, torch.float16), ("INT32", torch.int32)):
            assert dml.cast(x, output_type=type).dtype == dtype
        with pytest.raises(dml.InvalidArgument, match="output_type"):
            dml.cast(x, output_type="INT31")
        for axes in ([1], (1,), [2], torch.Size([1])):
            assert torch.equal(dml.reduce(x, function="MAX", axes=axes), x.amax(tuple(axes), keepdim=True))
        for added in (None, dense[:, :2], None):
            made = dml.gemm(dense, dense, added, **options)
            assert torch.allclose(made, dense @ dense.T + (0 if added is None else added), atol=1e-6)


def test_a_later_call_of_the_same_form_makes_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.randn(2, 3), torch.randn(2, 3)

    def run(axis: int, low: float) -> list[Any]:
        return [
            dml.activation_celu(x),
            dml.element_wise_add(x, y),
            dml.element_wise_multiply(y, y),
            dml.element_wise_clip(x, min=low, max=1.0),
            dml.reduce(x, function="SUM", axes=[axis]),
            dml.gemm(x, y, trans_b="TRANSPOSE"),
            dml.cast(x, output_type="FLOAT16"),
        ]

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a call of a known form")

    wanted = run(int("1"), float("-0.5"))
    monkeypatch.setattr("opendml.functions.call", refuse)
    for one, other in zip(run(int("1"), float("-0.5")), wanted, strict=True):
        assert torch.equal(one, other)
    with pytest.raises(AssertionError):
        run(0, -0.5)


def test_a_handler_of_a_signal_may_make_the_same_call() -> None:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        pytest.skip("signals are for the main thread")
    a, b = torch.full((1000,), 1.0), torch.full((1000,), 2.0)
    made: list[Any] = []

    def handle(*_: Any) -> None:
        made.append(dml.element_wise_add(b, b).sum().item())

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        while len(made) < 5:
            assert dml.element_wise_add(a, a).sum().item() == 2000
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert set(made) == {4000.0}
