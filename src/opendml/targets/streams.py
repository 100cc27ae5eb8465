"""One program on several streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opendml.targets.executable import Instance


class StreamInstances:
    """Instances of a program for the streams that it runs on: work on different streams may overlap, so each
    has an instance, with temporaries, of its own. One call at a time.

    Args:
        instantiate: makes an instance over memory of a device with streams.
    """

    def __init__(self, instantiate: Callable[[], Instance]) -> None:
        self._instantiate = instantiate
        self._instances: dict[int, tuple[Callable[[int, int], None], Callable[[int], object]]] = {}

    def enqueue(self, addresses: Sequence[int | None], stream: int) -> None:
        """Add the program over tensors at `addresses` to a stream; None: a constant.

        Raises:
            Unsupported: no memory for what a kernel needs beside the tensors.
            DeviceRemoved: the device failed, maybe in earlier work.
        """
        bind, enqueue = self._instances.get(stream) or self._new(stream)
        for buffer, address in enumerate(addresses):
            if address is not None:
                bind(buffer, address)
        enqueue(stream)

    def _new(self, stream: int) -> tuple[Callable[[int, int], None], Callable[[int], object]]:
        instance = self._instantiate()
        enqueue = instance.enqueue
        assert enqueue is not None
        self._instances[stream] = instance.bind, enqueue
        return instance.bind, enqueue
