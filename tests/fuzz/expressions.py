"""Expressions of graph tensors mean what NumPy means by them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import opendml as dml
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices

Array = np.ndarray[Any, Any]

TYPES = ("float32", "float16", "int32", "uint8", "int64", "int8", "uint32")
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MOST_STEPS = 6
MOST_ELEMENTS = 4096


@dataclass(frozen=True)
class Step:
    """An operation on an earlier result.

    Attributes:
        name: of `BINARY`, or "index", "reshape", "transpose", "@", "abs", "neg", "**".
        takes: which results.
        detail: an index, sizes, an order of dimensions, or a number in the place of the second operand.
        is_turned: the operands are exchanged.
    """

    name: str
    takes: tuple[int, ...]
    detail: Any = None
    is_turned: bool = False

    def of(self, values: list[Any]) -> Any:
        """What it makes of the results so far, of NumPy or of a graph."""
        x = values[self.takes[0]]
        match self.name:
            case "index":
                return x[self.detail]
            case "reshape":
                return x.reshape(self.detail)
            case "transpose":
                return x.transpose(self.detail)
            case "abs":
                return abs(x)
            case "neg":
                return -x
            case "**":
                return x**self.detail
        y = values[self.takes[1]] if len(self.takes) > 1 else self.detail
        x, y = (y, x) if self.is_turned else (x, y)
        result = x @ y if self.name == "@" else BINARY[self.name](x, y)
        return result.astype(np.uint8) if isinstance(result, np.ndarray) and result.dtype == bool else result


@dataclass(frozen=True, repr=False)
class OnExpression(Case):
    """Steps over inputs and constants.

    Attributes:
        data_type: of all of them.
        sizes: of each; odd ones are constants.
        steps: of which each adds a result.
        values: chooses the elements.
        device: where it runs.
    """

    data_type: str
    sizes: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    values: int
    device: str

    def check(self) -> None:
        given = self._given()
        wanted = _results(self.steps, list(given))
        graph, names = dml.Graph(), [f"x{number}" for number in range(0, len(given), 2)]
        tensors: list[Any] = [
            each if number % 2 else graph.input(f"x{number}", self.data_type.upper(), each.shape)
            for number, each in enumerate(given)
        ]
        made = [each for each in _results(self.steps, tensors) if isinstance(each, dml.GraphTensor)]
        places = [
            n for n, each in enumerate(_results(self.steps, tensors)) if isinstance(each, dml.GraphTensor)
        ]
        if not made:
            return
        model = graph.compile({f"y{number}": each for number, each in enumerate(made)}, self.device)
        inputs = {
            name: each for name, each in zip(names, given[::2], strict=True) if name in model.input_names
        }
        found = model(**inputs)
        for number, place in enumerate(places):
            self._assert_alike(found[f"y{number}"], np.asarray(wanted[place]), place)

    def _given(self) -> list[Array]:
        random = np.random.default_rng(self.values)
        least = 0 if self.data_type.startswith("u") else -6
        return [random.integers(least, 7, sizes).astype(self.data_type) for sizes in self.sizes]

    def _assert_alike(self, found: Array, wanted: Array, place: int) -> None:
        kind = f"result {place}: {found.dtype}{list(found.shape)}, not {wanted.dtype}{list(wanted.shape)}"
        assert found.dtype == wanted.dtype, kind
        assert found.shape == (wanted.shape or (1,)), kind
        with np.errstate(all="ignore"):
            a, b = found.astype(np.float64), wanted.astype(np.float64).reshape(found.shape)
            bound = {"float16": 2e-2, "float32": 1e-4}.get(self.data_type, 0)
            scale = np.abs(b[np.isfinite(b)]).max(initial=1)
            right = np.isclose(a, b, bound, bound * scale, equal_nan=True) | ~np.isfinite(b)
        assert right.all(), f"result {place}: {found[~right][:3]} instead of {b[~right][:3]}"


def _results(steps: tuple[Step, ...], values: list[Any]) -> list[Any]:
    results = list(values)
    with np.errstate(all="ignore"):
        for step in steps:
            results.append(step.of(results))
    return results


def make(choices: Choices) -> OnExpression:
    """Up to six steps over an input, a constant and more inputs."""
    data_type = choices.of(TYPES)
    sizes = tuple(choices.of((2, 3, 1, 4, 5)) for _ in range(choices.between(1, 4)))
    shapes = [sizes]
    for _ in range(choices.between(1, 3)):
        some = [1 if choices.rarely(4) else size for size in sizes]
        shapes.append(tuple(some[choices.below(len(some)) :]))
    values, device = choices.below(1 << 16), choices.of(("reference", "cpu"))
    case = OnExpression(data_type, tuple(shapes), (), values, device)
    results: list[Any] = case._given()
    steps = list[Step]()
    for _ in range(choices.between(1, MOST_STEPS)):
        step = _step(choices, results)
        try:
            (*_, result) = _results((step,), results)
        except ValueError:  # sizes that do not fit together
            continue
        result = np.asarray(result)
        if (
            0 < result.size <= MOST_ELEMENTS
            and 1 <= result.ndim <= 8
            and result.dtype in (data_type, np.uint8)
        ):
            steps.append(step)
            results.append(result)
    return OnExpression(data_type, tuple(shapes), tuple(steps), values, device)


def _step(choices: Choices, results: list[Any]) -> Step:
    number = len(results) - 1 - choices.below(min(len(results), 3))
    x = results[number]
    is_float = x.dtype.kind == "f"
    name = choices.of((*BINARY, "index", "index", "index", "reshape", "transpose", "@", "abs", "neg", "**"))
    if name in ("/", "**") and not is_float:
        name = "+"
    if name in ("neg", "abs") and x.dtype.kind == "u":
        name = "*"
    if name == "@" and not is_float:
        name = "*"
    match name:
        case "index":
            return Step(name, (number,), _index(choices, x.shape))
        case "reshape":
            return Step(name, (number,), _sizes(choices, x.size))
        case "transpose":
            return Step(name, (number,), tuple(choices.shuffled(range(x.ndim))))
        case "abs" | "neg":
            return Step(name, (number,))
        case "**":
            return Step(name, (number,), choices.of((2, 3, 0.5, 1, -1)))
    turned = bool(choices.below(2))
    others = [at for at, each in enumerate(results) if each.dtype == x.dtype]
    if name == "@" or choices.below(3):
        return Step(name, (number, choices.of(others)), None, turned)
    detail = choices.of((2, 0.5, -3, 1.25)) if is_float else choices.of((2, 1, 3))
    return Step(name, (number,), detail, turned)


def _index(choices: Choices, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """Integers, slices, dots and new dimensions."""
    index: list[Any] = []
    for size in sizes:
        kind = choices.below(6)
        if kind == 1:
            index.append(choices.between(-size, size - 1))
        elif kind == 2:
            index.append(None)
            index.append(slice(None))
        elif kind == 3 and Ellipsis not in index:
            index.append(Ellipsis)
            break
        else:
            bounds = [choices.of((None, *range(-size - 1, size + 2))) for _ in range(2)]
            index.append(slice(*bounds, choices.of((None, 1, -1, 2, -2))))
    return tuple(index)


def _sizes(choices: Choices, count: int) -> tuple[int, ...]:
    sizes = list[int]()
    for _ in range(choices.between(0, 2)):
        sizes.append(choices.of([each for each in (1, 2, 3, 4, 5) if count % each == 0]))
        count //= sizes[-1]
    sizes.insert(choices.below(len(sizes) + 1), choices.of((count, -1)))
    return tuple(sizes)
