"""Read and write pictures: 8 bits a channel in the file, 0 to 1 (floats) or 0 to 255 (UINT8) in the buffer.

Pillow decodes them. It comes with the extra `image`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from opendml.budget import meter
from opendml.errors import Error, Unsupported
from opendml.frontends.dxdispatch.values import Elements, is_float
from opendml.spec.enums import TensorDataType
from opendml.spec.four_bit import numpy_type

if TYPE_CHECKING:
    from types import ModuleType

EXTENSIONS = (".png", ".jpg", ".jpeg")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_JPEG_QUALITY = 90


def holds_pixels(data_type: TensorDataType) -> bool:
    """Return whether elements of this type can stand for pixels."""
    return is_float(data_type) or data_type is TensorDataType.UINT8


def channel_axis(dimensions: tuple[int, ...]) -> int | None:
    """Return the dimension of the channels: 1 (NCHW), else 3 (NHWC); None if the sizes are not one
    picture's."""
    if len(dimensions) != 4 or dimensions[0] != 1 or 0 in dimensions:
        return None
    return next((axis for axis in (1, 3) if dimensions[axis] in _MODES), None)


def read(file: BinaryIO, data_type: TensorDataType, dimensions: tuple[int, ...] | None) -> Elements:
    """Return the picture in a file as elements of `data_type` in the order of `dimensions`, scaled to them;
    without dimensions in its own size as NCHW.

    Raises:
        OSError: it can't be read or decoded.
    """
    image_library = pillow()
    try:
        return _read(image_library, file, data_type, dimensions)
    except (Error, OSError):
        raise
    except Exception as error:  # Pillow's decoders fail in many ways on damaged files
        raise OSError(f"cannot decode the picture: {error or type(error).__name__}") from error


def _read(
    image_library: ModuleType, file: BinaryIO, data_type: TensorDataType, dimensions: tuple[int, ...] | None
) -> Elements:
    # For some other formats Pillow runs programs.
    with image_library.open(file, formats=("PNG", "JPEG")) as image:
        if dimensions is None:
            own = 1 if image.mode in ("1", "L") else 4 if image.has_transparency_data else 3
            dimensions = (1, own, image.height, image.width)
        axis = channel_axis(dimensions)
        meter().require_tensor((image.width, image.height), 4, file.name)
        height, width = dimensions[2:] if axis == 1 else dimensions[1:3]
        picture = image.convert(_MODES[dimensions[axis or 1]])
        if picture.size != (width, height):
            picture = picture.resize((width, height), image_library.Resampling.BICUBIC)
        pixels = np.asarray(picture).reshape(height, width, -1)
    if axis == 1:
        pixels = pixels.transpose(2, 0, 1)
    if not is_float(data_type):
        return np.ascontiguousarray(pixels)
    return (pixels / np.float32(255)).astype(numpy_type(data_type), order="C")


def write(file: BinaryIO, extension: str, elements: Elements, dimensions: tuple[int, ...]) -> None:
    """Write elements in the order of `dimensions` (see `channel_axis`) as a picture. Values outside of the
    range are clipped, NaN is black, the rest is rounded to the nearest of the 256 steps."""
    axis = channel_axis(dimensions)
    picture = elements.reshape(dimensions)[0]
    if axis == 1:
        picture = picture.transpose(1, 2, 0)
    if elements.dtype != np.uint8:
        steps = np.nan_to_num(picture.astype(np.float32)).clip(0, 1) * np.float32(255)
        picture = np.rint(steps).astype(np.uint8)
    if picture.shape[2] == 1:
        picture = picture[:, :, 0]
    options = {"format": "PNG"} if extension == ".png" else {"format": "JPEG", "quality": _JPEG_QUALITY}
    pillow().fromarray(np.ascontiguousarray(picture)).save(file, **options)


def pillow() -> ModuleType:
    """Import Pillow's module Image, or raise Unsupported if it is not installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise Unsupported("reading and writing pictures needs pillow: `pip install pillow`") from error
    return Image
