"""Descriptions of DirectML's training operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc


class AdamOptimizer(OperatorDesc):
    """One Adam update step: new weights and new first and second moment estimates from a gradient.

        M = Beta1*M + (1 - Beta1)*G; V = Beta2*V + (1 - Beta2)*G*G; Alpha = sqrt(1 - pow(Beta2, T)) / (1 -
            pow(Beta1, T)); X = X - LearningRate * Alpha * M / (sqrt(V) + Epsilon); with X, M, V, G, T =
            parameters, first moment, second moment, gradient, training step; outputs are the updated X, M, V

    DML_ADAM_OPTIMIZER_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputParametersTensor may be the same
    memory as InputParametersTensor, InputFirstMomentTensor, InputSecondMomentTensor or GradientTensor.

    Tensors:
        input_parameters_tensor: input, FLOAT32, FLOAT16; 4 dimensions. Weights, {D0,D1,D2,D3}.
        input_first_moment_tensor: input, FLOAT32, FLOAT16; 4 dimensions. Same sizes; zero at the first step.
        input_second_moment_tensor: input, FLOAT32, FLOAT16; 4 dimensions. Same sizes; zero at the first step.
        gradient_tensor: input, FLOAT32, FLOAT16; 4 dimensions. Same sizes.
        training_step_tensor: input, UINT32; 4 dimensions. Scalar (all sizes 1), UINT32.
        output_parameters_tensor: output, FLOAT32, FLOAT16; 4 dimensions. Same sizes.
        output_first_moment_tensor: output, FLOAT32, FLOAT16; 4 dimensions. Same sizes.
        output_second_moment_tensor: output, FLOAT32, FLOAT16; 4 dimensions. Same sizes.

    Attributes:
        learning_rate: float. Step size.
        beta1: float. Decay of the first moment, should lie in 0..1, usually 0.9.
        beta2: float. Decay of the second moment, should lie in 0..1, usually 0.999.
        epsilon: float. Avoids division by zero, usually 1e-8 or FLT_EPSILON for 32-bit floats.
    """

    operator = "ADAM_OPTIMIZER"
    fields = (
        "input_parameters_tensor",
        "input_first_moment_tensor",
        "input_second_moment_tensor",
        "gradient_tensor",
        "training_step_tensor",
        "output_parameters_tensor",
        "output_first_moment_tensor",
        "output_second_moment_tensor",
        "learning_rate",
        "beta1",
        "beta2",
        "epsilon",
    )
    __slots__ = fields
    input_parameters_tensor: TensorDesc | None
    input_first_moment_tensor: TensorDesc | None
    input_second_moment_tensor: TensorDesc | None
    gradient_tensor: TensorDesc | None
    training_step_tensor: TensorDesc | None
    output_parameters_tensor: TensorDesc | None
    output_first_moment_tensor: TensorDesc | None
    output_second_moment_tensor: TensorDesc | None
    learning_rate: float
    beta1: float
    beta2: float
    epsilon: float

    def __init__(
        self,
        input_parameters_tensor: TensorDesc | None = None,
        input_first_moment_tensor: TensorDesc | None = None,
        input_second_moment_tensor: TensorDesc | None = None,
        gradient_tensor: TensorDesc | None = None,
        training_step_tensor: TensorDesc | None = None,
        output_parameters_tensor: TensorDesc | None = None,
        output_first_moment_tensor: TensorDesc | None = None,
        output_second_moment_tensor: TensorDesc | None = None,
        *,
        learning_rate: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
    ) -> None:
        self._fill(
            input_parameters_tensor,
            input_first_moment_tensor,
            input_second_moment_tensor,
            gradient_tensor,
            training_step_tensor,
            output_parameters_tensor,
            output_first_moment_tensor,
            output_second_moment_tensor,
            learning_rate,
            beta1,
            beta2,
            epsilon,
        )
