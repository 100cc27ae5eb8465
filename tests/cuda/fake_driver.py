"""A driver that is not there, for what opendml says and does when a real one refuses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

NAMES = {
    0: "CUDA_SUCCESS",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    34: "CUDA_ERROR_STUB_LIBRARY",
    100: "CUDA_ERROR_NO_DEVICE",
    209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
}


class Result(int):
    """A result of the driver."""

    @property
    def value(self) -> int:
        return int(self)

    @property
    def name(self) -> str:
        return NAMES[self]


class FakeDriver:
    """A driver with two devices, as far as opening them goes; `initialized` is what cuInit says."""

    CUresult = SimpleNamespace(**{name: Result(code) for code, name in NAMES.items()})
    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR="major",
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR="minor",
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT="multiprocessors",
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN="shared",
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE="cache",
        CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE="memory clock",
        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH="bus",
        CU_DEVICE_ATTRIBUTE_CLOCK_RATE="clock",
    )

    def __init__(self, initialized: int | Exception = 0, version: int = 13000, major: int = 9) -> None:
        self._initialized, self._version, self._major = initialized, version, major

    def cuInit(self, flags: int) -> tuple[Result]:  # noqa: N802 - the driver's name
        if isinstance(self._initialized, Exception):
            raise self._initialized
        return (Result(self._initialized),)

    def cuDriverGetVersion(self) -> tuple[Result, int]:  # noqa: N802
        return Result(0), self._version

    def cuDeviceGetCount(self) -> tuple[Result, int]:  # noqa: N802
        return Result(0), 2

    def cuDeviceGet(self, index: int) -> tuple[Result, int]:  # noqa: N802
        return Result(0), index

    def cuDeviceGetName(self, size: int, device: int) -> tuple[Result, bytes]:  # noqa: N802
        return Result(0), b"Old GPU\0\0"

    def cuDeviceGetAttribute(self, attribute: str, device: int) -> tuple[Result, int]:  # noqa: N802
        return Result(0), {"major": self._major, "minor": 5}.get(attribute, 100)

    def cuMemGetInfo(self) -> tuple[Result, int, int]:  # noqa: N802
        return Result(0), 10, 20


def use(monkeypatch: pytest.MonkeyPatch, fake: FakeDriver) -> None:
    monkeypatch.setattr("cuda.bindings.driver", fake)
