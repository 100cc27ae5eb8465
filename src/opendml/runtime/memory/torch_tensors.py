"""PyTorch's tensors in host memory, read without DLPack, which takes 20 times as long.

PyTorch is not imported here. Its module is found once a tensor of it is given.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opendml.program.scalar_type import ScalarType

_MOST_PATTERN_BYTES = 4096
"""Bytes of the largest kept pattern of a result. `empty_like` takes half the time of `empty`."""


class TorchTensors:
    """The functions of PyTorch that calls need."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.kinds = frozenset({torch.Tensor, torch.nn.Parameter})
        """Classes whose tensors are read here. Others may be tensors of other memory, or of none."""
        self._has_gradients = torch.is_grad_enabled

    def read(self, tensors: Sequence[Any], key: list[Hashable], addresses: list[int]) -> bool:
        """Append all that code depends on to a key, and the addresses of tensors that are not None.

        Returns:
            False: a tensor needs another way, or is wrong.
        """
        kinds = self.kinds
        try:
            for tensor in tensors:
                if type(tensor) in kinds:
                    if not tensor.is_cpu or tensor.is_neg():
                        return False
                    if tensor.requires_grad and self._has_gradients():
                        return False
                    key += tensor.dtype, tensor.shape, tensor.stride()
                    addresses.append(tensor.data_ptr())
                elif tensor is None:
                    key.append(None)
                else:
                    return False
        except RuntimeError:  # a layout without strides, a tensor of a transformation
            return False
        return 0 not in addresses

    def maker(self, sizes: Sequence[int], type: ScalarType, is_truth: bool) -> Callable[[], Any]:
        """Return a function that makes new packed tensors."""
        torch = self._torch
        of_type = torch.from_numpy(np.empty(0, type.numpy))
        dtype = torch.bool if is_truth else of_type.dtype
        make = partial(torch.empty, tuple(sizes), dtype=dtype, device=of_type.device)
        is_small = math.prod(sizes) * type.bytes <= _MOST_PATTERN_BYTES
        return partial(torch.empty_like, make()) if is_small else make


known_readers: dict[type, TorchTensors] = {}
"""The readers of classes of tensors that were given to calls."""


def learn_reader(kind: type) -> None:
    """Add the readers of PyTorch's classes, if a class is one of them."""
    if kind.__module__.startswith("torch") and (torch := sys.modules.get("torch")) is not None:
        reader = TorchTensors(torch)
        known_readers.update(dict.fromkeys(reader.kinds, reader))
