"""Tensor maps: what the copy engine of compute capability 9.0 (TMA) knows of an operand."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda.api import check, driver_module

MAP_BYTES = 128
"""Bytes of an encoded map."""
MAP_ALIGNMENT = 64
"""Alignment of an encoded map, in host memory and in a kernel's parameters."""
ADDRESS_ALIGNMENT = 16
"""Alignment that the copy engine needs of a tensor's address, and of all strides but the first, in bytes."""
MOST_DIMENSIONS = 5
"""Dimensions of a map, at most."""
ROW_BYTES = 128
"""Bytes of the innermost dimension of a box, whose units of 16 bytes are swizzled in shared memory."""

_TYPES = {ScalarType.FLOAT16: "FLOAT16"}


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor of which boxes are copied: `sizes` and the `box` in elements, innermost first; the innermost
    elements are contiguous, and `strides` are those of the other dimensions in bytes. `access` is the number
    of the access whose address is the tensor's.
    """

    access: int
    type: ScalarType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]


class EncodedMap:
    """A tensor map as the driver encodes it, at an address in host memory, for one tensor after the other."""

    def __init__(self, map: TensorMap, place: int) -> None:
        self._map, self._place = map, place
        self._encoded: Any = None
        self._address = 0

    def write(self, address: int) -> None:
        """Write the map of a tensor at an address, unless it is there already.

        Raises:
            DeviceRemoved: the driver does not accept it.
        """
        if address == self._address:
            return
        driver = driver_module()
        if self._encoded is None:
            self._encoded = check(self._encode(driver, address), "encoding a tensor map")
        else:
            check(driver.cuTensorMapReplaceAddress(self._encoded, address), "moving a tensor map")
        ctypes.memmove(self._place, self._encoded.getPtr(), MAP_BYTES)
        self._address = address

    def _encode(self, driver: Any, address: int) -> Any:
        map, long, short = self._map, driver.cuuint64_t, driver.cuuint32_t
        return driver.cuTensorMapEncodeTiled(
            getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[map.type]}"),
            len(map.sizes),
            address,
            [long(each) for each in map.sizes],
            [long(each) for each in map.strides],
            [short(each) for each in map.box],
            [short(1)] * len(map.sizes),
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
