"""The search for the CUDA device of an array.

It needs the driver only for arrays that know nothing but an address.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from opendml.errors import Error
from opendml.targets.memory import Place

DLPACK_DEVICES = (2, 13)
"""DLPack's numbers of CUDA memory: plain and managed."""


@cache
def place(index: int) -> Place:
    """Return the memory of the device with a number."""
    return Place("cuda", index)


def place_of(array: Any) -> Place | None:
    """Return the device that an array of any library is on; None for everything else."""
    try:
        return _place_of(array)
    except Error:
        raise
    except Exception:  # of any library; reading the array as a host array then reports the reason
        return None


def _place_of(array: Any) -> Place | None:
    # PyTorch knows faster by itself than through DLPack.
    is_cuda = getattr(array, "is_cuda", None)
    if is_cuda is not None and hasattr(array, "get_device"):
        return place(int(array.get_device())) if is_cuda else None
    if hasattr(array, "__dlpack_device__"):
        kind, index = array.__dlpack_device__()
        return place(int(index)) if kind in DLPACK_DEVICES else None
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        return None
    from opendml.targets.cuda.driver import device_at

    return place(device_at(interface["data"][0]))
