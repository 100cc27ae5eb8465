"""Programs for the checks of the CUDA target: every operator, layout and schedule, with random inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

import opendml as dml
from opendml.program.program import Layout
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import AxisDirection, ReduceFunction, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from tools.cuda_case import Case
from tools.cuda_chain_cases import chain_cases
from tools.cuda_contraction_cases import contraction_cases
from tools.cuda_operand_cases import operand_cases
from tools.cuda_placing_cases import placing_cases
from tools.cuda_sequence_cases import sequence_cases
from tools.cuda_training_cases import training_cases
from tools.cuda_view_cases import view_cases
from tools.cuda_window_cases import window_cases
from tools.pointwise_cases import OPERATORS, desc_of, random_values, type_combinations

FLOATS = (dml.FLOAT32, dml.FLOAT16)

ACTIVATIONS: dict[str, dict[str, float]] = {
    "celu": {"alpha": 0.7},
    "elu": {"alpha": 1.3},
    "gelu": {},
    "hard_sigmoid": {"alpha": 0.2, "beta": 0.5},
    "identity": {},
    "leaky_relu": {"alpha": 0.01},
    "linear": {"alpha": 0.5, "beta": 1.0},
    "parametric_softplus": {"alpha": 0.5, "beta": 2.0},
    "relu": {},
    "scaled_elu": {"alpha": 1.67, "gamma": 1.05},
    "scaled_tanh": {"alpha": 1.5, "beta": 0.5},
    "shrink": {"bias": 0.5, "threshold": 0.6},
    "sigmoid": {},
    "softplus": {"steepness": 1.5},
    "softsign": {},
    "tanh": {},
    "thresholded_relu": {"alpha": 0.3},
}
"""All activations that may be fused, by their names in Python, with attributes."""


def activation_desc(name: str, input: TensorDesc, output: TensorDesc, **attributes: float) -> OperatorDesc:
    """The desc of an activation by its name in Python."""
    camel = "".join(part.capitalize() for part in name.split("_"))
    result: OperatorDesc = getattr(descs, f"Activation{camel}")(input, output, **attributes)
    return result


def normalization_desc(
    data_type: TensorDataType,
    sizes: Sequence[int],
    axes: Sequence[int],
    *,
    parameter_axes: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    normalize_variance: bool = True,
    epsilon: float = 1e-5,
    fused: OperatorDesc | None = None,
) -> OperatorDesc:
    """MEAN_VARIANCE_NORMALIZATION1 with a scale and a bias that vary along `parameter_axes` (None: without
    them).
    """
    input = TensorDesc(data_type, sizes, strides)
    parameters = None
    if parameter_axes is not None:
        kept = [size if axis in parameter_axes else 1 for axis, size in enumerate(sizes)]
        parameters = TensorDesc(data_type, kept)
    return descs.MeanVarianceNormalization1(
        input,
        parameters,
        parameters,
        TensorDesc(data_type, sizes),
        axes=axes,
        normalize_variance=normalize_variance,
        epsilon=epsilon,
        fused_activation=fused,
    )


def all_cases() -> Iterator[Case]:
    """Yield small cases of everything."""
    yield from activation_cases()
    yield from pointwise_cases()
    yield from layout_cases()
    yield from normalization_cases()
    yield from reduction_cases()
    yield from view_cases()
    yield from contraction_cases()
    yield from operand_cases()
    yield from chain_cases()
    yield from sequence_cases()
    yield from placing_cases()
    yield from training_cases()
    yield from window_cases()


def activation_cases() -> Iterator[Case]:
    """Each activation alone, on an odd number of elements."""
    for data_type in FLOATS:
        for name, attributes in ACTIVATIONS.items():
            tensor = TensorDesc(data_type, (1, 3, 7, 1003))
            desc = activation_desc(name, tensor, tensor, **attributes)
            yield Case(f"{name} {data_type.name}", program_of(desc))


def pointwise_cases() -> Iterator[Case]:
    """Each point-wise operator on some of its types, on an odd number of elements; CAST on more."""
    for name in OPERATORS:
        combinations = list(type_combinations(name))
        if name == "ELEMENT_WISE_POW":
            # The reference of an integer with a float exponent has more digits than FLOAT32.
            combinations = [
                t for t in combinations if t["InputTensor"][0] == "F" or t["ExponentTensor"][0] != "F"
            ]
        step = 7 if name == "CAST" else max(1, len(combinations) // 3)
        for types in combinations[::step]:
            program = program_of(desc_of(name, types, 3001))
            yield Case(f"{name} {' '.join(types.values())}", program, special=True)


def layout_cases() -> Iterator[Case]:
    """Two activations on strided, broadcast, transposed, misaligned tensors."""
    sizes = (2, 40, 30, 72)
    nchw = tuple(math.prod(sizes[i + 1 :]) for i in range(4))
    layouts: dict[str, tuple[int, ...]] = {
        "padded": (40 * 30 * 80, 30 * 80, 80, 1),
        "padded odd": (40 * 30 * 73, 30 * 73, 73, 1),
        "broadcast channels": (30 * 72, 0, 72, 1),
        "broadcast columns": (40 * 30, 30, 1, 0),
        "NHWC": (30 * 72 * 40, 1, 72 * 40, 40),
        "every second": tuple(2 * stride for stride in nchw),
    }
    for data_type in FLOATS:
        for layout, strides in layouts.items():
            for name in ("celu", "hard_sigmoid"):
                input, output = TensorDesc(data_type, sizes, strides), TensorDesc(data_type, sizes)
                attributes = ACTIVATIONS[name]
                forth = program_of(activation_desc(name, input, output, **attributes))
                yield Case(f"{name} {data_type.name} from {layout}", forth)
                if "broadcast" not in layout:
                    back = program_of(activation_desc(name, output, input, **attributes))
                    yield Case(f"{name} {data_type.name} to {layout}", back, offset=3)
        for offset in (1, 2, 4):
            tensor = TensorDesc(data_type, (5, 1001))
            program = program_of(activation_desc("celu", tensor, tensor, alpha=1.0))
            yield Case(f"celu {data_type.name} offset {offset}", program, offset=offset)


NORMALIZED = (
    ((4, 16, 14, 28), ((2, 3), (0, 2, 3), (1, 2, 3), (3,), (1,), (0,), (0, 1, 2, 3), (1, 3), (2,))),
    ((6, 32, 7, 7), ((2, 3), (0, 2, 3), (1, 2, 3), (3,), (1,), (0, 1))),
    ((3, 8, 56, 112), ((2, 3), (0, 2, 3), (1, 2, 3), (0, 1, 2, 3))),
    ((2, 3, 224, 224), ((2, 3), (1, 2, 3), (1,), (0, 2, 3))),
    ((40, 1, 1, 8192), ((3,), (0, 2, 3), (0,))),
    ((2, 1500, 1, 64), ((1,), (2, 3), (1, 2, 3))),
    ((1, 70000, 1, 9), ((1,), (1, 3), (3,))),
    ((12, 6, 160, 160), ((2, 3),)),
    ((12, 1, 480, 512), ((2, 3),)),
    ((8, 2000, 1, 256), ((1,),)),
    ((16, 800, 1, 129), ((1,),)),
    ((5, 3, 33, 31), ((2, 3), (0, 2, 3), (1,), (3,))),
    ((2, 3, 201, 203), ((2, 3),)),
)
"""Sizes, and the axes that are normalized in them."""

UNALIGNED = (
    ((3, 2048, 7, 7), ((1, 2, 3), (1,))),
    ((256, 16, 7, 7), ((0, 2, 3),)),
    ((2100, 8, 3, 5), ((0, 2, 3),)),
    ((2, 64, 3, 37), ((1,), (1, 2, 3))),
    ((8, 20, 27, 27), ((0, 2, 3),)),
    ((2, 3, 4, 5, 241), ((0, 2, 4),)),
)
"""Cases with rows that are no multiples of 16 bytes though all of them together are."""

BROADCAST = (
    ((3, 600, 7, 7), (1, 2, 3), ((0,), (0, 1), (2, 3), (3,), (0, 1, 2, 3), None)),
    ((3, 600, 7, 7), (1,), ((0, 1), (2, 3), (0, 1, 2, 3), None)),
    ((64, 16, 7, 7), (0, 2, 3), ((0,), (2, 3), (0, 1, 2, 3), None)),
    ((8, 4, 27, 27), (0, 2, 3), ((0,), (2, 3), (0, 1, 2, 3), None)),
)
"""Sizes, axes, and the axes along which scale and bias vary."""


def normalization_cases() -> Iterator[Case]:
    """Normalizations over all kinds of groups."""
    relu = descs.ActivationRelu()
    for data_type in FLOATS:
        for sizes, many_axes in NORMALIZED:
            for axes in many_axes:
                parameter_axes = (3,) if axes == (3,) else (1,)
                desc = normalization_desc(data_type, sizes, axes, parameter_axes=parameter_axes, fused=relu)
                yield Case(f"normalization {data_type.name} {sizes} {axes}", program_of(desc))
        yield from unaligned_cases(data_type)
        plain = normalization_desc(data_type, (4, 8, 16, 33), (2, 3), normalize_variance=False)
        yield Case(f"centering {data_type.name}", program_of(plain))
        full = normalization_desc(data_type, (4, 8, 16, 32), (1, 3), parameter_axes=(0, 1, 2, 3))
        yield Case(f"normalization {data_type.name} with full scale", program_of(full), offset=1)
        padded = (8 * 16 * 40, 16 * 40, 40, 1)
        strided = normalization_desc(data_type, (4, 8, 16, 33), (2, 3), strides=padded)
        yield Case(f"normalization {data_type.name} of padded rows", program_of(strided))
        channels_last = (8 * 16 * 32, 1, 32 * 8, 8)
        strided = normalization_desc(data_type, (4, 8, 16, 32), (2, 3), strides=channels_last)
        yield Case(f"normalization {data_type.name} of NHWC", program_of(strided))
    for sizes, axes in (
        ((8, 16, 56, 56), (2, 3)),
        ((8, 16, 56, 56), (0, 2, 3)),
        ((8, 64, 56, 56), (1,)),
        ((1, 1, 1024, 2048), (2, 3)),
        ((2, 1024, 7, 7), (1,)),
        ((256, 16, 7, 7), (0, 2, 3)),
    ):
        desc = normalization_desc(dml.FLOAT32, sizes, axes, epsilon=1e-12)
        yield Case(f"normalization far from zero {sizes} {axes}", program_of(desc), mean=1e4, deviation=1.0)


REDUCED: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((5, 6, 7, 130), (3,)),
    ((5, 6, 7, 130), (0, 2)),
    ((3, 70001), (1,)),
    ((3000, 70), (0,)),
)
"""Sizes, and the axes that are reduced in them: groups along the innermost loop and side by side, small and
large."""

LINES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((2, 65536), 1),
    ((3, 50001), 1),
    ((30000, 3), 0),
    ((1, 4_400_000), 1),
    ((40, 70_000), 1),
    ((5000, 70), 0),
    ((7, 20000), 1),
    ((30, 5000), 1),
    ((600, 3000), 1),
    ((300, 3000), 0),
    ((100, 9000), 0),
    ((20, 70_000), 0),
)
"""Sizes with long lines, and the axis that these run along: first, few that several blocks share."""
_SHARED_LINES = 4
"""Those of them that are run in all types."""


def reduction_cases() -> Iterator[Case]:
    """Reductions of every function, softmax and its relatives, running sums and products, local responses."""
    for function in ReduceFunction:
        tables = operator("REDUCE").support
        types = next(table for table in tables if function.name in (table.functions or ())).tensors
        for number, name in enumerate(types["InputTensor"].types[::3]):
            for sizes, axes in REDUCED if number == 0 else REDUCED[:2]:
                desc = _reduction(function, TensorDesc(TensorDataType[name], sizes), axes)
                title = f"reduction {function.name} {name} {sizes} {axes}"
                yield Case(title, program_of(desc), special=name[0] != "F", mean=1.0, deviation=0.1)
            # Of elements of all sizes beside positions of 4 bytes.
            if function in (ReduceFunction.ARGMIN, ReduceFunction.ARGMAX):
                desc = _reduction(function, TensorDesc(TensorDataType[name], (4, 30, 9)), (0, 2))
                yield Case(f"search {function.name} {name}", program_of(desc), special=name[0] != "F")
    for data_type, (sizes, axes) in product(FLOATS, REDUCED):
        tensor = TensorDesc(data_type, sizes)
        for kind in (descs.ActivationSoftmax1, descs.ActivationLogSoftmax1, descs.ActivationHardmax1):
            activation = kind(tensor, tensor, axes=axes)
            title = f"{activation.operator} {data_type.name} {sizes} {axes}"
            # The rounding of x - max counts as often as e-folds lie between them.
            yield Case(title, program_of(activation), ulps=24)
    yield from _long_group_cases()
    for data_type, (sizes, axes) in product((*FLOATS, dml.INT32), REDUCED):
        for direction in AxisDirection:
            yield from _running_cases(TensorDesc(data_type, sizes), axes[0], direction)
    for data_type in (*FLOATS, dml.INT32, dml.INT64):
        for (sizes, axis), direction in product(
            LINES if data_type == dml.FLOAT32 else LINES[:_SHARED_LINES], AxisDirection
        ):
            yield from _running_cases(TensorDesc(data_type, sizes), axis, direction)
    image = TensorDesc(dml.FLOAT32, (2, 20, 9, 11))
    for across in (True, False):
        response = descs.LocalResponseNormalization(image, image, cross_channel=across, local_size=5)
        yield Case(f"{response.operator} {across}", program_of(response))


LONG: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((12, 1000), (1,)),
    ((700, 600), (1,)),
    ((3, 90, 2, 52), (1, 3)),
    ((2, 1, 140, 256), (2, 3)),
)
"""Sizes, and axes of groups that are worth a block or more: few and many, in rows that lie apart, and for
several blocks."""


def _long_group_cases() -> Iterator[Case]:
    """Softmax, hardmax and a reduction of two passes over such groups."""
    for data_type, (sizes, axes) in product(FLOATS, LONG):
        tensor = TensorDesc(data_type, sizes)
        softmax = descs.ActivationSoftmax1(tensor, tensor, axes=axes)
        yield Case(f"{softmax.operator} {data_type.name} {sizes} {axes}", program_of(softmax), ulps=24)
        hardmax = descs.ActivationHardmax1(tensor, tensor, axes=axes)
        yield Case(f"{hardmax.operator} {data_type.name} {sizes} {axes}", program_of(hardmax))
        desc = _reduction(ReduceFunction.LOG_SUM_EXP, tensor, axes)
        yield Case(f"reduction LOG_SUM_EXP {data_type.name} {sizes} {axes}", program_of(desc))


def _reduction(function: ReduceFunction, input: TensorDesc, axes: Sequence[int]) -> OperatorDesc:
    kept = [1 if axis in axes else size for axis, size in enumerate(input.sizes)]
    searches = function in (ReduceFunction.ARGMIN, ReduceFunction.ARGMAX)
    output = TensorDesc(dml.UINT32 if searches else input.data_type, kept)
    return descs.Reduce(input, output, function=function, axes=axes)


def _running_cases(tensor: TensorDesc, axis: int, direction: AxisDirection) -> Iterator[Case]:
    """A running sum, downwards without the element itself, and a running product."""
    down = direction is AxisDirection.DECREASING
    total = descs.CumulativeSummation(
        tensor, tensor, axis=axis, axis_direction=direction, has_exclusive_sum=down
    )
    product_desc = descs.CumulativeProduct(tensor, tensor, axis=axis, axis_direction=direction)
    for desc in (total, product_desc):
        title = f"{desc.operator} {tensor.data_type.name} {list(tensor.sizes)} {axis} {direction.name}"
        special = tensor.data_type not in FLOATS
        yield Case(title, program_of(desc), special=special, mean=1.0, deviation=0.001)


def unaligned_cases(data_type: TensorDataType) -> Iterator[Case]:
    """Normalizations whose rows are not aligned, with scales and biases of all shapes."""
    for sizes, many_axes in UNALIGNED:
        for axes in many_axes:
            desc = normalization_desc(data_type, sizes, axes, parameter_axes=(1,))
            yield Case(f"normalization {data_type.name} unaligned {sizes} {axes}", program_of(desc))
            centered = normalization_desc(data_type, sizes, axes, normalize_variance=False)
            name = f"centering {data_type.name} unaligned {sizes} {axes}"
            yield Case(name, program_of(centered), offset=4)
    for sizes, axes, many_parameter_axes in BROADCAST if data_type == dml.FLOAT32 else ():
        for parameter_axes in many_parameter_axes:
            desc = normalization_desc(data_type, sizes, axes, parameter_axes=parameter_axes)
            name = f"normalization {data_type.name} {sizes} {axes} with scale along {parameter_axes}"
            yield Case(name, program_of(desc))


def random_input(
    layout: Layout, generator: np.random.Generator, case: Case
) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Random bytes for a tensor from its first element on, with `case.offset` elements before it."""
    count = layout.span[1] // layout.type.bytes + case.offset
    if case.special:
        return random_values(generator, layout.type, max(count, 16))[:count].view(np.uint8)
    values = generator.normal(case.mean, case.deviation, count).astype(layout.type.numpy)
    return values.view(np.uint8)
