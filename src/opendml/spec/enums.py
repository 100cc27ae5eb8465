"""DirectML's enumerations and constants.

Generated from opendml/spec/data by `python -m tools.generate`: change the data instead.
"""

from __future__ import annotations

from typing import Final

from opendml.spec.enumeration import Enumeration, Flags

TENSOR_DIMENSION_COUNT_MAX: Final = 5
TENSOR_DIMENSION_COUNT_MAX1: Final = 8
TEMPORARY_BUFFER_ALIGNMENT: Final = 256
PERSISTENT_BUFFER_ALIGNMENT: Final = 256
MINIMUM_BUFFER_TENSOR_ALIGNMENT: Final = 16


class TensorDataType(Enumeration):
    """DML_TENSOR_DATA_TYPE."""

    UNKNOWN = 0
    FLOAT32 = 1
    FLOAT16 = 2
    UINT32 = 3
    UINT16 = 4
    UINT8 = 5
    INT32 = 6
    INT16 = 7
    INT8 = 8
    FLOAT64 = 9
    UINT64 = 10
    INT64 = 11
    UINT4 = 12
    INT4 = 13


class TensorType(Enumeration):
    """DML_TENSOR_TYPE."""

    INVALID = 0
    BUFFER = 1


class TensorFlags(Flags):
    """DML_TENSOR_FLAGS."""

    NONE = 0
    OWNED_BY_DML = 1


class ReduceFunction(Enumeration):
    """DML_REDUCE_FUNCTION."""

    ARGMAX = 0
    ARGMIN = 1
    AVERAGE = 2
    L1 = 3
    L2 = 4
    LOG_SUM = 5
    LOG_SUM_EXP = 6
    MAX = 7
    MIN = 8
    MULTIPLY = 9
    SUM = 10
    SUM_SQUARE = 11


class MatrixTransform(Enumeration):
    """DML_MATRIX_TRANSFORM."""

    NONE = 0
    TRANSPOSE = 1


class ConvolutionMode(Enumeration):
    """DML_CONVOLUTION_MODE."""

    CONVOLUTION = 0
    CROSS_CORRELATION = 1


class ConvolutionDirection(Enumeration):
    """DML_CONVOLUTION_DIRECTION."""

    FORWARD = 0
    BACKWARD = 1


class PaddingMode(Enumeration):
    """DML_PADDING_MODE."""

    CONSTANT = 0
    EDGE = 1
    REFLECTION = 2
    SYMMETRIC = 3
    WRAP = 4


class InterpolationMode(Enumeration):
    """DML_INTERPOLATION_MODE."""

    NEAREST_NEIGHBOR = 0
    LINEAR = 1


class RecurrentNetworkDirection(Enumeration):
    """DML_RECURRENT_NETWORK_DIRECTION."""

    FORWARD = 0
    BACKWARD = 1
    BIDIRECTIONAL = 2


class RoundingMode(Enumeration):
    """DML_ROUNDING_MODE."""

    HALVES_TO_NEAREST_EVEN = 0
    TOWARD_ZERO = 1
    TOWARD_INFINITY = 2


class IsInfinityMode(Enumeration):
    """DML_IS_INFINITY_MODE."""

    EITHER = 0
    POSITIVE = 1
    NEGATIVE = 2


class AxisDirection(Enumeration):
    """DML_AXIS_DIRECTION."""

    INCREASING = 0
    DECREASING = 1


class DepthSpaceOrder(Enumeration):
    """DML_DEPTH_SPACE_ORDER."""

    DEPTH_COLUMN_ROW = 0
    COLUMN_ROW_DEPTH = 1


class RandomGeneratorType(Enumeration):
    """DML_RANDOM_GENERATOR_TYPE."""

    PHILOX_4X32_10 = 0


class MultiheadAttentionMaskType(Enumeration):
    """DML_MULTIHEAD_ATTENTION_MASK_TYPE."""

    NONE = 0
    KEY_SEQUENCE_LENGTH = 1
    KEY_SEQUENCE_END_START = 2
    KEY_QUERY_SEQUENCE_LENGTH_START_END = 3
    BOOLEAN = 4


class QuantizationType(Enumeration):
    """DML_QUANTIZATION_TYPE."""

    NONE = 0
    SCALE = 1
    SCALE_ZERO_POINT = 2


class ExecutionFlags(Flags):
    """DML_EXECUTION_FLAGS."""

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class BindingType(Enumeration):
    """DML_BINDING_TYPE."""

    NONE = 0
    BUFFER = 1
    BUFFER_ARRAY = 2


class GraphEdgeType(Enumeration):
    """DML_GRAPH_EDGE_TYPE."""

    INVALID = 0
    INPUT = 1
    OUTPUT = 2
    INTERMEDIATE = 3


class GraphNodeType(Enumeration):
    """DML_GRAPH_NODE_TYPE."""

    INVALID = 0
    OPERATOR = 1
    CONSTANT = 2


class FeatureLevel(Enumeration):
    """DML_FEATURE_LEVEL."""

    LEVEL_1_0 = 0x1000
    LEVEL_2_0 = 0x2000
    LEVEL_2_1 = 0x2100
    LEVEL_3_0 = 0x3000
    LEVEL_3_1 = 0x3100
    LEVEL_4_0 = 0x4000
    LEVEL_4_1 = 0x4100
    LEVEL_5_0 = 0x5000
    LEVEL_5_1 = 0x5100
    LEVEL_5_2 = 0x5200
    LEVEL_6_0 = 0x6000
    LEVEL_6_1 = 0x6100
    LEVEL_6_2 = 0x6200
    LEVEL_6_3 = 0x6300
    LEVEL_6_4 = 0x6400


DATA_TYPE_BITS: Final[dict[TensorDataType, int]] = {
    TensorDataType.FLOAT32: 32,
    TensorDataType.FLOAT16: 16,
    TensorDataType.UINT32: 32,
    TensorDataType.UINT16: 16,
    TensorDataType.UINT8: 8,
    TensorDataType.INT32: 32,
    TensorDataType.INT16: 16,
    TensorDataType.INT8: 8,
    TensorDataType.FLOAT64: 64,
    TensorDataType.UINT64: 64,
    TensorDataType.INT64: 64,
    TensorDataType.UINT4: 4,
    TensorDataType.INT4: 4,
}
"""The size of one element in bits; UNKNOWN has none."""
