"""Immediate functions: one per operator, arrays in, arrays out.

Generated from opendml/spec/data by `python -m opendml.spec.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from opendml.runtime.immediate import call
from opendml.spec.operator_desc import OperatorDesc

if TYPE_CHECKING:
    from opendml.runtime.device import Device

T = TypeVar("T")

__all__ = [
    "activation_celu",
    "activation_elu",
    "activation_gelu",
    "activation_hard_sigmoid",
    "activation_identity",
    "activation_leaky_relu",
    "activation_linear",
    "activation_parametric_softplus",
    "activation_relu",
    "activation_scaled_elu",
    "activation_scaled_tanh",
    "activation_shrink",
    "activation_sigmoid",
    "activation_softplus",
    "activation_softsign",
    "activation_tanh",
    "activation_thresholded_relu",
    "mean_variance_normalization1",
]


def mean_variance_normalization1(
    input: T,
    scale: T | None = None,
    bias: T | None = None,
    *,
    axes: Sequence[int],
    normalize_variance: bool = True,
    epsilon: float = 1e-05,
    fused_activation: OperatorDesc | None = None,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Normalizes the input by mean and (optionally) variance computed over the listed axes, then applies
    optional scale, bias and fused activation.

        Mean, Variance over Axes. NormalizeVariance: Output = FusedActivation(Scale * ((Input - Mean) /
            sqrt(Variance + Epsilon)) + Bias); otherwise Output = FusedActivation(Scale * (Input - Mean) +
            Bias)

    DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). { BatchCount, ChannelCount, Height,
            Width } in the 4D case.
        scale: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Before 4_0: { 1 or
            BatchCount, ChannelCount, 1 or Height, 1 or Width }; from 4_0 any dimension may be 1 (broadcast)
            or equal to InputTensor. Before 5_2 required when BiasTensor is present; from 5_2 independent of
            BiasTensor.
        bias: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Sizes as ScaleTensor. Before
            5_2 required when ScaleTensor is present; from 5_2 independent of ScaleTensor.
        axes: Axes reduced for mean and variance; on a 4D tensor {2,3} equals MEAN_VARIANCE_NORMALIZATION with
            CrossChannel FALSE, {1,2,3} with CrossChannel TRUE.
        normalize_variance: FALSE leaves the division by sqrt(Variance + Epsilon) out.
        epsilon: Added to the variance; recommended default 0.00001.
        fused_activation: Activation operator applied last; its own InputTensor/OutputTensor are null.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call(
        "MEAN_VARIANCE_NORMALIZATION1",
        (input, scale, bias),
        (axes, normalize_variance, epsilon, fused_activation),
        out,
        device,
    )
    return results


def activation_elu(
    input: T,
    *,
    alpha: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Exponential linear unit on every element.

        f(x) = x if x >= 0; Alpha * (exp(x) - 1) otherwise

    DML_ACTIVATION_ELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.453, FLOAT16 0.532.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Coefficient; typical default 1.0.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_ELU", (input,), (alpha,), out, device)
    return results


def activation_celu(
    input: T,
    *,
    alpha: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Continuously differentiable exponential linear unit on every element.

        f(x) = max(0, x) + min(0, Alpha * (exp(x / Alpha) - 1))

    DML_ACTIVATION_CELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.583, FLOAT16 0.537.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        alpha: Coefficient; typical default 1.0 (page gives no range; Alpha 0 would divide by zero).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_CELU", (input,), (alpha,), out, device)
    return results


def activation_hard_sigmoid(
    input: T,
    *,
    alpha: float = 0.2,
    beta: float = 0.5,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Piecewise-linear sigmoid on every element.

        f(x) = max(0, min(Alpha * x + Beta, 1))

    DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Coefficient; typical default 0.2.
        beta: Coefficient; typical default 0.5.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_HARD_SIGMOID", (input,), (alpha, beta), out, device)
    return results


def activation_identity(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Copies every input element to the output.

        f(x) = x

    DML_ACTIVATION_IDENTITY_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_IDENTITY", (input,), (), out, device)
    return results


def activation_leaky_relu(
    input: T,
    *,
    alpha: float = 0.01,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Rectified linear unit with a constant slope for negative elements.

        f(x) = x if x >= 0; Alpha * x otherwise

    DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Slope for x < 0; typical default 0.01.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_LEAKY_RELU", (input,), (alpha,), out, device)
    return results


def activation_linear(
    input: T,
    *,
    alpha: float,
    beta: float,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Scales and shifts every element.

        f(x) = Alpha * x + Beta

    DML_ACTIVATION_LINEAR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.501.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Scale; no default given.
        beta: Offset; no default given.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_LINEAR", (input,), (alpha, beta), out, device)
    return results


def activation_parametric_softplus(
    input: T,
    *,
    alpha: float,
    beta: float,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Softplus with output and input coefficients.

        f(x) = Alpha * ln(1 + exp(Beta * x))

    DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 2.852, FLOAT16 0.522.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Output coefficient; no default given.
        beta: Input coefficient; no default given.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_PARAMETRIC_SOFTPLUS", (input,), (alpha, beta), out, device)
    return results


def activation_relu(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Rectified linear unit on every element.

        f(x) = max(0, x)

    DML_ACTIVATION_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below 3_0, 4
            below 2_0). Any sizes (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_RELU", (input,), (), out, device)
    return results


def activation_scaled_elu(
    input: T,
    *,
    alpha: float = 1.6732,
    gamma: float = 1.0507,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Scaled exponential linear unit on every element.

        f(x) = Gamma * x if x > 0; Gamma * (Alpha * exp(x) - Alpha) otherwise

    DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.708, FLOAT16 0.536.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Typical default 1.6732.
        gamma: Typical default 1.0507.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_SCALED_ELU", (input,), (alpha, gamma), out, device)
    return results


def activation_scaled_tanh(
    input: T,
    *,
    alpha: float = 1.0,
    beta: float = 0.5,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Scaled hyperbolic tangent on every element.

        f(x) = Alpha * tanh(Beta * x)

    DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.946, FLOAT16 0.54.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Typical default 1.0.
        beta: Typical default 0.5.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_SCALED_TANH", (input,), (alpha, beta), out, device)
    return results


def activation_sigmoid(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Logistic sigmoid on every element.

        f(x) = 1 / (1 + exp(-x))

    DML_ACTIVATION_SIGMOID_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.603, FLOAT16 0.505.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_SIGMOID", (input,), (), out, device)
    return results


def activation_softplus(
    input: T,
    *,
    steepness: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Softplus with a steepness coefficient.

        f(x) = ln(1 + exp(Steepness * x)) / Steepness

    DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 2.772, FLOAT16 0.519.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        steepness: Typical default 1.0; must be >= 1 below level 6_4 (page: cannot be less than 1); from 6_4
            values below 1 are allowed (level history).
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_SOFTPLUS", (input,), (steepness,), out, device)
    return results


def activation_softsign(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Softsign on every element.

        f(x) = x / (1 + abs(x))

    DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.496, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_SOFTSIGN", (input,), (), out, device)
    return results


def activation_tanh(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Hyperbolic tangent on every element.

        f(x) = (1 - exp(-2 * x)) / (1 + exp(-2 * x))

    DML_ACTIVATION_TANH_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 1.067, FLOAT16 0.54.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_TANH", (input,), (), out, device)
    return results


def activation_thresholded_relu(
    input: T,
    *,
    alpha: float = 1.0,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Passes elements above a threshold and zeroes the rest.

        f(x) = x if x > Alpha; 0 otherwise

    DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0, FLOAT16 0.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        alpha: Threshold; typical default 1.0.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_THRESHOLDED_RELU", (input,), (alpha,), out, device)
    return results


def activation_shrink(
    input: T,
    *,
    bias: float = 0.0,
    threshold: float = 0.5,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Shrinks elements beyond a threshold toward zero by a bias and zeroes the rest.

        f(x) = x - Bias if x > Threshold; x + Bias if x < -Threshold; 0 otherwise

    DML_ACTIVATION_SHRINK_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 0.5, FLOAT16 0.5.

    Args:
        input: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 5_1; 1 to 8 dimensions
            (4 to 5 below 3_0). Any sizes (element-wise); source.
        bias: Typical default 0.0.
        threshold: Typical default 0.5.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_SHRINK", (input,), (bias, threshold), out, device)
    return results


def activation_gelu(
    input: T,
    *,
    out: T | None = None,
    device: str | Device | None = None,
) -> T:
    """Gaussian error linear unit (erf form) on every element.

        f(x) = 0.5 * x * (1.0 + erf(x / sqrt(2)))

    DML_ACTIVATION_GELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. OutputTensor may be the same memory as
    InputTensor.

    Greatest distance from the exact result, in ULP: FLOAT32 2.62, FLOAT16 0.539.

    Args:
        input: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        out: Where to write; a new array (of the inputs' kind) when None.
        device: Where to run; the default device when None.
    """
    results: T = call("ACTIVATION_GELU", (input,), (), out, device)
    return results
