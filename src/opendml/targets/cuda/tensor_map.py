"""Tensor maps, which describe operands to the copy engine of compute capability 9.0 (TMA)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from opendml.late_dataclass import dataclass
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

MOST_TRAVERSED = 8
"""Largest stride of a window, in pixels, that the copy engine takes (CUDA driver API)."""
CORNERS = range(-128, 128)
"""Offsets, in pixels, that the corners of the region in which windows begin may have from the corners of an
image with two axes (CUDA driver API)."""
MOST_OFFSET = 255
"""Largest offset of a tap, in pixels, along each of two axes (PTX ISA)."""

_TYPES = {
    ScalarType.FLOAT16: "FLOAT16",
    ScalarType.UINT16: "UINT16",
    ScalarType.FLOAT32: "FLOAT32",
    # The copy engine does not compute with elements.
    ScalarType.INT8: "UINT8",
    ScalarType.UINT8: "UINT8",
}


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor whose boxes the copy engine loads.

    Args:
        access: the number of the access.
        type: the type of the elements.
        sizes: in elements, the innermost dimension first, which is contiguous.
        strides: in bytes, of all other dimensions.
        box: the sizes of a box, in elements.
        offset: the bytes from the address of the access to that of the tensor.
    """

    access: int
    type: ScalarType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    offset: int = 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the map, which may be traced: all but the access."""
        return (*self.sizes, *self.strides, *self.box, self.offset)

    def with_numbers(self, numbers: Sequence[int]) -> TensorMap:
        """Return the map with other numbers."""
        sizes, strides, box, (offset, *_) = _parts(numbers, self.sizes, self.strides, self.box)
        return replace(self, sizes=sizes, strides=strides, box=box, offset=offset)

    def to_json(self) -> list[Any]:
        """Return the map as JSON, without its numbers."""
        return [self.access, self.type.name, len(self.sizes), len(self.box), isinstance(self, WindowMap)]

    def encode(self, driver: Any, address: int) -> Any:
        """Return the driver's error and its encoding of the map, for a tensor at an address."""
        steps = _shorts(driver, (1,) * len(self.sizes))
        return driver.cuTensorMapEncodeTiled(
            *self._tensor(driver, address), _shorts(driver, self.box), steps, *_box_settings(driver)
        )

    def _tensor(self, driver: Any, address: int) -> tuple[Any, ...]:
        long = driver.cuuint64_t
        return (
            _type_of(driver, self.type),
            len(self.sizes),
            address,
            [long(each) for each in self.sizes],
            [long(each) for each in self.strides],
        )


@dataclass(frozen=True, slots=True)
class WindowMap(TensorMap):
    """Images over which a window moves (im2col). Sizes are channels, two axes, images; the box is channels
    and pixels.

    Args:
        lower: the offset of the first window from the first pixel, along each axis.
        upper: the offset of the last window from the last pixel, along each axis.
        steps: the stride of the window along each axis.
    """

    lower: tuple[int, int] = (0, 0)
    upper: tuple[int, int] = (0, 0)
    steps: tuple[int, int] = (1, 1)

    @property
    def numbers(self) -> tuple[int, ...]:
        """See TensorMap."""
        return (*self.sizes, *self.strides, *self.box, self.offset, *self.lower, *self.upper, *self.steps)

    def with_numbers(self, numbers: Sequence[int]) -> WindowMap:
        """See TensorMap."""
        sizes, strides, box, rest = _parts(numbers, self.sizes, self.strides, self.box)
        offset, *corners = rest
        (a, b, c, d, e, f) = corners
        return replace(
            self,
            sizes=sizes,
            strides=strides,
            box=box,
            offset=offset,
            lower=(a, b),
            upper=(c, d),
            steps=(e, f),
        )

    def encode(self, driver: Any, address: int) -> Any:
        """Return the driver's error and its encoding of the map, for images at an address."""
        short = driver.cuuint32_t
        return driver.cuTensorMapEncodeIm2col(
            *self._tensor(driver, address),
            list(self.lower),
            list(self.upper),
            *(short(each) for each in self.box),
            [short(each) for each in (1, *self.steps, 1)],
            *_box_settings(driver),
        )


def _parts(numbers: Sequence[int], *groups: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the first numbers in groups of given lengths, and the rest."""
    found, at = list[tuple[int, ...]](), 0
    for each in groups:
        found.append(tuple(numbers[at : at + len(each)]))
        at += len(each)
    return [*found, tuple(numbers[at:])]


def map_from_json(data: Sequence[Any]) -> TensorMap:
    """Return the map that `TensorMap.to_json` has made JSON of. All its numbers are 0."""
    access, type, dimensions, boxes, is_window = data
    kind = WindowMap if is_window else TensorMap
    return kind(access, ScalarType[type], (0,) * dimensions, (0,) * (dimensions - 1), (0,) * boxes)


@cache
def _type_of(driver: Any, type: ScalarType) -> Any:
    """Return the driver's type of elements."""
    return getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[type]}")


@lru_cache(maxsize=64)
def _shorts(driver: Any, numbers: tuple[int, ...]) -> list[Any]:
    """Return numbers as the driver takes them. Most maps of a program have the same few boxes."""
    return list(map(driver.cuuint32_t, numbers))


@cache
def _box_settings(driver: Any) -> tuple[Any, ...]:
    """Return the driver's settings for copying boxes, which all maps share."""
    return (
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )


def encoded(map: TensorMap, address: int) -> bytes:
    """Return a map as the driver encodes it for a tensor at an address.

    Raises:
        DeviceRemoved: the driver does not accept it.
    """
    found = check(map.encode(driver_module(), address), "encoding a tensor map")
    return ctypes.string_at(found.getPtr(), MAP_BYTES)
