"""RNN, LSTM and GRU against their formulas in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendml as dml
from opendml import TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.operators.recurrent import MOST_STEPS
from opendml.operators.registry import define
from opendml.program.node import source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.spec.enums import RecurrentNetworkDirection as Direction
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.launch import CpuLaunch
from opendml.targets.cpu.planning import _scheduled, compile_plan
from opendml.targets.cpu.schedule import schedule
from opendml.targets.kept import kept_bytes
from tests.operators.recurring import Function, Tensors, network, random_tensors, sigmoid
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, on_arrays
from tests.tolerances import assert_within

every_device = pytest.mark.parametrize("device", device_kinds())
KINDS = ("RNN", "LSTM", "GRU")
BACKWARD = {Direction.FORWARD: [False], Direction.BACKWARD: [True], Direction.BIDIRECTIONAL: [False, True]}
ACTIVATIONS: dict[str, tuple[Any, Function]] = {
    "sigmoid": (descs.ActivationSigmoid, sigmoid),
    "tanh": (descs.ActivationTanh, np.tanh),
    "relu": (descs.ActivationRelu, lambda x: np.maximum(x, 0)),
    "linear": (lambda: descs.ActivationLinear(alpha=0.3, beta=0.1), lambda x: 0.3 * x + 0.1),
    "hard sigmoid": (
        lambda: descs.ActivationHardSigmoid(alpha=0.25, beta=0.4),
        lambda x: np.clip(0.25 * x + 0.4, 0, 1),
    ),
}
USUAL = {"RNN": ["tanh"], "LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"]}
OTHERS = {"RNN": ["linear"], "LSTM": ["hard sigmoid", "linear", "relu"], "GRU": ["linear", "hard sigmoid"]}


def _outputs(kind: str, tensors: Tensors, directions: int) -> list[Array | None]:
    (_, steps, batch, _), hidden = tensors.x.shape, tensors.recurrence.shape[3]
    state = np.zeros((1, directions, batch, hidden), tensors.x.dtype)
    results: list[Array | None] = [np.zeros((steps, *state.shape[1:]), tensors.x.dtype), state]
    return [*results, state] if kind == "LSTM" else results


def _inputs(kind: str, tensors: Tensors) -> list[Array | None]:
    if kind == "LSTM":
        return list(tensors)
    return [*tensors[:5], tensors.lengths]


def _attributes(kind: str, direction: Direction, names: Sequence[str], **more: Any) -> dict[str, Any]:
    usual: dict[str, dict[str, Any]] = {
        "RNN": {},
        "LSTM": {"clip_threshold": 0.0, "use_clip_threshold": False, "couple_input_forget": False},
        "GRU": {"linear_before_reset": False},
    }
    activations = [ACTIVATIONS[name][0]() for name in names]
    return {"activation_descs": activations, "direction": direction} | usual[kind] | more


def _computed(
    kind: str, tensors: Tensors, direction: Direction, names: Sequence[str], device: str, **more: Any
) -> list[Array]:
    desc = {"RNN": descs.Rnn, "LSTM": descs.Lstm, "GRU": descs.Gru}[kind]
    attributes = _attributes(kind, direction, names, **more)
    outputs = _outputs(kind, tensors, len(BACKWARD[direction]))
    return on_arrays(desc, _inputs(kind, tensors), outputs, device, **attributes)


def _assert_near(kind: str, results: Sequence[Array], expected: Sequence[Array]) -> None:
    for result, wanted in zip(results, expected, strict=False):
        assert_within(kind, result, wanted)


def _check(kind: str, tensors: Tensors, direction: Direction, names: Sequence[str], device: str) -> None:
    functions = [ACTIVATIONS[name][1] for name in names]
    expected = network(kind, tensors, functions, BACKWARD[direction])
    _assert_near(kind, _computed(kind, tensors, direction, names, device), expected)


@pairwise(device=device_kinds(), dtype=[np.float32, np.float16], direction=Direction, kind=KINDS)
def test_all_tensors_given(kind: str, direction: Direction, dtype: Any, device: str) -> None:
    directions = len(BACKWARD[direction])
    tensors = random_tensors(kind, 1, directions, (5, 3, 4, 6), dtype=dtype)
    _check(kind, tensors, direction, USUAL[kind] * directions, device)


@pairwise(device=device_kinds(), direction=Direction, kind=KINDS)
def test_nothing_but_what_is_required(kind: str, direction: Direction, device: str) -> None:
    directions = len(BACKWARD[direction])
    absent = dict.fromkeys(("bias", "hidden", "cell", "lengths", "peephole"), False)
    tensors = random_tensors(kind, 2, directions, (4, 2, 3, 5), **absent)
    _check(kind, tensors, direction, USUAL[kind] * directions, device)


@every_device
@pytest.mark.parametrize("kind", KINDS)
def test_each_direction_has_its_own_activations(kind: str, device: str) -> None:
    tensors = random_tensors(kind, 3, 2, (3, 2, 3, 4))
    _check(kind, tensors, Direction.BIDIRECTIONAL, [*OTHERS[kind], *USUAL[kind]], device)


@every_device
@pytest.mark.parametrize("kind", KINDS)
@given(
    steps=st.integers(1, 6),
    batch=st.integers(1, 4),
    features=st.integers(1, 20),
    hidden=st.integers(1, 20),
    seed=st.integers(0, 2**31),
)
@examples
def test_any_sizes(
    kind: str, device: str, steps: int, batch: int, features: int, hidden: int, seed: int
) -> None:
    sizes = (steps, batch, features, hidden)
    tensors = random_tensors(kind, seed, 1, sizes, lengths=bool(seed % 2), bias=bool(seed % 3))
    direction = Direction.BACKWARD if seed % 5 == 0 else Direction.FORWARD
    _check(kind, tensors, direction, USUAL[kind], device)


@every_device
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_reset_gate_after_the_products(has_bias: bool, device: str) -> None:
    tensors = random_tensors("GRU", 4, 2, (4, 3, 5, 6), bias=has_bias)
    functions = [sigmoid, np.tanh] * 2
    expected = network("GRU", tensors, functions, [False, True], linear_before_reset=True)
    names = USUAL["GRU"] * 2
    results = _computed("GRU", tensors, Direction.BIDIRECTIONAL, names, device, linear_before_reset=True)
    _assert_near("GRU", results, expected)


@every_device
def test_clipping_bounds_what_activations_see(device: str) -> None:
    tensors = random_tensors("LSTM", 5, 1, (4, 3, 5, 6))
    functions = [sigmoid, np.tanh, np.tanh]
    expected = network("LSTM", tensors, functions, [False], clip=0.125)
    more = {"use_clip_threshold": True, "clip_threshold": 0.125}
    _assert_near(
        "LSTM", _computed("LSTM", tensors, Direction.FORWARD, USUAL["LSTM"], device, **more), expected
    )
    free = network("LSTM", tensors, functions, [False])
    unused = {"use_clip_threshold": False, "clip_threshold": 0.125}
    _assert_near("LSTM", _computed("LSTM", tensors, Direction.FORWARD, USUAL["LSTM"], device, **unused), free)


@every_device
def test_a_coupled_gate_forgets_what_the_input_takes(device: str) -> None:
    tensors = random_tensors("LSTM", 6, 1, (4, 3, 5, 6))
    expected = network("LSTM", tensors, [sigmoid, np.tanh, np.tanh], [False], couple=True)
    results = _computed("LSTM", tensors, Direction.FORWARD, USUAL["LSTM"], device, couple_input_forget=True)
    _assert_near("LSTM", results, expected)


@every_device
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_behind_a_sequence_is_zero_and_changes_nothing(kind: str, device: str) -> None:
    tensors = random_tensors(kind, 7, 2, (4, 4, 3, 5))
    lengths = np.array([0, 1, 4, 99], np.uint32).reshape(1, 1, 1, 4)
    tensors = tensors._replace(lengths=lengths)
    names = USUAL[kind] * 2
    _check(kind, tensors, Direction.BIDIRECTIONAL, names, device)
    spoiled = tensors.x.copy()
    spoiled[0, 0:, 0] = spoiled[0, 1:, 1] = np.nan
    results = _computed(kind, tensors._replace(x=spoiled), Direction.BIDIRECTIONAL, names, device)
    assert not results[0][:, :, 0].any()
    assert not results[0][1:, :, 1].any()
    assert tensors.hidden is not None
    np.testing.assert_array_equal(results[1][:, :, 0], tensors.hidden[:, :, 0])
    if kind == "LSTM" and tensors.cell is not None:
        np.testing.assert_array_equal(results[2][:, :, 0], tensors.cell[:, :, 0])


@every_device
@pytest.mark.parametrize("kind", KINDS)
def test_nan_stays_in_its_batch(kind: str, device: str) -> None:
    tensors = random_tensors(kind, 8, 1, (4, 3, 3, 5), lengths=False)
    tensors.x[0, 1, 2] = np.nan
    sequence = _computed(kind, tensors, Direction.FORWARD, USUAL[kind], device)[0]
    assert np.isnan(sequence[1:, 0, 2]).all()
    assert np.isfinite(sequence[:, 0, :2]).all()
    assert np.isfinite(sequence[0]).all()


@every_device
@pytest.mark.parametrize("kind", KINDS)
def test_a_state_beyond_its_type_is_infinite_in_the_next_step(kind: str, device: str) -> None:
    gates = {"RNN": 1, "LSTM": 4, "GRU": 3}[kind]
    x = np.array([4e4, 0], np.float16).reshape(1, 2, 1, 1)
    weights = np.full((1, 1, gates, 1), 4, np.float16)
    tensors = Tensors(x, weights, np.zeros_like(weights))
    names = ["relu"] * len(USUAL[kind])
    sequence = _computed(kind, tensors, Direction.FORWARD, names, device)[0].reshape(-1)
    assert np.isinf(sequence[0])
    assert np.isnan(sequence[1])


@every_device
@pytest.mark.parametrize("wanted", [(True, False, False), (False, True, False), (False, False, True)])
def test_each_output_alone(wanted: tuple[bool, ...], device: str) -> None:
    tensors = random_tensors("LSTM", 9, 2, (3, 2, 3, 4))
    expected = network("LSTM", tensors, [sigmoid, np.tanh, np.tanh] * 2, [False, True])
    sequence, single, cell = wanted
    attributes = _attributes("LSTM", Direction.BIDIRECTIONAL, USUAL["LSTM"] * 2)
    results = dml.lstm(
        *tensors,
        **attributes,
        output_sequence=sequence,
        output_single=single,
        output_cell_single=cell,
        device=device,
    )
    assert [each is not None for each in results] == list(wanted)
    for result, other in zip(results, expected, strict=True):
        if result is not None:
            assert_within("LSTM", result, other)


@every_device
def test_weights_of_a_graph_are_constants(device: str) -> None:
    tensors = random_tensors("LSTM", 10, 1, (5, 2, 3, 4), lengths=False)
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, tensors.x.shape)
    rest = [None if each is None else graph.constant(each) for each in tensors[1:]]
    attributes = _attributes("LSTM", Direction.FORWARD, USUAL["LSTM"])
    outputs = dml.lstm(dml.activation_relu(x), *rest, **attributes, output_sequence=True)
    assert outputs.output_sequence is not None
    model = graph.compile({"y": dml.element_wise_negate(outputs.output_sequence)}, device)
    expected = network(
        "LSTM", tensors._replace(x=np.maximum(tensors.x, 0)), [sigmoid, np.tanh, np.tanh], [False]
    )
    assert_within("LSTM", model(x=tensors.x)["y"], -expected[0])


def _program(steps: int, *, fixed: bool = False) -> Program:
    """An LSTM; `fixed`: of constant weights."""
    sizes = [(1, steps, 2, 8), (1, 1, 256, 8), (1, 1, 256, 64)]
    x, w, r = (TensorDesc(dml.FLOAT32, each) for each in sizes)
    output = TensorDesc(dml.FLOAT32, (steps, 1, 2, 64))
    attributes = _attributes("LSTM", Direction.FORWARD, USUAL["LSTM"])
    desc = descs.Lstm(x, w, r, output_sequence_tensor=output, **attributes)
    layouts = [packed(ScalarType.FLOAT32, each.sizes) for each in (x, w, r)]
    nodes = [source(number, each.type, each.sizes) for number, each in enumerate(layouts)]
    results = define(desc, [*nodes, *[None] * 5], [ScalarType.FLOAT32])
    constants = frozenset({1, 2} if fixed else ())
    written = (packed(ScalarType.FLOAT32, output.sizes),)
    return Program(tuple(layouts), written, simplify(results), constants)


def test_what_two_steps_say_holds_for_all() -> None:
    kernels = fuse(_program(6))
    (repeat,) = kernels.repeats
    assert (repeat.length, repeat.count) == (3, 6)
    one_by_one = [schedule(kernel) for kernel in kernels.kernels]
    assert list(map(_described, _scheduled(kernels))) == list(map(_described, one_by_one))


def _described(launches: Sequence[CpuLaunch]) -> list[tuple[object, ...]]:
    return [(each.pattern.text(), each.parameters, each.items, each.grain, each.reads) for each in launches]


def test_steps_share_their_code() -> None:
    def codes(steps: int) -> set[str]:
        kernels = fuse(_program(steps))
        (repeat,) = kernels.repeats
        launches = _scheduled(kernels)[repeat.first : repeat.first + repeat.length * repeat.count]
        return {launch.pattern.text() for several in launches for launch in several}

    assert codes(2) == codes(50)
    assert len(codes(2)) <= 4


def test_weights_are_prepared_once_for_all_steps() -> None:
    one, two, many = (
        kept_bytes(CpuExecutable(compile_plan(_program(steps, fixed=True), None)).kept)
        for steps in (1, 2, 50)
    )
    assert two == many
    recurrence_bytes = 256 * 64 * 4
    assert many < one + recurrence_bytes


@pytest.mark.parametrize("kind", KINDS)
def test_networks_of_too_many_steps_are_refused(kind: str) -> None:
    def tensor(*sizes: int) -> TensorDesc:
        return TensorDesc(dml.FLOAT32, sizes, [0] * 4)

    gates = {"RNN": 1, "LSTM": 4, "GRU": 3}[kind]
    desc = {"RNN": descs.Rnn, "LSTM": descs.Lstm, "GRU": descs.Gru}[kind](
        input_tensor=tensor(1, MOST_STEPS + 1, 1, 1),
        weight_tensor=tensor(1, 1, gates, 1),
        recurrence_tensor=tensor(1, 1, gates, 1),
        output_single_tensor=TensorDesc(dml.FLOAT32, [1, 1, 1, 1]),
        **_attributes(kind, Direction.FORWARD, USUAL[kind]),
    )
    with pytest.raises(dml.Unsupported, match=rf"^{kind}: InputTensor.Sizes\[1\]: 1,048,577 steps; at most"):
        program_of(desc)
