"""Every name of `directml` as it is now, with its parameters, their order and defaults."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np
import pytest

import opendml as dml
from opendml import directml
from opendml.frontends.pydirectml.functions import REQUIRED
from tests.for_each import for_each

FUNCTIONS = """
convolution input filter bias=None | mode=ConvolutionMode.CROSS_CORRELATION
  direction=ConvolutionDirection.FORWARD strides=() dilations=() start_padding=() end_padding=()
  output_padding=() group_count=1 fused_activation=None output_sizes=()
upsample_2d input | scale_size interpolation_mode
activation_relu input
activation_sigmoid input
activation_identity input
activation_tanh input
activation_gelu input
activation_linear input | alpha beta
activation_softmax input | axes=()
add a b | fused_activation=None
subtract a b
multiply a b
divide a b
padding input | padding_mode=PaddingMode.CONSTANT padding_value=0.0 start_padding end_padding
mean_variance_normalization input scale=None bias=None | axes normalize_variance=True normalize_mean=True
  epsilon=1e-5 fused_activation=None
slice input | input_window_offsets input_window_sizes input_window_strides
value_scale_2d input | scale bias
batch_normalization input mean variance scale bias | spatial=True epsilon=1e-5 fused_activation=None
local_response_normalization input | cross_channel local_size alpha beta bias
gemm a b c=None | trans_a=MatrixTransform.NONE trans_b=MatrixTransform.NONE alpha=1.0 beta=1.0
  fused_activation=None
average_pooling input | strides window_sizes start_padding=() end_padding=() dilations=()
  include_padding=False output_sizes=()
max_pooling input | window_sizes strides=() start_padding=() end_padding=() dilations=()
  output_indices=False
reinterpret input sizes strides=None dtype=None
broadcast input shape
multihead_attention query key value | head_count scale
join inputs | axis
gru input weight recurrence bias=None hidden_init=None sequence_lengths=None | activation_descs
  direction=RecurrentNetworkDirection.FORWARD linear_before_reset=True output_options=GRUOutputOptions.Both
gather input indices | axis index_dimensions
identity input | scale_bias=None
abs input | scale_bias=None
acos input | scale_bias=None
asin input | scale_bias=None
atan input | scale_bias=None
ceil input | scale_bias=None
cos input | scale_bias=None
exp input | scale_bias=None
floor input | scale_bias=None
log input | scale_bias=None
recip input | scale_bias=None
sin input | scale_bias=None
sqrt input | scale_bias=None
tan input | scale_bias=None
erf input | scale_bias=None
sinh input | scale_bias=None
cosh input | scale_bias=None
tanh input | scale_bias=None
asinh input | scale_bias=None
acosh input | scale_bias=None
atanh input | scale_bias=None
sign input
negate input
logical_not input
bit_not input
clip input | min max scale_bias=None
threshold input | min scale_bias=None
round input | rounding_mode=RoundingMode.HALVES_TO_NEAREST_EVEN
is_nan input | output_dtype=TensorDataType.UINT8
is_infinity input | infinity_mode=IsInfinityMode.EITHER output_dtype=TensorDataType.UINT8
bit_count input | output_dtype=TensorDataType.UINT8
cast input | dtype
max a b
min a b
mean a b
atan_yx a b
difference_square a b
logical_and a b
logical_or a b
logical_xor a b
bit_and a b
bit_or a b
bit_xor a b
bit_shift_left a b
bit_shift_right a b
modulus_truncate a b
modulus_floor a b
equals a b | output_dtype=TensorDataType.UINT8
greater_than a b | output_dtype=TensorDataType.UINT8
greater_than_or_equal a b | output_dtype=TensorDataType.UINT8
less_than a b | output_dtype=TensorDataType.UINT8
less_than_or_equal a b | output_dtype=TensorDataType.UINT8
pow input exponent | scale_bias=None
where condition a b
activation_elu input | alpha=1.0
activation_celu input | alpha=1.0
activation_hardmax input
activation_hard_sigmoid input | alpha=0.2 beta=0.5
activation_leaky_relu input | alpha=0.01
activation_log_softmax input
activation_parameterized_relu input slope
activation_parametric_softplus input | alpha beta
activation_scaled_elu input | alpha=1.67326319217681884765625 gamma=1.05070102214813232421875
activation_scaled_tanh input | alpha=1.0 beta=0.5
activation_shrink input | bias=0.0 threshold=0.5
activation_softplus input | steepness=1.0
activation_softsign input
activation_thresholded_relu input | alpha=1.0
split input | axis output_axis_sizes
tile input | repeats
one_hot indices values | output_length axis
top_k input | axis k axis_direction=AxisDirection.DECREASING
gather_elements input indices | axis
gather_nd input indices | input_dimension_count indices_dimension_count batch_dimension_count=0
scatter_elements input indices updates | axis
scatter_nd input indices updates | input_dimension_count indices_dimension_count
space_to_depth input | block_size order=DepthSpaceOrder.DEPTH_COLUMN_ROW
depth_to_space input | block_size order=DepthSpaceOrder.DEPTH_COLUMN_ROW
reverse_subsequences input sequence_lengths | axis
resample input | output_sizes mode rounding_direction=AxisDirection.INCREASING scales=()
  input_pixel_offsets=() output_pixel_offsets=() antialiased=False
fill_value_constant graph | sizes value dtype=None
fill_value_sequence graph | sizes value_start value_delta dtype=None
reduce input | function axes=() output_dtype=None
cumulative_summation input | axis axis_direction=AxisDirection.INCREASING has_exclusive_sum=False
cumulative_product input | axis axis_direction=AxisDirection.INCREASING has_exclusive_product=False
non_zero_coordinates input
quantize_linear input scale zero_point | output_dtype=TensorDataType.UINT8
dequantize_linear input scale zero_point
dequantize input quantization_parameters | quantization_type
random_generator input_state | output_sizes output_state=True type=RandomGeneratorType.PHILOX_4X32_10
roi_align input roi batch_indices | reduction_function interpolation_mode spatial_scale_x spatial_scale_y
  input_pixel_offset output_pixel_offset out_of_bounds_input_value minimum_samples_per_output
  maximum_samples_per_output align_regions_to_corners output_height output_width
convolution_integer input filter input_zero_point=None filter_zero_point=None | strides=() dilations=()
  start_padding=() end_padding=() group_count=1 output_sizes=()
quantized_linear_convolution input input_scale filter filter_scale output_scale input_zero_point=None
  filter_zero_point=None bias=None output_zero_point=None | output_dtype strides=() dilations=()
  start_padding=() end_padding=() group_count=1 output_sizes=()
clip_grad input input_gradient | min max
batch_normalization_grad input input_gradient mean variance scale | epsilon=1e-5
batch_normalization_training input scale bias fused_add=None | epsilon=1e-5 fused_activation=None
batch_normalization_training_grad input input_gradient mean variance scale | epsilon=1e-5
resample_grad input_gradient | output_sizes mode scales=() input_pixel_offsets=() output_pixel_offsets=()
slice_grad input_gradient | output_gradient_sizes input_window_offsets input_window_sizes
  input_window_strides
roi_align_grad input_gradient roi batch_indices input=None | reduction_function interpolation_mode
  spatial_scale_x spatial_scale_y input_pixel_offset output_pixel_offset minimum_samples_per_output
  maximum_samples_per_output align_regions_to_corners batch_size image_height image_width
  compute_output_gradient=True compute_output_roi_gradient=False
"""
METHODS = """
Device.__init__ | use_gpu=True use_debug_layer=False
Buffer.__init__ device array dtype=None
Buffer.numpy
Graph.__init__ device | tensor_policy=None
Graph.input sizes=None dtype=None | owned=False strides=None desc=None name=None
Graph.constant array dtype=None | sizes=None name=None
Graph.compile outputs | flags=ExecutionFlags.NONE
CompiledOperator.initialize weights=None
CompiledOperator.dispatch inputs=None | readback=True
CompiledOperator.__call__ inputs=None | readback=True
FusedActivation.__init__ activation param_1=0 param_2=0
FusedActivation.none
FusedActivation.elu alpha=1.0
FusedActivation.hard_sigmoid alpha=0.2 beta=0.5
FusedActivation.identity
FusedActivation.leaky_relu alpha=0.01
FusedActivation.linear alpha beta
FusedActivation.parametric_softplus alpha beta
FusedActivation.relu
FusedActivation.scaled_elu alpha=1.67326319217681884765625 gamma=1.05070102214813232421875
FusedActivation.scaled_tanh alpha=1.0 beta=0.5
FusedActivation.sigmoid
FusedActivation.softplus steepness=1.0
FusedActivation.softsign
FusedActivation.tanh
FusedActivation.thresholded_relu alpha=1.0
FusedActivation.shrink bias=0.0 threshold=0.5
FusedActivation.celu alpha=1.0
FusedActivation.gelu
"""
PROPERTIES = {
    "TensorDesc": "data_type flags sizes strides total_tensor_size_in_bytes guaranteed_base_offset_alignment",
    "Expression": "desc shape strides dtype size",
    "Buffer": "desc device nbytes shape strides dtype size",
    "CompiledOperator": "temporary_size persistent_size descriptor_count initialized",
}
TUPLES = {
    "MaxPoolingOutputs": "values indices",
    "GRUOutputs": "sequence single",
    "TopKOutputs": "values indices",
    "NonZeroCoordinatesOutputs": "count coordinates",
    "RandomGeneratorOutputs": "values state",
    "BatchNormalizationGradOutputs": "gradient scale_gradient bias_gradient",
    "BatchNormalizationTrainingOutputs": "output mean variance",
    "RoiAlignGradOutputs": "gradient roi_gradient",
}
ENUMERATIONS = {
    "TensorDataType": "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 INT64",
    "TensorFlags": "NONE OWNED_BY_DML",
    "MatrixTransform": "NONE TRANSPOSE",
    "RecurrentNetworkDirection": "FORWARD BACKWARD BIDIRECTIONAL",
    "GRUOutputOptions": "Both Sequence Single",
    "ConvolutionMode": "CONVOLUTION CROSS_CORRELATION",
    "ConvolutionDirection": "FORWARD BACKWARD",
    "InterpolationMode": "NEAREST_NEIGHBOR LINEAR",
    "PaddingMode": "CONSTANT EDGE REFLECTION",
    "RoundingMode": "HALVES_TO_NEAREST_EVEN TOWARD_ZERO TOWARD_INFINITY",
    "IsInfinityMode": "EITHER POSITIVE NEGATIVE",
    "AxisDirection": "INCREASING DECREASING",
    "DepthSpaceOrder": "DEPTH_COLUMN_ROW COLUMN_ROW_DEPTH",
    "ReduceFunction": "ARGMAX ARGMIN AVERAGE L1 L2 LOG_SUM LOG_SUM_EXP MAX MIN MULTIPLY SUM SUM_SQUARE",
    "RandomGeneratorType": "PHILOX_4X32_10",
    "QuantizationType": "SCALE SCALE_ZERO_POINT",
    "ExecutionFlags": "NONE ALLOW_HALF_PRECISION_COMPUTATION DISABLE_META_COMMANDS DESCRIPTORS_VOLATILE",
}
CLASSES = {"OperatorType", "TensorPolicy", "TensorDesc", "Expression", "FusedActivation", "Device", "Buffer"}
CLASSES |= {"CompiledOperator", "Graph"}
BEFORE = {"Binding", "GraphBuilder", "Model", "OutputOptions", "Size2D", "TensorData", "input_tensor"}
BEFORE |= {"up_sample_2d"}
"""Names of the interface before that are here too."""

POSITIONAL_BEFORE = {"convolution", "activation_linear", "activation_softmax", "add", "padding", "slice"}
POSITIONAL_BEFORE |= {"mean_variance_normalization", "batch_normalization", "local_response_normalization"}
POSITIONAL_BEFORE |= {"value_scale_2d", "gemm", "average_pooling", "max_pooling", "join", "gru", "gather"}
POSITIONAL_BEFORE |= {"Device.__init__", "multihead_attention"}
"""Those whose keyword arguments may be positional, as they were in the interface before."""


class Fact(NamedTuple):
    """A parameter: whether it is by keyword only, and its default in words."""

    name: str
    by_keyword: bool
    default: str


def facts(text: str) -> list[tuple[str, list[Fact]]]:
    """Names of functions, and their parameters: behind "|" by keyword only, with defaults behind "="."""
    result = []
    for line in text.strip().replace("\n  ", " ").splitlines():
        (name, *positional), _, keywords = (part.split() for part in line.partition("|"))
        pairs = [(each, False) for each in positional] + [(each, True) for each in keywords]
        parts = [(*each.partition("="), by_keyword) for each, by_keyword in pairs]
        result.append((name, [Fact(name, by_keyword, default) for name, _, default, by_keyword in parts]))
    return result


def found(path: str) -> Any:
    value: Any = directml
    for name in path.split("."):
        value = getattr(value, name)
    return value


@for_each(("path", "wanted"), facts(FUNCTIONS + METHODS.lstrip()))
def test_parameters_have_their_names_order_and_defaults(path: str, wanted: list[Fact]) -> None:
    given = dict(signature(found(path)).parameters)
    given.pop("self", None)
    if path in ("reinterpret", "join"):
        assert given.pop("before").kind is Parameter.VAR_KEYWORD
    assert list(given) == [each.name for each in wanted]
    required = (Parameter.empty, REQUIRED)
    for fact in wanted:
        parameter = given[fact.name]
        is_keyword = parameter.kind is Parameter.KEYWORD_ONLY
        assert is_keyword == (fact.by_keyword and path not in POSITIONAL_BEFORE), fact
        if fact.default:
            assert parameter.default == eval(fact.default, vars(directml).copy()), fact
        elif path not in ("reinterpret", "join"):
            assert parameter.default in required, fact


def test_every_name_is_public_and_no_other() -> None:
    functions = {name for name, _ in facts(FUNCTIONS)}
    names = functions | CLASSES | ENUMERATIONS.keys() | TUPLES.keys() | BEFORE
    assert set(directml.__all__) == names
    assert all(getattr(directml, name).__doc__ for name in names)
    assert directml.__version__ == dml.__version__


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_properties(name: str) -> None:
    for each in PROPERTIES[name].split():
        assert isinstance(getattr(found(name), each), property), each
        assert getattr(found(name), each).__doc__


@pytest.mark.parametrize("name", sorted(TUPLES))
def test_several_outputs_are_tuples_with_names(name: str) -> None:
    assert found(name)._fields == tuple(TUPLES[name].split())


@pytest.mark.parametrize("name", sorted(ENUMERATIONS))
def test_enumerations_have_directmls_members_and_numbers(name: str) -> None:
    import opendml.spec.enums as spec

    members = found(name).__members__
    assert list(members) == ENUMERATIONS[name].split()
    if name != "GRUOutputOptions":
        assert all(member == getattr(spec, name)[member.name] for member in members.values())


def test_functions_are_called_what_they_are() -> None:
    for name, _ in facts(FUNCTIONS):
        assert found(name).__name__ == name


def test_fused_activations_are_those_of_directmlx() -> None:
    fused = directml.FusedActivation
    relu = fused(directml.OperatorType.ACTIVATION_RELU)
    assert repr(fused.relu()) == repr(relu) == "FusedActivation(OperatorType.ACTIVATION_RELU, (0.0, 0.0))"
    assert fused.none()._desc is None
    assert fused.gelu()._desc == dml.descs.ActivationGelu()
    assert fused.celu(2.0)._desc == dml.descs.ActivationCelu(alpha=2.0)
    assert fused.shrink(threshold=1.0)._desc == dml.descs.ActivationShrink(bias=0.0, threshold=1.0)
    assert fused.linear(2.0, 3.0)._desc == dml.descs.ActivationLinear(alpha=2.0, beta=3.0)


def test_a_desc_takes_keywords_and_types_of_numpy() -> None:
    desc = directml.TensorDesc(np.float16, (2, 3))
    assert (desc.data_type, desc.sizes, desc.strides) == (directml.TensorDataType.FLOAT16, [2, 3], None)
    assert (desc.flags, desc.total_tensor_size_in_bytes) == (directml.TensorFlags.NONE, 12)
    owned = directml.TensorFlags.OWNED_BY_DML
    whole = directml.TensorDesc(
        "int32",
        [2, 2],
        flags=owned,
        strides=[0, 1],
        total_tensor_size_in_bytes=64,
        guaranteed_base_offset_alignment=16,
        tensor_policy=None,
    )
    assert (whole.data_type, whole.flags, whole.strides) == (directml.TensorDataType.INT32, owned, [0, 1])
    assert (whole.total_tensor_size_in_bytes, whole.guaranteed_base_offset_alignment) == (64, 16)
    last = directml.TensorPolicy.interleaved_channel
    assert directml.TensorDesc(np.float32, [2, 3, 4, 5], tensor_policy=last).strides == [60, 1, 15, 3]
    with pytest.raises(ValueError, match="strides and tensor_policy"):
        directml.TensorDesc(np.float32, [2, 2], strides=[2, 1], tensor_policy=last)
    for wrong in (np.complex64, "text", directml.TensorFlags.NONE):
        with pytest.raises(TypeError):
            directml.TensorDesc(wrong, [2])
