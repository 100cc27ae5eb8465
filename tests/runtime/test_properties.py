"""Random descs of every operator that runs, valid or not, on arrays of random layout.

What the validator accepts, runs, and the CPU agrees with the reference; what it refuses, no call computes.
The examples are few and always the same by default; OPENDML_EXAMPLES asks for that many new ones.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

import opendml as dml
from opendml import Device, InvalidArgument, TensorDataType, TensorDesc, Unsupported, descs
from opendml.operators.registry import implemented
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import tensors_of
from opendml.spec.descs import desc_class
from opendml.spec.enums import FeatureLevel
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import reach
from opendml.spec.validator import failures
from tests.running import elements, numpy_type

EXAMPLES = int(os.environ.get("OPENDML_EXAMPLES", "80"))
ACTIVATIONS = sorted(name for name in implemented() if name.startswith("ACTIVATION_"))
MOST_ELEMENTS = 5000
GUARD = 16
"""Elements before and behind an output that must stay as they are."""

examples = settings(
    max_examples=EXAMPLES,
    derandomize="OPENDML_EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

usual_types = st.sampled_from([TensorDataType.FLOAT32, TensorDataType.FLOAT16])
all_types = st.sampled_from(TensorDataType)
attributes = st.one_of(
    st.floats(-4, 4, width=32),
    st.sampled_from([0.0, -0.0, 1.0, math.inf, math.nan, 1e-40, 3e38]),
    st.integers(-2, 2),
)


@st.composite
def sizes(draw: st.DrawFn) -> list[int]:
    """Mostly valid sizes, of few elements."""
    rank = draw(st.integers(1, 8)) if draw(st.integers(0, 19)) else draw(st.sampled_from([0, 9]))
    most = max(1, int(MOST_ELEMENTS ** (1 / max(rank, 1))))
    result = draw(st.lists(st.integers(1, most), min_size=rank, max_size=rank))
    if result and not draw(st.integers(0, 19)):
        result[draw(st.integers(0, rank - 1))] = 0
    return result


@st.composite
def strides(draw: st.DrawFn, of_sizes: list[int], *, input: bool) -> list[int] | None:
    """None, or dimensions in any order with gaps and repetitions; sometimes anything."""
    kind = draw(st.integers(0, 9))
    rank = len(of_sizes)
    if kind < 4:
        return None
    if kind == 9:
        return draw(
            st.lists(
                st.integers(0, 40), min_size=max(rank - (draw(st.integers(0, 5)) == 0), 0), max_size=rank
            )
        )
    result = [0] * rank
    step = draw(st.integers(1, 3))
    for dimension in draw(st.permutations(range(rank))):
        if input and draw(st.integers(0, 5)) == 0:
            continue
        result[dimension] = step
        step = step * max(of_sizes[dimension], 1) + draw(st.integers(0, 2))
    return result


@st.composite
def tensors(
    draw: st.DrawFn, of_sizes: list[int], data_type: TensorDataType, *, input: bool = True
) -> TensorDesc:
    """A tensor, mostly of the given sizes and type."""
    own_sizes = list(of_sizes)
    if own_sizes and draw(st.integers(0, 29)) == 0:
        own_sizes[draw(st.integers(0, len(own_sizes) - 1))] += 1
    own_type = data_type if draw(st.integers(0, 29)) else draw(all_types)
    return TensorDesc(own_type, own_sizes, draw(strides(own_sizes, input=input)))


@st.composite
def values_of(draw: st.DrawFn, operator: str) -> dict[str, float]:
    """Attributes of an activation: any numbers, but no divisor of zero, whose infinities mean nothing."""
    names = [name for name in desc_class(operator).__slots__ if not name.endswith("_tensor")]
    values = {name: draw(attributes) for name in names}
    if operator in ("ACTIVATION_CELU", "ACTIVATION_SOFTPLUS"):
        assume(all(value != 0 for value in values.values()))
    return values


@st.composite
def activations(draw: st.DrawFn) -> OperatorDesc:
    operator = draw(st.sampled_from(ACTIVATIONS))
    of_sizes, data_type = draw(sizes()), draw(usual_types)
    pair = draw(tensors(of_sizes, data_type)), draw(tensors(of_sizes, data_type, input=False))
    return desc_class(operator)(*pair, **draw(values_of(operator)))


@st.composite
def normalizations(draw: st.DrawFn) -> OperatorDesc:
    of_sizes, data_type = draw(sizes()), draw(usual_types)
    parameters = []
    for _ in range(2):
        some = [size if draw(st.booleans()) else 1 for size in of_sizes]
        parameters.append(draw(tensors(some, data_type)) if draw(st.booleans()) else None)
    fused = None
    if draw(st.booleans()):
        operator = draw(st.sampled_from(ACTIVATIONS))
        fused = desc_class(operator)(**draw(values_of(operator)))
    return descs.MeanVarianceNormalization1(
        draw(tensors(of_sizes, data_type)),
        *parameters,
        draw(tensors(of_sizes, data_type, input=False)),
        axes=draw(
            st.lists(st.integers(0, max(len(of_sizes), 1)), max_size=4, unique=draw(st.integers(0, 9)) > 0)
        ),
        normalize_variance=draw(st.booleans()),
        epsilon=draw(st.sampled_from([0.0, 1e-5, 0.5, -1.0, math.inf])),
        fused_activation=fused,
    )


def filled(tensor: TensorDesc, seed: int) -> Array:
    """Memory for an input: numbers of all magnitudes, few of them special."""
    random = np.random.default_rng(seed)
    count = reach(tensor.sizes, tensor.effective_strides)
    values = random.standard_normal(count) * 10.0 ** random.integers(-3, 3)
    if seed % 4 == 0:
        values[random.integers(0, count)] = [math.inf, -math.inf, math.nan, 1e-40, -0.0][seed // 4 % 5]
    with np.errstate(all="ignore"):
        return values.astype(numpy_type(tensor))


def run_guarded(desc: OperatorDesc, inputs: list[Array | None], kind: str) -> Array:
    """The output of a device, written between guards: whatever is no element of the output must stay."""
    (tensor,) = tensors_of(desc, "OUTPUT_TENSOR")
    assert tensor is not None
    count = reach(tensor.sizes, tensor.effective_strides)
    memory = np.full(count + 2 * GUARD, 7.0, numpy_type(tensor))
    inside = memory[GUARD : GUARD + count]
    device = Device(kind)
    device.compile_operator(device.create_operator(desc)).bind(inputs, [inside]).dispatch()
    result = elements(inside, tensor).copy()
    elements(inside, tensor)[...] = 7.0
    assert (memory == 7.0).all()
    return result


def assert_agree(result: Array, reference: Array, inputs: list[Array | None]) -> None:
    """Both are special where either is; other results differ by rounding only.

    Attributes are any numbers here: rounding errors that they magnify are allowed for, and overflow near the
    end of the range.
    """
    half = result.dtype == np.float16
    limit = float(np.finfo(result.dtype).max)
    with np.errstate(all="ignore"):
        ours, theirs = (np.clip(array.astype(np.float64), -limit, limit) for array in (result, reference))
        near = np.isclose(ours, theirs, rtol=2e-3 if half else 2e-5, atol=2e-3 if half else 2e-5)
    assert (np.isnan(ours) == np.isnan(theirs)).all()
    assert (near | np.isnan(theirs)).all(), (result[~near][:3], reference[~near][:3], inputs)


def check(desc: OperatorDesc, seed: int) -> None:
    messages = failures(desc, max(FeatureLevel))
    event("refused" if messages else "accepted")
    if messages:
        with pytest.raises(InvalidArgument) as error:
            Device("cpu").create_operator(desc)
        assert list(error.value.failures) == messages
        return
    inputs = [
        None if t is None else filled(t, seed + i) for i, t in enumerate(tensors_of(desc, "INPUT_TENSOR"))
    ]
    try:
        result = run_guarded(desc, inputs, "cpu")
    except Unsupported:
        assert any(t is not None and numpy_type(t).kind != "f" for t in tensors_of(desc, "INPUT_TENSOR"))
        return
    assert_agree(result, run_guarded(desc, inputs, "reference"), inputs)


@examples
@given(activations(), st.integers(0, 1000))
def test_random_activations_run_alike_or_are_refused(desc: OperatorDesc, seed: int) -> None:
    check(desc, seed)


@examples
@given(normalizations(), st.integers(0, 1000))
def test_random_normalizations_run_alike_or_are_refused(desc: OperatorDesc, seed: int) -> None:
    check(desc, seed)


@examples
@given(st.data())
def test_random_views_as_inputs_and_outputs_give_the_packed_result_or_nothing(data: st.DataObject) -> None:
    """On two views of one memory: as if the input had been copied, or refused and nothing written."""
    memory = np.linspace(-3, 3, 600, dtype=np.float32)
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))

    def view() -> Any:
        steps = [data.draw(st.integers(-40, 40)) for _ in shape]
        low = sum((size - 1) * min(step, 0) for size, step in zip(shape, steps, strict=True))
        high = sum((size - 1) * max(step, 0) for size, step in zip(shape, steps, strict=True))
        if high - low >= memory.size:
            return None
        offset = data.draw(st.integers(-low, memory.size - 1 - high))
        return np.lib.stride_tricks.as_strided(memory[offset:], shape, [4 * step for step in steps])

    x, out = view(), view()
    if x is None or out is None:
        return
    before = memory.copy()
    expected = dml.activation_relu(x.copy())
    try:
        dml.activation_relu(x, out=out)
    except InvalidArgument:
        event("refused")
        assert (memory == before).all()
        return
    event("accepted")
    after = memory.copy()
    assert (out == expected).all()
    memory[:] = before
    out[...] = expected
    assert (memory == after).all()
