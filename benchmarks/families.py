"""Times pointwise, reduction and scan operators on the CPU beside the copy of their bytes, PyTorch and NumPy.

python -m benchmarks.families [--words TEXT ...] [--any WORD ...] [--rounds N] [--threads N]
                              [--capability avx2] [--out DIRECTORY]

All write into an existing array (`out=`), since the page faults of a new one cost more than most operators.
Where PyTorch has no such form, its time for a new tensor stands in a column of its own. All take turns on the
same threads and values; figures are medians. The floor is the copy of as many bytes as the operator must
move: each input read once, each output written once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.capability import CAPABILITIES, restricted
from benchmarks.family_cases import Array, Case, cases
from benchmarks.table_command import case_options, parsed, write_table
from benchmarks.turns import in_turns

COLUMNS = ("floor", "opendml", "torch", "torch, new", "numpy")


OVER_TORCH = 1.1
"""How many times as fast as PyTorch opendml should be."""


def time_case(case: Case, rounds: int, threads: int) -> dict[str, Any]:
    """Return the median milliseconds of the floor and of all contenders, in turns, and the difference from
    PyTorch."""
    import torch

    import opendml as dml
    from benchmarks.yardstick import Copy

    function = getattr(dml, case.function)
    out = function(*case.inputs, **case.attributes)
    moved = out.nbytes + sum(_distinct_bytes(x) for x in case.inputs)
    contenders: dict[str, Callable[[], Any]] = {
        "opendml": lambda: function(*case.inputs, **case.attributes, out=out)
    }
    difference = None
    tensors = [torch.from_numpy(np.array(x)) if x.flags.writeable else torch.tensor(x) for x in case.inputs]
    torch_name, call = "", None
    if case.torch is not None:
        existing = torch.empty(0, dtype=getattr(torch, case.torch_type or out.dtype.name))
        torch_name, call = "torch", partial(case.torch, *tensors, out=existing)
    elif case.torch_new is not None:
        torch_name, call = "torch, new", partial(case.torch_new, *tensors)
    if call is not None:
        contenders[torch_name] = call
        result = call()
        if not result.is_quantized:
            expected = result.numpy().astype(np.float64).reshape(out.shape)
            with np.errstate(invalid="ignore"):
                difference = float(
                    np.nanmax(np.abs(out.astype(np.float64) - expected) / (1 + np.abs(expected)))
                )
    if case.numpy is not None:
        target, ufunc = np.empty_like(out), case.numpy
        contenders["numpy"] = lambda: ufunc(*case.inputs, out=target)
        try:
            contenders["numpy"]()
        except TypeError:  # results of another type
            del contenders["numpy"]
    milliseconds = in_turns(Copy(moved // 2, threads).seconds, contenders, rounds)
    return {
        "name": case.name,
        "goal": case.goal,
        "bytes": moved,
        "of_floor": milliseconds["floor"] / milliseconds["opendml"],
        "over_torch": milliseconds[torch_name] / milliseconds["opendml"] if torch_name else None,
        "milliseconds": milliseconds,
        "difference": difference,
    }


def is_named(name: str, all_of: Sequence[str], one_of: Sequence[str]) -> bool:
    """Return whether a case's name contains all texts of `all_of`, and has one of the words `one_of` if there
    are any."""
    words = name.split()
    return all(text in name for text in all_of) and (not one_of or any(word in words for word in one_of))


def _distinct_bytes(array: Array) -> int:
    """The bytes of the elements that are not repeated."""
    sizes = (size for size, stride in zip(array.shape, array.strides, strict=True) if stride)
    return int(np.prod([*sizes, array.itemsize]))


def verdict(row: dict[str, Any]) -> str:
    """Return the goals that a row misses, in a few words."""
    missed = [] if row["of_floor"] >= row["goal"] else [f"below {row['goal']} of the floor"]
    times = row["milliseconds"]
    if row["over_torch"] is not None and row["over_torch"] < OVER_TORCH:
        missed.append(f"below {OVER_TORCH} of torch")
    if times.get("numpy", math.inf) < times["opendml"]:
        missed.append("slower than numpy")
    return "; ".join(missed)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    heads = ("case", "goal", "of floor", "over torch", *COLUMNS, "")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        times = row["milliseconds"]
        shown = " | ".join(f"{times[name]:.3g}" if name in times else "" for name in COLUMNS)
        over_torch = "" if row["over_torch"] is None else f"{row['over_torch']:.2f}"
        share = f"{row['goal']} | {row['of_floor']:.2f} | {over_torch}"
        lines.append(f"| {row['name']} | {share} | {shown} | {verdict(row)} |")
    return "\n".join(lines)


def main() -> None:
    """Time the cases and write the table."""
    parser = case_options("Times pointwise, reduction and scan operators on the CPU.")
    parser.add_argument("--any", nargs="*", default=[], help="only cases whose names have one of these words")
    parser.add_argument("--capability", choices=CAPABILITIES, help="vectors of opendml and PyTorch at most")
    arguments = parsed(parser)
    import torch

    rows = []
    with restricted(arguments.capability):
        for case in cases():
            if is_named(case.name, arguments.words, arguments.any):
                row = time_case(case, arguments.rounds, arguments.threads)
                rows.append(row)
                print(f"{case.name:34} {row['of_floor']:.2f} of {case.goal} {verdict(row)}", flush=True)
    capability = torch.backends.cpu.get_cpu_capability()
    versions = {"torch": torch.__version__, "numpy": np.__version__, "capability": capability}
    setting = f"PyTorch {torch.__version__} ({capability}), NumPy {np.__version__}"
    name = f"families-{arguments.capability}" if arguments.capability else "families"
    print(table(rows))
    write_table(name, "Families", arguments, rows, table(rows), setting=setting, unit="ms", **versions)


if __name__ == "__main__":
    main()
