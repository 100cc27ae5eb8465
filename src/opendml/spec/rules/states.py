"""The state of a random generator."""

from __future__ import annotations

from opendml.spec.rules.declared import rule
from opendml.spec.rules.rule import Broken, expect, right_aligned
from opendml.spec.tensor_desc import TensorDesc


@rule("RANDOM_GENERATOR")
def counter_and_key(input_state_tensor: TensorDesc) -> Broken:
    """The state has six words after leading ones: four of the counter and two of the key."""
    expected = right_aligned((6,), len(input_state_tensor.sizes))
    yield from expect(
        "input_state_tensor", input_state_tensor, expected, "a counter of 4 words and a key of 2"
    )
