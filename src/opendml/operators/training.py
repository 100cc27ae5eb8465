"""Steps of a training."""

from __future__ import annotations

import math

from opendml.operators.registry import defines
from opendml.program.functions import expm1, multiply_add, power, square_root
from opendml.program.node import Node, constant, convert


@defines("ADAM_OPTIMIZER", whole=True)
def adam_optimizer(
    parameters: Node,
    first_moment: Node,
    second_moment: Node,
    gradient: Node,
    training_step: Node,
    *,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> tuple[Node, ...]:
    """parameters - learning_rate * alpha * m / (sqrt(v) + epsilon), m and v; m = beta1 * first_moment +
    (1 - beta1) * gradient; v = beta2 * second_moment + (1 - beta2) * gradient * gradient; alpha =
    sqrt(1 - beta2 ^ training_step) / (1 - beta1 ^ training_step)

    Steps count from 1: step 0 makes NaN of the parameters, as it does in DirectML's formula, whose alpha is 0
    / 0 there. The parameters are made of m and v as they were before they were rounded to their type. Where v
    is beyond float32 it is infinite, and the step 0; where it is below float32 it is 0, and only epsilon is
    divided by. The reference device goes on with the exact numbers.
    """
    type = parameters.type
    m = multiply_add(first_moment, beta1, gradient * (1.0 - beta1))
    v = multiply_add(second_moment, beta2, gradient * (1.0 - beta2) * gradient)
    step = convert(training_step, type)
    alpha = square_root(_one_less_power(beta2, step)) / _one_less_power(beta1, step)
    return parameters - alpha * learning_rate * m / (square_root(v) + epsilon), m, v


def _one_less_power(base: float, step: Node) -> Node:
    """Return 1 - base ^ step, with all its digits where the power is about 1."""
    if base <= 0.0:
        return 1.0 - power(constant(base, step.type), step)
    return -expm1(step * math.log(base))
