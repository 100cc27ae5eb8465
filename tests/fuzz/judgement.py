"""Whether a result is what the reference says, as exactly as opendml promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from opendml import TensorDesc
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import tensors_of
from opendml.spec.descs import ElementWisePow
from opendml.spec.facts import tolerance_facts
from opendml.spec.operator_desc import OperatorDesc, ScaleBias
from opendml.spec.schema import operator
from tests.running import elements, numpy_type, run_all
from tools.distances import ulp_distance
from tools.measure_accuracy import CASES as POINTWISE

PERTURBATIONS = 12
STEPS = frozenset({"ELEMENT_WISE_CEIL", "ELEMENT_WISE_FLOOR", "ELEMENT_WISE_ROUND"})
RESAMPLINGS = frozenset({"RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3"})
CANCELLING = frozenset({"BATCH_NORMALIZATION_TRAINING_GRAD"})
"""What subtracts sums of products from each other: where an operand repeats they cancel, and how far, each
product's rounding says."""
ROUNDING = frozenset({"MATRIX_MULTIPLY_INTEGER_TO_FLOAT"})
"""What rounds integers to FLOAT32 before it adds their products up."""
ROUNDINGS = 4
"""How many neighbours of an operand an error may be worth."""


def assert_right(
    desc: OperatorDesc, inputs: Sequence[Array | None], results: Sequence[Array], references: Sequence[Array]
) -> None:
    """Fails where a result is further from the reference than the stated accuracy of the operator.

    Beyond that only what the operands' own rounding explains is allowed: the results of the reference when
    every number in its inputs and attributes is exchanged for a neighbour; of CANCELLING operators, each
    place of a repeated one for its own.
    """
    for number, (result, reference) in enumerate(zip(results, references, strict=True)):
        _assert_one_right(desc, inputs, number, result, reference)


def _assert_one_right(
    desc: OperatorDesc, inputs: Sequence[Array | None], number: int, result: Array, reference: Array
) -> None:
    wrong = _differs(desc, result, reference)
    if not wrong.any():
        return
    low, high = reference.astype(np.float64), reference.astype(np.float64)
    free = np.zeros(reference.shape, bool)
    with np.errstate(all="ignore"):
        for neighbour in _neighbours(desc, inputs, number):
            free |= np.isnan(neighbour) != np.isnan(reference)
            low, high = np.fmin(low, neighbour), np.fmax(high, neighbour)
        spread = np.nan_to_num(high - low, nan=0.0)
        free |= spread > np.maximum(np.abs(low), np.abs(high)) / 2  # not one digit is certain
        room = spread * ROUNDINGS + _room(desc, reference)
        exact = result.astype(np.float64)
        inside = (exact >= low - room) & (exact <= high + room)
    wrong &= ~(inside | free)
    where = tuple(int(each[0]) for each in np.nonzero(wrong)) if wrong.any() else ()
    assert not wrong.any(), (
        f"{desc.operator}: {result[where]!r} instead of {reference[where]!r} at {list(where)}, "
        f"{int(wrong.sum())} of {wrong.size} wrong; operands {_operands(desc, inputs, where)}"
    )


def _differs(desc: OperatorDesc, result: Array, reference: Array) -> Array:
    """Where the two are not the same within the stated accuracy of the operator."""
    if result.dtype.kind != "f":
        return np.asarray(result != reference)
    facts = _in_ulp(desc, result)
    if not facts:
        with np.errstate(all="ignore"):
            return np.asarray((result != reference) & ~(np.isnan(result) & np.isnan(reference)))
    # The reference is rounded to the type itself.
    return np.asarray(ulp_distance(result, reference.astype(np.float64)) > facts["bound"] + 0.5)


def _in_ulp(desc: OperatorDesc, result: Array) -> dict[str, Any]:
    """The accuracy of a point-wise operator: sums may cancel, whatever the numbers are."""
    if desc.operator not in POINTWISE:
        return {}
    return tolerance_facts()[desc.operator].get(result.dtype.name.upper(), {})


def _room(desc: OperatorDesc, reference: Array) -> Any:
    """What an operator without a stated accuracy may be off by: digits of its greatest result."""
    if isinstance(desc, ElementWisePow) and reference.dtype.kind != "f" and _has_float_exponent(desc):
        return 1  # A power that is nearly whole is truncated to it, or to the one before.
    if desc.operator in RESAMPLINGS and reference.dtype.kind != "f":
        return 1  # A mean that is nearly whole is truncated to it, or to the one before.
    if desc.operator in STEPS and getattr(desc, "scale_bias", None) is not None:
        return 1.0  # What the scale and bias make is rounded first, perhaps to the other side of a step.
    if reference.dtype.kind != "f" or _in_ulp(desc, reference):
        return 0.0
    finite = np.abs(reference[np.isfinite(reference)].astype(np.float64))
    return 64 * float(np.finfo(reference.dtype).eps) * float(finite.max(initial=0.0))


def _has_float_exponent(desc: ElementWisePow) -> bool:
    return desc.exponent_tensor is not None and numpy_type(desc.exponent_tensor).kind == "f"


def _neighbours(desc: OperatorDesc, inputs: Sequence[Array | None], number: int) -> Iterator[Array]:
    """That output of the reference for operands that are off by a rounding, each up, down or not."""
    if desc.operator in CANCELLING:
        desc, inputs = _apart(desc, inputs)
    random = np.random.default_rng(0)
    for _ in range(PERTURBATIONS):
        operands = [None if each is None else _neighbour(desc, each, random) for each in inputs]
        changes: dict[str, Any] = {}
        for field in operator(desc.operator).attributes:
            value = getattr(desc, field.python_name)
            if isinstance(value, float):
                changes[field.python_name] = _near_number(value, random)
            elif isinstance(value, ScaleBias):
                changes[field.python_name] = ScaleBias(*(_near_number(each, random) for each in value))
        yield run_all(desc.replace(**changes), operands, "reference")[number].astype(np.float64)


def _apart(desc: OperatorDesc, inputs: Sequence[Array | None]) -> tuple[OperatorDesc, Sequence[Array | None]]:
    """The same work on floats of which no two share their memory."""
    rest = iter(inputs)
    changes: dict[str, Any] = {}
    memories: list[Array | None] = []
    for field in operator(desc.operator).inputs:
        value = getattr(desc, field.python_name)
        tensors = value if isinstance(value, tuple) else (value,)
        packed = [
            _packed(tensor, memory)
            for tensor, memory in zip(tensors, islice(rest, len(tensors)), strict=True)
        ]
        descs = tuple(each for each, _ in packed)
        changes[field.python_name] = descs if isinstance(value, tuple) else descs[0]
        memories += [memory for _, memory in packed]
    return desc.replace(**changes), memories


def _packed(tensor: TensorDesc | None, memory: Array | None) -> tuple[TensorDesc | None, Array | None]:
    if tensor is None or memory is None or memory.dtype.kind != "f":
        return tensor, memory
    return TensorDesc(tensor.data_type, tensor.sizes), np.ascontiguousarray(elements(memory, tensor)).reshape(
        -1
    )


def near(array: Array, random: np.random.Generator) -> Array:
    """Floats of the type or their neighbours; no other zero or infinity than before."""
    if array.dtype.kind != "f":
        return array
    with np.errstate(all="ignore"):
        towards = random.choice(np.array([-np.inf, np.inf]), array.shape).astype(array.dtype)
        moved = np.nextafter(array, towards)
    keeps = (array == 0) | ~np.isfinite(array) | ~np.isfinite(moved) | (random.random(array.shape) < 1 / 8)
    return np.where(keeps, array, moved)


def _neighbour(desc: OperatorDesc, operand: Array, random: np.random.Generator) -> Array:
    if desc.operator in ROUNDING and operand.dtype.kind != "f":
        return _near_integers(operand, random)
    return near(operand, random)


def _near_integers(array: Array, random: np.random.Generator) -> Array:
    """Integers as far off as rounding to FLOAT32 may put them."""
    limits = np.iinfo(array.dtype)
    step = np.spacing(np.abs(array.astype(np.float32))).astype(np.int64) // 2
    moved = array.astype(np.int64) + step * random.integers(-1, 2, array.shape)
    return moved.clip(limits.min, limits.max).astype(array.dtype)


def _near_number(value: float, random: np.random.Generator) -> float:
    with np.errstate(over="ignore"):
        number = np.array([value], np.float32)
    return float(near(number, random)[0])


def _operands(desc: OperatorDesc, inputs: Sequence[Array | None], where: tuple[int, ...]) -> list[Any]:
    """The elements of the inputs at that place, where they have the same sizes as the output."""
    found = []
    for tensor, memory in zip(tensors_of(desc, "INPUT_TENSOR"), inputs, strict=True):
        if tensor is not None and memory is not None and len(tensor.sizes) == len(where):
            at = tuple(min(index, size - 1) for index, size in zip(where, tensor.sizes, strict=True))
            found.append(elements(memory, tensor)[at].item())
    return found
