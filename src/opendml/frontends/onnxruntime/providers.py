"""Execution providers of ONNX Runtime, mapped to devices of opendml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from opendml.errors import Error, InvalidArgument
from opendml.logs import warn_caller
from opendml.spec.naming import nearest
from opendml.spec.wording import shown
from opendml.targets.registry import backend_of

Provider: TypeAlias = str | tuple[str, Mapping[str, Any]]

CPU = "CPUExecutionProvider"
BEST = "DmlExecutionProvider"
"""The provider that stands for the best device of the machine."""
DEVICES = {
    "TensorrtExecutionProvider": "cuda",
    "NvTensorRTRTXExecutionProvider": "cuda",
    "CUDAExecutionProvider": "cuda",
    BEST: "cuda",
    CPU: "cpu",
}
"""The kind of device for each provider. That of BEST is the CPU on a machine without CUDA."""
_OTHERS = (
    "MIGraphX OpenVINO Dnnl VitisAI QNN Nnapi VSINPU Js CoreML ACL Rknpu WebNN WebGpu Xnnpack CANN Azure ROCM"
)
_END = "ExecutionProvider"
_ALL = (
    *(name for name in DEVICES if name not in (BEST, CPU)),
    *(f"{name}{_END}" for name in _OTHERS.split()),
    BEST,
    CPU,
)


def get_all_providers() -> list[str]:
    """Return all names of providers that ONNX Runtime has, the fastest first.

    A session accepts them all. Those that stand for no device of this machine are passed over.
    """
    return list(_ALL)


def get_available_providers() -> list[str]:
    """Return the providers whose devices this machine has, the fastest first."""
    cuda = ["CUDAExecutionProvider"] if is_available("cuda") else []
    return [*cuda, BEST, CPU]


def get_device() -> str:
    """Return "GPU" if this machine has a CUDA device, else "CPU"."""
    return "GPU" if is_available("cuda") else "CPU"


def choose_provider(
    providers: Sequence[Provider] | None, options: Sequence[Mapping[str, Any]] | None
) -> tuple[str, tuple[str, ...]]:
    """Return the kind of the first available device, and the providers that a session then reports.

    A provider without a device is skipped, with a warning at the line that makes the session or sets its
    providers. The CPU is the last choice.

    Raises:
        InvalidArgument: ONNX Runtime has no such provider, or options do not fit.
    """
    given = [_split(each) for each in ([providers] if isinstance(providers, str) else providers or ())]
    if options is not None:
        if len(options) != len(given):
            raise InvalidArgument(f"provider_options: {len(options)} for {len(given)} providers")
        given = [_split((name, each)) for (name, _), each in zip(given, options, strict=True)]
    for name, _ in given:
        require_provider(name)
    for name, each in given:
        kind = DEVICES.get(name)
        if name == BEST and not is_available("cuda"):
            kind = "cpu"
        if "device_id" in each:
            number = _device_id(each["device_id"])
            kind = f"cuda:{number}" if kind == "cuda" else kind
        if kind is not None and is_available(kind):
            return kind, (name,) if name == CPU else (name, CPU)
        reason = "stands for no device of opendml" if kind is None else f"needs the device {kind!r}"
        here = ", ".join(get_available_providers())
        problem = f"provider {name!r} {reason}; the next one is taken; this machine has {here}"
        warn_caller(problem, UserWarning)
    return "cpu", (CPU,)


def require_provider(name: str) -> None:
    """Raise InvalidArgument unless ONNX Runtime has a provider of this name."""
    if name not in _ALL:
        near = nearest(_short(name), map(_short, _ALL))
        hint = f" (did you mean {near}{_END}?)" if near else ""
        here = ", ".join(get_available_providers())
        raise InvalidArgument(f"providers: {shown(name)} is unknown{hint}; this machine has {here}")


def _short(name: str) -> str:
    return name.removesuffix("Provider").removesuffix("Execution")


def is_available(kind: str) -> bool:
    """Return whether this machine has a device of a kind."""
    try:
        backend_of(kind).open()
    except Error:
        return False
    return True


def _split(provider: Any) -> tuple[str, Mapping[str, Any]]:
    """Return a provider's name and options."""
    match provider:
        case str():
            return provider, {}
        case (str(name), Mapping() as options):
            return name, options
        case _:
            raise InvalidArgument(
                f"providers: {shown(provider)}; a name, or a pair of a name and a dict of options"
            )


def _device_id(given: Any) -> int:
    """Return a device's number, which ONNX Runtime accepts as text too."""
    if not str(given).isdecimal():
        raise InvalidArgument(f"provider_options: device_id {shown(given)}; the number of a device is needed")
    return int(given)
