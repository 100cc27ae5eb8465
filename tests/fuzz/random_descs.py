"""Random descs of every operator that runs, straight from the facts: nearly all are valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from opendml import FeatureLevel, ScaleBias, TensorDataType, TensorDesc
from opendml.errors import InvalidArgument
from opendml.operators.registry import implemented
from opendml.program.scalar_type import ScalarType
from opendml.spec import enums
from opendml.spec.descs import desc_class
from opendml.spec.fused_activation import fusable_since, fused_activations
from opendml.spec.naming import camel_case
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import RequestedOutputs, with_outputs
from opendml.spec.schema import Field, OperatorSchema, Support, operator
from tests.fuzz.choices import Choices
from tests.fuzz.recipes import RECIPES, Recipe

OPERATORS = sorted(implemented())
SIDES = (1, 2, 3, 5, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 129, 255, 257, 513)
"""Sizes on both sides of the vectors' and blocks' lengths."""
MOST_ELEMENTS = 4096
NUMBERS = (1.0, 0.0, 2.0, 0.5, -1.0, -0.5, 0.1, -0.0, 3.7, -2.3)
EXTREMES = (float("inf"), float("-inf"), float("nan"), 1e-40, -1e-40, 1e-7, 3e38, -3e38, 2.0**31, -(2.0**63))
_MATRICES = ("ACTIVATION_SOFTMAX", "ACTIVATION_LOG_SOFTMAX", "ACTIVATION_HARDMAX")
_SEARCHES = ("ARGMIN", "ARGMAX")


def any_desc(
    choices: Choices, sizes: Sequence[int] | None = None, names: Sequence[str] = OPERATORS
) -> OperatorDesc:
    """A desc with random types, sizes, strides and attributes.

    Args:
        choices: decide.
        sizes: those of the first tensor; None: random ones.
        names: the operators to choose from.
    """
    facts = operator(choices.of(names))
    return _Maker(choices, facts, sizes).desc()


def number(choices: Choices) -> float:
    """A FLOAT: mostly an ordinary one."""
    match choices.below(8):
        case 6:
            return choices.between(-512, 512) / 128
        case 7:
            return choices.of(EXTREMES)
    return choices.of(NUMBERS)


def _mild(choices: Choices) -> float:
    """A FLOAT whose product with another one stays in the range of the type."""
    value = number(choices)
    return value if not 1e15 < abs(value) < float("inf") else 1e4


def activation(choices: Choices, outer: str) -> OperatorDesc | None:
    """An activation that `outer` may take, or None."""
    if choices.below(2) == 0:
        return None
    names = [name for name in fused_activations() if fusable_since(outer, name) and name in OPERATORS]
    facts = operator(choices.of(names))
    values = {field.python_name: _Maker(choices, facts, [1]).attribute(field) for field in facts.attributes}
    return desc_class(facts.name)(**values)


def any_sizes(choices: Choices, least: int, most: int) -> list[int]:
    """From `least` to `most` sizes, of few elements in all."""
    room, sizes = MOST_ELEMENTS, list[int]()
    while len(sizes) < least or (len(sizes) < most and choices.more()):
        fitting = [side for side in SIDES if side <= room]
        sizes.append(choices.of(fitting))
        room //= sizes[-1]
    return choices.shuffled(sizes)


def strides_of(choices: Choices, sizes: Sequence[int], *, repeats: bool) -> list[int] | None:
    """None, or dimensions in any order in memory, with gaps, and where `repeats` is set with strides of 0."""
    if choices.below(2) == 0:
        return None
    strides, step = [0] * len(sizes), choices.between(1, 3)
    for dimension in choices.shuffled(range(len(sizes))[::-1]):
        if repeats and choices.rarely(4):
            continue
        strides[dimension] = step
        step = step * sizes[dimension] + choices.below(3)
    return strides


@dataclass
class _Maker:
    """Makes one desc."""

    choices: Choices
    facts: OperatorSchema
    sizes: Sequence[int] | None

    def desc(self) -> OperatorDesc:
        choices, facts = self.choices, self.facts
        self.values: dict[str, Any] = {}
        functions = [field for field in facts.attributes if field.enum == "REDUCE_FUNCTION"]
        for field in functions:
            self.values[field.python_name] = self.attribute(field)
        chosen = next(iter(self.values.values())).name if functions else None
        table = facts.support_at(max(FeatureLevel), chosen)
        assert table is not None
        if facts.name in RECIPES:
            return self._made_by(RECIPES[facts.name], self._types(table, tied=False))
        ranks = [each.dims for each in table.tensors.values()]
        if self.sizes is None:
            self.sizes = any_sizes(choices, max(low for low, _ in ranks), min(high for _, high in ranks))
        if facts.name in _MATRICES:
            self.sizes = [*[1] * (len(self.sizes) - 2), *self.sizes[-2:]]
        self.types = self._types(table, tied=chosen is not None and chosen not in _SEARCHES)
        for field in facts.attributes:
            if field.python_name not in self.values:
                self.values[field.python_name] = self.attribute(field)
        for field in facts.tensors:
            self.values[field.python_name] = self._tensor(field)
        return desc_class(facts.name)(**self.values)

    def _made_by(self, recipe: Recipe, types: dict[str, TensorDataType]) -> OperatorDesc:
        """A desc whose outputs follow from its inputs."""
        choices, facts, self.types = self.choices, self.facts, types
        made = recipe(choices)
        for field in facts.attributes:
            name = field.python_name
            self.values[name] = made[name] if name in made else self.attribute(field)
        for field in facts.inputs:
            name = field.python_name
            own = [types[each] for each in made.get("types", {}).get(name, [field.name])]
            self.values[name] = self._laid_out(own, made.get(name))
        desc = desc_class(facts.name)(**self.values)
        typed = next((field for field in facts.outputs if field.has_call_type), facts.outputs[0])
        any_of_them = [field.python_name for field in facts.outputs if choices.below(2)]
        wanted = frozenset(made.get("wanted", any_of_them))
        sizes = None if "sizes" in self.values else made.get("sizes")
        try:
            desc = with_outputs(desc, RequestedOutputs(types[typed.name], sizes, wanted=wanted))
        except InvalidArgument:
            # An output would be empty: any that is not is wrong.
            one = TensorDesc(types[typed.name], [1, 1, 1, 1])
            return desc.replace(**{field.python_name: one for field in facts.outputs})
        return desc.replace(
            **{field.python_name: self._strided(getattr(desc, field.python_name)) for field in facts.outputs}
        )

    def _laid_out(self, types: Sequence[TensorDataType], sizes: Any) -> Any:
        """A desc of those sizes, or several, whose types are given in turn."""
        if sizes is None:
            return None
        if isinstance(sizes[0], list):
            pairs = zip(sizes, cycle(types), strict=False)
            return tuple(self._laid_out([type], each) for each, type in pairs)
        return TensorDesc(types[0], sizes, strides_of(self.choices, sizes, repeats=True))

    def _strided(self, tensor: Any) -> Any:
        if isinstance(tensor, tuple):
            return tuple(self._strided(each) for each in tensor)
        if tensor is None:
            return None
        strides = strides_of(self.choices, tensor.sizes, repeats=False)
        return TensorDesc(tensor.data_type, tensor.sizes, strides)

    def attribute(self, field: Field) -> Any:
        """A value of an attribute."""
        choices = self.choices
        rank = len(self.sizes or ())
        if field.same_type_as is not None:
            return self.types[field.same_type_as]
        if field.enum is not None:
            allowed = field.range.values if field.range else ()
            members = getattr(enums, camel_case(field.enum))
            return choices.of([each for each in members if not allowed or each.name in allowed])
        if field.axis_of is not None:
            return choices.some(range(rank)) if field.type == "UINT_ARRAY" else choices.below(rank)
        match field.type:
            case "BOOL":
                return bool(choices.below(2))
            case "SCALE_BIAS":
                return ScaleBias(_mild(choices), _mild(choices)) if choices.rarely(3) else None
            case "OPERATOR_DESC":
                return activation(choices, self.facts.name)
            case "SCALAR_UNION":
                (type,) = (value for value in self.values.values() if isinstance(value, TensorDataType))
                return self._scalar(type)
            case "UINT" if field.range and field.range.values:
                return choices.of(field.range.values)
            case "UINT":
                return choices.between(1, 9)
        value = number(choices)
        if field.range and field.range.finite:
            value = min(abs(value), 1e30) if value == value else 1e-5
        return max(value, field.range.min) if field.range and field.range.min is not None else value

    def _scalar(self, data_type: TensorDataType) -> Any:
        type = ScalarType.of(data_type).numpy
        if type.kind == "f":
            return number(self.choices)
        low, high = limits_of(type)
        return self.choices.of((1, 0, 2, 5, high, low, high // 3, max(low, -1)))

    def _types(self, table: Support, *, tied: bool) -> dict[str, TensorDataType]:
        """The type of each tensor: the same for those that must have the same; for all that are `tied`."""
        groups = {name: set(table.tensors) if tied else {name} for name in table.tensors}
        for same in self.facts.same:
            if "DataType" in same.what and same.below is None:
                joined = set.union(*(groups[name] for name in same.tensors if name in groups))
                groups.update(dict.fromkeys(joined, joined))
        types: dict[str, TensorDataType] = {}
        for name, tensor in table.tensors.items():
            if name not in types:
                group = [each for each in table.tensors if each in groups[name]]
                common = [
                    each
                    for each in tensor.types
                    if all(each in table.tensors[other].types for other in group)
                ]
                type = TensorDataType[self.choices.of([each for each in common if not each.endswith("INT4")])]
                types.update(dict.fromkeys(group, type))
        return types

    def _tensor(self, field: Field) -> TensorDesc | None:
        choices, facts = self.choices, self.facts
        if field.optional and choices.below(2) == 0:
            return None
        sizes = list(self.sizes or ())
        is_output = field.kind == "OUTPUT_TENSOR"
        if field.name in facts.one_element:
            sizes = [1] * len(sizes)
        elif any(field.name in rule.tensors for rule in facts.broadcast):
            sizes = [size if choices.below(2) else 1 for size in sizes]
        elif is_output and facts.name in ("REDUCE", *_SEARCHES):
            sizes = [1 if axis in self.values["axes"] else size for axis, size in enumerate(sizes)]
        return TensorDesc(self.types[field.name], sizes, strides_of(choices, sizes, repeats=not is_output))


def limits_of(type: Any) -> tuple[int, int]:
    """The least and the greatest integer of a NumPy type."""
    limits = np.iinfo(type)
    return int(limits.min), int(limits.max)
