"""Descriptions of DirectML's activation operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.plain import as_tuple
from opendml.spec.tensor_desc import TensorDesc


class ActivationReluGrad(OperatorDesc):
    """Backpropagates a gradient through ReLU: passes it where the forward input was positive, zero elsewhere.

        OutputGradient = (Input > 0 ? InputGradient : 0)

    DML_ACTIVATION_RELU_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions. forward-pass
            input of ReLU.
        input_gradient_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions.
            Incoming gradient, same sizes.
        output_gradient_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions. Same
            sizes.
    """

    operator = "ACTIVATION_RELU_GRAD"
    fields = ("input_tensor", "input_gradient_tensor", "output_gradient_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_gradient_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_gradient_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            input_gradient_tensor,
            output_gradient_tensor,
        )


class ActivationElu(OperatorDesc):
    """Exponential linear unit on every element.

        f(x) = x if x >= 0; Alpha * (exp(x) - 1) otherwise

    DML_ACTIVATION_ELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.

    Attributes:
        alpha: float. Coefficient; usually 1.0.
    """

    operator = "ACTIVATION_ELU"
    fields = ("input_tensor", "output_tensor", "alpha")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    alpha: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        alpha: float = 1.0,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            alpha,
        )


class ActivationCelu(OperatorDesc):
    """Continuously differentiable exponential linear unit on every element.

        f(x) = max(0, x) + min(0, Alpha * (exp(x / Alpha) - 1))

    DML_ACTIVATION_CELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.

    Attributes:
        alpha: float. Coefficient; usually 1.0.
    """

    operator = "ACTIVATION_CELU"
    fields = ("input_tensor", "output_tensor", "alpha")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    alpha: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        alpha: float = 1.0,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            alpha,
        )


class ActivationHardmax(OperatorDesc):
    """For each row writes 1 at the first occurrence of the row's largest value and 0 elsewhere.

        out[b, i] = 1 if i == first index of max(in[b, :]) else 0; rows run along the last dimension

    DML_ACTIVATION_HARDMAX_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Effective
            rank (DimensionCount without leftmost dimensions of size 1) at most 2, e.g. {1, 1, BatchCount,
            Width} acts as {BatchCount, Width}.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.
    """

    operator = "ACTIVATION_HARDMAX"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ActivationHardmax1(OperatorDesc):
    """Writes 1 at the first maximum found over the given axes and 0 elsewhere.

        r = ReduceArgMax(Input, Axes, axisDirection = DML_AXIS_DIRECTION_INCREASING), broadcast back;
            Output[c] = 1 if r[c] == (index of c within the reduced axes) else 0

    DML_ACTIVATION_HARDMAX1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.

    Attributes:
        axes: Sequence[int]. Axes reduced together; each in [0, InputTensor.DimensionCount - 1].
    """

    operator = "ACTIVATION_HARDMAX1"
    fields = ("input_tensor", "output_tensor", "axes")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axes: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axes: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(axes),
        )


class ActivationHardSigmoid(OperatorDesc):
    """Piecewise-linear sigmoid on every element.

        f(x) = max(0, min(Alpha * x + Beta, 1))

    DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.

    Attributes:
        alpha: float. Coefficient; usually 0.2.
        beta: float. Coefficient; usually 0.5.
    """

    operator = "ACTIVATION_HARD_SIGMOID"
    fields = ("input_tensor", "output_tensor", "alpha", "beta")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    alpha: float
    beta: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        alpha: float = 0.2,
        beta: float = 0.5,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            alpha,
            beta,
        )


class ActivationIdentity(OperatorDesc):
    """Copies every input element to the output.

        f(x) = x

    DML_ACTIVATION_IDENTITY_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.
    """

    operator = "ACTIVATION_IDENTITY"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ActivationLeakyRelu(OperatorDesc):
    """Rectified linear unit with a constant slope for negative elements.

        f(x) = x if x >= 0; Alpha * x otherwise

    DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.

    Attributes:
        alpha: float. Slope for x < 0; usually 0.01.
    """

    operator = "ACTIVATION_LEAKY_RELU"
    fields = ("input_tensor", "output_tensor", "alpha")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    alpha: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        alpha: float = 0.01,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            alpha,
        )


class ActivationLinear(OperatorDesc):
    """Scales and shifts every element.

        f(x) = Alpha * x + Beta

    DML_ACTIVATION_LINEAR_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.

    Attributes:
        alpha: float. Scale.
        beta: float. Offset.
    """

    operator = "ACTIVATION_LINEAR"
    fields = ("input_tensor", "output_tensor", "alpha", "beta")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    alpha: float
    beta: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        alpha: float,
        beta: float,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            alpha,
            beta,
        )


class ActivationLogSoftmax(OperatorDesc):
    """Natural logarithm of softmax over each row.

        f(x_i) = ln(exp(x_i) / sum_k exp(x_k)), k over all elements along the (last) axis

    DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Effective
            rank (DimensionCount without leftmost dimensions of size 1) at most 2, e.g. {1, 1, BatchCount,
            Width} acts as {BatchCount, Width}.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.
    """

    operator = "ACTIVATION_LOG_SOFTMAX"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ActivationLogSoftmax1(OperatorDesc):
    """Natural logarithm of softmax over the given axes.

        1-D: f(x[i]) = ln(exp(x[i]) / sum(exp(x[0]), ..., exp(x[j-1]))); in general the sum runs jointly over
            all Axes

    DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.

    Attributes:
        axes: Sequence[int]. Axes reduced together; each in [0, InputTensor.DimensionCount - 1].
    """

    operator = "ACTIVATION_LOG_SOFTMAX1"
    fields = ("input_tensor", "output_tensor", "axes")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axes: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axes: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(axes),
        )


class ActivationParameterizedRelu(OperatorDesc):
    """Rectified linear unit whose negative slope is read per element from a tensor.

        f(x, slope) = x if x >= 0; slope * x otherwise

    DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below
            3_0, 4 below 2_0). Source.
        slope_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below
            3_0, 4 below 2_0). Slope for each corresponding input element; same sizes (broadcast only through
            strides).
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below
            3_0, 4 below 2_0). Same sizes as InputTensor.
    """

    operator = "ACTIVATION_PARAMETERIZED_RELU"
    fields = ("input_tensor", "slope_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    slope_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        slope_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            slope_tensor,
            output_tensor,
        )


class ActivationParametricSoftplus(OperatorDesc):
    """Softplus with output and input coefficients.

        f(x) = Alpha * ln(1 + exp(Beta * x))

    DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.

    Attributes:
        alpha: float. Output coefficient.
        beta: float. Input coefficient.
    """

    operator = "ACTIVATION_PARAMETRIC_SOFTPLUS"
    fields = ("input_tensor", "output_tensor", "alpha", "beta")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    alpha: float
    beta: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        alpha: float,
        beta: float,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            alpha,
            beta,
        )


class ActivationRelu(OperatorDesc):
    """Rectified linear unit on every element.

        f(x) = max(0, x)

    DML_ACTIVATION_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below
            3_0, 4 below 2_0). Any sizes (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8 from 5_1; 1 to 8 dimensions (4 to 5 below
            3_0, 4 below 2_0). Same sizes as InputTensor.
    """

    operator = "ACTIVATION_RELU"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ActivationScaledElu(OperatorDesc):
    """Scaled exponential linear unit on every element.

        f(x) = Gamma * x if x > 0; Gamma * (Alpha * exp(x) - Alpha) otherwise

    DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.

    Attributes:
        alpha: float. Usually 1.6732.
        gamma: float. Usually 1.0507.
    """

    operator = "ACTIVATION_SCALED_ELU"
    fields = ("input_tensor", "output_tensor", "alpha", "gamma")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    alpha: float
    gamma: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        alpha: float = 1.6732,
        gamma: float = 1.0507,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            alpha,
            gamma,
        )


class ActivationScaledTanh(OperatorDesc):
    """Scaled hyperbolic tangent on every element.

        f(x) = Alpha * tanh(Beta * x)

    DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory
    as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.

    Attributes:
        alpha: float. Usually 1.0.
        beta: float. Usually 0.5.
    """

    operator = "ACTIVATION_SCALED_TANH"
    fields = ("input_tensor", "output_tensor", "alpha", "beta")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    alpha: float
    beta: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.5,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            alpha,
            beta,
        )


class ActivationSigmoid(OperatorDesc):
    """Logistic sigmoid on every element.

        f(x) = 1 / (1 + exp(-x))

    DML_ACTIVATION_SIGMOID_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.
    """

    operator = "ACTIVATION_SIGMOID"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ActivationSoftmax(OperatorDesc):
    """Softmax over each row.

        1-D: f(x[i]) = exp(x[i]) / sum(exp(x[0]), ..., exp(x[j-1])), j = number of elements; in general over
            each row (last dimension)

    DML_ACTIVATION_SOFTMAX_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Effective
            rank (DimensionCount without leftmost dimensions of size 1) at most 2, e.g. {1, 1, BatchCount,
            Width} acts as {BatchCount, Width}.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.
    """

    operator = "ACTIVATION_SOFTMAX"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ActivationSoftmax1(OperatorDesc):
    """Softmax over the given axes.

        1-D: f(x[i]) = exp(x[i]) / sum(exp(x[0]), ..., exp(x[j-1])); in general the sum runs jointly over all
            Axes

    DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.

    Attributes:
        axes: Sequence[int]. Axes reduced together; each in [0, InputTensor.DimensionCount - 1].
    """

    operator = "ACTIVATION_SOFTMAX1"
    fields = ("input_tensor", "output_tensor", "axes")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axes: tuple[int, ...]

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axes: Sequence[int],
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            as_tuple(axes),
        )


class ActivationSoftplus(OperatorDesc):
    """Softplus with a steepness coefficient.

        f(x) = ln(1 + exp(Steepness * x)) / Steepness

    DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.

    Attributes:
        steepness: float. Usually 1.0; at least 1 below level 6_4; from 6_4 smaller values are allowed.
    """

    operator = "ACTIVATION_SOFTPLUS"
    fields = ("input_tensor", "output_tensor", "steepness")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    steepness: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        steepness: float = 1.0,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            steepness,
        )


class ActivationSoftsign(OperatorDesc):
    """Softsign on every element.

        f(x) = x / (1 + abs(x))

    DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.
    """

    operator = "ACTIVATION_SOFTSIGN"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ActivationTanh(OperatorDesc):
    """Hyperbolic tangent on every element.

        f(x) = (1 - exp(-2 * x)) / (1 + exp(-2 * x))

    DML_ACTIVATION_TANH_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.
    """

    operator = "ACTIVATION_TANH"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ActivationThresholdedRelu(OperatorDesc):
    """Passes elements above a threshold and zeroes the rest.

        f(x) = x if x > Alpha; 0 otherwise

    DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. OutputTensor may be the same
    memory as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Any sizes
            (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 to 5 below 3_0, 4 below 2_0). Same sizes
            as InputTensor.

    Attributes:
        alpha: float. Threshold; usually 1.0.
    """

    operator = "ACTIVATION_THRESHOLDED_RELU"
    fields = ("input_tensor", "output_tensor", "alpha")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    alpha: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        alpha: float = 1.0,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            alpha,
        )


class ActivationShrink(OperatorDesc):
    """Shrinks elements beyond a threshold toward zero by a bias and zeroes the rest.

        f(x) = x - Bias if x > Threshold; x + Bias if x < -Threshold; 0 otherwise

    DML_ACTIVATION_SHRINK_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_0. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 5_1; 1 to 8
            dimensions (4 to 5 below 3_0). Any sizes (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; INT32, INT16, INT8, UINT32, UINT16, UINT8 from 5_1; 1 to 8
            dimensions (4 to 5 below 3_0). Same sizes as InputTensor.

    Attributes:
        bias: float. Usually 0.0.
        threshold: float. Usually 0.5.
    """

    operator = "ACTIVATION_SHRINK"
    fields = ("input_tensor", "output_tensor", "bias", "threshold")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    bias: float
    threshold: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        bias: float = 0.0,
        threshold: float = 0.5,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            bias,
            threshold,
        )


class ActivationGelu(OperatorDesc):
    """Gaussian error linear unit (erf form) on every element.

        f(x) = 0.5 * x * (1.0 + erf(x / sqrt(2)))

    DML_ACTIVATION_GELU_OPERATOR_DESC, from DML_FEATURE_LEVEL_5_1. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.
    """

    operator = "ACTIVATION_GELU"
    fields = ("input_tensor", "output_tensor")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
        )


class ActivationSwish(OperatorDesc):
    """Swish: the element times the sigmoid of the scaled element.

        f(x) = x * Sigmoid(SigmoidInputScale * x) = x / (1 + exp(-SigmoidInputScale * x))

    DML_ACTIVATION_SWISH_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. OutputTensor may be the same memory as
    InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.

    Attributes:
        sigmoid_input_scale: float. Coefficient; usually 1.0.
    """

    operator = "ACTIVATION_SWISH"
    fields = ("input_tensor", "output_tensor", "sigmoid_input_scale")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    sigmoid_input_scale: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        sigmoid_input_scale: float = 1.0,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            sigmoid_input_scale,
        )


class ActivationHardSwish(OperatorDesc):
    """Hard swish: the element times its hard sigmoid.

        f(x) = x * HardSigmoid(x, Alpha, Beta) = x * max(0, min(Alpha * x + Beta, 1))

    DML_ACTIVATION_HARD_SWISH_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. OutputTensor may be the same memory
    as InputTensor.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Any sizes (element-wise); source.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.

    Attributes:
        alpha: float. Scale; usually 0.166667 (1/6).
        beta: float. Bias; usually 0.5.
    """

    operator = "ACTIVATION_HARD_SWISH"
    fields = ("input_tensor", "output_tensor", "alpha", "beta")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    alpha: float
    beta: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        alpha: float = 0.166667,
        beta: float = 0.5,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            alpha,
            beta,
        )
