"""Measure the bandwidth of copies and the rate of matrix products of a device, once in a process."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from opendml.floating_point import default_mode
from opendml.late_dataclass import dataclass
from opendml.locked import Locked
from opendml.program.program import Program
from opendml.runtime.program import program_of
from opendml.spec.descs import ActivationIdentity, Gemm
from opendml.spec.enums import TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.backend import DeviceBackend
from opendml.targets.memory import OwnMemory
from opendml.targets.planned import Timer

_COPIES = (2**15, 2**18, 2**21, 2**24, 2**26)
"""Bytes that a copy reads and writes together: from the sizes of a core's caches to those of no cache."""
_LENGTHS = (256, 4096)
"""Sides of the matrices on the host, and on a device with memory of its own."""
_SECONDS, _LEAST_ROUNDS, _MOST_ROUNDS = 0.02, 5, 50
_FLOAT32 = TensorDataType.FLOAT32


@dataclass(frozen=True, slots=True)
class Rates:
    """The bandwidths of copies, by their largest sizes, and the operations in a second."""

    copies: tuple[tuple[int, float], ...]
    operations: float

    def bandwidth(self, moved: int) -> float:
        """Return the bytes in a second of a copy of that size. The largest measured copy stands for larger
        ones."""
        return next((rate for size, rate in self.copies if moved <= size), self.copies[-1][1])


_measuring = Locked()
_known: dict[tuple[DeviceBackend, int | None], Rates] = {}


def rates_of(backend: DeviceBackend, threads: int | None) -> Rates:
    """Return the rates of opendml's own float32 copies and products on a device.

    The first call for a device and a number of threads measures for some tenths of a second.
    """
    with _measuring._lock:
        if (backend, threads) not in _known:
            _known[backend, threads] = _measured(backend, threads)
        return _known[backend, threads]


def _measured(backend: DeviceBackend, threads: int | None) -> Rates:
    copies = []
    for size in _COPIES:
        tensor = TensorDesc(_FLOAT32, [size // 8])
        seconds = _least_seconds(backend, threads, program_of(ActivationIdentity(tensor, tensor)))
        copies.append((size, size / seconds))
    length = _LENGTHS[backend.place is not None]
    square = TensorDesc(_FLOAT32, [1, 1, length, length])
    seconds = _least_seconds(backend, threads, program_of(Gemm(square, square, None, square)))
    return Rates(tuple(copies), 2 * length**3 / seconds)


@default_mode()
def _least_seconds(backend: DeviceBackend, threads: int | None, program: Program) -> float:
    instance = backend.compile(program, threads).instantiate()
    layouts = (*program.inputs, *program.outputs)
    memories = [filled(backend, np.zeros(layout.span[1], np.uint8)) for layout in layouts]
    for number, memory in enumerate(memories):
        instance.bind(number, memory.address)
    nothing, *launches = map(min, rounds(backend.timers(instance), _SECONDS))
    return max(sum(launches) - nothing * len(launches), 1e-9)


def filled(backend: DeviceBackend, content: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> OwnMemory:
    """Return memory of a device with these bytes."""
    memory = backend.allocate(content.size)
    memory.write(content.ctypes.data, content.size)
    return memory


def rounds(timers: Sequence[Timer], seconds: float) -> list[list[float]]:
    """Return the times of each timer in several rounds, which take about `seconds` in all.

    A first round fills the caches and is not counted.
    """
    for each in timers:
        each()
    times: list[list[float]] = [[] for _ in timers]
    until = perf_counter() + seconds
    while len(times[0]) < _LEAST_ROUNDS or (perf_counter() < until and len(times[0]) < _MOST_ROUNDS):
        for each, found in zip(timers, times, strict=True):
            found.append(each())
    return times
