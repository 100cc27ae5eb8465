"""Times pointwise, reduction and scan operators on the CPU beside the copy of their bytes, PyTorch and NumPy.

python -m benchmarks.families [--words WORD ...] [--rounds N] [--threads N] [--out DIRECTORY]

opendml writes into a given array; NumPy too, where its functions can (`out=`); PyTorch makes a new one. All
take turns on the same threads and values; figures are medians. The floor is the copy of as many bytes as the
operator must move: each input read once, each output written once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.family_cases import Array, Case, cases
from benchmarks.table_command import case_options, parsed, write_table
from benchmarks.turns import in_turns

COLUMNS = ("floor", "opendml", "torch", "numpy")


def time_case(case: Case, rounds: int, threads: int) -> dict[str, Any]:
    """Median milliseconds of the floor and of all contenders, in turns, and the difference from PyTorch."""
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
    if case.torch is not None:
        tensors = [
            torch.from_numpy(np.array(x)) if x.flags.writeable else torch.tensor(x) for x in case.inputs
        ]
        call = case.torch
        contenders["torch"] = lambda: call(*tensors)
        result = call(*tensors)
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
        "milliseconds": milliseconds,
        "difference": difference,
    }


def _distinct_bytes(array: Array) -> int:
    """The bytes of the elements that are not repeated."""
    sizes = (size for size, stride in zip(array.shape, array.strides, strict=True) if stride)
    return int(np.prod([*sizes, array.itemsize]))


def verdict(row: dict[str, Any]) -> str:
    """The goals that a row misses, in a few words."""
    missed = [] if row["of_floor"] >= row["goal"] else [f"below {row['goal']} of the floor"]
    times = row["milliseconds"]
    missed += [
        f"slower than {name}" for name in ("torch", "numpy") if times.get(name, 1e9) < times["opendml"]
    ]
    return "; ".join(missed)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    lines = ["| case | goal | of floor | floor ms | opendml | torch | numpy | |", "|---" * 8 + "|"]
    for row in rows:
        times = row["milliseconds"]
        shown = " | ".join(f"{times[name]:.3g}" if name in times else "" for name in COLUMNS)
        share = f"{row['goal']} | {row['of_floor']:.2f}"
        lines.append(f"| {row['name']} | {share} | {shown} | {verdict(row)} |")
    return "\n".join(lines)


def main() -> None:
    """Times the cases and writes the table."""
    arguments = parsed(case_options("Times pointwise, reduction and scan operators on the CPU."))
    import torch

    rows = []
    for case in cases():
        if all(word in case.name for word in arguments.words):
            row = time_case(case, arguments.rounds, arguments.threads)
            rows.append(row)
            print(f"{case.name:34} {row['of_floor']:.2f} of {case.goal} {verdict(row)}", flush=True)
    versions = {"torch": torch.__version__, "numpy": np.__version__}
    setting = f"PyTorch {torch.__version__}, NumPy {np.__version__}"
    write_table("families", "Families", arguments, rows, table(rows), setting=setting, unit="ms", **versions)


if __name__ == "__main__":
    main()
