"""Gradients and recurrent networks against PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from tests.vision import roi_align

from .deviations import deviation
from .onnx_peer import PEERS, onnx_results
from .peer import Random, exact, examples, on_random, seeds

F32 = np.dtype("float32")


def _gradients(forward: Callable[..., Any], inputs: list[Array], incoming: Array) -> list[Array]:
    """The gradients of the sum of the result times what comes in, for each input.

    All are packed: those of PyTorch's batch_norm are wrong where only one of the two has its channels last.
    """
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    *wide, gradient = (torch.from_numpy(np.ascontiguousarray(exact(each))) for each in [*inputs, incoming])
    wide = [each.requires_grad_() for each in wide]
    forward(torch.nn.functional, *wide).backward(gradient)
    return [each.grad.numpy() for each in wide]


def _pair(random: Random, least: int = 1) -> list[Array]:
    """An input of four dimensions, and what comes in for a result of its sizes."""
    shape = tuple(int(each) for each in random.generator.integers(least, 6, 4))
    return [random.values(F32, shape, -4, 4, special=False) for _ in range(2)]


def _near(operator: str, results: Any, expected: list[Array]) -> None:
    for result, wanted in zip(results, expected, strict=True):
        assert_within(operator, result, wanted.reshape(result.shape))


@on_random
def test_those_of_a_training_s_normalization(device: str, random: Random) -> None:
    x, incoming = _pair(random, least=2)
    shape = x.shape
    scale = random.values(F32, (shape[1],), -2, 2, special=False)
    expected = _gradients(
        lambda f, x, scale, bias: f.batch_norm(x, None, None, scale, bias, training=True, eps=2.0**-7),
        [x, scale, np.zeros_like(scale)],
        incoming,
    )
    group = (1, shape[1], 1, 1)
    given_ = scale.reshape(group)
    _, mean, variance = dml.batch_normalization_training(
        x, given_, np.zeros(group, np.float32), epsilon=2.0**-7, device=device
    )
    results = dml.batch_normalization_training_grad(
        x, incoming, mean, variance, given_, epsilon=2.0**-7, device=device
    )
    _near("BATCH_NORMALIZATION_TRAINING_GRAD", results, expected)


@on_random
def test_those_of_a_normalization_with_given_statistics(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, incoming = _pair(random)
    shape = x.shape
    mean, scale = (random.values(F32, (shape[1],), -2, 2, special=False) for _ in range(2))
    variance = random.values(F32, (shape[1],), 0.25, 4, special=False)
    statistics = [torch.from_numpy(exact(each)) for each in (mean, variance)]
    expected = _gradients(
        lambda f, x, scale, bias: f.batch_norm(x, *statistics, scale, bias, eps=2.0**-7),
        [x, scale, np.zeros_like(scale)],
        incoming,
    )
    group = [each.reshape(1, -1, 1, 1) for each in (mean, variance, scale)]
    results = dml.batch_normalization_grad(x, incoming, *group, epsilon=2.0**-7, device=device)
    _near("BATCH_NORMALIZATION_GRAD", results, expected)


@on_random
def test_those_of_local_responses(device: str, random: Random) -> None:
    x, incoming = _pair(random)
    # Of an even size the regions of the two lie on other sides.
    size = int(random.generator.choice([1, 3, 5]))
    expected = _gradients(
        lambda f, x: f.local_response_norm(x, size, alpha=0.25, beta=0.75, k=1.5), [x], incoming
    )
    result = dml.local_response_normalization_grad(
        x, incoming, cross_channel=True, local_size=size, alpha=0.25, beta=0.75, bias=1.5, device=device
    )
    _near("LOCAL_RESPONSE_NORMALIZATION_GRAD", [result], expected)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@on_random
def test_those_of_nearest_resampling(mode: str, device: str, random: Random) -> None:
    shape = tuple(int(each) for each in random.generator.integers(1, 9, 4))
    made = tuple(int(each) for each in random.generator.integers(1, 20, 2))
    x, incoming = (random.values(F32, each, -4, 4, special=False) for each in (shape, (*shape[:2], *made)))

    def forward(functional: Any, x: Any) -> Any:
        return functional.interpolate(x, made, mode=mode)

    attributes: dict[str, Any] = {
        "interpolation_mode": "NEAREST_NEIGHBOR",
        "scales": [1.0, 1.0, *(new / old for new, old in zip(made, shape[2:], strict=True))],
        "sizes": shape,
        "device": device,
    }
    if mode == "nearest":
        # Pixels are at their first corners there.
        result = dml.resample_grad1(
            incoming,
            rounding_direction="DECREASING",
            input_pixel_offsets=[0.0] * 4,
            output_pixel_offsets=[0.0] * 4,
            **attributes,
        )
    else:
        result = dml.resample_grad(incoming, **attributes)
    _near("RESAMPLE_GRAD", [result], _gradients(forward, [x], incoming))


@pytest.mark.parametrize("mode", ["NEAREST_NEIGHBOR", "LINEAR"])
@on_random
def test_those_of_resampling_are_its_differences(mode: str, device: str, random: Random) -> None:
    shape = tuple(int(each) for each in random.generator.integers(1, 5, 3))
    scales = [float(each) for each in random.generator.choice([0.5, 1.0, 1.5, 2.0, 3.0], 3)]
    attributes: dict[str, Any] = {"interpolation_mode": mode, "scales": scales, "device": device}
    x = random.values(F32, shape, -4, 4, special=False)
    if any(int(size * scale) == 0 for size, scale in zip(shape, scales, strict=True)):
        return
    incoming = random.values(F32, dml.resample(x, **attributes).shape, -4, 4, special=False)
    result = dml.resample_grad(incoming, sizes=shape, **attributes)
    # What is resampled is linear: differences are as good for any step.
    steps = np.eye(x.size, dtype=np.float32).reshape(x.size, *shape)
    differences = [exact(dml.resample(step, **attributes)) * exact(incoming) for step in steps]
    _near("RESAMPLE_GRAD", [result], [np.array([each.sum() for each in differences])])


@on_random
def test_those_of_a_slice(device: str, random: Random) -> None:
    shape = random.shape(rank=3)
    steps = [int(each) for each in random.generator.integers(1, 4, 3)]
    begin = [int(random.generator.integers(size)) for size in shape]
    window = [
        int(random.generator.integers(1, size - first + 1)) for size, first in zip(shape, begin, strict=True)
    ]
    sliced = tuple(
        slice(first, first + extent, step) for first, extent, step in zip(begin, window, steps, strict=True)
    )
    x = np.zeros(shape, np.float32)
    incoming = random.values(F32, x[sliced].shape, special=False)
    expected = _gradients(lambda _, x: x[sliced], [x], incoming)
    result = dml.slice_grad(
        incoming,
        input_window_offsets=begin,
        input_window_sizes=window,
        input_window_strides=steps,
        sizes=shape,
        device=device,
    )
    np.testing.assert_array_equal(result, expected[0].astype(np.float32))


@on_random
def test_those_of_aligned_regions(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = random.values(F32, (2, 3, 7, 8), -4, 4, special=False)
    # Sixteenths, and sixths of them, are nearly exact.
    starts = random.generator.integers(0, 48, (4, 2)) / 16
    regions = np.concatenate([starts, starts + random.generator.integers(16, 64, (4, 2)) / 16], axis=1)
    regions, batches = regions.astype(np.float32), random.generator.integers(0, 2, 4).astype(np.uint32)
    boxes = torch.from_numpy(np.concatenate([batches[:, None], regions], axis=1).astype(np.float64))
    incoming = random.values(F32, (4, 3, 2, 3), -4, 4, special=False)

    def forward(_: Any, x: Any) -> Any:
        return roi_align(x, boxes, (2, 3), 1.0, 2, aligned=True)

    attributes: dict[str, Any] = {
        "reduction_function": "AVERAGE",
        "interpolation_mode": "LINEAR",
        "spatial_scale_x": 1.0,
        "spatial_scale_y": 1.0,
        "input_pixel_offset": 0.5,
        "output_pixel_offset": -0.5,
        "minimum_samples_per_output": 2,
        "maximum_samples_per_output": 2,
        "align_regions_to_corners": False,
    }
    pooled = dml.roi_align1(
        x, regions, batches, **attributes, out_of_bounds_input_value=0.0, sizes=incoming.shape, device=device
    )
    assert_within("ROI_ALIGN1", pooled, forward(None, torch.from_numpy(exact(x))).numpy())
    result = dml.roi_align_grad(
        x, incoming, regions, batches, **attributes, output_gradient=True, sizes=x.shape, device=device
    )
    _near("ROI_ALIGN_GRAD", [result[0]], _gradients(forward, [x], incoming))


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


@pytest.mark.parametrize("kind", KINDS)
@on_random
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
    """Return the initial state, which is the last one where no step was taken; the peer has zeros."""
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
