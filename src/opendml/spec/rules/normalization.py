"""Statistics of normalizations that were not repeated at older levels."""

from __future__ import annotations

from opendml.spec.enums import FeatureLevel
from opendml.spec.fault import Fault
from opendml.spec.feature_level import full_name
from opendml.spec.rules.declared import rule
from opendml.spec.rules.rule import Broken
from opendml.spec.tensor_desc import TensorDesc

_SPATIAL_BELOW = FeatureLevel.LEVEL_4_0
_BELOW = full_name(_SPATIAL_BELOW)


@rule("BATCH_NORMALIZATION", below=_SPATIAL_BELOW)
def statistics_of_places(
    input_tensor: TensorDesc, mean_tensor: TensorDesc, variance_tensor: TensorDesc, spatial: bool
) -> Broken:
    """With Spatial FALSE mean and variance are not repeated along height and width, from dimension 2 on."""
    if spatial:
        return
    for parameter, tensor in (("mean_tensor", mean_tensor), ("variance_tensor", variance_tensor)):
        for i, (size, full) in enumerate(zip(tensor.sizes, input_tensor.sizes, strict=True)):
            # Other sizes than 1 are for the rule of repetition to judge.
            if i >= 2 and size == 1 != full:
                allowed = f"must be {{InputTensor}}'s {full} with {{Spatial}} False below {_BELOW}"
                yield parameter, Fault(1, allowed, ("Sizes", i), _SPATIAL_BELOW)
