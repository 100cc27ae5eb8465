"""Parameters that a model reads ahead of its runs (`freezing`)."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Hashable, Sequence

import torch

from opendml.errors import InvalidArgument
from opendml.frontends.torch.layout import with_strides
from opendml.locked import Locked
from opendml.runtime.graphs.compiled_work import Prepared
from opendml.runtime.graphs.model import Model
from opendml.targets.memory import TensorMemory


class FrozenParameters(Locked):
    """The parameters that a model has read ahead, for each of the modules that run it.

    They are prepared again after one was written, or lies elsewhere.

    Args:
        model: holds the parameters as constants, in their order.
        strides: those that the model expects.
    """

    def __init__(self, model: Model, strides: Sequence[tuple[int, ...]]) -> None:
        super().__init__()
        self._model, self._strides = model, strides
        self._kept: dict[tuple[int, ...], _Prepared] = {}
        self._last: _Prepared | None = None

    def prepared(self, tensors: Sequence[torch.Tensor]) -> Prepared:
        """Return the model over the parameters as they are now.

        Args:
            tensors: the parameters, which may have other strides than the model expects.
        """
        last = self._last
        if last is not None and last.is_of(tensors):
            return last.prepared
        key = tuple(map(id, tensors))
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or not kept.is_of(tensors):
                self._kept = {known: each for known, each in self._kept.items() if each.is_alive()}
                identities = [_identity(each) for each in tensors]
                prepared = self._model._prepare(self._memories(tensors), identities)
                kept = self._kept[key] = _Prepared(tensors, prepared)
            self._last = kept
        return kept.prepared

    @property
    def all_prepared(self) -> list[Prepared]:
        """The model over each of the parameters."""
        with self._lock:
            return [each.prepared for each in self._kept.values()]

    def _memories(self, tensors: Sequence[torch.Tensor]) -> list[TensorMemory]:
        place = self._model.device._backend.place
        layouts = [self._model._input_layouts[number] for number in self._model._deferred_constants]
        laid = [with_strides(*each) for each in zip(tensors, self._strides, strict=True)]
        require_memory([each.data_ptr() for each in laid])
        return [
            TensorMemory(tensor.data_ptr(), layout, False, tensor, place)
            for tensor, layout in zip(laid, layouts, strict=True)
        ]


def require_memory(addresses: Sequence[int]) -> None:
    """Check that tensors lie in memory.

    Raises:
        InvalidArgument: one does not.
    """
    if 0 in addresses:
        raise InvalidArgument("torch.compile: an input without memory, such as a fake tensor")


class _Prepared:
    """A prepared model, and the state of the parameters that it was made of."""

    def __init__(self, tensors: Sequence[torch.Tensor], prepared: Prepared) -> None:
        self.prepared = prepared
        self._tensors = [weakref.ref(each) for each in tensors]
        # PyTorch does not count the writes of inference tensors.
        is_counted = not any(each.is_inference() for each in tensors)
        self._states = [_state(each) for each in tensors] if is_counted else None

    def is_alive(self) -> bool:
        """Return whether all parameters are still there."""
        return all(each() is not None for each in self._tensors)

    def is_of(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether these are the parameters, unchanged."""
        if self._states is None:
            return False
        # This runs before each call, for all parameters.
        for known, (version, address, strides), each in zip(
            self._tensors, self._states, tensors, strict=True
        ):
            if (
                each._version != version
                or each.data_ptr() != address
                or each.stride() != strides
                or known() is not each
            ):
                return False
        return True


_names: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
"""A number of each tensor that was read ahead, by its id, which another one may have later."""
_numbers = itertools.count()


def _identity(tensor: torch.Tensor) -> Hashable:
    """Return a key of a tensor's values: equal keys mean equal values."""
    known = _names.get(id(tensor))
    if known is None or known[0]() is not tensor:
        for key in [key for key, (each, _) in list(_names.items()) if each() is None]:
            _names.pop(key, None)
        known = _names[id(tensor)] = weakref.ref(tensor), next(_numbers)
    return known[1], object() if tensor.is_inference() else _state(tensor)


def _state(tensor: torch.Tensor) -> tuple[int, int, tuple[int, ...]]:
    """Return a key that changes with each write and each move of a tensor."""
    return tensor._version, tensor.data_ptr(), tensor.stride()
