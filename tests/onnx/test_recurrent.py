"""RNN, GRU and LSTM in ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import opendml as dml
from tests.onnx.models import (
    Array,
    assert_as_onnxruntime,
    assert_same,
    computed,
    feed,
    numbers,
    one_node,
    run_by_onnxruntime,
)

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_STEPS, _BATCH, _INPUT, _HIDDEN = 4, 3, 5, 2


def _inputs(operator: str, directions: int = 1, given: int = 3) -> list[Array | None]:
    """The first inputs; those that are not there are None."""
    gates = _GATES[operator] * _HIDDEN
    state = [directions, _BATCH, _HIDDEN]
    every: list[Array | None] = [
        numbers([_STEPS, _BATCH, _INPUT]),
        numbers([directions, gates, _INPUT]),
        numbers([directions, gates, _HIDDEN], seed=1),
        numbers([directions, 2 * gates], seed=2),
        np.array([3, 4, 1], np.int32),
        numbers(state, seed=3),
    ]
    return [*every, numbers(state, seed=4)][:given] if operator == "LSTM" else every[:given]


def _check(operator: str, inputs: list[Array | None], **options: Any) -> None:
    outputs = 3 if operator == "LSTM" else 2
    model = one_node(operator, inputs, outputs=outputs, opset=14, hidden_size=_HIDDEN, **options)
    assert_as_onnxruntime(model, feed(inputs))


@pytest.mark.parametrize("operator", list(_GATES))
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("given", [3, 7])
def test_networks_run_in_all_directions(operator: str, direction: str, given: int) -> None:
    _check(operator, _inputs(operator, 2 if direction == "bidirectional" else 1, given), direction=direction)


@pytest.mark.parametrize("operator", ["RNN", "GRU"])
def test_lists_of_activations_take_alpha_and_beta_in_order(operator: str) -> None:
    names = ["LeakyRelu", "HardSigmoid"] if operator == "RNN" else ["HardSigmoid", "LeakyRelu", "Elu", "Tanh"]
    alpha = [0.3, 0.4] if operator == "RNN" else [0.3, 0.2, 0.5]
    options = {"activations": names, "activation_alpha": alpha, "activation_beta": [0.6]}
    _check(operator, _inputs(operator, 2), direction="bidirectional", **options)


def test_gru_resets_behind_its_product() -> None:
    _check("GRU", _inputs("GRU", given=6), linear_before_reset=1)


def test_lstm_clips_and_couples_its_gates() -> None:
    _check("LSTM", _inputs("LSTM", given=7), clip=0.5, input_forget=1)


@pytest.mark.parametrize("operator", list(_GATES))
def test_layout_1_has_the_batch_first(operator: str) -> None:
    inputs = _inputs(operator, 2, 7)
    model = one_node(operator, inputs, outputs=2, opset=14, hidden_size=_HIDDEN, direction="bidirectional")
    wanted = run_by_onnxruntime(model, feed(inputs))
    turned = [
        each.transpose(1, 0, 2) if each is not None and i in (0, 5, 6) else each
        for i, each in enumerate(inputs)
    ]
    options = {"direction": "bidirectional", "layout": 1, "hidden_size": _HIDDEN}
    results = computed(one_node(operator, turned, outputs=2, opset=14, **options), feed(turned))
    assert_same(results, [wanted[0].transpose(2, 0, 1, 3), wanted[1].transpose(1, 0, 2)])


def test_a_peephole_of_the_output_gate_sees_the_cell_after_the_step() -> None:
    inputs = [*_inputs("LSTM"), *[None] * 4, numbers([1, 3 * _HIDDEN])]
    model = one_node("LSTM", inputs, outputs=3, opset=14, hidden_size=_HIDDEN)
    assert_as_onnxruntime(model, feed(inputs), evaluator=True)


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("GRU", {"clip": 0.5}),
        ("RNN", {"clip": 0.5}),
        ("RNN", {"activations": ["Affine"]}),
        ("RNN", {"activations": ["Mish"]}),
    ],
)
def test_what_the_evaluator_would_ignore_is_refused(operator: str, options: dict[str, Any]) -> None:
    inputs = _inputs(operator)
    model = one_node(operator, inputs, opset=14, hidden_size=_HIDDEN, **options)
    with pytest.raises(dml.Unsupported, match=f"{operator}-14"):
        computed(model, feed(inputs))


def test_lengths_of_a_network_of_float64_are_not_ignored() -> None:
    wide: list[Array | None] = []
    for each in _inputs("RNN", given=5):
        assert each is not None
        wide.append(each.astype(np.float64) if each.dtype == np.float32 else each)
    with pytest.raises(dml.Unsupported, match="float64"):
        computed(one_node("RNN", wide, opset=14, hidden_size=_HIDDEN), feed(wide))


@pytest.mark.parametrize("operator", list(_GATES))
def test_lengths_of_known_sequences_are_not_ignored(operator: str) -> None:
    inputs = _inputs(operator, given=5)
    options: dict[str, Any] = {"outputs": 3 if operator == "LSTM" else 2, "opset": 14, "hidden_size": _HIDDEN}
    asked = one_node(operator, inputs, **options)
    known = one_node(operator, inputs, known=range(5), **options)
    assert_same(computed(known, {}), computed(asked, feed(inputs)))
