"""Format numbers for readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opendml.runtime.explain.explanation import ExplainedKernel

SHORTEST = 1e-7
"""Seconds. Shorter times of kernels are below the variation of an empty launch."""


def time_text(seconds: float) -> str:
    """Return seconds with three digits: "12.3 µs"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_three(seconds / scale)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def kernel_time_text(kernel: ExplainedKernel) -> str:
    """Return the time of a kernel, or the bound that it is below."""
    return time_text(kernel.seconds) if kernel.floors is not None else f"< {SHORTEST * 1e9:.0f} ns"


def floors_text(kernel: ExplainedKernel) -> str:
    """Return the time of a kernel in multiples of its floor, "1.3", or nothing if that is unknown."""
    return "" if kernel.floors is None else f"{kernel.floors:.1f}"


def share_text(share: float) -> str:
    """Return a fraction as percentage: "42 %"."""
    return "< 1 %" if share < 0.005 else f"{100 * share:.0f} %"


def name_text(kernel: ExplainedKernel) -> str:
    """Return the operators and the result of a kernel: "GEMM + ACTIVATION_RELU -> [1, 1, 8, 4]"."""
    sizes = f" -> {list(kernel.result)}" if kernel.result else ""
    return kernel.name + sizes + (f" ({kernel.times} times)" if kernel.times > 1 else "")


def bytes_text(count: float) -> str:
    """Return bytes with three digits: "4.00 MB"."""
    return _scaled(count, "B")


def count_text(count: float) -> str:
    """Return a number with three digits: "2.10 G"."""
    return _scaled(count, "").rstrip()


def _scaled(count: float, unit: str) -> str:
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= scale:
            return f"{_three(count / scale)} {prefix}{unit}"
    return f"{count:.0f} {unit}"


def _three(number: float) -> str:
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f}"
