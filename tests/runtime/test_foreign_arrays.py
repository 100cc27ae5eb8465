"""Arrays of other libraries are used where they are, and results are arrays of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT32, BufferBinding, Device, InvalidArgument
from opendml.targets.host import HostInstance
from tests.runtime.object_model import SIZES as FOREIGN_SIZES
from tests.runtime.object_model import VALUES, celu, elu

LARGE = [64, 300]


@pytest.fixture(params=["torch", "jax.numpy"])
def library(request: pytest.FixtureRequest) -> Any:
    """A library of arrays, with `asarray`."""
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")


@pytest.fixture
def torch() -> Any:
    """PyTorch, whose arrays can be written."""
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The addresses that programs on the reference device are given."""
    addresses: list[int] = []
    bind = HostInstance.bind

    def noted(self: HostInstance, buffer: int, address: int) -> None:
        addresses.append(address)
        bind(self, buffer, address)

    monkeypatch.setattr(HostInstance, "bind", noted)
    return addresses


def address(array: Any) -> int:
    """Return the address of the elements, as the library reports it."""
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    return int(array.data_ptr() if hasattr(array, "data_ptr") else array.unsafe_buffer_pointer())


def large() -> Any:
    """An array at an address that every library takes over as it is, so large that results are too."""
    memory = Device("cpu").create_buffer(64 * 300 * 4).view(np.float32).reshape(LARGE)
    memory[...] = np.linspace(-3, 3, memory.size).reshape(LARGE)
    return memory


def model(sizes: Sequence[int] = FOREIGN_SIZES) -> dml.Model:
    graph = dml.Graph()
    x = graph.input("x", FLOAT32, sizes)
    return graph.compile({"y": dml.activation_celu(x, alpha=0.5)}, device="reference")


def test_immediate_calls_copy_nothing(library: Any, bound: list[int]) -> None:
    x = library.asarray(large())
    y = dml.activation_celu(x, alpha=0.5, device="reference")
    assert type(y) is type(x)
    assert bound == [address(x), address(y)]
    assert np.allclose(np.asarray(y), elu(large()), rtol=1e-6)


def test_models_copy_nothing(library: Any, bound: list[int]) -> None:
    x = library.asarray(large())
    y = model(LARGE)(x=x)["y"]
    assert type(y) is type(x)
    assert bound == [address(x), address(y)]
    assert np.allclose(np.asarray(y), elu(large()), rtol=1e-6)


def test_outputs_are_written_where_they_are(torch: Any, bound: list[int]) -> None:
    x, y = torch.asarray(VALUES.copy()), torch.zeros(FOREIGN_SIZES)
    assert dml.activation_celu(x, alpha=0.5, out=y, device="reference") is y
    assert bound == [address(x), address(y)]
    assert np.allclose(y.numpy(), elu(VALUES), rtol=1e-6)
    y.zero_()
    bound.clear()
    model().run({"x": x}, {"y": y})
    assert bound == [address(x), address(y)]
    assert np.allclose(y.numpy(), elu(VALUES), rtol=1e-6)


def test_bindings_are_used_where_they_are(torch: Any, bound: list[int]) -> None:
    x, y = torch.asarray(VALUES.copy()), torch.zeros(FOREIGN_SIZES)
    celu(Device("reference")).bind([x], [BufferBinding(y)]).dispatch()
    assert bound == [address(x), address(y)]
    assert np.allclose(y.numpy(), elu(VALUES), rtol=1e-6)


def test_arrays_that_cannot_be_written_are_never_written(library: Any) -> None:
    if library.__name__ == "torch":
        pytest.skip("PyTorch has no read-only arrays")
    x, y = library.asarray(VALUES), library.zeros(FOREIGN_SIZES)
    calls = (
        lambda: dml.activation_celu(x, out=y),
        lambda: dml.activation_celu(y, out=y),
        lambda: model().run({"x": x}, {"y": y}),
        lambda: model().bind({"x": x}, {"y": y}),
        lambda: celu(Device("cpu")).bind([x], [y]),
        lambda: celu(Device("cpu")).bind([x], [BufferBinding(y)]),
    )
    for call in calls:
        with pytest.raises(InvalidArgument, match="read-only"):
            call()
    assert not np.asarray(y).any()


def test_arrays_of_other_libraries_are_told_how_they_get_another_type(torch: Any) -> None:
    with pytest.raises(
        dml.InvalidArgument, match=r"use opendml\.cast\(input, output_type=opendml\.FLOAT32\)$"
    ):
        dml.activation_celu(torch.ones(3, dtype=torch.int32))


def test_views_of_other_libraries_keep_their_strides(torch: Any) -> None:
    x = torch.asarray(VALUES.copy()).transpose(0, 1)
    y = dml.activation_celu(x, alpha=0.5)
    assert np.allclose(y.numpy(), elu(VALUES).transpose(1, 0, 2), rtol=1e-6)
    with pytest.raises(InvalidArgument, match="an array that is not contiguous"):
        celu(Device("cpu")).bind([x], [torch.zeros(FOREIGN_SIZES)])


def test_bindings_of_another_order_or_type_are_refused(torch: Any) -> None:
    turned, wide = (
        torch.zeros(FOREIGN_SIZES[::-1]).permute(2, 1, 0),
        torch.zeros(FOREIGN_SIZES, dtype=torch.float64),
    )
    for wrong, message in ((turned, "not contiguous in row-major order"), (wide, "elements of float64")):
        for binding in (wrong, BufferBinding(wrong)):
            with pytest.raises(InvalidArgument, match=f"InputTensor: .*{message}"):
                celu(Device("cpu")).bind([binding], [torch.zeros(FOREIGN_SIZES)])


def test_results_of_derived_classes_are_arrays_of_their_library(torch: Any) -> None:
    class Derived(torch.Tensor):  # type: ignore[misc]
        """A class of another module than PyTorch's."""

    y = dml.activation_celu(torch.asarray(VALUES.copy()).as_subclass(Derived), alpha=0.5)
    assert isinstance(y, torch.Tensor)
    assert np.allclose(y.numpy(), elu(VALUES), rtol=1e-6)


def test_results_of_classes_of_no_library_are_numpy_arrays() -> None:
    class Own:
        """All that DLPack asks for, and nothing that makes arrays. It marks parameters as PyTorch does."""

        requires_grad = True

        def __dlpack__(self, **options: Any) -> Any:
            return VALUES.copy().__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return VALUES.__dlpack_device__()

    for y in (dml.activation_celu(Own(), alpha=0.5), model()(x=Own())["y"]):
        assert type(y) is np.ndarray
        assert np.allclose(y, elu(VALUES), rtol=1e-6)
