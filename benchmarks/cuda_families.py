"""Times operators that the memory bounds on a CUDA device beside PyTorch, eager and compiled, and the floor:
their bytes over the speed of a copy.

python -m benchmarks.cuda_families [--words WORD ...] [--compiled] [--out FILE]

Every figure is the median over several timings by events of a run of calls that go around several sets of
tensors, so that no call finds its data in the L2 cache.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.cuda import SET_BYTES, Call, median_seconds
from benchmarks.cuda_contractions import MOST_SETS, copy_speed
from benchmarks.cuda_family_cases import Case, cases
from benchmarks.graphs import compiled, named
from opendml.targets.cuda.driver import device
from tools.kernel_table import kernel_summary


def _allocated(tensor: Any) -> Any:
    type = getattr(torch, tensor.data_type.name.lower())
    return torch.empty(tuple(tensor.sizes), dtype=type, device="cuda")


def _opendml(case: Case, sets: list[tuple[Any, ...]]) -> tuple[list[Call], int, str]:
    """Return a dispatch over each set, the bytes of the results, and what the device makes of the case."""
    model, results = compiled(sets[0], case.opendml, "cuda", has_views=True)
    calls: list[Call] = []
    for arrays in sets:
        outputs = {name: _allocated(each) for name, each in results.items()}
        bound = model.bind(named(arrays), outputs)
        calls.append(partial(bound.enqueue, torch.cuda.current_stream().cuda_stream))
    written = sum(each.nbytes for each in outputs.values())
    return calls, written, kernel_summary(model._program, device().machine).text


def time_case(case: Case, compiles: bool, copied: float) -> dict[str, Any]:
    """Return the seconds of each contender, and the floor."""
    sets = [case.inputs()]
    read = sum(x.nbytes for x in sets[0]) if case.read is None else case.read
    while len(sets) < MOST_SETS and len(sets) * sum(x.nbytes for x in sets[0]) < SET_BYTES:
        sets.append(case.inputs())
    calls, written, kernels = _opendml(case, sets)
    seconds = {"opendml": median_seconds(calls)}
    del calls
    if case.torch is not None:
        seconds["torch"] = median_seconds([partial(case.torch, *each) for each in sets], 5)
        if compiles:
            torch._dynamo.reset()
            peer = torch.compile(case.torch, dynamic=False)
            seconds["torch compiled"] = median_seconds([partial(peer, *each) for each in sets], 5)
    floor = (read + written) / copied
    of_floor = floor / seconds["opendml"]
    return {
        "name": case.name,
        "floor": floor,
        "of_floor": of_floor,
        "seconds": seconds,
        "kernels": kernels,
    }


def main() -> int:
    """Times the cases and prints the table."""
    parser = argparse.ArgumentParser(description="Times operators that the memory bounds on a CUDA device.")
    parser.add_argument("--words", nargs="*", default=[], help="only cases whose names have all of these")
    parser.add_argument("--compiled", action="store_true", help="also time torch.compile")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    copied = copy_speed()
    print(f"copy: {copied / 1e9:.0f} GB/s", flush=True)
    rows = []
    for case in cases():
        if all(word in case.name for word in arguments.words):
            rows.append(time_case(case, arguments.compiled, copied))
            print(_line(rows[-1]), flush=True)
            torch.cuda.empty_cache()
    if arguments.out:
        arguments.out.write_text(table(rows) + "\n")
    return 0


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table, in microseconds."""
    names = ("opendml", "torch", "torch compiled")
    lines = [f"| case | of floor | of fastest peer | {' | '.join(names)} |", "|---|--:|--:|--:|--:|--:|"]
    for row in rows:
        ratio, seconds = _of_fastest(row), row["seconds"]
        cells = [f"{seconds[name] * 1e6:.1f}" if name in seconds else "" for name in names]
        peer = f"{ratio:.2f}" if ratio else ""
        lines.append(f"| {row['name']} | {row['of_floor']:.2f} | {peer} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _of_fastest(row: dict[str, Any]) -> float | None:
    """How many times as fast as the fastest peer, if there is one."""
    peers = [value for name, value in row["seconds"].items() if name != "opendml"]
    return min(peers) / row["seconds"]["opendml"] if peers else None


def _line(row: dict[str, Any]) -> str:
    times = " ".join(f"{name} {value * 1e6:.1f}" for name, value in row["seconds"].items())
    ratio = _of_fastest(row)
    peer = f", {ratio:.2f} of fastest" if ratio else ""
    return f"{row['name']:48} {row['of_floor']:.2f} of floor{peer}; microseconds: {times}; {row['kernels']}"


if __name__ == "__main__":
    sys.exit(main())
