"""ONNX Runtime's descriptions of devices and of their memory."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NoReturn, TypeVar

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnxruntime.providers import is_available
from opendml.late_dataclass import dataclass
from opendml.spec.values import as_member
from opendml.spec.wording import member_words, shown

E = TypeVar("E", bound=IntEnum)


class OrtDeviceVendorId(IntEnum):
    """The vendor of a device, by its PCI number."""

    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtAllocatorType(IntEnum):
    """The kind of an allocator. opendml has its own arenas, so it has no effect."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(IntEnum):
    """The use of memory beside a device."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(IntEnum):
    """The memory of a device: its own, or memory that the host reads too."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(IntEnum):
    """The kind of the device that memory belongs to."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtHardwareDeviceType(IntEnum):
    """The kind of a device."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtSparseFormat(IntEnum):
    """The format of a sparse tensor. opendml has dense tensors alone."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


_KINDS = {"cpu": 0, "cuda": 1, "dml": 1, "gpu": 1, "webgpu": 1, "npu": 3, "cann": 3}
"""ONNX Runtime's numbers of devices, by the names that programs write."""
_VENDORS = {
    "cuda": OrtDeviceVendorId.NVIDIA,
    "dml": OrtDeviceVendorId.MICROSOFT,
    "cann": OrtDeviceVendorId.HUAWEI,
}
_MEMORIES = {"cpu": "cpu", "dml": "cpu", "cuda": "cuda", "gpu": "cuda"}
"""The device that memory of a name needs. "dml" is the best device here, so every machine has it."""


def member_of(members: type[E], value: Any, where: str) -> E:
    """Return the member of an enumeration that a program gives, by itself, its name or its number.

    Raises:
        InvalidArgument: there is no such member.
    """
    found: Any = as_member(members, value)
    if not isinstance(found, members):
        raise InvalidArgument(f"{where}: {shown(value)}; {member_words(members, members.__members__)}")
    return found


def memory_kind(device_type: Any, where: str) -> str:
    """Return the kind of device, "cpu" or "cuda", whose memory a program names.

    Raises:
        InvalidArgument: an unknown name.
        Unsupported: the machine has no such device.
    """
    kind = _MEMORIES.get(device_type) if isinstance(device_type, str) else None
    if kind is not None and is_available(kind):
        return "cuda" if device_type == "dml" and is_available("cuda") else kind
    here = ", ".join(repr(name) for name, each in _MEMORIES.items() if is_available(each))
    if kind is None:
        raise InvalidArgument(f"{where}: device_type {shown(device_type)}; must be one of {here}")
    raise Unsupported(f"{where}: device_type {device_type!r}: this machine has no such device; it has {here}")


class OrtDevice:
    """A device by ONNX Runtime's numbers. `OrtDevice.make` makes one."""

    def __init__(self, kind: int, index: int, vendor: int) -> None:
        self._kind, self._index, self._vendor = kind, index, vendor

    def __repr__(self) -> str:
        return f"OrtDevice(type={self._kind}, id={self._index}, vendor={self._vendor:#x})"

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Return the device of a name, such as "cpu" or "cuda".

        Args:
            ort_device_name: the name.
            device_id: its number.
            vendor_id: its vendor; a negative number: that of the name.

        Raises:
            InvalidArgument: an unknown name.
        """
        if ort_device_name not in _KINDS:
            names = ", ".join(map(repr, _KINDS))
            raise InvalidArgument(f"OrtDevice.make: {shown(ort_device_name)}; must be one of {names}")
        vendor = vendor_id if vendor_id >= 0 else _VENDORS.get(ort_device_name, OrtDeviceVendorId.NONE)
        return OrtDevice(_KINDS[ort_device_name], device_id, int(vendor))

    def device_id(self) -> int:
        """Return the number of the device."""
        return self._index

    def device_type(self) -> int:
        """Return ONNX Runtime's number of the kind: 0 for the CPU, 1 for a GPU, 3 for an NPU."""
        return self._kind

    def device_vendor_id(self) -> int:
        """Return the number of the vendor, 0 for none."""
        return self._vendor

    def device_mem_type(self) -> int:
        """Return the number of the kind of memory, which is always the default."""
        return int(OrtDeviceMemoryType.DEFAULT)


class OrtMemoryInfo:
    """A description of memory.

    Args:
        name: a name.
        allocator_type: the allocator.
        device_id: the number of the device.
        mem_type: the use of the memory.

    Raises:
        InvalidArgument: no member of these enumerations.
    """

    def __init__(
        self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType
    ) -> None:
        self.name, self.device_id = name, int(device_id)
        self.allocator_type = member_of(OrtAllocatorType, allocator_type, "OrtMemoryInfo.allocator_type")
        self.mem_type = member_of(OrtMemType, mem_type, "OrtMemoryInfo.mem_type")
        self.device_mem_type, self.device_vendor_id = OrtDeviceMemoryType.DEFAULT, 0

    def __repr__(self) -> str:
        return f"<OrtMemoryInfo {self.name!r} {self.mem_type.name} of device {self.device_id}>"

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        """Return a description of a device's memory. The kind of device and the alignment have no effect.

        Raises:
            InvalidArgument: no member of these enumerations.
        """
        where = "OrtMemoryInfo.create_v2"
        member_of(OrtMemoryInfoDeviceType, device_type, f"{where}: device_type")
        made = OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT)
        made.device_mem_type = member_of(OrtDeviceMemoryType, device_mem_type, f"{where}: device_mem_type")
        made.device_vendor_id = int(vendor_id)
        return made


class OrtArenaCfg:
    """A configuration of an arena. opendml has its own arenas, so it has no effect.

    Args:
        max_mem: the most bytes, 0 for any; or a dict of all options by their names.
        arena_extend_strategy, initial_chunk_size_bytes, max_dead_bytes_per_chunk: -1 for the default.
    """

    def __init__(
        self,
        max_mem: int | Mapping[str, int],
        arena_extend_strategy: int = -1,
        initial_chunk_size_bytes: int = -1,
        max_dead_bytes_per_chunk: int = -1,
    ) -> None:
        self.max_mem, self.arena_extend_strategy = 0, arena_extend_strategy
        self.initial_chunk_size_bytes = initial_chunk_size_bytes
        self.max_dead_bytes_per_chunk = max_dead_bytes_per_chunk
        self.initial_growth_chunk_size_bytes = self.max_power_of_two_extend_bytes = -1
        for name, value in (max_mem if isinstance(max_mem, Mapping) else {"max_mem": max_mem}).items():
            if name not in self.__dict__:
                known = ", ".join(self.__dict__)
                raise InvalidArgument(f"OrtArenaCfg: {shown(name)} is unknown; it has {known}")
            setattr(self, name, int(value))


@dataclass(frozen=True)
class OrtHardwareDevice:
    """A device of this machine.

    Args:
        type: its kind.
        vendor_id: the PCI number of its vendor; 0: unknown.
        vendor: the name of its vendor, "" if it is unknown.
        device_id: its number.
        metadata: other facts.
    """

    type: OrtHardwareDeviceType
    vendor_id: int
    vendor: str
    device_id: int
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class OrtEpDevice:
    """A device of this machine as an execution provider uses it.

    Args:
        ep_name: the provider.
        ep_vendor: "opendml".
        device: the device.
        ep_metadata, ep_options: facts and options by name.
    """

    ep_name: str
    ep_vendor: str
    device: OrtHardwareDevice
    ep_metadata: Mapping[str, str]
    ep_options: Mapping[str, str]

    def memory_info(self, memory_type: OrtDeviceMemoryType) -> None:
        """Return None, as ONNX Runtime does for the CPU: sessions allocate memory themselves."""

    def create_sync_stream(self) -> NoReturn:
        """Raise Unsupported: runs return when their results are there."""
        raise Unsupported("OrtEpDevice.create_sync_stream: runs return when their results are there")


def get_ep_devices() -> list[OrtEpDevice]:
    """Return the devices of this machine, for `SessionOptions.add_provider_for_devices`."""
    found = [
        ("CUDAExecutionProvider", "cuda", OrtHardwareDeviceType.GPU, OrtDeviceVendorId.NVIDIA, "NVIDIA"),
        ("CPUExecutionProvider", "cpu", OrtHardwareDeviceType.CPU, OrtDeviceVendorId.NONE, ""),
    ]
    return [
        OrtEpDevice(name, "opendml", OrtHardwareDevice(kind, int(vendor), text, 0, {}), {}, {})
        for name, device, kind, vendor, text in found
        if is_available(device)
    ]
