"""Descriptions of DirectML's normalization operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.plain import as_tuple
from opendml.spec.tensor_desc import TensorDesc


class BatchNormalization(OperatorDesc):
    """Normalizes the input with given mean and variance, then scales, shifts and optionally activates.

        Output = FusedActivation(Scale * ((Input - Mean) / sqrt(Variance + Epsilon)) + Bias)

    DML_BATCH_NORMALIZATION_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Any sizes.
        mean_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Each dimension equal to the
            input one or 1 (broadcast).
        variance_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). As MeanTensor.
        scale_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). As MeanTensor.
        bias_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). As MeanTensor.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Sizes of InputTensor.

    Attributes:
        spatial: bool. FALSE required unbroadcast Width and Height in Mean and Variance; deprecated and
            without effect from 4_0.
        epsilon: float. Added to the variance against division by zero.
        fused_activation: OperatorDesc, optional. Activation applied last.
    """

    operator = "BATCH_NORMALIZATION"
    fields = (
        "input_tensor",
        "mean_tensor",
        "variance_tensor",
        "scale_tensor",
        "bias_tensor",
        "output_tensor",
        "spatial",
        "epsilon",
        "fused_activation",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    mean_tensor: TensorDesc | None
    variance_tensor: TensorDesc | None
    scale_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    spatial: bool
    epsilon: float
    fused_activation: OperatorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        mean_tensor: TensorDesc | None = None,
        variance_tensor: TensorDesc | None = None,
        scale_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        spatial: bool = True,
        epsilon: float,
        fused_activation: OperatorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            mean_tensor,
            variance_tensor,
            scale_tensor,
            bias_tensor,
            output_tensor,
            spatial,
            epsilon,
            fused_activation,
        )


class BatchNormalizationGrad(OperatorDesc):
    """Gradients of batch normalization with fixed statistics.

        OutputGradient = InputGradient * (Scale / sqrt(Variance + Epsilon)); OutputScaleGradient =
            sum(InputGradient * (Input - Mean) / sqrt(Variance + Epsilon)); OutputBiasGradient =
            sum(InputGradient)

    DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Forward input.
        input_gradient_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Incoming gradient, Sizes of
            InputTensor.
        mean_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Statistics shape: each dimension 1 or the
            input size.
        variance_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. As MeanTensor.
        scale_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. As MeanTensor.
        output_gradient_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of InputTensor.
        output_scale_gradient_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of MeanTensor.
        output_bias_gradient_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of MeanTensor.

    Attributes:
        epsilon: float. Added to the variance.
    """

    operator = "BATCH_NORMALIZATION_GRAD"
    fields = (
        "input_tensor",
        "input_gradient_tensor",
        "mean_tensor",
        "variance_tensor",
        "scale_tensor",
        "output_gradient_tensor",
        "output_scale_gradient_tensor",
        "output_bias_gradient_tensor",
        "epsilon",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_gradient_tensor: TensorDesc | None
    mean_tensor: TensorDesc | None
    variance_tensor: TensorDesc | None
    scale_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    output_scale_gradient_tensor: TensorDesc | None
    output_bias_gradient_tensor: TensorDesc | None
    epsilon: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_gradient_tensor: TensorDesc | None = None,
        mean_tensor: TensorDesc | None = None,
        variance_tensor: TensorDesc | None = None,
        scale_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        output_scale_gradient_tensor: TensorDesc | None = None,
        output_bias_gradient_tensor: TensorDesc | None = None,
        *,
        epsilon: float,
    ) -> None:
        self._fill(
            input_tensor,
            input_gradient_tensor,
            mean_tensor,
            variance_tensor,
            scale_tensor,
            output_gradient_tensor,
            output_scale_gradient_tensor,
            output_bias_gradient_tensor,
            epsilon,
        )


class BatchNormalizationTrainingGrad(OperatorDesc):
    """Gradients of batch normalization whose statistics came from the batch itself.

        Coef0 = 1 / sqrt(Variance + Epsilon); Coef1 = InputGradient * (Input - mean(Input));
            InputGradientCentered = InputGradient - mean(InputGradient); InputCentered = Input - mean(Input);
            OutputGradient = Scale * Coef0 * (InputGradientCentered - InputCentered * mean(Coef1) / (Variance
            + Epsilon)); OutputScaleGradient = sum(InputGradient * (Input - Mean) / sqrt(Variance + Epsilon));
            OutputBiasGradient = sum(InputGradient)

    DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Forward input.
        input_gradient_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Incoming gradient, Sizes of
            InputTensor.
        mean_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Mean from the training pass; each dimension 1
            (broadcast) or the input size.
        variance_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Variance from the training pass; as
            MeanTensor.
        scale_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. As MeanTensor.
        output_gradient_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of InputTensor.
        output_scale_gradient_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of MeanTensor.
        output_bias_gradient_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Sizes of MeanTensor.

    Attributes:
        epsilon: float. Added to the variance.
    """

    operator = "BATCH_NORMALIZATION_TRAINING_GRAD"
    fields = (
        "input_tensor",
        "input_gradient_tensor",
        "mean_tensor",
        "variance_tensor",
        "scale_tensor",
        "output_gradient_tensor",
        "output_scale_gradient_tensor",
        "output_bias_gradient_tensor",
        "epsilon",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_gradient_tensor: TensorDesc | None
    mean_tensor: TensorDesc | None
    variance_tensor: TensorDesc | None
    scale_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    output_scale_gradient_tensor: TensorDesc | None
    output_bias_gradient_tensor: TensorDesc | None
    epsilon: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_gradient_tensor: TensorDesc | None = None,
        mean_tensor: TensorDesc | None = None,
        variance_tensor: TensorDesc | None = None,
        scale_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        output_scale_gradient_tensor: TensorDesc | None = None,
        output_bias_gradient_tensor: TensorDesc | None = None,
        *,
        epsilon: float,
    ) -> None:
        self._fill(
            input_tensor,
            input_gradient_tensor,
            mean_tensor,
            variance_tensor,
            scale_tensor,
            output_gradient_tensor,
            output_scale_gradient_tensor,
            output_bias_gradient_tensor,
            epsilon,
        )


class MeanVarianceNormalization(OperatorDesc):
    """Normalizes with the mean and variance of the input itself, then scales, shifts and optionally
    activates.

        NormalizeVariance TRUE: Output = FusedActivation(Scale * ((Input - Mean) / sqrt(Variance + Epsilon)) +
            Bias); FALSE: Output = FusedActivation(Scale * (Input - Mean) + Bias)

    DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, Height, Width}.
        scale_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. Same sizes or 1 in any dimension
            (broadcast); before 5_2 required if BiasTensor is present.
        bias_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. Same rule; before 5_2 required if
            ScaleTensor is present.
        output_tensor: output, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, Height, Width}.

    Attributes:
        cross_channel: bool. TRUE takes statistics over {ChannelCount, Height, Width}, FALSE over {Height,
            Width} per channel.
        normalize_variance: bool. FALSE leaves the variance out.
        epsilon: float. Against division by zero; usually 0.00001.
        fused_activation: OperatorDesc, optional. Activation applied last.
    """

    operator = "MEAN_VARIANCE_NORMALIZATION"
    fields = (
        "input_tensor",
        "scale_tensor",
        "bias_tensor",
        "output_tensor",
        "cross_channel",
        "normalize_variance",
        "epsilon",
        "fused_activation",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    scale_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    cross_channel: bool
    normalize_variance: bool
    epsilon: float
    fused_activation: OperatorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        scale_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        cross_channel: bool = False,
        normalize_variance: bool = True,
        epsilon: float = 1e-05,
        fused_activation: OperatorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            scale_tensor,
            bias_tensor,
            output_tensor,
            cross_channel,
            normalize_variance,
            epsilon,
            fused_activation,
        )


class LocalResponseNormalization(OperatorDesc):
    """Divides each element by a power of the local sum of squares.

        Output = Input / (Bias + (Alpha / LocalSize) * sum(Input^2 over the local region))^Beta

    DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, Height, Width}.
        output_tensor: output, FLOAT32, FLOAT16; 4 dimensions. Same as InputTensor.

    Attributes:
        cross_channel: bool. TRUE sums across channels.
        local_size: int. >= 1; elements summed per dimension: Width and Height, or Channel when CrossChannel
            is set.
        alpha: float. Scaling; usually 0.0001.
        beta: float. Exponent; usually 0.75.
        bias: float. Usually 1.
    """

    operator = "LOCAL_RESPONSE_NORMALIZATION"
    fields = ("input_tensor", "output_tensor", "cross_channel", "local_size", "alpha", "beta", "bias")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    cross_channel: bool
    local_size: int
    alpha: float
    beta: float
    bias: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        cross_channel: bool,
        local_size: int,
        alpha: float = 0.0001,
        beta: float = 0.75,
        bias: float = 1.0,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            cross_channel,
            local_size,
            alpha,
            beta,
            bias,
        )


class LocalResponseNormalizationGrad(OperatorDesc):
    """Gradient of local response normalization.

        derivative of LOCAL_RESPONSE_NORMALIZATION with S = Bias + (Alpha / LocalSize) * sum(Input^2 over
            region): dX[i] = dY[i] * S[i]^(-Beta) - 2 * Beta * (Alpha / LocalSize) * X[i] * sum over j whose
            region contains i of (dY[j] * X[j] * S[j]^(-Beta - 1))

    DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 dimensions. {BatchCount, ChannelCount, Height, Width}.
        input_gradient_tensor: input, FLOAT32, FLOAT16; 4 dimensions. Incoming gradient.
        output_gradient_tensor: output, FLOAT32, FLOAT16; 4 dimensions. Backpropagated gradient.

    Attributes:
        cross_channel: bool. TRUE sums across channels, FALSE across spatial dimensions.
        local_size: int. >= 1; largest number of elements summed per dimension, region clipped to the bounds.
        alpha: float. Scaling; usually 0.0001.
        beta: float. Exponent; usually 0.75.
        bias: float. Usually 1.
    """

    operator = "LOCAL_RESPONSE_NORMALIZATION_GRAD"
    fields = (
        "input_tensor",
        "input_gradient_tensor",
        "output_gradient_tensor",
        "cross_channel",
        "local_size",
        "alpha",
        "beta",
        "bias",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    input_gradient_tensor: TensorDesc | None
    output_gradient_tensor: TensorDesc | None
    cross_channel: bool
    local_size: int
    alpha: float
    beta: float
    bias: float

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        input_gradient_tensor: TensorDesc | None = None,
        output_gradient_tensor: TensorDesc | None = None,
        *,
        cross_channel: bool,
        local_size: int,
        alpha: float = 0.0001,
        beta: float = 0.75,
        bias: float = 1.0,
    ) -> None:
        self._fill(
            input_tensor,
            input_gradient_tensor,
            output_gradient_tensor,
            cross_channel,
            local_size,
            alpha,
            beta,
            bias,
        )


class LpNormalization(OperatorDesc):
    """Divides every element by the Lp norm (L1 or L2) taken along one axis.

        norm = (sum over Axis of |x|^P)^(1/P); Output = x / max(norm, Epsilon)

    DML_LP_NORMALIZATION_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Data, any sizes.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Same sizes as InputTensor.

    Attributes:
        axis: int. Axis along which the norm is taken.
        epsilon: float. Guards against division by zero; recommended default 0.00001.
        p: int. Norm order, 1 or 2 only.
    """

    operator = "LP_NORMALIZATION"
    fields = ("input_tensor", "output_tensor", "axis", "epsilon", "p")
    __slots__ = fields
    input_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axis: int
    epsilon: float
    p: int

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axis: int,
        epsilon: float = 1e-05,
        p: int,
    ) -> None:
        self._fill(
            input_tensor,
            output_tensor,
            axis,
            epsilon,
            p,
        )


class MeanVarianceNormalization1(OperatorDesc):
    """Normalizes the input by mean and (optionally) variance computed over the listed axes, then applies
    optional scale, bias and fused activation.

        Mean, Variance over Axes. NormalizeVariance: Output = FusedActivation(Scale * ((Input - Mean) /
            sqrt(Variance + Epsilon)) + Bias); otherwise Output = FusedActivation(Scale * (Input - Mean) +
            Bias)

    DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). { BatchCount, ChannelCount,
            Height, Width } in the 4D case.
        scale_tensor: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Before 4_0: { 1 or
            BatchCount, ChannelCount, 1 or Height, 1 or Width }; from 4_0 any dimension may be 1 (broadcast)
            or equal to InputTensor. Before 5_2 required when BiasTensor is present; from 5_2 independent of
            BiasTensor.
        bias_tensor: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Sizes as ScaleTensor.
            Before 5_2 required when ScaleTensor is present; from 5_2 independent of ScaleTensor.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions (4 below 3_1). Same sizes as InputTensor.

    Attributes:
        axes: Sequence[int]. Axes reduced for mean and variance; on a 4D tensor {2,3} equals
            MEAN_VARIANCE_NORMALIZATION with CrossChannel FALSE, {1,2,3} with CrossChannel TRUE.
        normalize_variance: bool. FALSE leaves the division by sqrt(Variance + Epsilon) out.
        epsilon: float. Added to the variance; recommended default 0.00001.
        fused_activation: OperatorDesc, optional. Activation operator applied last; its own
            InputTensor/OutputTensor are null.
    """

    operator = "MEAN_VARIANCE_NORMALIZATION1"
    fields = (
        "input_tensor",
        "scale_tensor",
        "bias_tensor",
        "output_tensor",
        "axes",
        "normalize_variance",
        "epsilon",
        "fused_activation",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    scale_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axes: tuple[int, ...]
    normalize_variance: bool
    epsilon: float
    fused_activation: OperatorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        scale_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axes: Sequence[int],
        normalize_variance: bool = True,
        epsilon: float = 1e-05,
        fused_activation: OperatorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            scale_tensor,
            bias_tensor,
            output_tensor,
            as_tuple(axes),
            normalize_variance,
            epsilon,
            fused_activation,
        )


class BatchNormalizationTraining(OperatorDesc):
    """Batch normalization that computes mean and variance from the input itself and also outputs them.

        Mean, Variance of Input over the dimensions where Scale/Bias have size 1; Output =
            FusedActivation(Scale * ((Input - Mean) / sqrt(Variance + Epsilon)) + Bias + FusedAdd)

    DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC, from DML_FEATURE_LEVEL_4_1. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. InputDimensions.
        scale_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Each dimension 1 (broadcast, and reduced for
            mean/variance) or equal to InputTensor.
        bias_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as ScaleTensor.
        fused_add_tensor: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor;
            added before the activation.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as InputTensor.
        output_mean_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as ScaleTensor.
        output_variance_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. Same sizes as ScaleTensor.

    Attributes:
        epsilon: float. Added to the variance.
        fused_activation: OperatorDesc, optional. Activation applied last; its own tensors null.
    """

    operator = "BATCH_NORMALIZATION_TRAINING"
    fields = (
        "input_tensor",
        "scale_tensor",
        "bias_tensor",
        "fused_add_tensor",
        "output_tensor",
        "output_mean_tensor",
        "output_variance_tensor",
        "epsilon",
        "fused_activation",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    scale_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    fused_add_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    output_mean_tensor: TensorDesc | None
    output_variance_tensor: TensorDesc | None
    epsilon: float
    fused_activation: OperatorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        scale_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        fused_add_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        output_mean_tensor: TensorDesc | None = None,
        output_variance_tensor: TensorDesc | None = None,
        *,
        epsilon: float,
        fused_activation: OperatorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            scale_tensor,
            bias_tensor,
            fused_add_tensor,
            output_tensor,
            output_mean_tensor,
            output_variance_tensor,
            epsilon,
            fused_activation,
        )


class MeanVarianceNormalization2(OperatorDesc):
    """Normalizes the input by mean and/or variance computed over chosen axes, then applies optional scale,
    bias and fused activation; mean and variance can be switched on separately.

        m = UseMean ? mean(Input over Axes) : 0; v = mean((Input - m)^2 over Axes); y = UseVariance ? (Input -
            m) / sqrt(v + Epsilon) : (Input - m); Output = FusedActivation(Scale * y + Bias)

    DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_3. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 1 to 8 dimensions. {BatchCount, ChannelCount, Height, Width} in
            the text; table allows 1 to 8 dimensions.
        scale_tensor: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions. Level < 4_0: {ScaleBatchCount,
            ChannelCount, ScaleHeight, ScaleWidth} each matching input or 1 (ChannelCount matches); level >=
            4_0: any dimension may be 1 and is broadcast to InputTensor. Level < 5_2: required if BiasTensor
            present; level >= 5_2: independent of BiasTensor. (Operator needs 6_3, so: any dim 1 broadcasts,
            independent nullability).
        bias_tensor: input, optional; FLOAT32, FLOAT16; 1 to 8 dimensions. Same rules as ScaleTensor
            ({BiasBatchCount, ChannelCount, BiasHeight, BiasWidth} below 4_0); level < 5_2: required if
            ScaleTensor present; >= 5_2 independent.
        output_tensor: output, FLOAT32, FLOAT16; 1 to 8 dimensions. {BatchCount, ChannelCount, Height, Width},
            i.e. sizes of InputTensor.

    Attributes:
        axes: Sequence[int]. Axes over which mean and variance are computed.
        use_mean: bool. Subtracts the mean when TRUE.
        use_variance: bool. Divides by sqrt(Variance + Epsilon) when TRUE.
        epsilon: float. Added to the variance against division by zero; recommended default 0.00001.
        fused_activation: OperatorDesc, optional. Activation desc applied after the normalization.
    """

    operator = "MEAN_VARIANCE_NORMALIZATION2"
    fields = (
        "input_tensor",
        "scale_tensor",
        "bias_tensor",
        "output_tensor",
        "axes",
        "use_mean",
        "use_variance",
        "epsilon",
        "fused_activation",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    scale_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    axes: tuple[int, ...]
    use_mean: bool
    use_variance: bool
    epsilon: float
    fused_activation: OperatorDesc | None

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        scale_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        axes: Sequence[int],
        use_mean: bool = True,
        use_variance: bool = True,
        epsilon: float = 1e-05,
        fused_activation: OperatorDesc | None = None,
    ) -> None:
        self._fill(
            input_tensor,
            scale_tensor,
            bias_tensor,
            output_tensor,
            as_tuple(axes),
            use_mean,
            use_variance,
            epsilon,
            fused_activation,
        )
