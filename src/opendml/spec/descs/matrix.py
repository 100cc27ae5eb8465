"""Descriptions of DirectML's matrix operators.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from opendml.spec.enums import MatrixTransform, MultiheadAttentionMaskType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.plain import as_member
from opendml.spec.tensor_desc import TensorDesc


class Gemm(OperatorDesc):
    """Batched general matrix multiplication with optional transposes, scaled product, scaled addend and fused
    activation.

        Output = FusedActivation(Alpha * TransA(A) x TransB(B) + Beta * C); x is matrix product, done
            independently for each of BatchCount * ChannelCount matrices

    DML_GEMM_OPERATOR_DESC, from DML_FEATURE_LEVEL_1_0. Not in place.

    Tensors:
        a_tensor: input, FLOAT32, FLOAT16; 2 to 4 dimensions (4 below 4_0). {BatchCount, ChannelCount, M, K}
            with TransA NONE, {BatchCount, ChannelCount, K, M} with TRANSPOSE.
        b_tensor: input, FLOAT32, FLOAT16; 2 to 4 dimensions (4 below 4_0). {BatchCount, ChannelCount, K, N}
            with TransB NONE, {BatchCount, ChannelCount, N, K} with TRANSPOSE.
        c_tensor: input, optional; FLOAT32, FLOAT16; 2 to 4 dimensions (4 below 4_0). {BatchCount,
            ChannelCount, M, N}, in which strides of 0 repeat a row or a column; treated as 0 when absent.
        output_tensor: output, FLOAT32, FLOAT16; 2 to 4 dimensions (4 below 4_0). {BatchCount, ChannelCount,
            M, N}.

    Attributes:
        trans_a: MatrixTransform. DML_MATRIX_TRANSFORM_NONE or DML_MATRIX_TRANSFORM_TRANSPOSE, for A.
        trans_b: MatrixTransform. Same, for B.
        alpha: float. Multiplier of the product.
        beta: float. Multiplier of C; ignored when CTensor is absent.
        fused_activation: OperatorDesc, optional. Activation applied last; from 6_1 may also be
            ACTIVATION_SOFTMAX or ACTIVATION_SOFTMAX1.
    """

    operator = "GEMM"
    fields = (
        "a_tensor",
        "b_tensor",
        "c_tensor",
        "output_tensor",
        "trans_a",
        "trans_b",
        "alpha",
        "beta",
        "fused_activation",
    )
    __slots__ = fields
    a_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    c_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    trans_a: MatrixTransform
    trans_b: MatrixTransform
    alpha: float
    beta: float
    fused_activation: OperatorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        c_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        *,
        trans_a: MatrixTransform | str = MatrixTransform.NONE,
        trans_b: MatrixTransform | str = MatrixTransform.NONE,
        alpha: float = 1.0,
        beta: float = 1.0,
        fused_activation: OperatorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            b_tensor,
            c_tensor,
            output_tensor,
            as_member(MatrixTransform, trans_a),
            as_member(MatrixTransform, trans_b),
            alpha,
            beta,
            fused_activation,
        )


class MatrixMultiplyInteger(OperatorDesc):
    """Batched integer matrix product of 8-bit matrices with optional zero points, giving 32-bit integers.

        Output[b,c,m,n] = sum_k (int32(A[b,c,m,k]) - AZeroPoint[m or 0]) * (int32(B[b,c,k,n]) - BZeroPoint[n
            or 0])

    DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        a_tensor: input, INT8, UINT8; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], M, K }.
        a_zero_point_tensor: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). { 1,1,1,1 } per
            tensor or { 1,1,M,1 } per row.
        b_tensor: input, INT8, UINT8; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], K, N }.
        b_zero_point_tensor: input, optional; INT8, UINT8; 1 to 4 dimensions (2 to 4 below 5_2, 4 below 4_0).
            { 1,1,1,1 } per tensor or { 1,1,1,N } per column.
        output_tensor: output, INT32; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], M, N }.
    """

    operator = "MATRIX_MULTIPLY_INTEGER"
    fields = ("a_tensor", "a_zero_point_tensor", "b_tensor", "b_zero_point_tensor", "output_tensor")
    __slots__ = fields
    a_tensor: TensorDesc | None
    a_zero_point_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    b_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        a_zero_point_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        b_zero_point_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            a_zero_point_tensor,
            b_tensor,
            b_zero_point_tensor,
            output_tensor,
        )


class QuantizedLinearMatrixMultiply(OperatorDesc):
    """Batched matrix product on linearly quantized 8-bit data: as if dequantizing A and B, multiplying, and
    requantizing.

        Y[b,c,m,n] = sum_k ((A[b,c,m,k] - AZP) * AScale) * ((B[b,c,k,n] - BZP) * BScale); Output =
            clamp(round(Y / OutputScale) + OutputZP, Min, Max)

    DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC, from DML_FEATURE_LEVEL_2_1. Not in place.

    Tensors:
        a_tensor: input, INT8, UINT8; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], M, K }.
        a_scale_tensor: input, FLOAT32; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} per tensor or {1,1,M,1} per
            row; value 0 undefined.
        a_zero_point_tensor: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or
            {1,1,M,1}.
        b_tensor: input, INT8, UINT8; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount], K, N }.
        b_scale_tensor: input, FLOAT32; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or {1,1,1,N} per column;
            value 0 undefined.
        b_zero_point_tensor: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or
            {1,1,1,N}.
        output_scale_tensor: input, FLOAT32; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or {1,1,M,1} per row;
            value 0 undefined.
        output_zero_point_tensor: input, optional; INT8, UINT8; 1 to 4 dimensions (4 below 4_0). {1,1,1,1} or
            {1,1,M,1}.
        output_tensor: output, INT8, UINT8; 2 to 4 dimensions (4 below 4_0). { [BatchCount], [ChannelCount],
            M, N }.
    """

    operator = "QUANTIZED_LINEAR_MATRIX_MULTIPLY"
    fields = (
        "a_tensor",
        "a_scale_tensor",
        "a_zero_point_tensor",
        "b_tensor",
        "b_scale_tensor",
        "b_zero_point_tensor",
        "output_scale_tensor",
        "output_zero_point_tensor",
        "output_tensor",
    )
    __slots__ = fields
    a_tensor: TensorDesc | None
    a_scale_tensor: TensorDesc | None
    a_zero_point_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    b_scale_tensor: TensorDesc | None
    b_zero_point_tensor: TensorDesc | None
    output_scale_tensor: TensorDesc | None
    output_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        a_scale_tensor: TensorDesc | None = None,
        a_zero_point_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        b_scale_tensor: TensorDesc | None = None,
        b_zero_point_tensor: TensorDesc | None = None,
        output_scale_tensor: TensorDesc | None = None,
        output_zero_point_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            a_scale_tensor,
            a_zero_point_tensor,
            b_tensor,
            b_scale_tensor,
            b_zero_point_tensor,
            output_scale_tensor,
            output_zero_point_tensor,
            output_tensor,
        )


class MultiheadAttention(OperatorDesc):
    """Multi-head scaled dot-product attention with optional stacked inputs, bias, relative position bias,
    mask and key/value cache.

        [Q,K,V += Bias parts] ; [K = concat(PastKey, K), V = concat(PastValue, V) on the sequence axis]; S =
            (Q K^T) * Scale per head; [S += RelativePositionBias]; [apply Mask with MaskFilterValue]; P =
            softmax(S) over keys; Output = P V, heads concatenated

    DML_MULTIHEAD_ATTENTION_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_1. Not in place.

    Tensors:
        query_tensor: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, sequenceLength,
            hiddenSize], hiddenSize = headCount*headSize; 4D/5D with leading 1s; excludes StackedQueryKey,
            StackedQueryKeyValue.
        key_tensor: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, keyValueSequenceLength,
            hiddenSize]; 4D/5D with leading 1s; excludes every Stacked* tensor.
        value_tensor: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize,
            keyValueSequenceLength, valueHiddenSize], valueHiddenSize = headCount*valueHeadSize; 4D/5D with
            leading 1s; excludes StackedKeyValue, StackedQueryKeyValue.
        stacked_query_key_tensor: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize, sequenceLength,
            headCount, 2, headSize]; excludes Query, Key, StackedKeyValue, StackedQueryKeyValue.
        stacked_key_value_tensor: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize,
            keyValueSequenceLength, headCount, 2, headSize]; excludes Key, Value, StackedQueryKey,
            StackedQueryKeyValue.
        stacked_query_key_value_tensor: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize,
            sequenceLength, headCount, 3, headSize]; excludes all other Q/K/V inputs.
        bias_tensor: input, optional; FLOAT32, FLOAT16; 1 to 5 dimensions. [hiddenSize + hiddenSize +
            valueHiddenSize], added to Q, K, V before the first product; up to 5D with leading 1s.
        mask_tensor: input, optional; INT32; 1 to 5 dimensions. INT32, shape by MaskType; applied after
            RelativePositionBias.
        relative_position_bias_tensor: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. Added to the
            first product.
        past_key_tensor: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. [batchSize, headCount,
            pastSequenceLength, headSize], prepended to the key -> [batchSize, headCount, pastSequenceLength +
            keyValueSequenceLength, headSize].
        past_value_tensor: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. Same layout, prepended to the
            value.
        output_tensor: output, FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, sequenceLength,
            valueHiddenSize].
        output_present_key_tensor: output, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. [batchSize,
            headCount, keyValueSequenceLength, headSize] (cross attention) or [batchSize, headCount,
            pastSequenceLength + keyValueSequenceLength, headSize] (self attention): key, or past+key.
        output_present_value_tensor: output, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. As
            OutputPresentKeyTensor for the value.

    Attributes:
        scale: float. Multiplies Q K^T before softmax; usually 1/sqrt(headSize).
        mask_filter_value: float. Applied at masked positions; very negative, usually -10000.0.
        head_count: int. Number of heads.
        mask_type: MultiheadAttentionMaskType. DML_MULTIHEAD_ATTENTION_MASK_TYPE_BOOLEAN: mask 0 ->
            MaskFilterValue is added, mask 1 -> nothing; ..._KEY_SEQUENCE_LENGTH: mask [1, batchSize] of valid
            key lengths, positions at and beyond the length are filtered; ..._KEY_SEQUENCE_END_START: mask [2,
            batchSize], row 0 end (exclusive), row 1 start (inclusive) of the valid area;
            ..._KEY_QUERY_SEQUENCE_LENGTH_START_END: mask [batchSize*3 + 2] = keyLength[0..batch-1],
            queryStart[0..batch-1], queryEnd[batch-1], keyStart[0..batch-1], keyEnd[batch-1].
    """

    operator = "MULTIHEAD_ATTENTION"
    fields = (
        "query_tensor",
        "key_tensor",
        "value_tensor",
        "stacked_query_key_tensor",
        "stacked_key_value_tensor",
        "stacked_query_key_value_tensor",
        "bias_tensor",
        "mask_tensor",
        "relative_position_bias_tensor",
        "past_key_tensor",
        "past_value_tensor",
        "output_tensor",
        "output_present_key_tensor",
        "output_present_value_tensor",
        "scale",
        "mask_filter_value",
        "head_count",
        "mask_type",
    )
    __slots__ = fields
    query_tensor: TensorDesc | None
    key_tensor: TensorDesc | None
    value_tensor: TensorDesc | None
    stacked_query_key_tensor: TensorDesc | None
    stacked_key_value_tensor: TensorDesc | None
    stacked_query_key_value_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    mask_tensor: TensorDesc | None
    relative_position_bias_tensor: TensorDesc | None
    past_key_tensor: TensorDesc | None
    past_value_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    output_present_key_tensor: TensorDesc | None
    output_present_value_tensor: TensorDesc | None
    scale: float
    mask_filter_value: float
    head_count: int
    mask_type: MultiheadAttentionMaskType

    def __init__(
        self,
        query_tensor: TensorDesc | None = None,
        key_tensor: TensorDesc | None = None,
        value_tensor: TensorDesc | None = None,
        stacked_query_key_tensor: TensorDesc | None = None,
        stacked_key_value_tensor: TensorDesc | None = None,
        stacked_query_key_value_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        mask_tensor: TensorDesc | None = None,
        relative_position_bias_tensor: TensorDesc | None = None,
        past_key_tensor: TensorDesc | None = None,
        past_value_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        output_present_key_tensor: TensorDesc | None = None,
        output_present_value_tensor: TensorDesc | None = None,
        *,
        scale: float,
        mask_filter_value: float = -10000.0,
        head_count: int,
        mask_type: MultiheadAttentionMaskType | str,
    ) -> None:
        self._fill(
            query_tensor,
            key_tensor,
            value_tensor,
            stacked_query_key_tensor,
            stacked_key_value_tensor,
            stacked_query_key_value_tensor,
            bias_tensor,
            mask_tensor,
            relative_position_bias_tensor,
            past_key_tensor,
            past_value_tensor,
            output_tensor,
            output_present_key_tensor,
            output_present_value_tensor,
            scale,
            mask_filter_value,
            head_count,
            as_member(MultiheadAttentionMaskType, mask_type),
        )


class MatrixMultiplyIntegerToFloat(OperatorDesc):
    """Batched matrix product of dequantized integer matrices with optional bias, floating-point result.

        Output[b,c,m,n] = sum_k ((A[b,c,m,k] - AZeroPoint[m or 0]) * AScale[m or 0]) * ((B[b,c,k,n] -
            BZeroPoint[n or 0]) * BScale[n or 0]) + Bias[b,c,m,n]

    DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_2. Not in place.

    Tensors:
        a_tensor: input, INT32, INT16, INT8, UINT32, UINT16, UINT8; 2 to 4 dimensions. { [BatchCount],
            [ChannelCount], M, K }.
        a_scale_tensor: input, FLOAT32, FLOAT16; 1 to 4 dimensions. {1,1,1,1} per tensor or {1,1,M,1} per row.
        a_zero_point_tensor: input, optional; INT32, INT16, INT8, UINT32, UINT16, UINT8; 1 to 4 dimensions.
            {1,1,1,1} or {1,1,M,1}.
        b_tensor: input, INT32, INT16, INT8, UINT32, UINT16, UINT8; 2 to 4 dimensions. { [BatchCount],
            [ChannelCount], K, N }.
        b_scale_tensor: input, FLOAT32, FLOAT16; 1 to 4 dimensions. {1,1,1,1} or {1,1,1,N} per column.
        b_zero_point_tensor: input, optional; INT32, INT16, INT8, UINT32, UINT16, UINT8; 1 to 4 dimensions.
            {1,1,1,1} or {1,1,1,N}.
        bias_tensor: input, optional; FLOAT32, FLOAT16; 2 to 4 dimensions. Same sizes as OutputTensor.
        output_tensor: output, FLOAT32, FLOAT16; 2 to 4 dimensions. { [BatchCount], [ChannelCount], M, N }.
    """

    operator = "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"
    fields = (
        "a_tensor",
        "a_scale_tensor",
        "a_zero_point_tensor",
        "b_tensor",
        "b_scale_tensor",
        "b_zero_point_tensor",
        "bias_tensor",
        "output_tensor",
    )
    __slots__ = fields
    a_tensor: TensorDesc | None
    a_scale_tensor: TensorDesc | None
    a_zero_point_tensor: TensorDesc | None
    b_tensor: TensorDesc | None
    b_scale_tensor: TensorDesc | None
    b_zero_point_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_tensor: TensorDesc | None

    def __init__(
        self,
        a_tensor: TensorDesc | None = None,
        a_scale_tensor: TensorDesc | None = None,
        a_zero_point_tensor: TensorDesc | None = None,
        b_tensor: TensorDesc | None = None,
        b_scale_tensor: TensorDesc | None = None,
        b_zero_point_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
    ) -> None:
        self._fill(
            a_tensor,
            a_scale_tensor,
            a_zero_point_tensor,
            b_tensor,
            b_scale_tensor,
            b_zero_point_tensor,
            bias_tensor,
            output_tensor,
        )


class MultiheadAttention1(OperatorDesc):
    """Multi-head attention with separate query and key/value head counts (grouped-query attention) and an
    optional tensor of past sequence lengths.

        per batch b, head h: Q,K,V += Bias (optional); K = concat(PastKey, K), V = concat(PastValue, V) along
            the sequence (optional); S = GEMM(Q, transpose(K)) * Scale; S += RelativePositionBias (optional);
            apply Mask (optional); P = softmax(S over key positions); Output = GEMM(P, V), heads merged back
            to [batchSize, sequenceLength, valueHiddenSize]

    DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC, from DML_FEATURE_LEVEL_6_3. Not in place.

    Tensors:
        query_tensor: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, sequenceLength,
            hiddenSize], hiddenSize = headCount*headSize; 4 or 5 dims allowed with leading 1s; exclusive with
            StackedQueryKey, StackedQueryKeyValue.
        key_tensor: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, keyValueSequenceLength,
            hiddenSize]; leading 1s allowed; exclusive with StackedQueryKey, StackedKeyValue,
            StackedQueryKeyValue.
        value_tensor: input, optional; FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize,
            keyValueSequenceLength, valueHiddenSize], valueHiddenSize = headCount*valueHeadSize; leading 1s
            allowed; exclusive with StackedKeyValue, StackedQueryKeyValue.
        stacked_query_key_tensor: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize, sequenceLength,
            headCount, 2, headSize]; exclusive with Query, Key, StackedKeyValue, StackedQueryKeyValue.
        stacked_key_value_tensor: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize,
            keyValueSequenceLength, headCount, 2, headSize]; exclusive with Key, Value, StackedQueryKey,
            StackedQueryKeyValue.
        stacked_query_key_value_tensor: input, optional; FLOAT32, FLOAT16; 5 dimensions. [batchSize,
            sequenceLength, headCount, 3, headSize]; exclusive with all the others (Query, Key, Value,
            StackedQueryKey, StackedKeyValue).
        bias_tensor: input, optional; FLOAT32, FLOAT16; 1 to 5 dimensions. [hiddenSize + hiddenSize +
            valueHiddenSize], added to query/key/value before the first GEMM (order query, key, value implied
            by the shape); up to 5 dims with leading 1s.
        mask_tensor: input, optional; INT32; 1 to 5 dimensions. INT32; shape depends on MaskType (see
            attributes); applied after RelativePositionBias, or after the first GEMM when that is null.
        relative_position_bias_tensor: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. Added to the
            result of the first GEMM.
        past_key_tensor: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. [batchSize, headCount,
            pastSequenceLength, headSize]; concatenated before the key giving [batchSize, headCount,
            pastSequenceLength + keyValueSequenceLength, headSize].
        past_value_tensor: input, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. [batchSize, headCount,
            pastSequenceLength, headSize]; concatenated before the value likewise.
        past_sequence_lengths_tensor: input, optional; INT32; 1 to 5 dimensions. INT32 [batchSize]: the number
            of past positions of each batch element.
        output_tensor: output, FLOAT32, FLOAT16; 3 to 5 dimensions. [batchSize, sequenceLength,
            valueHiddenSize].
        output_present_key_tensor: output, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. Cross attention:
            [batchSize, headCount, keyValueSequenceLength, headSize]; self attention: [batchSize, headCount,
            pastSequenceLength + keyValueSequenceLength, headSize]; the key, or PastKey+Key concatenated.
        output_present_value_tensor: output, optional; FLOAT32, FLOAT16; 4 to 5 dimensions. As
            OutputPresentKeyTensor, with the value.

    Attributes:
        scale: float. Multiplying QxK^T before softmax; usually 1/sqrt(headSize).
        mask_filter_value: float. Added to QxK^T at positions the mask marks as padding; very large negative,
            usually -10000.0.
        query_head_count: int. Number of query heads.
        key_value_head_count: int. Number of key/value heads, which query heads share in groups of
            QueryHeadCount / KeyValueHeadCount.
        mask_type: MultiheadAttentionMaskType. DML_MULTIHEAD_ATTENTION_MASK_TYPE. BOOLEAN: where mask is 0
            MaskFilterValue is added, where it is 1 nothing is added. KEY_SEQUENCE_LENGTH: mask [1, batchSize]
            = unpadded length per batch; later elements get MaskFilterValue. KEY_SEQUENCE_END_START: mask [2,
            batchSize] = end (exclusive) then start (inclusive) of the unpadded area; elements outside get
            MaskFilterValue. KEY_QUERY_SEQUENCE_LENGTH_START_END: mask [batchSize*3 + 2] =
            [keyLength[0..batchSize-1], queryStart[0..batchSize-1], queryEnd[batchSize-1],
            keyStart[0..batchSize-1], keyEnd[batchSize-1]].
    """

    operator = "MULTIHEAD_ATTENTION1"
    fields = (
        "query_tensor",
        "key_tensor",
        "value_tensor",
        "stacked_query_key_tensor",
        "stacked_key_value_tensor",
        "stacked_query_key_value_tensor",
        "bias_tensor",
        "mask_tensor",
        "relative_position_bias_tensor",
        "past_key_tensor",
        "past_value_tensor",
        "past_sequence_lengths_tensor",
        "output_tensor",
        "output_present_key_tensor",
        "output_present_value_tensor",
        "scale",
        "mask_filter_value",
        "query_head_count",
        "key_value_head_count",
        "mask_type",
    )
    __slots__ = fields
    query_tensor: TensorDesc | None
    key_tensor: TensorDesc | None
    value_tensor: TensorDesc | None
    stacked_query_key_tensor: TensorDesc | None
    stacked_key_value_tensor: TensorDesc | None
    stacked_query_key_value_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    mask_tensor: TensorDesc | None
    relative_position_bias_tensor: TensorDesc | None
    past_key_tensor: TensorDesc | None
    past_value_tensor: TensorDesc | None
    past_sequence_lengths_tensor: TensorDesc | None
    output_tensor: TensorDesc | None
    output_present_key_tensor: TensorDesc | None
    output_present_value_tensor: TensorDesc | None
    scale: float
    mask_filter_value: float
    query_head_count: int
    key_value_head_count: int
    mask_type: MultiheadAttentionMaskType

    def __init__(
        self,
        query_tensor: TensorDesc | None = None,
        key_tensor: TensorDesc | None = None,
        value_tensor: TensorDesc | None = None,
        stacked_query_key_tensor: TensorDesc | None = None,
        stacked_key_value_tensor: TensorDesc | None = None,
        stacked_query_key_value_tensor: TensorDesc | None = None,
        bias_tensor: TensorDesc | None = None,
        mask_tensor: TensorDesc | None = None,
        relative_position_bias_tensor: TensorDesc | None = None,
        past_key_tensor: TensorDesc | None = None,
        past_value_tensor: TensorDesc | None = None,
        past_sequence_lengths_tensor: TensorDesc | None = None,
        output_tensor: TensorDesc | None = None,
        output_present_key_tensor: TensorDesc | None = None,
        output_present_value_tensor: TensorDesc | None = None,
        *,
        scale: float,
        mask_filter_value: float = -10000.0,
        query_head_count: int,
        key_value_head_count: int,
        mask_type: MultiheadAttentionMaskType | str,
    ) -> None:
        self._fill(
            query_tensor,
            key_tensor,
            value_tensor,
            stacked_query_key_tensor,
            stacked_key_value_tensor,
            stacked_query_key_value_tensor,
            bias_tensor,
            mask_tensor,
            relative_position_bias_tensor,
            past_key_tensor,
            past_value_tensor,
            past_sequence_lengths_tensor,
            output_tensor,
            output_present_key_tensor,
            output_present_value_tensor,
            scale,
            mask_filter_value,
            query_head_count,
            key_value_head_count,
            as_member(MultiheadAttentionMaskType, mask_type),
        )
