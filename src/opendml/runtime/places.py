"""Where arrays are: in host memory, or on which CUDA device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opendml.errors import Error, InvalidArgument
from opendml.runtime.program import cuda_index
from opendml.targets.cuda.dlpack import CUDA_DEVICES


def cuda_device_of(value: Any) -> int | None:
    """The number of the CUDA device that an array of any library is on; None for everything else."""
    if isinstance(value, np.ndarray):
        return None
    try:
        return _cuda_device_of(value)
    except Error:
        raise
    except Exception:  # whatever a library raises: reading it as a host array tells why that does not work
        return None


def _cuda_device_of(value: Any) -> int | None:
    # PyTorch knows faster by itself than through DLPack.
    is_cuda = getattr(value, "is_cuda", None)
    if is_cuda is not None and hasattr(value, "get_device"):
        return int(value.get_device()) if is_cuda else None
    if hasattr(value, "__dlpack_device__"):
        kind, index = value.__dlpack_device__()
        return int(index) if kind in CUDA_DEVICES else None
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        return None
    from opendml.targets.cuda.driver import device_at

    return device_at(interface["data"][0])


def is_array(value: Any) -> bool:
    """Whether a value is an array of any library."""
    return any(hasattr(value, name) for name in ("__dlpack__", "__cuda_array_interface__"))


def common_place(owner: str, places: Sequence[tuple[str, int | None]]) -> int | None:
    """The CUDA device that all arrays of `owner` are on; None if they are in host memory.

    Args:
        owner: the operator or model, for messages.
        places: each array's name and the number of its device.

    Raises:
        InvalidArgument: they are in different memories.
    """
    for name, place in places[1:]:
        if place != places[0][1]:
            raise InvalidArgument(
                f"{owner}.{name}: {_place_name(place)}, but {places[0][0]} is {_place_name(places[0][1])}; "
                "all arrays of a call must be in the same memory"
            )
    return places[0][1] if places else None


def require_device(owner: str, name: str, index: int | None, kind: str) -> None:
    """Checks that an array on the CUDA device `index` is where the work is to run. Arrays in host memory
    (None) serve every kind of device.

    Raises:
        InvalidArgument: it is elsewhere.
    """
    if index is not None and cuda_index(kind) != index:
        raise InvalidArgument(
            f"{owner}.{name}: {_place_name(index)}, but the device is {kind!r}; arrays on a device stay there"
        )


def _place_name(device: int | None) -> str:
    return "in host memory" if device is None else f"on cuda:{device}"
