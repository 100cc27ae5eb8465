"""Element types of a tensor program: DirectML's data types, BFLOAT16, and the truth values of comparisons."""

from __future__ import annotations

import math
from enum import Enum
from functools import cache

import numpy as np

from opendml.across_forks import cached_property, importing
from opendml.program.sizes import in_float_type, is_traced
from opendml.spec.enums import TensorDataType


class ScalarType(Enum):
    """An element type; the members keep DirectML's names."""

    __hash__ = object.__hash__  # Enum's own is slow, and nodes are looked up by it all the time

    BOOLEAN = "BOOLEAN"
    FLOAT16 = "FLOAT16"
    FLOAT32 = "FLOAT32"
    FLOAT64 = "FLOAT64"
    UINT8 = "UINT8"
    UINT16 = "UINT16"
    UINT32 = "UINT32"
    UINT64 = "UINT64"
    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    UINT4 = "UINT4"
    """In arrays an element has a byte, of which the low half counts; kernels see bytes (`four_bit`)."""
    INT4 = "INT4"
    BFLOAT16 = "BFLOAT16"
    """The upper half of a FLOAT32. DirectML lacks it. Graphs store it; kernels see UINT16 (`carriers`)."""

    @staticmethod
    @cache
    def of(data_type: TensorDataType) -> ScalarType:
        """Return the element type of a tensor of DirectML's `data_type`."""
        return ScalarType[data_type.name]

    @cached_property
    def data_type(self) -> TensorDataType:
        """DirectML's type of such elements, with BFLOAT16 computed in FLOAT32."""
        return TensorDataType.FLOAT32 if self is ScalarType.BFLOAT16 else TensorDataType[self.name]

    @cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type of the same elements, or ml_dtypes' one. Elements of 4 bits have a byte each."""
        if self.is_four_bit or self is ScalarType.BFLOAT16:
            with importing:
                import ml_dtypes
            dtype: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, self.name.lower()))
            return dtype
        return np.dtype("bool" if self is ScalarType.BOOLEAN else self.name.lower())

    @cached_property
    def is_float(self) -> bool:
        """True for floating-point types."""
        return "FLOAT" in self.name

    @cached_property
    def is_signed(self) -> bool:
        """True for integer types with a sign."""
        return self.name.startswith("INT")

    @cached_property
    def is_four_bit(self) -> bool:
        """True for elements of 4 bits."""
        return self.name.endswith("INT4")

    @cached_property
    def bits(self) -> int:
        """Width of one element in bits; a truth value has one."""
        if self.is_four_bit:
            return 4
        return 1 if self is ScalarType.BOOLEAN else self.numpy.itemsize * 8

    @cached_property
    def bytes(self) -> int:
        """Size of one stored element in bytes."""
        return 1 if self.is_four_bit else self.numpy.itemsize


def counting(most: int) -> ScalarType:
    """Return the type of numbers from -`most` to `most`: INT32 where that holds them, else INT64."""
    return ScalarType.INT32 if most < 2**31 else ScalarType.INT64


def number_in(value: float, type: ScalarType) -> float:
    """Return a number as one of `type`, as CONVERT would have it: rounded to floats, truncated to
    integers."""
    if type.is_float:
        return in_float_type(value, type.name)
    if isinstance(value, float) and math.isnan(value):
        return 0
    limits = np.iinfo(type.numpy.name)
    bounded = min(max(value, limits.min), limits.max)
    return bounded if is_traced(bounded) else int(bounded)
