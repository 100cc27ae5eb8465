"""Every name of PyDirectML and of its fork, with its parameters, their order and defaults."""

from __future__ import annotations

from inspect import signature
from types import ModuleType
from typing import Any

import pytest

from opendml import directml, pydirectml
from opendml.frontends.pydirectml.functions import REQUIRED

BOTH = pytest.mark.parametrize("module", [pydirectml, directml], ids=["pydirectml", "directml"])

FUNCTIONS = """
input_tensor scope input_index tensor_desc
convolution input filter bias=None mode direction strides=() dilations=() start_padding=() end_padding=()
  output_padding=() group_count=1 fused_activation output_sizes=()
up_sample_2d input scale_size interpolation_mode
activation_relu input
activation_sigmoid input
activation_identity input
activation_tanh input
activation_linear input alpha beta
add a b fused_activation
subtract a b
multiply a b
divide a b
padding input padding_mode padding_value start_padding end_padding
slice input input_window_offsets input_window_sizes input_window_strides
value_scale_2d input scale bias
batch_normalization input mean variance scale bias spatial epsilon fused_activation
local_response_normalization input cross_channel local_size alpha beta bias
gemm a b c=None trans_a trans_b alpha=1.0 beta=1.0 fused_activation
max_pooling input window_sizes strides=() start_padding=() end_padding=() dilations=() output_indices=False
reinterpret input new_type new_size new_strides
join input axis
gru input weight recurrence bias=None hidden_init=None sequence_lengths=None activation_descs direction
  linear_before_reset=1 output_options
gather input indices axis index_dimensions
"""
OWN = {
    pydirectml: """
activation_soft_max input
mean_variance_normalization input scale=None bias=None axes=() normalize_variance epsilon fused_activation
average_pooling input strides window_sizes start_padding end_padding include_padding
""",
    directml: """
activation_gelu input
activation_softmax input axes=()
mean_variance_normalization input scale=None bias=None axes=() normalize_variance normalize_mean epsilon
  fused_activation
average_pooling input strides window_sizes start_padding end_padding dilations include_padding
""",
}
ENUMERATIONS = {
    "TensorDataType": "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 INT64",
    "TensorFlags": "NONE OWNED_BY_DML",
    "MatrixTransform": "NONE TRANSPOSE",
    "RecurrentNetworkDirection": "FORWARD BACKWARD BIDIRECTIONAL",
    "OutputOptions": "Both Sequence Single",
    "ConvolutionMode": "CONVOLUTION CROSS_CORRELATION",
    "ConvolutionDirection": "FORWARD BACKWARD",
    "InterpolationMode": "NEAREST_NEIGHBOR LINEAR",
    "PaddingMode": "CONSTANT EDGE REFLECTION",
    "ExecutionFlags": "NONE ALLOW_HALF_PRECISION_COMPUTATION DISABLE_META_COMMANDS DESCRIPTORS_VOLATILE",
}
CLASSES = (
    "Binding Device GraphBuilder Model TensorPolicy TensorDesc TensorData Expression Size2D FusedActivation "
    "MaxPoolingOutputs GRUOutputs OperatorType"
)


def declared(text: str) -> list[tuple[str, list[str]]]:
    """Names of functions, and their parameters, with defaults behind "="."""
    lines = text.strip().replace("\n  ", " ").splitlines()
    return [(line.split()[0], line.split()[1:]) for line in lines]


@BOTH
def test_every_function_has_its_parameters_in_their_order(module: ModuleType) -> None:
    for name, wanted in declared(FUNCTIONS) + declared(OWN[module]):
        given = signature(getattr(module, name)).parameters
        assert list(given) == [each.split("=")[0] for each in wanted], name
        for each in wanted:
            parameter, _, default = each.partition("=")
            if default:
                assert given[parameter].default == eval(default), (name, parameter)


@BOTH
def test_defaults_of_enumerations_and_of_activations(module: Any) -> None:
    convolution, gemm = signature(module.convolution).parameters, signature(module.gemm).parameters
    assert convolution["mode"].default is module.ConvolutionMode.CROSS_CORRELATION
    assert convolution["direction"].default is module.ConvolutionDirection.FORWARD
    assert gemm["trans_a"].default is gemm["trans_b"].default is module.MatrixTransform.NONE
    assert convolution["fused_activation"].default._desc is None


@BOTH
@pytest.mark.parametrize("name", ["mean_variance_normalization", "gru"])
def test_parameters_behind_optional_ones_may_be_required(module: Any, name: str) -> None:
    required = [
        each for each in signature(getattr(module, name)).parameters.values() if each.default is REQUIRED
    ]
    assert required
    expressions = [None] * 3
    with pytest.raises(TypeError, match=required[0].name):
        getattr(module, name)(*expressions)


@BOTH
def test_every_name_is_public_and_no_other(module: Any) -> None:
    functions = {name for name, _ in declared(FUNCTIONS) + declared(OWN[module])}
    names = (
        functions | {*ENUMERATIONS, *CLASSES.split()} | ({"Dimensions"} if module is pydirectml else set())
    )
    assert set(module.__all__) == names
    assert all(getattr(module, name).__doc__ for name in names)


@BOTH
def test_enumerations_have_directmls_members_and_numbers(module: Any) -> None:
    import opendml.spec.enums as spec

    for name, members in ENUMERATIONS.items():
        enumeration = getattr(module, name)
        assert list(enumeration.__members__) == members.split()
        if name != "OutputOptions":
            assert all(
                member == getattr(spec, name)[member.name] for member in enumeration.__members__.values()
            )


@BOTH
def test_operator_types_are_those_of_the_first_two_feature_levels(module: Any) -> None:
    from opendml.spec.enums import FeatureLevel
    from opendml.spec.schema import operators

    known = {name for name, each in operators().items() if each.introduced <= FeatureLevel.LEVEL_2_0}
    assert {each.name for each in module.OperatorType} - {"INVALID"} == known
    assert [int(each) for each in module.OperatorType] == list(range(97))
    assert int(module.OperatorType.ACTIVATION_RELU) == 44


def test_values_of_enumerations_are_names_of_pydirectml_the_last_of_those_that_collide() -> None:
    module: Any = pydirectml
    assert module.FLOAT32 is module.TensorDataType.FLOAT32
    assert module.FORWARD is module.ConvolutionDirection.FORWARD
    assert module.NONE is module.ExecutionFlags.NONE
    assert module.CONVOLUTION is module.OperatorType.CONVOLUTION
    assert not hasattr(module, "Sequence_")
    assert not hasattr(module, "Both")
    assert not hasattr(directml, "FLOAT32")


def test_only_pydirectml_lets_expressions_results_and_sizes_be_made() -> None:
    with pytest.raises(pydirectml_error(), match="empty Expression"):
        pydirectml.Expression().get_output_desc()
    assert pydirectml.TensorData([1.5]).tolist() == [1.5]
    assert pydirectml.Dimensions([1, 2]) == [1, 2]
    with pytest.raises(TypeError, match="no constructor"):
        directml.Expression()
    with pytest.raises(TypeError, match="no constructor"):
        directml.TensorData([1.5])
    assert not hasattr(directml, "Dimensions")


def pydirectml_error() -> type[Exception]:
    from opendml import InvalidArgument

    return InvalidArgument


@pytest.mark.parametrize("name", ["Graph", "Buffer", "CompiledOperator"])
def test_names_of_the_newest_interface_say_which_one_is_here(name: str) -> None:
    with pytest.raises(AttributeError, match=f"directml.{name}: of the fork's newest interface"):
        getattr(directml, name)
    with pytest.raises(AttributeError, match="has no attribute 'Grap'"):
        getattr(directml, "Grap")  # noqa: B009 - a name that mypy would refuse
