"""Execution providers of ONNX Runtime, mapped to devices of opendml."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from opendml.errors import Error, InvalidArgument
from opendml.spec.wording import shown
from opendml.targets.registry import backend_of

Provider: TypeAlias = str | tuple[str, Mapping[str, Any]]

DEVICES = {
    "CUDAExecutionProvider": "cuda",
    "TensorrtExecutionProvider": "cuda",
    "CPUExecutionProvider": "cpu",
}
"""The kind of device for each provider."""


def get_available_providers() -> list[str]:
    """Return the providers whose devices this machine has."""
    names = [name for name in DEVICES if name != "TensorrtExecutionProvider"]
    return [name for name in names if _is_available(DEVICES[name])]


def get_device() -> str:
    """Return "GPU" if this machine has a CUDA device, else "CPU"."""
    return "GPU" if _is_available("cuda") else "CPU"


def choose_provider(
    providers: Sequence[Provider] | None, options: Sequence[Mapping[str, Any]] | None
) -> tuple[str, tuple[str, ...]]:
    """Return the kind of the first available device, and the providers that a session then reports.

    A provider without a device is skipped with a warning. The CPU is the last choice.
    """
    given = [_split(each) for each in ([providers] if isinstance(providers, str) else providers or ())]
    if options is not None:
        if len(options) != len(given):
            raise InvalidArgument(f"provider_options: {len(options)} for {len(given)} providers")
        given = [_split((name, each)) for (name, _), each in zip(given, options, strict=True)]
    for name, each in given:
        kind = DEVICES.get(name)
        if kind == "cuda" and "device_id" in each:
            kind = f"cuda:{_device_id(each['device_id'])}"
        if kind is not None and _is_available(kind):
            return kind, (name,) if name == "CPUExecutionProvider" else (name, "CPUExecutionProvider")
        reason = "stands for no device of opendml" if kind is None else f"needs the device {kind!r}"
        warnings.warn(f"provider {name!r} {reason}; the next one is taken", UserWarning, stacklevel=3)
    return "cpu", ("CPUExecutionProvider",)


def _is_available(kind: str) -> bool:
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
