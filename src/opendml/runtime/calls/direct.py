"""Immediate calls on PyTorch's tensors of which only the values differ from those of an earlier call.

A thread keeps a function for each plan. It compares its arguments with the tensors that it was made for, and
runs the call if nothing differs. A call on 1,000 elements takes 4 us, of which PyTorch takes 1.3 us to make
the result. By a key of types, sizes and strides it takes 6.5 us.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, Protocol

from opendml.errors import DeviceRemoved
from opendml.runtime.calls.plans import MOST_PLANS, CallPlan
from opendml.runtime.memory.torch_tensors import TorchTensors

Direct = Callable[..., Any]
"""Runs a call on tensors and returns a new one. None: they may be of another plan, or the plan cannot run."""


class DirectPlan(CallPlan, Protocol):
    """A plan of a call with one output that is a new tensor."""

    makers: list[Callable[[], Any]]
    """Make the output."""
    bind: Callable[..., object]
    """Sets the addresses of the tensors and of the output."""
    run_bound: Callable[[], object]
    misaligned: int
    """The bits that no address may have."""
    is_running: bool
    """True while something runs the plan: a handler of a signal may come within a call."""
    direct: Direct | None


class LatestCalls(threading.local):
    """The latest plans of the calling thread, by all that a call says, and the sizes of its first tensor."""

    def __init__(self) -> None:
        self.calls: dict[Hashable, Direct] = {}

    def learn(self, form: Hashable, plan: DirectPlan, reader: TorchTensors, tensors: tuple[Any, ...]) -> None:
        """Keep the plan of tensors, which `reader` has read, for calls of this form."""
        if plan.direct is None or self.calls.get(form) is plan.direct:
            # The plan is new. Or a mode of PyTorch has changed, which is part of the comparison alone.
            fits = reader.comparison(tensors)
            if fits is None:
                return
            plan.direct = _maker(len(tensors))(plan, fits, reader.address_of, DeviceRemoved)
        if len(self.calls) >= MOST_PLANS:
            self.calls.clear()
        self.calls[form] = plan.direct


_SOURCE = """
def made(plan, fits, address_of, DeviceRemoved):
    bind, run, make = plan.bind, plan.run_bound, plan.makers[0]
    device, misaligned = plan.device, plan.misaligned
    def direct({tensors}):
        if not fits({tensors}) or plan.is_running or device._removed is not None:
            return None
        plan.is_running = True
        try:
            {reads}
            if ({one_of_all}) & misaligned or not ({all}):
                return None
            result = make()
            bind({addresses}, address_of(result))
            run()
            return result
        except DeviceRemoved as error:
            device._lose(error)
            raise
        finally:
            plan.is_running = False
    return direct
"""


@cache
def _maker(count: int) -> Callable[..., Direct]:
    """Return the maker of functions of this number of tensors.

    They are compiled from text, because lists of tensors and addresses would take 0.6 us more.
    """
    tensors, addresses = [f"t{each}" for each in range(count)], [f"a{each}" for each in range(count)]
    source = _SOURCE.format(
        tensors=", ".join(tensors),
        reads="; ".join(f"{a} = address_of({t})" for a, t in zip(addresses, tensors, strict=True)),
        one_of_all=" | ".join(addresses),
        all=" and ".join(addresses),
        addresses=", ".join(addresses),
    )
    defined: dict[str, Any] = {}
    exec(compile(source, f"<{__name__}>", "exec"), defined)
    made: Callable[..., Direct] = defined["made"]
    return made
