"""ONNX's own backend suite on opendml: which cases fail, and which need onnx's evaluator.

`python -m tools.onnx_coverage --write` brings tests/onnx/deviations.json and tests/onnx/evaluated.json up to
date; a new failure gets its error as its reason, which somebody has to replace by a true one.
"""

from __future__ import annotations

import argparse
import json
import unittest
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
from onnx.backend.test import BackendTest
from onnx.backend.test.case import base
from onnx.reference.ops import op_pool_common

from opendml.frontends.onnx.backend import BackendModel
from opendml.onnx import Backend, EvaluatorWarning

FOLDER = Path(__file__).parents[1] / "tests" / "onnx"
DEVIATIONS = FOLDER / "deviations.json"
EVALUATED = FOLDER / "evaluated.json"
Array = np.ndarray[Any, Any]


class _Suite(Backend):
    """opendml as the suite calls it."""

    device = "cpu"

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> BackendModel:
        """A model on the device at hand."""
        return Backend.prepare(model, cls.device, **kwargs)


@dataclass(frozen=True)
class Outcome:
    """How a case went.

    Args:
        error: the last line of what it raised; None: it passed.
        evaluated: the nodes that ran on the evaluator, by operator with the reason.
    """

    error: str | None
    evaluated: str


def pool(
    padded: Array,
    x_shape: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    out_shape: Sequence[int],
    pooling_type: str,
    pads_required: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    count_include_pad: int = 0,
    p: int = 1,
) -> Array:
    """Pool as onnx's own function of this name does, but all windows at once: that one takes 10 of the 14
    seconds in which the suite is made. Elements that are not there, and padding that does not count, are NaN.
    """
    axes = range(2, 2 + len(kernel))
    steps, dilated = strides or [1] * len(kernel), [1] * len(kernel) if dilations is None else dilations
    reached = [each * (size - 1) + 1 for each, size in zip(dilated, kernel, strict=True)]
    sizes = [each * (size - 1) + all for each, size, all in zip(steps, out_shape, reached, strict=True)]
    padding = [0] * (2 * len(kernel)) if pads is None else pads
    there = [size + sum(padding[axis :: len(kernel)]) for axis, size in enumerate(x_shape[2:])]
    whole = np.full((*padded.shape[:2], *sizes), np.nan)
    common: Any = (..., *(slice(min(each)) for each in zip(sizes, there, padded.shape[2:], strict=True)))
    whole[common] = padded[common]
    every: Any = (..., *(slice(None, None, each) for each in (*steps, *dilated)))
    windows = np.lib.stride_tricks.sliding_window_view(whole, reached, tuple(axes))[every]
    within = tuple(range(-len(kernel), 0))
    if pooling_type == "MAX":
        result = np.nanmax(windows, within)
    elif pooling_type == "AVG":
        result = np.nanmean(windows, within)
    else:
        result = np.nansum(np.abs(windows) ** p, within) ** (1 / p)
    return np.asarray(result, padded.dtype)


@cache
def cases() -> Mapping[str, type[unittest.TestCase]]:
    """All cases of the suite for a CPU, by name, with the class that each is a method of."""
    with (
        warnings.catch_warnings(),
        mock.patch.object(op_pool_common, "pool", pool),
        # Sources of cases are for ONNX's documents. To find them takes half of the time.
        mock.patch.object(base, "process_snippet", lambda *names: names),
    ):
        warnings.simplefilter("ignore")
        suite = BackendTest(_Suite, __name__).test_cases
    return {
        name: group
        for _, group in sorted(suite.items())
        for name in sorted(dir(group))
        if name.startswith("test_") and name.endswith("_cpu")
    }


@cache
def compiled() -> frozenset[str]:
    """The cases that run on the CPU: of each operator the first, and every fifth. The others run on the
    reference device: what nodes become is the same there, and takes no compilation. So do all that are
    expanded into other operators, which are there a second time."""
    plain = [name for name in cases() if "_expanded" not in name]
    operators = groupby(plain, key=lambda name: name.removeprefix("test_").split("_")[0])
    return frozenset(name for _, group in operators for name in list(group)[::5])


def outcome_of(name: str) -> Outcome:
    """Runs a case."""
    _Suite.device = "cpu" if name in compiled() else "reference"
    result = unittest.TestResult()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cases()[name](name).run(result)
    problems = [text for _, text in (*result.errors, *result.failures)]
    found = (str(each.message) for each in caught if issubclass(each.category, EvaluatorWarning))
    reasons = sorted({_operator_and_reason(each) for each in found})
    return Outcome(problems[0].strip().splitlines()[-1] if problems else None, "; ".join(reasons))


def _operator_and_reason(message: str) -> str:
    """The first clause of an EvaluatorWarning, without the node's name."""
    node, _, reason = message.partition(" runs on onnx's evaluator: ")
    return f"{node[node.rindex('(') + 1 : -1]}: {reason.partition(';')[0]}"


def recorded(path: Path) -> dict[str, str]:
    """What a file says of cases, by their names."""
    found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def main() -> None:
    """Runs all cases and says how they went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files of the tests")
    write = parser.parse_args().write
    outcomes = {name: outcome_of(name) for name in cases()}
    known = recorded(DEVIATIONS)
    failed = {name: known.get(name, each.error) for name, each in outcomes.items() if each.error}
    evaluated = {name: each.evaluated for name, each in outcomes.items() if each.evaluated and not each.error}
    if write:
        _write(DEVIATIONS, failed)
        _write(EVALUATED, evaluated)
    print(f"onnx {onnx.__version__}: {len(outcomes)} cases, {len(failed)} fail, {len(evaluated)} evaluated")
    for name in sorted(set(failed) - set(known)):
        print(f"new failure: {name}: {failed[name]}")
    reasons = Counter(reason for each in evaluated.values() for reason in each.split("; "))
    for reason, count in reasons.most_common():
        print(f"{count:5d} {reason}")


if __name__ == "__main__":
    main()
