"""Cases of public operators. A form has the sizes and attributes of a call; a case adds the types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, NamedTuple

import opendml as dml
from opendml.errors import Error
from opendml.program.program import Program
from opendml.runtime.program import program_of
from opendml.spec.descs import desc_class
from opendml.spec.enums import FeatureLevel, ReduceFunction, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import RequestedOutputs, with_outputs
from opendml.spec.schema import Field, operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures

_MOST_TRIES = 4096
"""Most combinations of types that are tried until one is valid."""


class Strided(NamedTuple):
    """Sizes of a tensor, and its strides in elements."""

    sizes: Sequence[int]
    strides: Sequence[int]


class Typed(NamedTuple):
    """Sizes of a tensor, and a type that does not follow from the first tensor."""

    sizes: Sequence[int]
    type: str


Sizes = Sequence[int] | Strided | Typed
Types = str | Mapping[str, str]


@dataclass(frozen=True)
class Form:
    """A call of an operator, without the types of its tensors.

    Args:
        operator: DirectML's name.
        name: what the call computes, in a few words.
        tensors: the sizes of each input by its argument's name (`input`, `filter`); a list of sizes for a
            list of tensors. If an operator has no inputs, the sizes of its output.
        attributes: by their Python names.
        sizes: the sizes of the output, if a call states them.
        wanted: the requested optional outputs, by their Python names.
        types: the types that do not follow from that of the first tensor, by the argument's name: a type, or
            one for each type of the first tensor.
        only: the types of the first tensor; if empty, all that the operator supports.
    """

    operator: str
    name: str
    tensors: Mapping[str, Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    sizes: Any = None
    wanted: frozenset[str] = frozenset()
    types: Mapping[str, Types] = field(default_factory=dict)
    only: tuple[str, ...] = ()

    def cases(self) -> Iterator[Case]:
        """Return a case for each type of the first tensor."""
        for type in self.types_of_first:
            yield self.case(type)

    @property
    def types_of_first(self) -> tuple[str, ...]:
        """Return the types of the first tensor for which there are cases."""
        return self.only or self._supported[self._first.name]

    def case(self, type: str) -> Case:
        """Return the case whose first tensor has a type.

        Raises:
            ValueError: no types of the other tensors are valid with it; the message has the first failure.
        """
        fields = [each for each in operator(self.operator).tensors if self._is_present(each)]
        why: object = None
        for chosen in islice(product(*(self._types_of(each, type) for each in fields)), _MOST_TRIES):
            try:
                desc = self._desc(dict(zip((each.name for each in fields), chosen, strict=True)))
            except Error as error:
                why = why or error
                continue
            found = list(failures(desc))
            if not found:
                return Case(self, type, desc)
            why = why or found[0]
        raise ValueError(f"{self.operator} {self.name} {type}: {why}")

    @property
    def _supported(self) -> dict[str, tuple[str, ...]]:
        """Return the types that the newest support table allows, by DirectML's names of the tensors."""
        function = self.attributes.get("function")
        name = ReduceFunction(function).name if function is not None else None
        table = operator(self.operator).support_at(max(FeatureLevel), name)
        assert table is not None
        return {name: each.types for name, each in table.tensors.items()}

    @property
    def _first(self) -> Field:
        return next(each for each in operator(self.operator).tensors if self._is_present(each))

    def _is_present(self, tensor: Field) -> bool:
        if tensor.kind == "INPUT_TENSOR":
            return tensor.argument_name in self.tensors
        return not tensor.optional or tensor.python_name in self.wanted

    def _types_of(self, tensor: Field, type: str) -> Sequence[str]:
        """Return the types to try for a tensor, the likeliest first."""
        if tensor.name == self._first.name:
            return (type,)
        given = self.types.get(tensor.argument_name)
        if given is not None:
            return (given,) if isinstance(given, str) else (given[type],)
        allowed = self._supported[tensor.name]
        return sorted(allowed, key=lambda each: each != type)

    def _desc(self, types: Mapping[str, str]) -> OperatorDesc:
        facts = operator(self.operator)
        values = dict(self.attributes)
        for each in facts.attributes:
            if each.same_type_as and each.python_name not in values:
                values[each.python_name] = TensorDataType[types[each.same_type_as]]
        for each in facts.inputs:
            if each.argument_name in self.tensors:
                given = self.tensors[each.argument_name]
                if each.is_array:
                    values[each.python_name] = [_tensor(types[each.name], sizes) for sizes in given]
                else:
                    values[each.python_name] = _tensor(types[each.name], given)
        for each in facts.outputs:
            if each.argument_name in self.tensors:
                values[each.python_name] = _tensor(types[each.name], self.tensors[each.argument_name])
        desc = desc_class(self.operator)(**values)
        if any(each.argument_name in self.tensors for each in facts.outputs):
            return desc
        present = [each for each in facts.outputs if each.name in types]
        typed = next((each for each in present if each.has_call_type), present[0])
        requested = RequestedOutputs(TensorDataType[types[typed.name]], self.sizes, wanted=self.wanted)
        return with_outputs(desc, requested)


@dataclass(frozen=True, eq=False)
class Case:
    """A call of a public operator; `type` is that of its first tensor."""

    form: Form
    type: str
    desc: OperatorDesc

    @property
    def name(self) -> str:
        """Return the operator, what it computes, and the type."""
        return f"{self.form.operator} {self.form.name} {self.type}"

    @property
    def program(self) -> Program:
        """Return the program that a device compiles for the call."""
        return program_of(self.desc)


def graph_program(build: Callable[..., Any], *inputs: tuple[str, Sizes]) -> Program:
    """Return the program that a device compiles for a graph.

    Args:
        build: makes a tensor, or several, of the inputs of a graph.
        inputs: the type and the sizes of each.
    """
    graph = dml.Graph()
    tensors = []
    for number, each in enumerate(inputs):
        tensor = _tensor(*each)
        tensors.append(graph.input(f"x{number}", tensor.data_type, tensor.sizes, strides=tensor.strides))
    made = build(*tensors)
    results = made if isinstance(made, list | tuple) else [made]
    outputs = {f"y{number}": result for number, result in enumerate(results)}
    return graph.compile(outputs, "reference")._program


def _tensor(type: str, sizes: Sizes) -> TensorDesc:
    if isinstance(sizes, Typed):
        return TensorDesc(TensorDataType[sizes.type], sizes.sizes)
    if isinstance(sizes, Strided):
        return TensorDesc(TensorDataType[type], sizes.sizes, sizes.strides)
    return TensorDesc(TensorDataType[type], sizes)
