"""CONVOLUTION and GEMM against their definitions in float64."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendml import TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel, operations_of
from opendml.compiler.simplify import simplify
from opendml.program.functions import maximum
from opendml.program.node import Node, Operation
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.spec.enums import ConvolutionDirection, ConvolutionMode, MatrixTransform
from opendml.spec.operator_desc import OperatorDesc
from opendml.targets.cpu.contraction.roles import roles_of
from tests.pairwise import pairwise
from tests.peers.peer import examples
from tests.running import device_kinds, on_arrays, run
from tests.tolerances import assert_within

FORWARD, BACKWARD = ConvolutionDirection.FORWARD, ConvolutionDirection.BACKWARD
CROSS, CONVOLVE = ConvolutionMode.CROSS_CORRELATION, ConvolutionMode.CONVOLUTION
every_device = pytest.mark.parametrize("device", device_kinds())


class Form(NamedTuple):
    """A convolution but for its channels, one number for each spatial dimension."""

    image: tuple[int, ...]
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start: tuple[int, ...]
    end: tuple[int, ...]
    output_padding: tuple[int, ...]

    @property
    def attributes(self) -> dict[str, Any]:
        """Those of a desc."""
        names = {"strides": self.strides, "dilations": self.dilations, "output_padding": self.output_padding}
        return names | {"start_padding": self.start, "end_padding": self.end}


FORMS = [
    Form((9,), (3,), (1,), (1,), (1,), (1,), (0,)),
    Form((9,), (4,), (3,), (2,), (2,), (0,), (0,)),
    Form((8,), (1,), (2,), (1,), (0,), (0,), (1,)),
    Form((6, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), (0, 0)),
    Form((6, 7), (3, 2), (2, 3), (1, 2), (2, 0), (1, 1), (1, 0)),
    Form((5, 5), (5, 5), (1, 1), (1, 1), (0, 0), (0, 0), (0, 0)),
    Form((3, 4), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0), (0, 0)),
    Form((4, 3, 5), (2, 3, 1), (1, 2, 2), (2, 1, 1), (1, 1, 0), (0, 1, 0), (0, 1, 0)),
]


def _forward(x: Array, filter: Array, form: Form, groups: int) -> Array:
    spans = [(k - 1) * d + 1 for k, d in zip(form.extents, form.dilations, strict=True)]
    sizes = [
        (i + s + e - span) // stride + 1
        for i, s, e, span, stride in zip(form.image, form.start, form.end, spans, form.strides, strict=True)
    ]
    padded = np.pad(x, [(0, 0), (0, 0), *zip(form.start, form.end, strict=True)])
    outputs, inputs = filter.shape[:2]
    result = np.zeros((x.shape[0], outputs, *sizes))
    for group in range(groups):
        own = np.s_[group * (outputs // groups) : (group + 1) * (outputs // groups)]
        seen = padded[:, group * inputs : (group + 1) * inputs]
        for taps in product(*map(range, form.extents)):
            at = tuple(
                np.s_[k * d : k * d + (size - 1) * stride + 1 : stride]
                for k, d, size, stride in zip(taps, form.dilations, sizes, form.strides, strict=True)
            )
            weights = filter[(own, slice(None), *taps)]
            result[:, own] += np.einsum("ni...,oi->no...", seen[(slice(None), slice(None), *at)], weights)
    return np.pad(result, [(0, 0), (0, 0), *((0, margin) for margin in form.output_padding)])


def _backward(x: Array, filter: Array, form: Form, groups: int) -> Array:
    channels, outputs = filter.shape[:2]
    whole = [
        (i - 1) * s + (k - 1) * d + 1 + p
        for i, s, k, d, p in zip(
            form.image, form.strides, form.extents, form.dilations, form.output_padding, strict=True
        )
    ]
    result = np.zeros((x.shape[0], outputs * groups, *whole))
    for group in range(groups):
        inputs = np.s_[group * (channels // groups) : (group + 1) * (channels // groups)]
        own = np.s_[group * outputs : (group + 1) * outputs]
        for taps in product(*map(range, form.extents)):
            at = tuple(
                np.s_[k * d : k * d + (i - 1) * s + 1 : s]
                for k, d, i, s in zip(taps, form.dilations, form.image, form.strides, strict=True)
            )
            added = np.einsum("ni...,io->no...", x[:, inputs], filter[(inputs, slice(None), *taps)])
            result[(slice(None), own, *at)] += added
    cut = (np.s_[start : size - end] for start, end, size in zip(form.start, form.end, whole, strict=True))
    return np.asarray(result[(slice(None), slice(None), *cut)])


def _sums(x: Array, filter: Array, form: Form, groups: int, direction: ConvolutionDirection) -> Array:
    function = _forward if direction is FORWARD else _backward
    return function(x.astype(np.float64), filter.astype(np.float64), form, groups)


def _check(
    form: Form,
    groups: int,
    direction: ConvolutionDirection,
    mode: ConvolutionMode,
    dtype: Any,
    device: str,
    inputs: int = 2,
    outputs: int = 3,
) -> None:
    """`inputs` and `outputs`: the channels of each group."""
    generator = np.random.default_rng(len(form.image) * 10 + groups)
    channels = (groups * inputs, outputs) if direction is BACKWARD else (groups * outputs, inputs)
    x = generator.uniform(-1, 1, (2, groups * inputs, *form.image)).astype(dtype)
    filter = generator.uniform(-1, 1, (*channels, *form.extents)).astype(dtype)
    bias = generator.uniform(-1, 1, (1, groups * outputs, *(1,) * len(form.image))).astype(dtype)
    flipped = filter if mode is CROSS else np.flip(filter, range(2, filter.ndim))
    expected = _sums(x, flipped, form, groups, direction) + bias
    magnitude = _sums(np.abs(x), np.abs(flipped), form, groups, direction) + np.abs(bias)
    (result,) = on_arrays(
        descs.Convolution,
        [x, filter, bias],
        [expected.astype(dtype)],
        device,
        mode=mode,
        direction=direction,
        group_count=groups,
        **form.attributes,
    )
    assert_within("CONVOLUTION", result, expected, magnitude)


@pairwise(
    device=device_kinds(),
    direction=ConvolutionDirection,
    groups=[1, 2],
    mode=ConvolutionMode,
    dtype=[np.float32, np.float16],
    form=FORMS,
)
def test_windows(
    form: Form, groups: int, direction: ConvolutionDirection, mode: ConvolutionMode, dtype: Any, device: str
) -> None:
    _check(form, groups, direction, mode, dtype, device)


@pytest.mark.parametrize(
    ("form", "groups", "direction"),
    [
        (Form((17, 19), (3, 3), (1, 1), (1, 1), (2, 0), (1, 3), (0, 0)), 1, FORWARD),
        (Form((16, 18), (3, 3), (2, 2), (1, 1), (1, 1), (0, 0), (0, 1)), 2, FORWARD),
        (Form((16, 18), (5, 5), (3, 2), (1, 1), (4, 7), (5, 6), (0, 0)), 1, FORWARD),
        (Form((15, 17), (3, 3), (1, 1), (2, 3), (2, 3), (2, 3), (0, 0)), 1, FORWARD),
        (Form((300,), (5,), (1,), (1,), (2,), (2,), (0,)), 1, FORWARD),
        (Form((5, 8, 9), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 0, 0)), 1, FORWARD),
        (Form((12, 11), (3, 3), (2, 2), (1, 1), (1, 1), (0, 0), (0, 0)), 1, BACKWARD),
        (Form((8, 9), (4, 4), (2, 2), (1, 1), (1, 1), (1, 1), (0, 0)), 1, BACKWARD),
        (Form((7, 6), (5, 3), (3, 2), (1, 1), (4, 1), (2, 0), (1, 1)), 2, BACKWARD),
        (Form((9, 8), (1, 2), (2, 3), (1, 1), (1, 0), (0, 2), (1, 0)), 1, BACKWARD),
        (Form((9, 8), (3, 3), (1, 2), (2, 3), (2, 3), (1, 2), (0, 1)), 1, BACKWARD),
        (Form((40,), (16,), (8,), (1,), (5,), (3,), (2,)), 1, BACKWARD),
        (Form((3, 4, 5), (3, 2, 4), (2, 2, 2), (1, 1, 1), (1, 0, 3), (0, 1, 1), (1, 0, 1)), 1, BACKWARD),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_many_channels(form: Form, groups: int, direction: ConvolutionDirection, dtype: Any) -> None:
    _check(form, groups, direction, CROSS, dtype, "cpu", inputs=20, outputs=24)


@every_device
@given(data=st.data())
@examples
def test_any_form(device: str, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    each = [
        tuple(data.draw(st.integers(least, most)) for _ in range(rank))
        for least, most in ((1, 6), (1, 4), (1, 3), (1, 2), (0, 2), (0, 2))
    ]
    extents, image = each[1], each[0]
    # A window is no larger than what it slides over.
    image = tuple(max(size, (k - 1) * d + 1) for size, k, d in zip(image, extents, each[3], strict=True))
    output_padding = tuple(data.draw(st.integers(0, stride - 1)) for stride in each[2])
    direction = data.draw(st.sampled_from(ConvolutionDirection))
    if direction is BACKWARD:
        # Padding takes away outputs; some must be left.
        each[4] = each[5] = (0,) * rank
    form = Form(image, extents, each[2], each[3], each[4], each[5], output_padding)
    groups = data.draw(st.integers(1, 3))
    dtype = data.draw(st.sampled_from([np.float32, np.float16]))
    _check(form, groups, direction, data.draw(st.sampled_from(ConvolutionMode)), dtype, device)


@every_device
@pytest.mark.parametrize("direction", ConvolutionDirection)
def test_activations_come_after_the_bias(direction: ConvolutionDirection, device: str) -> None:
    form = Form((5, 5), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), (0, 0))
    generator = np.random.default_rng(3)
    x, filter = (generator.uniform(-1, 1, sizes).astype(np.float32) for sizes in [(1, 4, 5, 5), (4, 4, 3, 3)])
    bias = generator.uniform(-1, 1, (1, 4, 1, 1)).astype(np.float32)
    expected = np.maximum(_sums(x, filter, form, 1, direction) + bias, 0)
    magnitude = _sums(np.abs(x), np.abs(filter), form, 1, direction) + np.abs(bias)
    (result,) = on_arrays(
        descs.Convolution,
        [x, filter, bias],
        [expected.astype(np.float32)],
        device,
        mode=CROSS,
        direction=direction,
        fused_activation=descs.ActivationRelu(),
        **form.attributes,
    )
    assert_within("CONVOLUTION", result, expected, magnitude)


def _kernels(
    form: Form,
    outputs: int,
    direction: ConvolutionDirection,
    type: TensorDataType,
    after: Callable[[Node], Node] = lambda result: result,
) -> list[Kernel]:
    """The kernels of a convolution of 8 channels with a bias, and of what follows `after` it, for every
    target."""
    x = np.zeros((1, 8, *form.image))
    channels = (8, outputs) if direction is BACKWARD else (outputs, 8)
    filter = np.zeros((*channels, *form.extents))
    y = _sums(x, filter, form, 1, direction)
    sizes = (x.shape, filter.shape, (1, outputs, *(1,) * len(form.image)), y.shape)
    desc = descs.Convolution(
        *(TensorDesc(type, each) for each in sizes),
        mode=CROSS,
        direction=direction,
        group_count=1,
        **form.attributes,
    )
    program = program_of(desc)
    results = simplify([after(result) for result in program.results])
    return [*fuse(Program(program.inputs, program.outputs, results)).kernels]


every_type = pytest.mark.parametrize("type", [TensorDataType.FLOAT32, TensorDataType.FLOAT16])


@every_type
@pytest.mark.parametrize(
    ("form", "phases"),
    [
        (Form((9, 9), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), (1, 1)), 4),
        (Form((9, 9), (3, 3), (1, 1), (2, 2), (2, 2), (2, 2), (0, 0)), 1),
        (Form((9,), (4,), (3,), (1,), (1,), (1,), (1,)), 3),
        (Form((9, 9), (3, 3), (3, 2), (2, 1), (2, 1), (2, 1), (2, 1)), 6),
    ],
    ids=str,
)
def test_each_phase_of_a_backward_convolution_is_a_product_that_stores_the_type_of_the_output(
    form: Form, phases: int, type: TensorDataType
) -> None:
    kernels = _kernels(form, 16, BACKWARD, type)
    products = [kernel for kernel in kernels if Operation.CONTRACTION in operations_of(kernel.values)]
    assert len(products) == phases
    assert {store.type for kernel in kernels for store in kernel.stores} == {ScalarType.of(type)}
    # One kernel puts all results in their places, if they do not lie there.
    assert len(kernels) == phases + (phases > 1)


@every_type
@pytest.mark.parametrize(
    "form",
    [
        Form((28, 28), (4, 4), (2, 2), (1, 1), (1, 1), (1, 1), (0, 0)),
        Form((28, 28), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0), (0, 0)),
        Form((28, 28), (8, 4), (4, 2), (1, 1), (2, 1), (2, 1), (0, 0)),
    ],
    ids=str,
)
def test_phases_of_one_product_are_put_in_their_places_at_once_in_the_type_of_the_output(
    form: Form, type: TensorDataType
) -> None:
    kernels = _kernels(form, 16, BACKWARD, type)
    (product,) = (kernel for kernel in kernels if Operation.CONTRACTION in operations_of(kernel.values))
    # The bias of all phases, the product, and one pass over its results.
    assert len(kernels) == 3
    assert {store.type for store in product.stores} == {ScalarType.of(type)}


@every_type
@pytest.mark.parametrize("extent", [3, 4])
def test_what_follows_a_backward_convolution_takes_no_kernel(extent: int, type: TensorDataType) -> None:
    """It is computed by the kernel that puts the phases in their places."""
    form = Form((9, 9), (extent,) * 2, (2, 2), (1, 1), (1, 1), (1, 1), (0, 0))
    if extent == 3:
        form = form._replace(output_padding=(1, 1))
    alone = _kernels(form, 16, BACKWARD, type)
    assert len(_kernels(form, 16, BACKWARD, type, lambda result: maximum(result, 0))) == len(alone)


@every_type
def test_output_padding_takes_no_kernel_and_no_memory(type: TensorDataType) -> None:
    form = Form((9, 9), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), (1, 0))
    (kernel,) = _kernels(form, 16, FORWARD, type)
    assert [store.buffer for store in kernel.stores] == [3]


def test_all_phases_and_channels_of_a_backward_convolution_are_the_rows_of_one_product() -> None:
    form = Form((9, 9), (4, 4), (2, 2), (1, 1), (0, 0), (0, 0), (0, 0))
    kernels = _kernels(form, 4, BACKWARD, TensorDataType.FLOAT32)
    (roles,) = (roles for kernel in kernels if (roles := roles_of(kernel, exchanged=False)) is not None)
    assert roles.count(roles.outer) == 1
    assert roles.count(roles.rows) == 4 * 2 * 2
    assert roles.count(roles.columns) == 10 * 10


NONE, TRANSPOSE = MatrixTransform.NONE, MatrixTransform.TRANSPOSE
FLOATS = (np.float32, np.float16)


def _random(seed: int, dtype: Any, *sizes: int) -> Array:
    return np.random.default_rng(seed).uniform(-2, 2, sizes).astype(dtype)


def _gemm(a: Array, b: Array, c: Array | None, output: Array, device: str, **attributes: Any) -> Array:
    usual = {"trans_a": NONE, "trans_b": NONE, "alpha": 1.0, "beta": 1.0, "fused_activation": None}
    (result,) = on_arrays(descs.Gemm, [a, b, c], [output], device, **(usual | attributes))
    return result


@pairwise(
    device=device_kinds(),
    dtype=FLOATS,
    trans_b=MatrixTransform,
    trans_a=MatrixTransform,
    batch=[(), (3,), (2, 3)],
)
def test_transposes_and_batches(
    batch: tuple[int, ...], trans_a: MatrixTransform, trans_b: MatrixTransform, dtype: Any, device: str
) -> None:
    a, b, c = (_random(seed, dtype, *batch, *s) for seed, s in enumerate([(5, 9), (9, 7), (5, 7)]))
    magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    expected = 0.5 * (a.astype(np.float64) @ b.astype(np.float64)) - 1.5 * c.astype(np.float64)
    given_a = a if trans_a is NONE else np.swapaxes(a, -1, -2)
    given_b = b if trans_b is NONE else np.swapaxes(b, -1, -2)
    transforms = {"trans_a": trans_a, "trans_b": trans_b}
    result = _gemm(given_a, given_b, c, c, device, alpha=0.5, beta=-1.5, **transforms)
    assert_within("GEMM", result, expected, magnitude + 1.5 * np.abs(c.astype(np.float64)))


@every_device
@given(m=st.integers(1, 40), n=st.integers(1, 40), k=st.integers(1, 70), seed=st.integers(0, 2**31))
@examples
def test_any_sizes(device: str, m: int, n: int, k: int, seed: int) -> None:
    a, b = _random(seed, np.float32, m, k), _random(seed + 1, np.float32, k, n)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    result = _gemm(a, b, None, expected.astype(np.float32), device)
    assert_within("GEMM", result, expected, np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))


@every_device
def test_an_addend_is_repeated_by_strides_of_zero(device: str) -> None:
    a, b, c = (_random(seed, np.float32, *s) for seed, s in enumerate([(4, 6), (6, 5), (5,)]))
    tensors = [TensorDesc(TensorDataType.FLOAT32, s) for s in [(4, 6), (6, 5)]]
    row = TensorDesc(TensorDataType.FLOAT32, (4, 5), (0, 1))
    output = TensorDesc(TensorDataType.FLOAT32, (4, 5))
    desc = descs.Gemm(*tensors, row, output, trans_a=NONE, trans_b=NONE, alpha=1.0, beta=1.0)
    result = run(desc, [a.reshape(-1), b.reshape(-1), c], device)
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert_within("GEMM", result, a @ b + c, np.abs(a) @ np.abs(b) + np.abs(c))


def _softmax(x: Array, axes: tuple[int, ...]) -> Array:
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return np.asarray(e / e.sum(axis=axes, keepdims=True))


@every_device
@pytest.mark.parametrize(
    ("activation", "formula"),
    [
        (descs.ActivationRelu, lambda x: np.maximum(x, 0)),
        (lambda: descs.ActivationLinear(alpha=0.5, beta=-1.0), lambda x: 0.5 * x - 1.0),
        (descs.ActivationTanh, np.tanh),
        (descs.ActivationSoftmax, lambda x: _softmax(x, (-1,))),
        (lambda: descs.ActivationSoftmax1(axes=[1, 2]), lambda x: _softmax(x, (1, 2))),
    ],
    ids=["relu", "linear", "tanh", "softmax", "softmax1"],
)
def test_activations_come_last(activation: Any, formula: Any, device: str) -> None:
    a, b, c = (_random(seed, np.float32, 2, *s) for seed, s in enumerate([(3, 4), (4, 5), (3, 5)]))
    expected = formula(a.astype(np.float64) @ b.astype(np.float64) + c)
    magnitude = np.abs(a) @ np.abs(b) + np.abs(c)
    fused: OperatorDesc = activation()
    result = _gemm(a, b, c, c, device, fused_activation=fused)
    # None of them is steeper than 1.
    assert_within("GEMM", result, expected, magnitude + 1)


@every_device
def test_what_a_zero_factor_multiplies_counts_where_it_is_not_finite(device: str) -> None:
    a, b = np.ones((1, 1), np.float32), np.ones((1, 2), np.float32)
    c = np.array([[np.inf, 3]], np.float32)
    np.testing.assert_array_equal(_gemm(a, b, c, c, device, beta=0.0), [[np.nan, 1]])
