"""Inputs of graphs, and what may be bound to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from opendml.frontends.directml.buffers import Buffer, bytes_of, require_castable, uploaded
from opendml.frontends.pydirectml.data_types import numpy_type
from opendml.frontends.pydirectml.devices import Device
from opendml.frontends.pydirectml.errors import Refused
from opendml.spec.tensor_desc import TensorDesc as Tensor

Data = npt.ArrayLike | Buffer


@dataclass(frozen=True)
class Input:
    """An input of a graph."""

    index: int
    desc: Tensor
    name: str | None

    @property
    def is_owned(self) -> bool:
        """Whether it is handed over at initialization."""
        return bool(self.desc.flags)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of its elements."""
        return numpy_type(self.desc.data_type)

    def __str__(self) -> str:
        name = "" if self.name is None else f" {self.name!r}"
        return f"input {self.index}{name} ({self.dtype.name} {list(self.desc.sizes)})"

    def memory(self, value: Data, device: Device, *, stays: bool) -> Any:
        """Data for it, as memory: of arrays, unless they `stay` in the host's memory, of the device.

        Raises:
            ValueError: another type or size, or a buffer of another device.
        """
        if isinstance(value, Buffer):
            if value.device is not device:
                raise Refused(f"{self}: a Buffer of a different device is bound")
            if value.dtype != self.dtype:
                raise Refused(f"{self}: a Buffer of {value.dtype.name} is bound; Buffers are not converted")
            self._require_fit(value.size, value.nbytes, "Buffer")
            return value._memory
        array = np.asarray(value)
        require_castable(array, self.dtype, str(self))
        self._require_fit(array.size, array.size * self.dtype.itemsize, "array")
        data = bytes_of(array, self.dtype)
        return data if stays else uploaded(device._device, data)

    def _require_fit(self, count: int, size: int, kind: str) -> None:
        """Checks that data has an element for each of a packed tensor, or the bytes that strides reach."""
        if self.desc.strides is None:
            if count != prod(self.desc.sizes):
                raise Refused(f"{self}: {kind} of {count} elements does not fill it")
        elif -(-size // 4) * 4 < (needed := self.desc.size_in_bytes):
            raise Refused(f"{self}: {kind} of {size} bytes does not fill it; its strides reach {needed}")
