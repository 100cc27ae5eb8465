"""Descriptions of DirectML's random operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from opendml.spec.enums import RandomGeneratorType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.plain import as_member
from opendml.spec.tensor_desc import TensorDesc


class RandomGenerator(OperatorDesc):
    """Fills the output with deterministic uniform pseudo-random 32-bit words from a counter-based generator
    and can return the advanced state.

        state = 128-bit counter C (state elements 0..3) and 64-bit key (elements 4..5); each counter value C +
            j yields 4 words by Philox 4x32-10(counter, key); Output is the concatenation of the words,
            truncated to the output's element count N; OutputState = { C + ceil(N / 4), same key }

    DML_RANDOM_GENERATOR_OPERATOR_DESC, from DML_FEATURE_LEVEL_3_0. Not in place.

    Tensors:
        input_state_tensor: input, UINT32; 1 to 8 dimensions (4 below 4_0). UINT32, 6 elements {1,1,1,6}: four
            words of counter, two words of key; leading dimensions 1.
        output_tensor: output, UINT32; 1 to 8 dimensions (4 below 4_0). UINT32, any sizes.
        output_state_tensor: output, optional; UINT32; 1 to 8 dimensions (4 below 4_0). Same sizes as
            InputStateTensor.

    Attributes:
        type: RandomGeneratorType. DML_RANDOM_GENERATOR_TYPE_PHILOX_4X32_10 is the only valid value.
    """

    operator = "RANDOM_GENERATOR"
    fields = ("input_state_tensor", "output_tensor", "output_state_tensor", "type")
    __slots__ = fields
    input_state_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    output_state_tensor: TensorDesc | None
    type: RandomGeneratorType

    def __init__(
        self,
        input_state_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        output_state_tensor: TensorDesc | None = None,
        *,
        type: RandomGeneratorType | str = RandomGeneratorType.PHILOX_4X32_10,
    ) -> None:
        self._fill(
            input_state_tensor,
            output_tensor,
            output_state_tensor,
            as_member(RandomGeneratorType, type),
        )
