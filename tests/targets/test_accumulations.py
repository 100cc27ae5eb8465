"""The graphs of accumulations, which all targets print, against the reductions that they are for: in float64,
over elements in two parts of a group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from opendml.program.node import Node, Operation, contraction, convert, reduction, source
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.targets.common.accumulations import TOGETHER, Accumulation, accumulations_of
from opendml.targets.reference.evaluate import evaluate

F32, F64, I32 = ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT32
NAN, INF = float("nan"), float("inf")
FLOATS: list[Sequence[float]] = [
    [3.0, -1.5, 8.0, 8.0, -1.5, 0.25],
    [1.0, NAN, 8.0, NAN, -1.5, 2.0],
    [NAN, 1.0, 8.0, 9.0, 9.0, 2.0],
    [2.0, 1.0, -INF, 9.0, -INF, 2.0],
    [1e6, 1e6 + 1, 1e6 + 2, 1e6, 1e6, 1e6 + 1],
]
INTEGERS: list[Sequence[float]] = [[3, -1, 7, 7, -1, 2], [2**31 - 1, 5, -(2**31), 2**31 - 1, 4, 4]]
SIMPLE = [Operation.SUM, Operation.PRODUCT, Operation.LEAST, Operation.GREATEST]
SEARCHED = [
    Operation.FIRST_LEAST,
    Operation.LAST_LEAST,
    Operation.FIRST_GREATEST,
    Operation.LAST_GREATEST,
]


def accumulated(
    one: Accumulation, elements: Sequence[Sequence[Array]], split: int, in_order: bool
) -> list[Array]:
    """The results of a group, from its elements' operands in two parts; positions grow within each."""
    states = []
    for part in (elements[:split], elements[split:]):
        state = evaluate(one.start, elements[0])
        for operands in part:
            state = evaluate(one.add_in_order if in_order else one.add, [*state, *operands])
        states.append(state)
    state = evaluate(one.merge, [*states[0], *states[1]])
    return evaluate(one.results, [*state, np.array(1 / len(elements))])


def check(nodes: Sequence[Node], inputs: Sequence[Array]) -> None:
    """Reductions over one axis that share an accumulation equal what the reference says of them."""
    ((one,),) = accumulations_of(nodes)
    columns = [np.broadcast_to(each, inputs[0].shape) for each in evaluate(one.operands, inputs)]
    elements = list(zip(*columns, strict=True))
    wanted = [each.reshape(()) for each in evaluate(one.nodes, inputs)]
    for split in (0, 1, 4):
        for in_order in (False, True):
            found = accumulated(one, elements, split, in_order)
            for value, exact, node in zip(found, wanted, one.nodes, strict=True):
                assert value.dtype == node.type.numpy
                np.testing.assert_allclose(value, exact, rtol=1e-12, atol=1e-9, err_msg=f"{node} {split}")


@pytest.mark.parametrize("operation", [*SIMPLE, *SEARCHED], ids=lambda operation: operation.name)
@pytest.mark.parametrize(
    ("type", "values"), [*((F32, v) for v in FLOATS), *((I32, v) for v in INTEGERS)], ids=str
)
def test_a_reduction_follows_from_its_states(
    operation: Operation, type: ScalarType, values: Sequence[float]
) -> None:
    x = source(0, type, (len(values),))
    check([reduction(operation, x, [0])], [np.array(values, type.numpy)])


@pytest.mark.parametrize("from_half", [False, True])
@pytest.mark.parametrize(
    "operations", [[Operation.MEAN], [Operation.VARIANCE], [Operation.MEAN, Operation.VARIANCE]]
)
@pytest.mark.parametrize("values", [FLOATS[0], FLOATS[4]], ids=str)
def test_mean_and_variance_share_a_state(
    values: Sequence[float], operations: Sequence[Operation], from_half: bool
) -> None:
    stored = ScalarType.FLOAT16 if from_half else F32
    array = np.array(values, stored.numpy) if not from_half else np.array(FLOATS[0], stored.numpy)
    x = convert(source(0, stored, (len(values),)), F32)
    check([reduction(operation, x, [0]) for operation in operations], [array])


EIGHTS: dict[str, Sequence[float]] = {
    "large mean": [60000, 60032, 60000, 60000, 60000, 60000, 60000, 60000],
    "sums beyond float16": [65504, 65504, -65504, 65504, 65504, 65504, 65504, 65504],
    "one far off, first": [60000, 3, 3.5, 2.5, 3, 3.25, 2.75, 3],
    "one far off, last": [3, 3.5, 2.5, 3, 3.25, 2.75, 3, -60000],
    "magnitudes that float32 cannot add": [65504, -65504, 6e-8, 0.1, 0.3, 1e-3, 7e-5, -6e-8],
    "denormals": [6e-8, 1.2e-7, -6e-8, 0.0, 1.8e-7, 6e-8, 6e-5, 5.9e-5],
    "random": [0.3, -1.7, 0.01, 2.4, -0.6, 1.1, -0.2, 0.9],
    "equal": [0.1] * TOGETHER,
}


@pytest.mark.parametrize("values", EIGHTS.values(), ids=EIGHTS.keys())
@pytest.mark.parametrize("shift", [0.0, 0.5, -65504.0])
def test_eight_float16_are_taken_in_together_within_half_a_millionth_of_their_deviation(
    values: Sequence[float], shift: float
) -> None:
    array = np.array(values, np.float16)
    x = convert(source(0, ScalarType.FLOAT16, array.shape), F32)
    nodes = [reduction(operation, x, [0]) for operation in (Operation.MEAN, Operation.VARIANCE)]
    ((one,),) = accumulations_of(nodes)
    assert one.add_together is not None
    start = [np.array(part) for part in (shift, 0.0, 0.0)]
    state = evaluate(one.add_together, [*start, *(np.array(each, np.float32) for each in array)])
    exact = array.astype(np.float64)
    mean, squares = (float(part) for part in (state[1] / TOGETHER + shift, state[2]))
    assert abs(mean - exact.mean()) <= 0.5e-6 * exact.std()
    # Of a shift that is far off, FLOAT64 loses its own digits alone.
    wanted = float(np.square(exact - shift).sum())
    spread = float(np.square(exact - exact.mean()).sum())
    assert abs(squares - wanted) <= 0.5e-6 * spread + 1e-14 * wanted


def test_infinities_and_nan_stay_when_taken_in_together() -> None:
    x = convert(source(0, ScalarType.FLOAT16, (TOGETHER,)), F32)
    ((one,),) = accumulations_of([reduction(Operation.VARIANCE, x, [0])])
    assert one.add_together is not None
    for value in (NAN, INF, -INF):
        array = np.array([1.0] * (TOGETHER - 1) + [value], np.float32)
        with np.errstate(invalid="ignore"):
            state = evaluate(one.add_together, [np.array(0.0)] * 3 + [np.array(each) for each in array])
            assert np.isnan(evaluate(one.results, [*state, np.array(1 / TOGETHER)])[0])


@pytest.mark.parametrize("type", [F32, I32])
def test_products_are_summed(type: ScalarType) -> None:
    a, b = (source(number, type, (6,)) for number in range(2))
    inputs = [np.array(values, type.numpy) for values in (INTEGERS[0], [1, 2, 3, -4, 5, 6])]
    check([contraction(a, b, [0])], inputs)


def test_reductions_of_other_values_have_states_of_their_own_and_later_passes() -> None:
    x, y = (source(number, F32, (6,)) for number in range(2))
    greatest = reduction(Operation.GREATEST, x, [0])
    values = [
        reduction(Operation.SUM, convert(x, F64), [0]),
        reduction(Operation.SUM, y, [0]),
        reduction(Operation.LEAST, x - greatest, [0]),
        reduction(Operation.MEAN, x, [0]),
        reduction(Operation.VARIANCE, x, [0]),
    ]
    stages = accumulations_of(values)
    operations = [[[node.operation for node in each.nodes] for each in stage] for stage in stages]
    assert operations == [
        [[Operation.SUM], [Operation.SUM], [Operation.GREATEST], [Operation.MEAN, Operation.VARIANCE]],
        [[Operation.LEAST]],
    ]
