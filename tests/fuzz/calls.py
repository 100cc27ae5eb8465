"""Calls with arguments of all kinds: what they get is a result or an error of opendml, which an earlier call
does not change."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import opendml as dml
from opendml import Device, TensorDataType, TensorDesc
from opendml.runtime.calls.operator_call import desc_of_call
from opendml.spec import enums
from opendml.spec.descs import desc_class
from opendml.spec.feature_level import NEWEST
from opendml.spec.naming import camel_case
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import output_arguments
from opendml.spec.schema import Field, operator
from tests.fuzz.case import Case, python, vocabulary
from tests.fuzz.choices import Choices
from tests.fuzz.random_descs import OPERATORS, any_desc
from tests.running import run_all, same_bits

FLOATS = "np.ones((2, 3), np.float32)"
_TEXT = Path(__file__).with_name("arguments.txt").read_text(encoding="utf-8")
ARRAYS, SCALARS, ODD, OBJECTS = (tuple(section.splitlines()[1:]) for section in _TEXT.split("# ")[1:])
"""Expressions of arrays (`FLOATS` first), of numbers, of other things, and of what is called."""
EVERYTHING = (*SCALARS, *ODD, *ARRAYS)


@dataclass(frozen=True, repr=False)
class OnCall(Case):
    """A call with any arguments.

    Attributes:
        callee: an expression.
        arguments: expressions, the positional ones first under "".
        then: what is done with the result, "{}": "repr({})", "validate({})".
    """

    callee: str
    arguments: tuple[tuple[str, str], ...]
    then: str = "repr({})"

    @property
    def subject(self) -> str:
        return self.callee

    def check(self) -> None:
        names = _names()
        callee = eval(self.callee, names)
        try:
            given = [(name, eval(value, names)) for name, value in self.arguments]
        except (dml.Error, TypeError):
            return
        keywords = {name: value for name, value in given if name}
        try:
            inspect.signature(callee).bind(*(value for name, value in given if not name), **keywords)
        except TypeError:
            return
        try:
            result = callee(*(value for name, value in given if not name), **keywords)
            eval(self.then.format("result"), names | {"result": result})
        except dml.Error:
            return


@dataclass(frozen=True, repr=False)
class OnHistory(Case):
    """Calls of one function on the same arrays: the last one means what its desc means.

    Attributes:
        operator: DirectML's name.
        attributes: those of each call, in the desc's order.
        data_type: of the inputs.
    """

    operator: str
    attributes: tuple[tuple[Any, ...], ...]
    data_type: TensorDataType = dml.FLOAT32

    @property
    def subject(self) -> str:
        return self.operator

    def check(self) -> None:
        facts = operator(self.operator)
        function: Callable[..., Any] = getattr(dml, facts.function_name)
        tensor = TensorDesc(self.data_type, [2, 3])
        kind = np.float32 if self.data_type is dml.FLOAT32 else np.float16
        arrays = [np.linspace(-1.5, 2, 6, dtype=kind).reshape(2, 3)] * len(facts.inputs)
        result = None
        for values in self.attributes:
            given = {field.python_name: value for field, value in zip(facts.attributes, values, strict=True)}
            result = _outcome(lambda: function(*arrays, **given))  # noqa: B023 (called at once)
        last = self.attributes[-1]

        def alone() -> Any:
            desc: OperatorDesc = desc_of_call(self.operator, [tensor] * len(arrays), given, NEWEST)
            results = run_all(desc, [each.copy() for each in arrays])
            return results if len(results) > 1 else results[0]

        expected = _outcome(alone)
        assert (result is None) == (expected is None), f"{last}: allowed only before or after other calls"
        if result is not None:
            pairs = zip(result, expected, strict=True) if isinstance(result, tuple) else [(result, expected)]
            same = all(same_bits(one, other) for one, other in pairs)
            assert same, f"{last}: {result} instead of {expected}"


def make(choices: Choices) -> Case:
    """A call of any public function or class, or several calls of one function."""
    kind = choices.below(4)
    if kind == 0:
        return _history(choices)
    if kind == 1:
        callee = choices.of(OBJECTS)
        return OnCall(callee, _arguments(choices, callee))
    if kind == 2:
        desc = any_desc(choices, [2, 3])
        changed = choices.of(
            [field.python_name for field in operator(desc.operator).fields if not field.is_count]
        )
        values = [(name, getattr(desc, name)) for name in desc.fields]
        shown = tuple(
            (name, choices.of(EVERYTHING) if name == changed else python(value)) for name, value in values
        )
        return OnCall(type(desc).__name__, shown, "DEVICE.create_operator({})")
    callee = operator(choices.of(OPERATORS)).function_name
    return OnCall(f"dml.{callee}", _arguments(choices, f"dml.{callee}"))


def _history(choices: Choices) -> OnHistory:
    """Calls with attributes that Python takes for the same, and others."""
    names = [name for name in OPERATORS if _is_plain(name)]
    name = choices.of(names)
    base = [_plain(choices, field) for field in operator(name).attributes]
    calls = []
    for _ in range(choices.between(2, 3)):
        alike = [choices.of(_alike(value)) for value in base]
        calls.append(tuple(alike))
    return OnHistory(name, tuple(calls), choices.of((dml.FLOAT32, dml.FLOAT16)))


@cache
def _is_plain(name: str) -> bool:
    facts = operator(name)
    kinds = {field.type for field in facts.attributes if field.enum is None}
    inputs = [field for field in facts.tensors if field.kind == "INPUT_TENSOR"]
    return bool(kinds & {"FLOAT", "BOOL", "SCALE_BIAS"}) and bool(inputs) and not output_arguments(facts)


def _plain(choices: Choices, field: Field) -> Any:
    """An attribute in one of the ways that users write it."""
    if field.enum is not None:
        return next(iter(getattr(enums, camel_case(field.enum))))
    match field.type:
        case "FLOAT":
            return choices.of((1.0, 0.0, 2.0, float("nan")))
        case "BOOL":
            return choices.of((True, False))
        case "SCALE_BIAS":
            return dml.ScaleBias(choices.of((1.0, 2.0, 0.0)), choices.of((0.0, 1.0)))
        case "OPERATOR_DESC":
            return choices.of((None, dml.descs.ActivationLinear(alpha=1.0, beta=0.0)))
        case "UINT_ARRAY":
            return (1,)
    return 1


def _alike(value: Any) -> list[Any]:
    """The value, what equals it in Python, and something else."""
    if isinstance(value, dml.ScaleBias):
        return [
            value,
            *(dml.ScaleBias(scale, bias) for scale in _alike(value.scale) for bias in _alike(value.bias)),
        ]
    if isinstance(value, OperatorDesc):
        return [value, *(value.replace(alpha=alpha) for alpha in _alike(1.0)), value.replace(beta=-0.0)]
    if isinstance(value, tuple):
        return [value, list(value), (True,), (1.0,), np.array(value)]
    if isinstance(value, bool | int | float) and not isinstance(value, TensorDataType):
        alike: list[Any] = [value, float(value), 1.0, True, 0.0, -0.0, 0, False]
        return [*alike, 1, np.float32(1.0), np.bool_(True)]
    return [value]


def _outcome(call: Callable[[], Any]) -> Any:
    """What the call gives; None for an error of opendml."""
    try:
        return call()
    except dml.Error:
        return None


def _arguments(choices: Choices, callee: str) -> tuple[tuple[str, str], ...]:
    """Arguments of which a few are what the callee wants."""
    parameters = inspect.signature(eval(callee, _names())).parameters.values()
    arguments: list[tuple[str, str]] = []
    for parameter in parameters:
        keyword = parameter.kind is parameter.KEYWORD_ONLY
        needed = parameter.default is parameter.empty
        if not needed and choices.below(2) == 0:
            if keyword:
                continue
            break
        wanted = _wanted(str(parameter.annotation))
        value = choices.of(wanted) if choices.below(3) else choices.of(EVERYTHING)
        arguments.append((parameter.name if keyword else "", value))
    return tuple(arguments)


def _wanted(annotation: str) -> tuple[str, ...]:
    """Values of the annotated kind."""
    for words, values in (
        (("T", "Array"), (FLOATS,)),
        (("ScaleBias",), ("ScaleBias(2.0, 1.0)", "None")),
        (("OperatorDesc",), ("ActivationRelu()", "None")),
        (("Sequence",), ("[1]", "[0, 1]", "[2, 3]")),
        (("TensorDataType",), ("FLOAT32", "UINT8")),
        (("ReduceFunction",), ("ReduceFunction.SUM", "ReduceFunction.ARGMAX")),
        (("AxisDirection",), ("AxisDirection.INCREASING",)),
        (("bool",), ("True", "False")),
        (("float",), ("1.0", "0.5", "-0.0")),
        (("int",), ("1", "0", "262144")),
        (("Device",), ("None", "'cpu'")),
    ):
        if any(annotation == word or (len(word) > 1 and word in annotation) for word in words) or (
            annotation.startswith("T ") and "T" in words
        ):
            return values
    return EVERYTHING


@cache
def _shared() -> dict[str, Any]:
    tensor = TensorDesc(dml.FLOAT32, [2, 3])
    device = Device("cpu")
    made = device.create_operator(desc_class("ACTIVATION_RELU")(tensor, tensor))
    return {"DEVICE": device, "OPERATOR": made, "COMPILED": device.compile_operator(made)}


def _names() -> dict[str, Any]:
    return vocabulary() | _shared() | {"np": np}
