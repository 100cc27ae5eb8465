"""PyTorch's tensors in host memory, read without DLPack, which takes 20 times as long.

PyTorch is not imported here. Its module is found once a tensor of it is given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opendml.program.scalar_type import ScalarType


class TorchTensors:
    """The functions of PyTorch that calls need."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.kinds = frozenset({torch.Tensor, torch.nn.Parameter})
        """Classes whose tensors are read here. Others may be tensors of other memory, or of none."""
        self._has_gradients = torch.is_grad_enabled
        self.address_of: Callable[[Any], int] = torch.Tensor.data_ptr
        """Returns the address of a tensor's first element, 0 where it has no memory."""
        self._guards: Callable[[Sequence[Any]], Callable[..., bool]] | None = None
        self._has_tried_guards = False

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

    def comparison(self, tensors: Sequence[Any]) -> Callable[..., bool] | None:
        """Return a function that tells whether `read` appends the same key for other tensors.

        Of tensors that need no gradients it takes a sixth of the time. It may say no where the key is the
        same: it compares all dispatch keys of PyTorch, which modes and transformations change.

        Args:
            tensors: tensors that `read` has read.

        Returns:
            None: this version of PyTorch has no such function, there are other arguments than tensors, or a
                tensor is given twice.
        """
        if not self._has_tried_guards:
            try:
                self._guards = _guards(self._torch)
            except RuntimeError:  # within a transformation no tensor may require gradients
                return None
            self._has_tried_guards = True
        if self._guards is None or not all(type(tensor) in self.kinds for tensor in tensors):
            return None
        if len({*map(id, tensors)}) < len(tensors):
            return None  # The guards never hold for a tensor that is given twice.
        compare = self._guards(tensors)
        if not any(tensor.requires_grad for tensor in tensors):
            return compare
        has_gradients = self._has_gradients
        return lambda *others: not has_gradients() and compare(*others)

    def maker(self, sizes: Sequence[int], type: ScalarType, is_truth: bool) -> Callable[[], Any]:
        """Return a function that makes new packed tensors."""
        torch = self._torch
        of_type = torch.from_numpy(np.empty(0, type.numpy))
        dtype = torch.bool if is_truth else of_type.dtype
        made = torch.empty(sizes, dtype=dtype, device="meta")
        if (make := _maker_on_cpu(torch)) is not None:
            return partial(make, tuple(made.shape), made.stride(), dtype)
        return partial(torch.empty, tuple(sizes), dtype=dtype, device=of_type.device)


def _maker_on_cpu(torch: Any) -> Callable[..., Any] | None:
    """Return the function of sizes, strides and a type that Inductor's programs make results with.

    It takes a quarter of the time of `empty`. It is no public part of PyTorch, so it is tried out first.
    """
    try:
        make: Callable[..., Any] = torch._C._dynamo.guards._empty_strided_cpu
        made = make((2, 0, 3), (3, 3, 1), torch.int16)
        works = made.shape == (2, 0, 3) and made.stride() == (3, 3, 1) and made.dtype == torch.int16
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return None
    return make if works else None


def _guards(torch: Any) -> Callable[[Sequence[Any]], Callable[..., bool]] | None:
    """Return a function that returns the comparison with some tensors which TorchDynamo's guards make.

    They are no public part of PyTorch, so they are tried out first.
    """

    def compare(tensors: Sequence[Any]) -> Callable[..., bool]:
        sizes, strides = [list(each.shape) for each in tensors], [list(each.stride()) for each in tensors]
        made = guards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        return made.check  # type: ignore[no-any-return]

    try:
        guards = torch._C._dynamo.guards.TensorGuards
        tensor = torch.empty(2, 3)
        fits = compare([tensor])
        others = (tensor[:1], tensor[:, ::2], tensor.T, tensor.int(), tensor.requires_grad_())
        works = fits(torch.empty(2, 3)) and not any(map(fits, others))
    except (AttributeError, TypeError, ValueError):
        return None
    return compare if works else None


known_readers: dict[type, TorchTensors] = {}
"""The readers of classes of tensors that were given to calls."""


def learn_reader(kind: type) -> None:
    """Add the readers of PyTorch's classes, if a class is one of them."""
    if kind.__module__.startswith("torch") and (torch := sys.modules.get("torch")) is not None:
        reader = TorchTensors(torch)
        known_readers.update(dict.fromkeys(reader.kinds, reader))
