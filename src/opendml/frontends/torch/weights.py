"""Parameters that a model reads ahead of its runs (`freezing`)."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Hashable, Sequence

import torch

from opendml.locked import Locked
from opendml.runtime.graphs.compiled_work import Prepared
from opendml.runtime.graphs.model import Model
from opendml.targets.memory import TensorMemory


class FrozenParameters(Locked):
    """The parameters that a model has read ahead, for each of the modules that run it.

    They are prepared again after one was written, or lies elsewhere.

    Args:
        model: holds the parameters as constants, in their order.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model
        self._kept: dict[tuple[int, ...], _Prepared] = {}

    def prepared(self, tensors: Sequence[torch.Tensor]) -> Prepared:
        """Return the model over the parameters as they are now.

        Args:
            tensors: the parameters, with the strides that the model expects.
        """
        key = tuple(map(id, tensors))
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or not kept.is_of(tensors):
                self._kept = {known: each for known, each in self._kept.items() if each.is_alive()}
                identities = [_identity(each) for each in tensors]
                prepared = self._model._prepare(self._memories(tensors), identities)
                kept = self._kept[key] = _Prepared(tensors, prepared)
        return kept.prepared

    @property
    def all_prepared(self) -> list[Prepared]:
        """The model over each of the parameters."""
        with self._lock:
            return [each.prepared for each in self._kept.values()]

    def _memories(self, tensors: Sequence[torch.Tensor]) -> list[TensorMemory]:
        place = self._model.device._backend.place
        layouts = [self._model._input_layouts[number] for number in self._model._deferred_constants]
        return [
            TensorMemory(tensor.data_ptr(), layout, False, tensor, place)
            for tensor, layout in zip(tensors, layouts, strict=True)
        ]


class _Prepared:
    """A prepared model, and the state of the parameters that it was made of."""

    def __init__(self, tensors: Sequence[torch.Tensor], prepared: Prepared) -> None:
        self.prepared = prepared
        self._tensors = [weakref.ref(each) for each in tensors]
        self._states = [_state(each) for each in tensors]

    def is_alive(self) -> bool:
        """Return whether all parameters are still there."""
        return all(each() is not None for each in self._tensors)

    def is_of(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether these are the parameters, unchanged."""
        return all(
            known() is each and state == _state(each)
            for known, state, each in zip(self._tensors, self._states, tensors, strict=True)
        )


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
    return known[1], _state(tensor)


def _state(tensor: torch.Tensor) -> object:
    """Return a key that changes with each write and each move of a tensor.

    PyTorch does not count the writes of inference tensors, so their keys are never equal.
    """
    return object() if tensor.is_inference() else (tensor._version, tensor.data_ptr())
