"""Convert an explanation to a trace of events (the JSON format of Chrome and Perfetto)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opendml.runtime.explain.explanation import ExplainedGraph


def trace(explanation: ExplainedGraph) -> str:
    """Return the kernels as consecutive events, with the bytes of live temporaries."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": f"opendml {explanation.device}"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "kernels"}},
    ]
    at = 0.0
    for kernel in explanation.kernels:
        alive = [each for each in explanation.temporaries if each.first <= kernel.number <= each.last]
        held = {"bytes": sum(each.size for each in alive)}
        events.append({"ph": "C", "name": "temporaries", "pid": 1, "ts": at, "args": held})
        arguments = {
            "kernel": kernel.number,
            "operators": list(kernel.operators),
            "domain": list(kernel.domain),
            "times": kernel.times,
            "launches": list(kernel.launches),
            "bytes_read": kernel.bytes_read,
            "bytes_written": kernel.bytes_written,
            "operations": kernel.operations,
            "floor_us": kernel.floor_seconds * 1e6,
            "bound": kernel.bound,
        }
        microseconds = kernel.seconds * 1e6
        events.append(
            {
                "ph": "X",
                "name": kernel.name,
                "cat": kernel.bound,
                "pid": 1,
                "tid": 1,
                "ts": at,
                "dur": microseconds,
                "args": arguments,
            }
        )
        at += microseconds
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
