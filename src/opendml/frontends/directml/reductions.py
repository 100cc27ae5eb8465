"""The operators of `directml` that reduce and count, and its random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opendml.frontends.directml.call import output, outputs, present, truth
from opendml.frontends.directml.tensors import Expression, tensor
from opendml.frontends.pydirectml.data_types import DataType
from opendml.frontends.pydirectml.enumerations import AxisDirection, RandomGeneratorType, ReduceFunction

__all__ = [
    "NonZeroCoordinatesOutputs",
    "RandomGeneratorOutputs",
    "cumulative_product",
    "cumulative_summation",
    "non_zero_coordinates",
    "random_generator",
    "reduce",
]


class NonZeroCoordinatesOutputs(NamedTuple):
    """What `non_zero_coordinates` gives: how many there are, and where, in the first so many rows."""

    count: Expression  # type: ignore[assignment]
    coordinates: Expression


class RandomGeneratorOutputs(NamedTuple):
    """What `random_generator` gives: numbers and, unless it is refused, the state for the next ones."""

    values: Expression
    state: Expression | None


def reduce(
    input: Expression,
    *,
    function: ReduceFunction,
    axes: Sequence[int] = (),
    output_dtype: DataType | None = None,
) -> Expression:
    """REDUCE: one number for all along the axes, which become 1; without any, all axes.

    Args:
        input: a tensor.
        function: what becomes of the numbers.
        axes: which axes.
        output_dtype: the type of the result; None: the input's, and UINT32 for ARGMIN and ARGMAX.
    """
    every = range(len(tensor(input, "reduce.input").desc.sizes))
    return output("REDUCE", {**locals(), "axes": tuple(axes) or tuple(every)}, dtype=output_dtype)


def cumulative_summation(
    input: Expression,
    *,
    axis: int,
    axis_direction: AxisDirection = AxisDirection.INCREASING,
    has_exclusive_sum: bool = False,
) -> Expression:
    """CUMULATIVE_SUMMATION: sums of the elements up to each, without it if the sum is exclusive."""
    return output("CUMULATIVE_SUMMATION", locals())


def cumulative_product(
    input: Expression,
    *,
    axis: int,
    axis_direction: AxisDirection = AxisDirection.INCREASING,
    has_exclusive_product: bool = False,
) -> Expression:
    """CUMULATIVE_PRODUCT: products of the elements up to each, without it if the product is exclusive."""
    return output("CUMULATIVE_PRODUCT", locals())


def non_zero_coordinates(input: Expression) -> NonZeroCoordinatesOutputs:
    """NONZERO_COORDINATES: where the elements are that are not 0."""
    count, coordinates = outputs("NONZERO_COORDINATES", locals())
    return NonZeroCoordinatesOutputs(present(count), present(coordinates))


def random_generator(
    input_state: Expression,
    *,
    output_sizes: Sequence[int],
    output_state: bool = True,
    type: RandomGeneratorType = RandomGeneratorType.PHILOX_4X32_10,
) -> RandomGeneratorOutputs:
    """RANDOM_GENERATOR: random bits in UINT32, which follow from the state of six numbers."""
    wanted = ["output_state"] if truth(output_state, "random_generator.output_state") else []
    values, state = outputs("RANDOM_GENERATOR", locals(), sizes=output_sizes, wanted=wanted)
    return RandomGeneratorOutputs(present(values), state)
