"""Calls of models: inputs by position and name, and arrays of any strides."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT32, Device, Graph, InvalidArgument, Model
from opendml.runtime.graphs import layout_copies
from opendml.targets.memory import HostMemory
from tests.running import same_bits

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = A[::-1].copy() / 4


def difference(device: Device | None = None, **strides: Any) -> Model:
    graph = Graph()
    a, b = graph.input("a", FLOAT32, [3, 4], **strides), graph.input("b", FLOAT32, [3, 4])
    return graph.compile({"y": a - b}, device)


def test_inputs_are_given_by_position_or_by_name(device: Device) -> None:
    model = difference(device)
    for result in (model(A, B), model(A, b=B), model(b=B, a=A)):
        assert same_bits(result["y"], A - B)


@pytest.mark.parametrize(
    ("arrays", "named", "message"),
    [
        ((A, B, A), {}, "inputs: 3 arrays; the graph has a, b"),
        ((A,), {"a": A, "b": B}, "inputs: a is given twice, by position and by name"),
        ((A,), {}, "inputs: b is missing; the graph has a, b"),
        ((A,), {"B": B}, "inputs: b is missing, B is unknown (did you mean b?); the graph has a, b"),
        ((A, B), {"zzz": B}, "inputs: zzz is unknown; the graph has a, b"),
    ],
)
def test_missing_and_unknown_inputs_are_named(
    arrays: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument) as error:
        difference()(*arrays, **named)
    assert str(error.value) == message


def laid_out() -> list[Any]:
    """The elements of A, in other strides than packed ones."""
    wide = np.zeros((6, 9), np.float32)
    wide[::2, 1::2] = A
    return [np.asfortranarray(A), A[::-1, ::-1].copy()[::-1, ::-1], wide[::2, 1::2]]


def test_arrays_of_any_strides_are_read_and_written(device: Device) -> None:
    model = difference(device)
    expected = A - B
    for array in laid_out():
        assert same_bits(model(array, B)["y"], expected)
        y = np.zeros((6, 9), np.float32)[::2, 1::2]
        model.run({"a": array, "b": B.copy("F")}, {"y": y})
        np.testing.assert_array_equal(y, expected)
        assert not y.base[1::2].any()  # type: ignore[index, union-attr]


def test_copies_of_other_strides_live_while_the_model_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made, alive = list[weakref.ref[HostMemory]](), list[bool]()

    class Watched(HostMemory):
        def __init__(self, size: int) -> None:
            super().__init__(size)
            made.append(weakref.ref(self))

    model = difference()
    instance = model._prepared.instance
    monkeypatch.setattr(layout_copies, "HostMemory", Watched)
    monkeypatch.setattr(instance, "dispatch", lambda: alive.extend(each() is not None for each in made))
    model.run({"a": A.copy("F"), "b": B}, {"y": np.zeros((3, 8), np.float32)[:, ::2]})
    assert alive == [True, True]
    assert [each() for each in made] == [None, None]


def test_strides_of_single_elements_are_of_no_consequence() -> None:
    graph = Graph()
    model = graph.compile({"y": graph.input("x", FLOAT32, [1, 4]) * 2.0})
    row = np.lib.stride_tricks.as_strided(A, (1, 4), (0, 4))
    found = model._called_on_host({"x": row})
    assert found is not None
    assert same_bits(found["y"], row * 2)
    assert same_bits(model(row)["y"], row * 2)


def test_arrays_that_are_not_aligned_are_read() -> None:
    odd = np.zeros(49, np.uint8)[1:].view(np.float32).reshape(3, 4)
    odd[...] = A
    assert not odd.flags.aligned
    assert same_bits(difference()(odd, B)["y"], A - B)


def test_repeated_elements_are_read(device: Device) -> None:
    row = np.broadcast_to(A[0], (3, 4))
    assert same_bits(difference(device)(row, B)["y"], row - B)


def test_other_libraries_arrays_of_any_strides_are_read() -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.from_numpy(A.T.copy()).T, torch.from_numpy(B)
    assert torch.equal(difference()(a, b)["y"], a - b)


def test_inputs_compiled_for_strides_take_packed_arrays(device: Device) -> None:
    model = difference(device, strides=[1, 3])
    assert same_bits(model(A, B)["y"], A - B)
    assert same_bits(model(np.asfortranarray(A), B)["y"], A - B)


def test_elements_that_share_memory_are_not_made_of_others() -> None:
    model = difference(strides=[0, 1])
    assert same_bits(model(np.broadcast_to(A[1], (3, 4)), B)["y"], A[1] - B)
    with pytest.raises(
        InvalidArgument, match=r"a: strides \[16, 4\] bytes; .* \[0, 4\], where elements share"
    ):
        model(A, B)


def test_outputs_of_other_strides_share_no_memory_either() -> None:
    a = A.copy()
    with pytest.raises(InvalidArgument, match=r"graph\.y: shares memory with a"):
        difference().run({"a": a, "b": B}, {"y": a[::-1]})
    repeated = np.lib.stride_tricks.as_strided(a, (3, 4), (0, 4))
    with pytest.raises(InvalidArgument, match="must not overlap itself"):
        difference().run({"a": A, "b": B}, {"y": repeated})


def test_bound_arrays_lie_as_compiled() -> None:
    with pytest.raises(InvalidArgument, match=r"a: strides .* run copies such arrays, bind does not"):
        difference().bind({"a": np.asfortranarray(A), "b": B}, {"y": np.empty_like(A)})
    assert isinstance(difference().bind({"a": A, "b": B}, {"y": np.empty_like(A)}), dml.BoundModel)
