"""Values that repeat along any dimensions, in operators and graphs of all families: a kernel may find each of
its values constant, one for a group, one for a row, or one for an element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from opendml import FLOAT32, Device, TensorDesc, descs
from opendml.operators.normalization import mean_variance_normalization2
from opendml.operators.reduction import reduce
from opendml.operators.softmax import hardmax1, log_softmax1, softmax1
from opendml.program import functions
from opendml.program.node import Node, constant, convert, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import AxisDirection, ReduceFunction
from opendml.spec.tensor_desc import reach
from tests.pairwise import pairwise
from tests.programs import compile_program
from tests.running import run

F32 = ScalarType.FLOAT32
EXTENTS = (1, 2, 3, 5, 17, 33, 70)
Generator = np.random.Generator


def random_program(random: Generator) -> Program:
    """A few operators on tensors that repeat along some dimensions, one result in their common sizes."""
    sizes = tuple(int(random.choice(EXTENTS)) for _ in range(random.integers(1, 5)))
    likely = random.choice([0.0, 0.3, 0.9], len(sizes))
    inputs = [repeated(random, sizes, likely) for _ in range(random.integers(1, 4))]
    sources = [source(number, F32, layout.sizes) for number, layout in enumerate(inputs)]
    value = random.choice(np.array(sources, object))
    for _ in range(random.integers(1, 4)):
        value = STEPS[random.integers(len(STEPS))](random, value, sources)
    value = convert(value, F32)
    return Program(tuple(inputs), (packed(F32, value.sizes or sizes),), (value,))


def repeated(random: Generator, sizes: tuple[int, ...], likely: Array) -> Layout:
    """A tensor of these sizes whose elements repeat along dimensions, each as likely as said."""
    strides = zip(packed(F32, sizes).strides, likely, strict=True)
    return Layout(F32, sizes, tuple(0 if random.random() < each else stride for stride, each in strides))


def some_axes(random: Generator, value: Node) -> list[int]:
    rank = len(value.sizes)
    return sorted(int(axis) for axis in random.choice(rank, random.integers(1, rank + 1), replace=False))


def reduction(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    function = random.choice(np.array(REDUCED, object))
    result = reduce(value, function=function, axes=some_axes(random, value))
    return convert(result, F32)


def search(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    """Of an input: among computed values, which is the greatest may depend on their rounding."""
    x = random.choice(np.array(sources, object))
    kind = functions.index_of_maximum if random.random() < 0.5 else functions.index_of_minimum
    found = convert(kind(x, some_axes(random, x), last=random.random() < 0.5), F32)
    return value + found if random.random() < 0.5 else value + hardmax1(x, axes=some_axes(random, x))


def softmax(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    return (softmax1 if random.random() < 0.5 else log_softmax1)(value, axes=some_axes(random, value))


def normalization(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    scale, bias = (random.choice(np.array([None, *sources], object)) for _ in range(2))
    return mean_variance_normalization2(
        value,
        scale,
        bias,
        axes=some_axes(random, value),
        use_mean=bool(random.random() < 0.7),
        use_variance=bool(random.random() < 0.7),
        epsilon=0.5,
        fused_activation=None,
    )


def scan(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    way = {"exclusive": bool(random.random() < 0.5), "reverse": bool(random.random() < 0.5)}
    axis = int(random.integers(len(value.sizes)))
    if random.random() < 0.5:
        return functions.running_sum(value * 0.125, axis, **way)
    return functions.running_product(functions.tanh(value) * 0.01 + 1.0, axis, **way)


def pointwise(random: Generator, value: Node, sources: Sequence[Node]) -> Node:
    other: Node = random.choice(np.array([*sources, constant(0.75, F32)], object))
    kind = random.integers(5)
    if kind == 0:
        return functions.power(abs(value) + 0.5, functions.tanh(other))
    if kind == 1:
        chosen = random.choice(np.array(sources, object))
        return functions.select(chosen < other, value, value * 0.5)
    if kind == 2:
        return functions.select(functions.reduce_maximum(sources[0], [0]) < 2.5, value, other)
    if kind == 3:
        return functions.exp(functions.minimum(value, 2.0))
    return value * 0.5 + other


REDUCED = [
    function
    for function in ReduceFunction
    if function.name not in ("ARGMIN", "ARGMAX", "MULTIPLY", "LOG_SUM")
]
STEPS: list[Callable[[Generator, Node, Sequence[Node]], Node]] = [
    reduction,
    search,
    softmax,
    normalization,
    scan,
    pointwise,
]


def result_of(program: Program, inputs: Sequence[Array], kind: str) -> Array:
    """The program's one result."""
    instance = compile_program(program, kind).instantiate()
    result = np.zeros(program.outputs[0].sizes, np.float32)
    for buffer, array in enumerate([*inputs, result]):
        instance.bind(buffer, array.ctypes.data)
    instance.dispatch()
    return result


@pytest.mark.parametrize("seed", range(50))
def test_programs_over_repeated_values_equal_the_reference(seed: int) -> None:
    random = np.random.default_rng(seed)
    program = random_program(random)
    inputs = [random.integers(-3, 4, layout.span[1] // 4).astype(np.float32) for layout in program.inputs]
    wanted = result_of(program, inputs, "reference")
    scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0))
    result = result_of(program, inputs, "cpu")
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5 * scale)


@pairwise(
    axes=[[0], [1], [0, 1]],
    strides=[[0, 0], [0, 1], [1, 0]],
    sizes=[[4, 17], [40, 70], [3, 40_000]],
)
def test_operators_on_repeated_inputs_equal_the_reference(
    sizes: list[int], strides: list[int], axes: list[int], device: Device
) -> None:
    x, y = TensorDesc(FLOAT32, sizes, strides), TensorDesc(FLOAT32, sizes)
    group = TensorDesc(FLOAT32, [1 if axis in axes else size for axis, size in enumerate(sizes)])
    memory = np.random.default_rng(1).integers(-3, 4, reach(sizes, strides)).astype(np.float32)
    for desc in (
        descs.Reduce(x, group, function=ReduceFunction.LOG_SUM_EXP, axes=axes),
        descs.Reduce(x, group, function=ReduceFunction.AVERAGE, axes=axes),
        descs.ActivationSoftmax1(x, y, axes=axes),
        descs.ActivationLogSoftmax1(x, y, axes=axes),
        descs.CumulativeSummation(x, y, axis=axes[0], axis_direction=AxisDirection.INCREASING),
    ):
        wanted = run(desc, [memory], "reference")
        np.testing.assert_allclose(run(desc, [memory], device), wanted, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sizes", [(33, 70), (5, 9000), (9000, 5)], ids=str)
def test_a_condition_of_a_group_chooses_for_all_its_elements(sizes: tuple[int, int], axis: int) -> None:
    x = np.random.default_rng(1).integers(-99, 100, sizes).astype(np.float32)
    sources = [source(0, F32, sizes), source(1, F32, sizes)]
    greatest = functions.reduce_maximum(sources[0], [axis])
    chosen = functions.select(greatest < 98.0, *sources)
    layout = packed(F32, sizes)
    result = result_of(Program((layout, layout), (layout,), (chosen,)), [x, -x], "cpu")
    np.testing.assert_array_equal(result, np.where(x.max(axis, keepdims=True) < 98, x, -x))
