"""The caller's streams, and what must stay alive until work on them is done."""

from __future__ import annotations

from collections import deque
from typing import Any

from opendml.errors import InvalidArgument
from opendml.targets.cuda.api import check, driver_module
from opendml.targets.cuda.driver import CudaDevice
from opendml.targets.cuda.memory import outside_captures


def stream_handle(stream: Any) -> int:
    """Return the driver's handle of a stream: an integer (0, the legacy default stream), or what has the
    protocol `__cuda_stream__` (cuda-core, PyTorch, CuPy), PyTorch's `cuda_stream` or CuPy's `ptr`.

    Raises:
        InvalidArgument: none of these.
    """
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None and not isinstance(stream, type):
        # An early form of the protocol was an attribute.
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    for attribute in ("cuda_stream", "ptr"):
        handle = getattr(stream, attribute, None)
        if isinstance(handle, int):
            return handle
    raise InvalidArgument(
        f"stream: {stream!r}; a CUDA stream is needed: a handle from 0, or an object with __cuda_stream__"
    )


class InFlight:
    """Objects whose memory work on a device still uses. Arrays of libraries that do not know the stream are
    held here: their owners could otherwise give the memory to others too early.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._pending: deque[tuple[Any, Any]] = deque()

    def hold(self, objects: Any, stream: int) -> None:
        """Keep objects alive at least until all work that is now on a stream is done."""
        driver = driver_module()
        with self._device.current(), outside_captures():
            flags = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
            event = check(driver.cuEventCreate(flags), "creating an event")
            check(driver.cuEventRecord(event, driver.CUstream(stream)), "recording an event")
            self._pending.append((event, objects))
            while self._pending:
                # Another thread may take the next one meanwhile. So each is taken before it is asked for.
                try:
                    first = self._pending.popleft()
                except IndexError:
                    return
                if driver.cuEventQuery(first[0])[0].value != 0:
                    self._pending.appendleft(first)
                    return
                driver.cuEventDestroy(first[0])
