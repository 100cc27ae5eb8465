"""The activations of `directml`: operators, and what other operators apply to what they compute."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.frontends.directml.call import output
from opendml.frontends.directml.tensors import Expression
from opendml.frontends.pydirectml import activations
from opendml.frontends.pydirectml.enumerations import OperatorType

__all__ = [
    "FusedActivation",
    "activation_celu",
    "activation_elu",
    "activation_gelu",
    "activation_hard_sigmoid",
    "activation_hardmax",
    "activation_identity",
    "activation_leaky_relu",
    "activation_linear",
    "activation_log_softmax",
    "activation_parameterized_relu",
    "activation_parametric_softplus",
    "activation_relu",
    "activation_scaled_elu",
    "activation_scaled_tanh",
    "activation_shrink",
    "activation_sigmoid",
    "activation_softmax",
    "activation_softplus",
    "activation_softsign",
    "activation_tanh",
    "activation_thresholded_relu",
]

_SCALED_ELU_ALPHA, _SCALED_ELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


class FusedActivation(activations.FusedActivation):
    __doc__ = activations.FusedActivation.__doc__

    @staticmethod
    def none() -> FusedActivation:
        """No activation."""
        return FusedActivation(OperatorType.INVALID)

    @staticmethod
    def elu(alpha: float = 1.0) -> FusedActivation:
        """ACTIVATION_ELU."""
        return FusedActivation(OperatorType.ACTIVATION_ELU, alpha)

    @staticmethod
    def hard_sigmoid(alpha: float = 0.2, beta: float = 0.5) -> FusedActivation:
        """ACTIVATION_HARD_SIGMOID."""
        return FusedActivation(OperatorType.ACTIVATION_HARD_SIGMOID, alpha, beta)

    @staticmethod
    def identity() -> FusedActivation:
        """ACTIVATION_IDENTITY."""
        return FusedActivation(OperatorType.ACTIVATION_IDENTITY)

    @staticmethod
    def leaky_relu(alpha: float = 0.01) -> FusedActivation:
        """ACTIVATION_LEAKY_RELU."""
        return FusedActivation(OperatorType.ACTIVATION_LEAKY_RELU, alpha)

    @staticmethod
    def linear(alpha: float, beta: float) -> FusedActivation:
        """ACTIVATION_LINEAR."""
        return FusedActivation(OperatorType.ACTIVATION_LINEAR, alpha, beta)

    @staticmethod
    def parametric_softplus(alpha: float, beta: float) -> FusedActivation:
        """ACTIVATION_PARAMETRIC_SOFTPLUS."""
        return FusedActivation(OperatorType.ACTIVATION_PARAMETRIC_SOFTPLUS, alpha, beta)

    @staticmethod
    def relu() -> FusedActivation:
        """ACTIVATION_RELU."""
        return FusedActivation(OperatorType.ACTIVATION_RELU)

    @staticmethod
    def scaled_elu(alpha: float = _SCALED_ELU_ALPHA, gamma: float = _SCALED_ELU_GAMMA) -> FusedActivation:
        """ACTIVATION_SCALED_ELU."""
        return FusedActivation(OperatorType.ACTIVATION_SCALED_ELU, alpha, gamma)

    @staticmethod
    def scaled_tanh(alpha: float = 1.0, beta: float = 0.5) -> FusedActivation:
        """ACTIVATION_SCALED_TANH."""
        return FusedActivation(OperatorType.ACTIVATION_SCALED_TANH, alpha, beta)

    @staticmethod
    def sigmoid() -> FusedActivation:
        """ACTIVATION_SIGMOID."""
        return FusedActivation(OperatorType.ACTIVATION_SIGMOID)

    @staticmethod
    def softplus(steepness: float = 1.0) -> FusedActivation:
        """ACTIVATION_SOFTPLUS."""
        return FusedActivation(OperatorType.ACTIVATION_SOFTPLUS, steepness)

    @staticmethod
    def softsign() -> FusedActivation:
        """ACTIVATION_SOFTSIGN."""
        return FusedActivation(OperatorType.ACTIVATION_SOFTSIGN)

    @staticmethod
    def tanh() -> FusedActivation:
        """ACTIVATION_TANH."""
        return FusedActivation(OperatorType.ACTIVATION_TANH)

    @staticmethod
    def thresholded_relu(alpha: float = 1.0) -> FusedActivation:
        """ACTIVATION_THRESHOLDED_RELU."""
        return FusedActivation(OperatorType.ACTIVATION_THRESHOLDED_RELU, alpha)

    @staticmethod
    def shrink(bias: float = 0.0, threshold: float = 0.5) -> FusedActivation:
        """ACTIVATION_SHRINK."""
        return FusedActivation(OperatorType.ACTIVATION_SHRINK, bias, threshold)

    @staticmethod
    def celu(alpha: float = 1.0) -> FusedActivation:
        """ACTIVATION_CELU."""
        return FusedActivation(OperatorType.ACTIVATION_CELU, alpha)

    @staticmethod
    def gelu() -> FusedActivation:
        """ACTIVATION_GELU, the exact form."""
        return FusedActivation(OperatorType.ACTIVATION_GELU)


def activation_relu(input: Expression) -> Expression:
    """ACTIVATION_RELU: max(0, input)."""
    return output("ACTIVATION_RELU", locals())


def activation_sigmoid(input: Expression) -> Expression:
    """ACTIVATION_SIGMOID: 1 / (1 + exp(-input))."""
    return output("ACTIVATION_SIGMOID", locals())


def activation_identity(input: Expression) -> Expression:
    """ACTIVATION_IDENTITY: a packed copy."""
    return output("ACTIVATION_IDENTITY", locals())


def activation_tanh(input: Expression) -> Expression:
    """ACTIVATION_TANH."""
    return output("ACTIVATION_TANH", locals())


def activation_gelu(input: Expression) -> Expression:
    """ACTIVATION_GELU, the exact form."""
    return output("ACTIVATION_GELU", locals())


def activation_softsign(input: Expression) -> Expression:
    """ACTIVATION_SOFTSIGN: input / (1 + abs(input))."""
    return output("ACTIVATION_SOFTSIGN", locals())


def activation_hardmax(input: Expression) -> Expression:
    """ACTIVATION_HARDMAX: 1 for the first greatest element of each row, 0 for the others. All dimensions but
    the last two are 1."""
    return output("ACTIVATION_HARDMAX", locals())


def activation_log_softmax(input: Expression) -> Expression:
    """ACTIVATION_LOG_SOFTMAX of each row. All dimensions but the last two are 1."""
    return output("ACTIVATION_LOG_SOFTMAX", locals())


def activation_softmax(input: Expression, axes: Sequence[int] = ()) -> Expression:
    """ACTIVATION_SOFTMAX1 over `axes`; without any ACTIVATION_SOFTMAX, over the last of two dimensions."""
    return output("ACTIVATION_SOFTMAX1" if axes else "ACTIVATION_SOFTMAX", locals())


def activation_linear(input: Expression, alpha: float, beta: float) -> Expression:
    """ACTIVATION_LINEAR: alpha * input + beta."""
    return output("ACTIVATION_LINEAR", locals())


def activation_elu(input: Expression, *, alpha: float = 1.0) -> Expression:
    """ACTIVATION_ELU: input where it is positive, alpha * (exp(input) - 1) elsewhere."""
    return output("ACTIVATION_ELU", locals())


def activation_celu(input: Expression, *, alpha: float = 1.0) -> Expression:
    """ACTIVATION_CELU: max(0, input) + min(0, alpha * (exp(input / alpha) - 1))."""
    return output("ACTIVATION_CELU", locals())


def activation_hard_sigmoid(input: Expression, *, alpha: float = 0.2, beta: float = 0.5) -> Expression:
    """ACTIVATION_HARD_SIGMOID: alpha * input + beta, from 0 to 1."""
    return output("ACTIVATION_HARD_SIGMOID", locals())


def activation_leaky_relu(input: Expression, *, alpha: float = 0.01) -> Expression:
    """ACTIVATION_LEAKY_RELU: input where it is positive, alpha * input elsewhere."""
    return output("ACTIVATION_LEAKY_RELU", locals())


def activation_parameterized_relu(input: Expression, slope: Expression) -> Expression:
    """ACTIVATION_PARAMETERIZED_RELU: input where it is positive, slope * input elsewhere."""
    return output("ACTIVATION_PARAMETERIZED_RELU", locals())


def activation_parametric_softplus(input: Expression, *, alpha: float, beta: float) -> Expression:
    """ACTIVATION_PARAMETRIC_SOFTPLUS: alpha * log(1 + exp(beta * input))."""
    return output("ACTIVATION_PARAMETRIC_SOFTPLUS", locals())


def activation_scaled_elu(
    input: Expression, *, alpha: float = _SCALED_ELU_ALPHA, gamma: float = _SCALED_ELU_GAMMA
) -> Expression:
    """ACTIVATION_SCALED_ELU: gamma times ACTIVATION_ELU."""
    return output("ACTIVATION_SCALED_ELU", locals())


def activation_scaled_tanh(input: Expression, *, alpha: float = 1.0, beta: float = 0.5) -> Expression:
    """ACTIVATION_SCALED_TANH: alpha * tanh(beta * input)."""
    return output("ACTIVATION_SCALED_TANH", locals())


def activation_shrink(input: Expression, *, bias: float = 0.0, threshold: float = 0.5) -> Expression:
    """ACTIVATION_SHRINK: 0 within the threshold around 0, nearer to 0 by the bias outside."""
    return output("ACTIVATION_SHRINK", locals())


def activation_softplus(input: Expression, *, steepness: float = 1.0) -> Expression:
    """ACTIVATION_SOFTPLUS: log(1 + exp(steepness * input)) / steepness."""
    return output("ACTIVATION_SOFTPLUS", locals())


def activation_thresholded_relu(input: Expression, *, alpha: float = 1.0) -> Expression:
    """ACTIVATION_THRESHOLDED_RELU: input where it is greater than alpha, 0 elsewhere."""
    return output("ACTIVATION_THRESHOLDED_RELU", locals())
