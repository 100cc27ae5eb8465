"""Every name of PyDirectML and, as it was before, of its fork, with parameters, their order and defaults."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

import numpy as np
import pytest

from opendml import directml, pydirectml
from opendml.frontends.pydirectml.activations import activation_desc
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


def test_every_function_has_its_parameters_in_their_order() -> None:
    for name, wanted in declared(FUNCTIONS) + declared(OWN[pydirectml]):
        given = signature(getattr(pydirectml, name)).parameters
        assert list(given) == [each.split("=")[0] for each in wanted], name
        for each in wanted:
            parameter, _, default = each.partition("=")
            if default:
                assert given[parameter].default == eval(default), (name, parameter)


def test_directml_takes_the_arguments_of_before_in_their_order() -> None:
    """Two functions have other parameters now: those of before are told by their classes and names."""
    for name, wanted in declared(FUNCTIONS) + declared(OWN[directml]):
        if name in ("reinterpret", "join"):
            continue
        given = signature(getattr(directml, name)).parameters
        names = [each.split("=")[0] for each in wanted]
        assert list(given)[: len(names)] == names, name
        assert all(given[each].kind is Parameter.POSITIONAL_OR_KEYWORD for each in names), name
        for each in wanted:
            parameter, _, default = each.partition("=")
            if default and (name, parameter) != ("mean_variance_normalization", "axes"):
                assert given[parameter].default == eval(default), (name, parameter)


def test_directml_tells_arguments_of_before_from_those_of_now() -> None:
    float32 = directml.TensorDataType.FLOAT32
    x = directml.Graph(directml.Device(use_gpu=False)).input([2, 3])
    views: list[Any] = [
        directml.reinterpret(x, float32, [3, 2], [1, 3]),
        directml.reinterpret(x, float32, new_size=[3, 2], new_strides=[1, 3]),
        directml.reinterpret(input=x, new_type=float32, new_size=[3, 2], new_strides=[1, 3]),
        directml.reinterpret(x, [3, 2], [1, 3]),
        directml.reinterpret(x, [3, 2], [1, 3], np.float32),
        directml.reinterpret(x, sizes=[3, 2], strides=[1, 3], dtype=float32),
    ]
    assert {(each.shape, each.strides, each.dtype.name) for each in views} == {((3, 2), (1, 3), "float32")}
    assert directml.reinterpret(x, float32, [3, 2], None).strides is None
    joined: list[Any] = [
        directml.join([x, x], 1),
        directml.join(input=[x, x], axis=1),
        directml.join(inputs=[x, x], axis=1),
    ]
    assert {each.shape for each in joined} == {(2, 6)}
    for call in (
        lambda: directml.reinterpret(x),
        lambda: directml.reinterpret(x, float32),
        lambda: directml.reinterpret(x, [6], new_sizes=[6]),
        lambda: directml.join([x, x]),
        lambda: directml.join([x], axis=0, into=1),
    ):
        with pytest.raises(TypeError):
            call()


@BOTH
def test_defaults_of_enumerations_and_of_activations(module: Any) -> None:
    convolution, gemm = signature(module.convolution).parameters, signature(module.gemm).parameters
    assert convolution["mode"].default is module.ConvolutionMode.CROSS_CORRELATION
    assert convolution["direction"].default is module.ConvolutionDirection.FORWARD
    assert gemm["trans_a"].default is gemm["trans_b"].default is module.MatrixTransform.NONE
    assert activation_desc(convolution["fused_activation"].default) is None


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
def test_every_name_is_public(module: Any) -> None:
    functions = {name for name, _ in declared(FUNCTIONS) + declared(OWN[module])}
    names = functions | {*ENUMERATIONS, *CLASSES.split()}
    if module is pydirectml:
        assert set(module.__all__) == names | {"Dimensions"}
    assert set(module.__all__) >= names
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
def test_operator_types_are_those_of_the_first_two_feature_levels_and_two_activations(module: Any) -> None:
    from opendml.spec.enums import FeatureLevel
    from opendml.spec.schema import operators

    known = {name for name, each in operators().items() if each.introduced <= FeatureLevel.LEVEL_2_0}
    newer = {"ACTIVATION_CELU": 128, "ACTIVATION_GELU": 157}
    assert {each.name for each in module.OperatorType} - {"INVALID"} == known | newer.keys()
    assert [int(each) for each in module.OperatorType] == [*range(97), *newer.values()]
    assert all(module.OperatorType[name] == number for name, number in newer.items())
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
