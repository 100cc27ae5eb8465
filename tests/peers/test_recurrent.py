"""Recurrent networks against PyTorch and ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import opendml as dml
from opendml import descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import RecurrentNetworkDirection as Direction
from opendml.spec.operator_desc import OperatorDesc
from tests.operators.recurring import Tensors, random_tensors
from tests.tolerances import assert_within

from .deviations import deviation
from .onnx_peer import PEERS, onnx_results
from .peer import DEVICES, Random, exact, examples, seeds

KINDS = ("RNN", "LSTM", "GRU")
GATES = {"RNN": [0], "LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2]}
"""PyTorch's gates among DirectML's, which are ONNX's."""


def _sizes(random: Random) -> list[int]:
    return [int(each) for each in random.generator.integers(1, 7, 4)]


def _random(random: Random, kind: str, directions: int, **has: bool) -> Tensors:
    return random_tensors(kind, int(random.generator.integers(2**31)), directions, _sizes(random), **has)


def _computed(kind: str, tensors: Tensors, directions: int, device: str, **attributes: Any) -> list[Array]:
    direction = Direction.BIDIRECTIONAL if directions == 2 else Direction.FORWARD
    sigmoid, tanh = descs.ActivationSigmoid(), descs.ActivationTanh()
    each: dict[str, list[OperatorDesc]] = {
        "RNN": [tanh],
        "LSTM": [sigmoid, tanh, tanh],
        "GRU": [sigmoid, tanh],
    }
    given_ = list(tensors) if kind == "LSTM" else [*tensors[:5], tensors.lengths]
    wanted = {"output_sequence": True, "output_single": True}
    wanted |= {"output_cell_single": True} if kind == "LSTM" else {}
    attributes = ({"linear_before_reset": False} if kind == "GRU" else {}) | attributes
    results = getattr(dml, kind.lower())(
        *given_,
        activation_descs=each[kind] * directions,
        direction=direction,
        **wanted,
        **attributes,
        device=device,
    )
    return list(results)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
@given(random=seeds)
@examples
def test_networks_agree_with_torch(kind: str, device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    directions = int(random.generator.integers(1, 3))
    tensors = _random(random, kind, directions, lengths=False, peephole=False)
    features, hidden = tensors.weights.shape[3], tensors.recurrence.shape[3]
    network = getattr(torch.nn, kind)(features, hidden, bidirectional=directions == 2).double()
    assert tensors.bias is not None
    with torch.no_grad():
        for own, suffix in enumerate(["", "_reverse"][:directions]):
            halves = tensors.bias[0, 0, own].reshape(2, -1)
            given_ = (tensors.weights[0, own], tensors.recurrence[0, own], *halves)
            for name, array in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), given_, strict=True):
                gates = array.reshape(len(GATES[kind]), hidden, -1)[GATES[kind]]
                parameter = getattr(network, f"{name}_l0{suffix}")
                parameter.copy_(torch.from_numpy(exact(gates)).reshape(parameter.shape))
        states = [torch.from_numpy(exact(each[0])) for each in tensors[4:6] if each is not None]
        state = tuple(states) if kind == "LSTM" else states[0]
        sequence, last = network(torch.from_numpy(exact(tensors.x[0])), state)
    steps, batch = tensors.x.shape[1:3]
    expected = [sequence.numpy().reshape(steps, batch, directions, hidden).transpose(0, 2, 1, 3)]
    expected += [each.numpy()[None] for each in (last if kind == "LSTM" else [last])]
    more = {"GRU": {"linear_before_reset": True}}.get(kind, {})
    results = _computed(kind, tensors, directions, device, **more)
    for result, other in zip(results, expected, strict=True):
        assert_within(kind, result, other)


def _onnx(peer: str, kind: str, tensors: Tensors, directions: int, **attributes: Any) -> Sequence[Array]:
    """All outputs of ONNX's operator, whose tensors have no leading dimension."""
    lengths = None if tensors.lengths is None else tensors.lengths.reshape(-1).astype(np.int32)
    bias = None if tensors.bias is None else tensors.bias[0, 0]
    states = [None if each is None else each[0] for each in (tensors.hidden, tensors.cell)]
    peephole = None if tensors.peephole is None else tensors.peephole[0, 0]
    inputs = [tensors.x[0], tensors.weights[0], tensors.recurrence[0], bias, lengths, states[0]]
    inputs += [states[1], peephole] if kind == "LSTM" else []
    outputs = ["float32"] * (3 if kind == "LSTM" else 2)
    direction = "bidirectional" if directions == 2 else "forward"
    hidden = tensors.recurrence.shape[3]
    return onnx_results(peer, kind, inputs, outputs, direction=direction, hidden_size=hidden, **attributes)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("kind", KINDS)
@given(random=seeds)
@examples
def test_networks_agree_with_onnx(kind: str, peer: str, random: Random) -> None:
    # ONNX's reference knows neither lengths nor two directions.
    is_runtime = peer == "runtime"
    directions = int(random.generator.integers(1, 3)) if is_runtime else 1
    tensors = _random(random, kind, directions, lengths=is_runtime, peephole=False)
    if tensors.lengths is not None:
        # Of an empty sequence the last states are zero there, and nothing is longer than it may be.
        lengths = tensors.lengths.clip(1, tensors.x.shape[1])
        tensors = tensors._replace(lengths=lengths)
    more: dict[str, Any] = {}
    if kind == "GRU":
        more["linear_before_reset"] = int(random.generator.integers(2))
    expected = _onnx(peer, kind, tensors, directions, **more)
    own = {name: bool(value) for name, value in more.items()}
    results = _computed(kind, tensors, directions, "reference", **({"GRU": own}.get(kind, {})))
    for number, (result, other) in enumerate(zip(results, expected, strict=True)):
        wanted = other if number == 0 else other[None]
        assert_within(kind, result, wanted, peer=True)


def _without_the_output_s(peephole: Array) -> Array:
    """Peepholes of the gates alone of which ONNX means the same: those of the input's and the forget's."""
    result = peephole.copy()
    hidden = peephole.shape[-1] // 3
    result[..., hidden : 2 * hidden] = 0
    return result


_of_one_meaning = deviation("LSTM", "peephole of the output gate", _without_the_output_s)


@pytest.mark.parametrize("peer", PEERS)
@given(random=seeds)
@examples
def test_peepholes_agree_with_onnx_but_for_that_of_the_output(peer: str, random: Random) -> None:
    tensors = _random(random, "LSTM", 1, lengths=False)
    assert tensors.peephole is not None
    tensors = tensors._replace(peephole=_of_one_meaning(tensors.peephole))
    expected = _onnx(peer, "LSTM", tensors, 1)
    results = _computed("LSTM", tensors, 1, "reference")
    assert_within("LSTM", results[0], expected[0], peer=True)


def _initial(last: Array, initial: Array) -> Array:
    """What the last state is where no step was taken, rather than the peer's."""
    assert not last.any()
    return initial


_last_of_none = {kind: deviation(kind, "length of 0", _initial) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@given(random=seeds)
@examples
def test_empty_sequences_keep_the_initial_state(kind: str, random: Random) -> None:
    tensors = _random(random, kind, 1, peephole=False)
    assert tensors.lengths is not None
    tensors = tensors._replace(lengths=np.zeros_like(tensors.lengths))
    expected = _onnx("runtime", kind, tensors, 1)
    results = _computed(kind, tensors, 1, "reference")
    np.testing.assert_array_equal(results[0], expected[0])
    np.testing.assert_array_equal(results[1], _last_of_none[kind](expected[1], tensors.hidden))
