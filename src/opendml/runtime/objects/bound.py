"""Compiled work with bound memory, which is dispatched, added to streams, or recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opendml.errors import DeviceRemoved, InvalidArgument
from opendml.spec.values import sequence_items
from opendml.spec.wording import counted, shown
from opendml.targets.executable import Runnable

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


class Bound:
    """Compiled work with its memory, which it keeps alive. It runs one dispatch at a time."""

    def __init__(self, device: Device, instance: Runnable, name: str) -> None:
        self.device = device
        self._name = name
        self._instance = instance
        self._add = instance.enqueue
        self.dispatch: Callable[[], None] = _present(device, instance.dispatch)
        """Run it, and return when the outputs are written. On a CUDA device it first waits for all earlier
        work there, whatever its stream."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.device.kind}: {self._name}>"

    @property
    def takes_streams(self) -> bool:
        """True if it may be enqueued: its tensors are on a CUDA device."""
        return self._add is not None

    def enqueue(self, stream: Any) -> None:
        """Add the work to a CUDA stream and return at once. This takes the host a few microseconds.

        The inputs must be ready in the order of the stream. Dispatches of one object must not overlap, so
        each stream needs its own.

        Args:
            stream: the driver's handle as an integer (0 is the default stream), or a stream of any library:
            an object with `__cuda_stream__`, as cuda-core's, PyTorch's and CuPy's.

        Raises:
            InvalidArgument: no stream, or the tensors are in host memory.
            DeviceRemoved: the device failed, maybe in earlier work.
        """
        self.device._require_present()
        if self._add is None:
            raise InvalidArgument(
                "enqueue: the tensors are in host memory; streams are for arrays in the memory of a device"
            )
        if type(stream) is not int or stream < 0:
            stream = self.device._backend.stream(stream, "enqueue")
        try:
            self._add(stream)
        except DeviceRemoved as error:
            self.device._lose(error)
            raise


def _present(device: Device, work: Callable[[], object]) -> Callable[[], None]:
    """Return a function that runs `work` if the device is present, and removes the device if it is lost.

    It is a closure and not a method, because every dispatch calls it.
    """

    def dispatch() -> None:
        if device._removed is not None:
            device._require_present()
        try:
            work()
        except DeviceRemoved as error:
            device._lose(error)
            raise

    return dispatch


class BoundOperator(Bound):
    """A compiled operator with its memory."""


class BoundModel(Bound):
    """A model with its arrays."""


class Recording(Bound):
    """Several dispatches in their order, which run as one."""


def record(device: Device, bound: Sequence[Bound]) -> Recording:
    """Record several dispatches; see Device.record."""
    several = sequence_items(bound)
    if several is None:
        raise InvalidArgument(f"record: {shown(bound)}; a list of bound operators and models is needed")
    if not several:
        raise InvalidArgument("record: nothing to dispatch")
    bound = several
    for number, each in enumerate(bound):
        if not isinstance(each, Bound) or each.device is not device:
            raise InvalidArgument(f"record: [{number}] was not bound on this device")
    name = counted(len(bound), "dispatch", "dispatches")
    return Recording(device, device._backend.record([each._instance for each in bound]), name)
