"""The names of PyDirectML's modules, with parameters, their order and defaults."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

import numpy as np
import pytest

import opendml as dml
import opendml.spec.enums as spec
from opendml import directml, pydirectml
from opendml.frontends.pydirectml.activations import activation_desc
from opendml.frontends.pydirectml.table import MODULES
from opendml.spec.schema import operators
from tests.for_each import for_each

BOTH = pytest.mark.parametrize("module", [pydirectml, directml], ids=["pydirectml", "directml"])

SIGNATURES = """
pydirectml.convolution input filter bias=None mode=ConvolutionMode.CROSS_CORRELATION
  direction=ConvolutionDirection.FORWARD strides=() dilations=() start_padding=() end_padding=()
  output_padding=() group_count=1 fused_activation=None output_sizes=()
pydirectml.gru input weight recurrence bias=None hidden_init=None sequence_lengths=None activation_descs
  direction linear_before_reset=1 output_options
pydirectml.mean_variance_normalization input scale=None bias=None axes=() normalize_variance epsilon
  fused_activation=None
pydirectml.average_pooling input strides window_sizes start_padding end_padding include_padding
pydirectml.gemm a b c=None trans_a=MatrixTransform.NONE trans_b=MatrixTransform.NONE alpha=1.0 beta=1.0
  fused_activation=None
pydirectml.max_pooling input window_sizes strides=() start_padding=() end_padding=() dilations=()
  output_indices=False
pydirectml.batch_normalization input mean variance scale bias spatial epsilon fused_activation=None
directml.batch_normalization input mean variance scale bias spatial=True epsilon=1e-5 fused_activation=None
pydirectml.padding input padding_mode padding_value start_padding end_padding
pydirectml.reinterpret input new_type new_size new_strides
pydirectml.join input axis
pydirectml.input_tensor scope input_index tensor_desc
directml.mean_variance_normalization input scale=None bias=None axes normalize_variance=True
  normalize_mean=True epsilon=1e-5 fused_activation=None
directml.average_pooling input strides window_sizes start_padding=() end_padding=() dilations=()
  include_padding=False output_sizes=()
directml.padding input padding_mode=PaddingMode.CONSTANT padding_value=0.0 start_padding end_padding
directml.gru input weight recurrence bias=None hidden_init=None sequence_lengths=None activation_descs
  direction=RecurrentNetworkDirection.FORWARD linear_before_reset=True output_options=GRUOutputOptions.Both
directml.reinterpret input sizes strides=None dtype=None
directml.broadcast input shape
directml.join inputs axis
directml.multihead_attention query key value head_count scale
directml.exp input | scale_bias=None
directml.equals a b | output_dtype=TensorDataType.UINT8
directml.top_k input | axis k axis_direction=AxisDirection.DECREASING
directml.fill_value_constant graph | sizes value dtype=None
directml.Device.__init__ use_gpu=True use_debug_layer=False
directml.Buffer.__init__ device array dtype=None
directml.Graph.__init__ device | tensor_policy=None
directml.Graph.input sizes=None dtype=None | owned=False strides=None desc=None name=None
directml.Graph.constant array dtype=None | sizes=None name=None
directml.Graph.compile outputs | flags=ExecutionFlags.NONE
directml.CompiledOperator.initialize weights=None
directml.CompiledOperator.dispatch inputs=None | readback=True
directml.CompiledOperator.__call__ inputs=None | readback=True
directml.FusedActivation.__init__ activation param_1=0 param_2=0
directml.FusedActivation.none
directml.FusedActivation.linear alpha beta
directml.FusedActivation.scaled_elu alpha=1.67326319217681884765625 gamma=1.05070102214813232421875
directml.FusedActivation.shrink bias=0.0 threshold=0.5
"""
PROPERTIES = {
    "TensorDesc": "data_type flags sizes strides total_tensor_size_in_bytes guaranteed_base_offset_alignment",
    "Expression": "desc shape strides dtype size",
    "Buffer": "desc device nbytes shape strides dtype size",
    "CompiledOperator": "temporary_size persistent_size descriptor_count initialized",
}
CLASSES = {
    pydirectml: """
Binding Device Dimensions Expression FusedActivation GRUOutputs GraphBuilder MaxPoolingOutputs Model
OperatorType OutputOptions Size2D TensorData TensorDesc TensorPolicy
""",
    directml: """
BatchNormalizationGradOutputs BatchNormalizationTrainingOutputs Binding Buffer CompiledOperator
Device Expression FusedActivation GRUOutputOptions GRUOutputs Graph GraphBuilder MaxPoolingOutputs
Model NonZeroCoordinatesOutputs OperatorType OutputOptions RandomGeneratorOutputs
RoiAlignGradOutputs Size2D TensorData TensorDesc TensorPolicy TopKOutputs
""",
}
ENUMERATIONS = {
    pydirectml: """
ConvolutionDirection ConvolutionMode ExecutionFlags InterpolationMode MatrixTransform PaddingMode
RecurrentNetworkDirection TensorDataType TensorFlags
"""
}
ENUMERATIONS[directml] = f"""{ENUMERATIONS[pydirectml]}
AxisDirection DepthSpaceOrder IsInfinityMode QuantizationType RandomGeneratorType ReduceFunction RoundingMode
"""
MISSING = {
    "PaddingMode": {"SYMMETRIC", "WRAP"},
    "QuantizationType": {"NONE"},
    "TensorDataType": {"UINT4", "INT4"},
}


def found(path: str) -> Any:
    module, *names = path.split(".")
    value: Any = {"pydirectml": pydirectml, "directml": directml}[module]
    for name in names:
        value = getattr(value, name)
    return value


@for_each("line", SIGNATURES.strip().replace("\n  ", " ").splitlines())
def test_parameters_have_their_names_order_and_defaults(line: str) -> None:
    path, *words = line.split()
    given = dict(signature(found(path)).parameters)
    given.pop("self", None)
    assert list(given) == [each.partition("=")[0] for each in words if each != "|"]
    for number, word in enumerate(words):
        name, _, default = word.partition("=")
        if name != "|":
            is_keyword = "|" in words[:number]
            assert (given[name].kind is Parameter.KEYWORD_ONLY) == is_keyword, name
            value = given[name].default
            exact = eval(default, vars(directml).copy()) if default else None
            assert value == exact if default else value is Parameter.empty, name


def test_directml_tells_arguments_of_before_from_those_of_now() -> None:
    float32 = directml.TensorDataType.FLOAT32
    x = directml.Graph(directml.Device(use_gpu=False)).input([2, 3])
    views: list[Any] = [
        directml.reinterpret(x, float32, [3, 2], [1, 3]),
        directml.reinterpret(x, float32, new_size=[3, 2], new_strides=[1, 3]),
        directml.reinterpret(input=x, new_type=float32, new_size=[3, 2], new_strides=[1, 3]),
        directml.reinterpret(x, [3, 2], [1, 3], np.float32),
        directml.reinterpret(x, sizes=[3, 2], strides=[1, 3], dtype=float32),
    ]
    assert {(each.shape, each.strides, each.dtype.name) for each in views} == {((3, 2), (1, 3), "float32")}
    assert directml.reinterpret(x, float32, [3, 2], None).strides is None
    joined: list[Any] = [directml.join([x, x], 1), directml.join(input=[x, x], axis=1)]
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
def test_every_name_is_public_and_documented(module: Any) -> None:
    functions = {*MODULES[module.__name__.rpartition(".")[2]], "input_tensor", "reinterpret"}
    functions |= {"broadcast", "multihead_attention"} if module is directml else set()
    assert set(module.__all__) == functions | {*CLASSES[module].split(), *ENUMERATIONS[module].split()}
    assert set(dir(module)) == set(module.__all__)
    assert all(getattr(module, name).__doc__ for name in module.__all__)
    assert all(getattr(module, name).__name__ == name for name in functions)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018
    assert directml.__version__ == dml.__version__


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_are_documented(name: str) -> None:
    for each in PROPERTIES[name].split():
        member = getattr(getattr(directml, name), each)
        assert isinstance(member, property), each
        assert member.__doc__


@BOTH
def test_enumerations_have_directmls_members_and_numbers(module: Any) -> None:
    for name in ENUMERATIONS[module].split():
        exact = {each.name: each.value for each in getattr(spec, name)}
        members = {each.name: each.value for each in getattr(module, name)}
        assert members == {each: exact[each] for each in exact if each not in MISSING.get(name, ())}
    assert list(module.OutputOptions.__members__) == ["Both", "Sequence", "Single"]


@BOTH
def test_operator_types_are_those_of_the_first_two_feature_levels_and_two_activations(module: Any) -> None:
    first = {name for name, each in operators().items() if each.introduced <= spec.FeatureLevel.LEVEL_2_0}
    newer = {"ACTIVATION_CELU": 128, "ACTIVATION_GELU": 157}
    assert {each.name for each in module.OperatorType} - {"INVALID"} == first | newer.keys()
    assert [int(each) for each in module.OperatorType] == [*range(97), *newer.values()]
    known = {"ELEMENT_WISE_IDENTITY": 1, "ACTIVATION_RELU": 44, "CONVOLUTION": 53, "GRU": 78, "RESAMPLE": 96}
    known |= newer | {"ELEMENT_WISE_ADD1": 89, "ACTIVATION_SHRINK": 90, "MAX_POOLING1": 91}
    assert {name: int(module.OperatorType[name]) for name in known} == known


def test_values_of_enumerations_are_names_of_pydirectml_the_last_of_those_that_collide() -> None:
    module: Any = pydirectml
    assert module.FLOAT32 is module.TensorDataType.FLOAT32
    assert module.FORWARD is module.ConvolutionDirection.FORWARD
    assert module.NONE is module.ExecutionFlags.NONE
    assert module.CONVOLUTION is module.OperatorType.CONVOLUTION
    assert not hasattr(module, "Both")
    assert not hasattr(directml, "FLOAT32")


def test_fused_activations_are_those_of_directmlx() -> None:
    fused = directml.FusedActivation
    relu = fused(directml.OperatorType.ACTIVATION_RELU)
    assert repr(fused.relu()) == repr(relu) == "FusedActivation(OperatorType.ACTIVATION_RELU, (0.0, 0.0))"
    for made, desc in (
        (fused.none(), None),
        (fused.gelu(), dml.descs.ActivationGelu()),
        (fused.celu(2.0), dml.descs.ActivationCelu(alpha=2.0)),
        (fused.shrink(threshold=1.0), dml.descs.ActivationShrink(bias=0.0, threshold=1.0)),
        (fused.linear(2.0, 3.0), dml.descs.ActivationLinear(alpha=2.0, beta=3.0)),
    ):
        assert activation_desc(made) == desc
    assert directml.TopKOutputs._fields == ("values", "indices")


def test_only_pydirectml_lets_expressions_results_and_sizes_be_made() -> None:
    with pytest.raises(dml.InvalidArgument, match="empty Expression"):
        pydirectml.Expression().get_output_desc()
    assert pydirectml.TensorData([1.5]).tolist() == [1.5]
    assert pydirectml.Dimensions([1, 2]) == [1, 2]
    for call in (directml.Expression, lambda: directml.TensorData([1.5])):
        with pytest.raises(TypeError, match="no constructor"):
            call()
