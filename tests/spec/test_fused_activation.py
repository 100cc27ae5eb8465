"""Which activation may be fused into which operator, at every level; and what it must look like there."""

from __future__ import annotations

from typing import Any

from opendml.spec.descs import (
    ActivationCelu,
    ActivationRelu,
    ActivationSoftplus,
    Gemm,
    MeanVarianceNormalization1,
    Rnn,
    desc_class,
)
from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import enum_facts, operator_facts
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures
from tests.for_each import for_each
from tests.spec.valid_descs import F32, LEVELS, NAMES, level_name, level_of, valid_desc

FUSED = enum_facts()["fused_activation"]
EXTRA = {
    (operator, extra["activation"]): extra["level"]
    for extra in FUSED["extra"]
    for operator in extra["operators"]
}
TENSOR = TensorDesc(F32, [1, 2, 3, 4])
SQUARE = TensorDesc(F32, [1, 2, 4, 4])
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "ACTIVATION_LINEAR": {"alpha": 1.0, "beta": 0.0},
    "ACTIVATION_PARAMETRIC_SOFTPLUS": {"alpha": 1.0, "beta": 1.0},
    "ELEMENT_WISE_CLIP": {"min": 0.0, "max": 1.0},
}


def normalization(activation: Any) -> MeanVarianceNormalization1:
    return MeanVarianceNormalization1(TENSOR, None, None, TENSOR, axes=[2], fused_activation=activation)


def test_the_operators_that_fuse_are_those_with_the_field() -> None:
    with_field = {
        name
        for name in NAMES
        if any(f["name"] == "FusedActivation" for f in operator_facts()[name]["fields"])
    }
    assert with_field == set(FUSED["operators"])


@for_each("outer", FUSED["operators"])
@for_each("activation", [*FUSED["activations"], "ELEMENT_WISE_CLIP", "ACTIVATION_SOFTMAX"])
def test_fused_from_its_level(outer: str, activation: str) -> None:
    own = operator_facts()[activation]["introduced"]
    outer_level = level_of(operator_facts()[outer]["introduced"])
    since = own if activation in FUSED["activations"] else EXTRA.get((outer, activation))
    for level in (level for level in LEVELS if level >= outer_level):
        fused = desc_class(activation)(**ATTRIBUTES.get(activation, {}))
        found = failures(valid_desc(outer, level).replace(fused_activation=fused), level)
        if since is None:
            assert [message.split(";")[0] for message in found] == [
                f"{outer}.FusedActivation: {activation} cannot be fused"
            ]
        elif level < level_of(since):
            first = max(level_of(since), outer_level)
            expected = f"{activation}; can be fused from {level_name(first)}, not in {level_name(level)}"
            assert found == [f"{outer}.FusedActivation: {expected}"]
        else:
            assert found == []


@for_each("activation", [n for n in NAMES if n not in FUSED["activations"]])
def test_nothing_else_is_fused_into_a_normalization(activation: str) -> None:
    [message] = failures(normalization(valid_desc(activation, FeatureLevel.LEVEL_6_4)))
    allowed = ", ".join(FUSED["activations"])
    expected = f"{activation} cannot be fused; DML_FEATURE_LEVEL_6_4 allows {allowed}"
    assert message == f"MEAN_VARIANCE_NORMALIZATION1.FusedActivation: {expected}"


def test_the_message_lists_what_the_level_and_the_operator_allow() -> None:
    [message] = failures(normalization(valid_desc("ACTIVATION_SOFTMAX", FeatureLevel.LEVEL_6_4)), "2_1")
    assert "ACTIVATION_SHRINK" in message
    assert "ACTIVATION_CELU" not in message
    [message] = failures(
        Gemm(SQUARE, SQUARE, None, SQUARE, fused_activation=valid_desc("CAST", FeatureLevel.LEVEL_6_4))
    )
    assert message.endswith("ELEMENT_WISE_CLIP, ACTIVATION_SOFTMAX, ACTIVATION_SOFTMAX1")


def test_its_tensors_are_none() -> None:
    name = "MEAN_VARIANCE_NORMALIZATION1.FusedActivation"
    given = "given; must be None in an activation that is part of another operator"
    assert failures(normalization(ActivationRelu(TENSOR, TENSOR))) == [
        f"{name}.InputTensor: {given}",
        f"{name}.OutputTensor: {given}",
    ]
    assert failures(normalization(ActivationRelu(None, TENSOR))) == [f"{name}.OutputTensor: {given}"]


def test_its_attributes_are_judged() -> None:
    name = "MEAN_VARIANCE_NORMALIZATION1.FusedActivation"
    wrong: Any = "1"
    assert failures(normalization(ActivationCelu(alpha=wrong))) == [f"{name}.Alpha: '1'; must be a number"]
    expected = f"{name}.Steepness: 0.5; must be at least 1 below DML_FEATURE_LEVEL_6_4"
    assert failures(normalization(ActivationSoftplus(steepness=0.5)), "6_3") == [expected]
    assert failures(normalization(ActivationSoftplus(steepness=0.5)), "6_4") == []


def test_a_mistake_in_it_does_not_hide_others() -> None:
    desc = normalization(ActivationRelu(TENSOR)).replace(axes=[7])
    assert [message.split(":")[0] for message in failures(desc)] == [
        "MEAN_VARIANCE_NORMALIZATION1.Axes[0]",
        "MEAN_VARIANCE_NORMALIZATION1.FusedActivation.InputTensor",
    ]


def test_activations_of_a_recurrent_network_are_judged_alike() -> None:
    desc = valid_desc("RNN", FeatureLevel.LEVEL_6_4)
    assert isinstance(desc, Rnn)
    wrong: Any = None
    found = failures(desc.replace(activation_descs=[ActivationRelu(TENSOR), ActivationCelu(alpha=wrong)]))
    given = "given; must be None in an activation that is part of another operator"
    assert found == [
        f"RNN.ActivationDescs[0].InputTensor: {given}",
        "RNN.ActivationDescs[1].Alpha: None; must be a number",
    ]


def test_a_fused_activation_by_itself_lacks_its_tensors() -> None:
    assert failures(ActivationRelu()) == [
        "ACTIVATION_RELU.InputTensor: missing; required",
        "ACTIVATION_RELU.OutputTensor: missing; required",
    ]
