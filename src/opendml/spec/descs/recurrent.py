"""Descriptions of DirectML's recurrent operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.spec.enums import RecurrentNetworkDirection
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.plain import as_member, as_tuple
from opendml.spec.tensor_desc import TensorDesc


class Rnn(OperatorDesc):
    """One-layer simple recurrent network (a single input gate) run over the sequence dimension, forward,
    backward or both.

        forward, t = 0 .. seq_length-1: H_t = f(X_t * W_i^T + H_(t-1) * R_i^T + W_bi + R_bi) backward, t =
            seq_length-1 .. 0: H_t = f(X_t * W_Bi^T + H_(t+1) * R_Bi^T + W_Bbi + R_Bbi) (* = matrix multiply,
            ^T = transposed; H before the first step = HiddenInitTensor of that direction, or 0)

    DML_RNN_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 dimensions. X {1, seq_length, batch_size, input_size};
            sequences packed, possibly padded; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        weight_tensor: input, FLOAT32, FLOAT16; 4 dimensions. W {1, num_directions, hidden_size, input_size};
            W_i then W_Bi along the direction dimension; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        recurrence_tensor: input, FLOAT32, FLOAT16; 4 dimensions. R {1, num_directions, hidden_size,
            hidden_size}; R_i then R_Bi; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        bias_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. B {1, 1, num_directions, 2*hidden_size};
            per direction {W_bi, R_bi} concatenated; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        hidden_init_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size,
            hidden_size}; H_(t-1) of the first step; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        sequence_lengths_tensor: input, optional; UINT32; 4 dimensions. {1, 1, 1, batch_size}, UINT32; own
            sequence length of each batch element; absent: every sequence has length seq_length;
            DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        output_sequence_tensor: output, optional; FLOAT32, FLOAT16; 4 dimensions. {seq_length, num_directions,
            batch_size, hidden_size}; H_t of every step, dimension 0 is t.
        output_single_tensor: output, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions,
            batch_size, hidden_size}; H of the last step.

    Attributes:
        activation_descs: Sequence[OperatorDesc]. Array of activation operator descs, one f() per direction
            (forward first).
        direction: RecurrentNetworkDirection. DML_RECURRENT_NETWORK_DIRECTION: FORWARD, BACKWARD,
            BIDIRECTIONAL; num_directions = 2 for BIDIRECTIONAL, else 1.
    """

    operator = "RNN"
    fields = (
        "input_tensor",
        "weight_tensor",
        "recurrence_tensor",
        "bias_tensor",
        "hidden_init_tensor",
        "sequence_lengths_tensor",
        "output_sequence_tensor",
        "output_single_tensor",
        "activation_descs",
        "direction",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    weight_tensor: TensorDesc | None
    recurrence_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    hidden_init_tensor: TensorDesc | None
    sequence_lengths_tensor: TensorDesc | None
    output_sequence_tensor: TensorDesc | None
    output_single_tensor: TensorDesc | None
    activation_descs: tuple[OperatorDesc, ...]
    direction: RecurrentNetworkDirection

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        weight_tensor: TensorDesc | None = None,
        recurrence_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        hidden_init_tensor: TensorDesc | None = None,
        sequence_lengths_tensor: TensorDesc | None = None,
        output_sequence_tensor: TensorDesc | None = None,
        output_single_tensor: TensorDesc | None = None,
        *,
        activation_descs: Sequence[OperatorDesc],
        direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
    ) -> None:
        self._fill(
            input_tensor,
            weight_tensor,
            recurrence_tensor,
            bias_tensor,
            hidden_init_tensor,
            sequence_lengths_tensor,
            output_sequence_tensor,
            output_single_tensor,
            as_tuple(activation_descs),
            as_member(RecurrentNetworkDirection, direction),
        )


class Lstm(OperatorDesc):
    """One-layer long short-term memory network run over the sequence dimension, with optional peepholes,
    clipping and input/forget coupling.

        forward, t = 0 .. seq_length-1: i_t = f(clip(X_t*W_i^T + H_(t-1)*R_i^T + P_i . C_(t-1) + W_bi + R_bi))
            f_t = CoupleInputForget ? 1 - i_t : f(clip(X_t*W_f^T + H_(t-1)*R_f^T + P_f . C_(t-1) + W_bf +
            R_bf)) c_t = g(clip(X_t*W_c^T + H_(t-1)*R_c^T + W_bc + R_bc)) C_t = f_t . C_(t-1) + i_t . c_t o_t
            = f(clip(X_t*W_o^T + H_(t-1)*R_o^T + P_o . C_(t-1) + W_bo + R_bo)) H_t = o_t . h(C_t) (. =
            element-wise, * = matrix multiply). Backward: t = seq_length-1 .. 0 with the W_B, R_B, W_Bb, R_Bb,
            P_B parts and t+1 as the previous step.

    DML_LSTM_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 dimensions. X {1, seq_length, batch_size, input_size};
            DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        weight_tensor: input, FLOAT32, FLOAT16; 4 dimensions. W {1, num_directions, 4*hidden_size,
            input_size}; gate blocks in order i, o, f, c; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        recurrence_tensor: input, FLOAT32, FLOAT16; 4 dimensions. R {1, num_directions, 4*hidden_size,
            hidden_size}; gate blocks i, o, f, c; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        bias_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. B {1, 1, num_directions, 8*hidden_size};
            per direction W_b[i,o,f,c] then R_b[i,o,f,c]; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not
            supported.
        hidden_init_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size,
            hidden_size}; H before the first step; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        cell_mem_init_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size,
            hidden_size}; C before the first step; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        sequence_lengths_tensor: input, optional; UINT32; 4 dimensions. {1, 1, 1, batch_size}, UINT32; own
            sequence length of each batch element; absent: every sequence has length seq_length;
            DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        peephole_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. P {1, 1, num_directions,
            3*hidden_size}; blocks i, o, f; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        output_sequence_tensor: output, optional; FLOAT32, FLOAT16; 4 dimensions. {seq_length, num_directions,
            batch_size, hidden_size}; H_t of every step.
        output_single_tensor: output, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions,
            batch_size, hidden_size}; last H_t.
        output_cell_single_tensor: output, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions,
            batch_size, hidden_size}; last C_t.

    Attributes:
        activation_descs: Sequence[OperatorDesc]. F (gates i, o, f), g (cell gate), h (cell state to hidden)
            for the direction; bidirectional: f, g, h of forward then f, g, h of backward.
        direction: RecurrentNetworkDirection. DML_RECURRENT_NETWORK_DIRECTION: FORWARD, BACKWARD,
            BIDIRECTIONAL; num_directions 2 for BIDIRECTIONAL else 1.
        clip_threshold: float. clip(x) bounds x to [-ClipThreshold, +ClipThreshold], applied to the inputs of
            the activations.
        use_clip_threshold: bool. TRUE makes clip() active, FALSE leaves it out.
        couple_input_forget: bool. TRUE: forget gate = 1 - input gate.
    """

    operator = "LSTM"
    fields = (
        "input_tensor",
        "weight_tensor",
        "recurrence_tensor",
        "bias_tensor",
        "hidden_init_tensor",
        "cell_mem_init_tensor",
        "sequence_lengths_tensor",
        "peephole_tensor",
        "output_sequence_tensor",
        "output_single_tensor",
        "output_cell_single_tensor",
        "activation_descs",
        "direction",
        "clip_threshold",
        "use_clip_threshold",
        "couple_input_forget",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    weight_tensor: TensorDesc | None
    recurrence_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    hidden_init_tensor: TensorDesc | None
    cell_mem_init_tensor: TensorDesc | None
    sequence_lengths_tensor: TensorDesc | None
    peephole_tensor: TensorDesc | None
    output_sequence_tensor: TensorDesc | None
    output_single_tensor: TensorDesc | None
    output_cell_single_tensor: TensorDesc | None
    activation_descs: tuple[OperatorDesc, ...]
    direction: RecurrentNetworkDirection
    clip_threshold: float
    use_clip_threshold: bool
    couple_input_forget: bool

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        weight_tensor: TensorDesc | None = None,
        recurrence_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        hidden_init_tensor: TensorDesc | None = None,
        cell_mem_init_tensor: TensorDesc | None = None,
        sequence_lengths_tensor: TensorDesc | None = None,
        peephole_tensor: TensorDesc | None = None,
        output_sequence_tensor: TensorDesc | None = None,
        output_single_tensor: TensorDesc | None = None,
        output_cell_single_tensor: TensorDesc | None = None,
        *,
        activation_descs: Sequence[OperatorDesc],
        direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
        clip_threshold: float = 0.0,
        use_clip_threshold: bool = False,
        couple_input_forget: bool = False,
    ) -> None:
        self._fill(
            input_tensor,
            weight_tensor,
            recurrence_tensor,
            bias_tensor,
            hidden_init_tensor,
            cell_mem_init_tensor,
            sequence_lengths_tensor,
            peephole_tensor,
            output_sequence_tensor,
            output_single_tensor,
            output_cell_single_tensor,
            as_tuple(activation_descs),
            as_member(RecurrentNetworkDirection, direction),
            clip_threshold,
            use_clip_threshold,
            couple_input_forget,
        )


class Gru(OperatorDesc):
    """One-layer gated recurrent unit run over the sequence dimension.

        forward, t = 0 .. seq_length-1: z_t = f(X_t*W_z^T + H_(t-1)*R_z^T + W_bz + R_bz) r_t = f(X_t*W_r^T +
            H_(t-1)*R_r^T + W_br + R_br) LinearBeforeReset == 0: h_t = g(X_t*W_h^T + (r_t . H_(t-1))*R_h^T +
            W_bh + R_bh) LinearBeforeReset != 0: h_t = g(X_t*W_h^T + r_t . (H_(t-1)*R_h^T + R_bh) + W_bh) H_t
            = (1 - z_t) . h_t + z_t . H_(t-1) (. = element-wise, * = matrix multiply). Backward: t =
            seq_length-1 .. 0 with the W_B, R_B, W_Bb, R_Bb parts and t+1 as the previous step.

    DML_GRU_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        input_tensor: input, FLOAT32, FLOAT16; 4 dimensions. X {1, seq_length, batch_size, input_size};
            DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        weight_tensor: input, FLOAT32, FLOAT16; 4 dimensions. W {1, num_directions, 3*hidden_size,
            input_size}; gate blocks in order z, r, h; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        recurrence_tensor: input, FLOAT32, FLOAT16; 4 dimensions. R {1, num_directions, 3*hidden_size,
            hidden_size}; gate blocks z, r, h; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        bias_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. B {1, 1, num_directions, 6*hidden_size};
            per direction W_b[z,r,h] then R_b[z,r,h]; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        hidden_init_tensor: input, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions, batch_size,
            hidden_size}; absent: 0; DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        sequence_lengths_tensor: input, optional; UINT32; 4 dimensions. {1, 1, 1, batch_size}, UINT32; own
            sequence length of each batch element; absent: every sequence has length seq_length;
            DML_TENSOR_FLAG_OWNED_BY_DML not supported.
        output_sequence_tensor: output, optional; FLOAT32, FLOAT16; 4 dimensions. {seq_length, num_directions,
            batch_size, hidden_size}; H_t of every step.
        output_single_tensor: output, optional; FLOAT32, FLOAT16; 4 dimensions. {1, num_directions,
            batch_size, hidden_size}; last H_t.

    Attributes:
        activation_descs: Sequence[OperatorDesc]. F (gates z, r), g (hidden gate) for the direction;
            bidirectional: f, g of forward then f, g of backward.
        direction: RecurrentNetworkDirection. DML_RECURRENT_NETWORK_DIRECTION: FORWARD, BACKWARD,
            BIDIRECTIONAL; num_directions 2 for BIDIRECTIONAL else 1.
        linear_before_reset: bool. TRUE: the hidden gate's recurrent linear map is applied before multiplying
            by the reset gate.
    """

    operator = "GRU"
    fields = (
        "input_tensor",
        "weight_tensor",
        "recurrence_tensor",
        "bias_tensor",
        "hidden_init_tensor",
        "sequence_lengths_tensor",
        "output_sequence_tensor",
        "output_single_tensor",
        "activation_descs",
        "direction",
        "linear_before_reset",
    )
    __slots__ = fields
    input_tensor: TensorDesc | None
    weight_tensor: TensorDesc | None
    recurrence_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    hidden_init_tensor: TensorDesc | None
    sequence_lengths_tensor: TensorDesc | None
    output_sequence_tensor: TensorDesc | None
    output_single_tensor: TensorDesc | None
    activation_descs: tuple[OperatorDesc, ...]
    direction: RecurrentNetworkDirection
    linear_before_reset: bool

    def __init__(
        self,
        input_tensor: TensorDesc | None = None,
        weight_tensor: TensorDesc | None = None,
        recurrence_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        hidden_init_tensor: TensorDesc | None = None,
        sequence_lengths_tensor: TensorDesc | None = None,
        output_sequence_tensor: TensorDesc | None = None,
        output_single_tensor: TensorDesc | None = None,
        *,
        activation_descs: Sequence[OperatorDesc],
        direction: RecurrentNetworkDirection | str = RecurrentNetworkDirection.FORWARD,
        linear_before_reset: bool,
    ) -> None:
        self._fill(
            input_tensor,
            weight_tensor,
            recurrence_tensor,
            bias_tensor,
            hidden_init_tensor,
            sequence_lengths_tensor,
            output_sequence_tensor,
            output_single_tensor,
            as_tuple(activation_descs),
            as_member(RecurrentNetworkDirection, direction),
            linear_before_reset,
        )
