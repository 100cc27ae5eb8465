"""One call as its caller made it: its tensors in a row, their names in messages, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from opendml.errors import InvalidArgument
from opendml.spec.making import outputs_tuple
from opendml.spec.outputs import Told
from opendml.spec.schema import Field, operator
from opendml.spec.values import listed
from opendml.spec.wording import shown

T = TypeVar("T")


class Call:
    """A call of an immediate function.

    Args:
        name: DirectML's name of the operator.
        tensors: the inputs in the desc's order, those of a list one after the other, None for absent ones.
        attributes: in the desc's order, without counts.
        outs: what is to be written, one for each output that the call has; None: new arrays.
        device: as the caller says.
        told: what the call says of its outputs.
        cast: how the caller makes an input have another type.
        lengths: the number of tensors of each input field that is a list, by the field's position.
    """

    __slots__ = ("attributes", "cast", "device", "lengths", "name", "outs", "tensors", "told")

    def __init__(
        self,
        name: str,
        tensors: tuple[Any, ...],
        attributes: tuple[Any, ...],
        outs: tuple[Any, ...] | None,
        device: Any,
        told: Told,
        cast: str,
        lengths: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.name, self.tensors, self.attributes, self.outs = name, tensors, attributes, outs
        self.device, self.told, self.cast, self.lengths = device, told, cast, lengths

    def on(self, tensors: tuple[Any, ...], outs: tuple[Any, ...] | None, cast: str) -> Call:
        """The call on other arrays."""
        told, lengths = self.told, self.lengths
        return Call(self.name, tensors, self.attributes, outs, self.device, told, cast, lengths)

    def without_arrays(self) -> Call:
        """The call with marks in place of the tensors that are there, and nothing to write."""
        return self.on(tuple([None if tensor is None else ... for tensor in self.tensors]), None, self.cast)

    @property
    def function(self) -> str:
        """The name of the immediate function."""
        return operator(self.name).function_name

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the tensors as arguments."""
        return _arguments(self.name, self.lengths)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the tensors in messages."""
        return tuple(f"{self.function}.{argument}" for argument in self.arguments)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The field that each of the tensors belongs to."""
        return _fields(self.name, self.lengths)

    @property
    def outputs(self) -> tuple[Field, ...]:
        """The fields of the outputs that the call has."""
        return outputs_of(self.name, self.told.wanted)

    def out_arguments(self, count: int) -> tuple[str, ...]:
        """The names of so many arrays that are to be written, as arguments."""
        return out_arguments(self.name, self.told.wanted, count)

    def out_labels(self, count: int) -> tuple[str, ...]:
        """Their names in messages."""
        return tuple(f"{self.function}.{argument}" for argument in self.out_arguments(count))

    def grouped(self, values: Sequence[T]) -> list[T | tuple[T, ...]]:
        """Values of the tensors by field, those of a list as a tuple."""
        return grouped(values, self.lengths)

    def by_output(self, values: Sequence[Any]) -> dict[str, Any]:
        """Values of the arrays that are to be written, by the outputs' Python names."""
        outputs = self.outputs
        if outputs and outputs[0].is_array:
            return {outputs[0].python_name: tuple(values)}
        return {output.python_name: value for output, value in zip(outputs, values, strict=True)}

    def result(self, arrays: Sequence[Any]) -> Any:
        """What the call returns, of its outputs."""
        if not returns_tuple(self.name, self.told.wanted):
            return arrays[0]
        outputs = operator(self.name).outputs
        if outputs[0].is_array:
            return tuple(arrays)
        present = {output.name: array for output, array in zip(self.outputs, arrays, strict=True)}
        return outputs_tuple(self.name)(*(present.get(output.name) for output in outputs))


def grouped(values: Sequence[T], lengths: Sequence[tuple[int, int]]) -> list[T | tuple[T, ...]]:
    """Values of tensors in a row by field, those of a list as a tuple."""
    result: list[T | tuple[T, ...]] = list(values)
    for position, length in lengths:
        result[position : position + length] = [tuple(values[position : position + length])]
    return result


def flattened(name: str, tensors: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[tuple[int, int], ...]]:
    """The tensors of a call in a row, and the lengths of those that are lists.

    Raises:
        InvalidArgument: no list where one is needed, an empty one, or one with something that is no tensor.
    """
    flat: list[Any] = []
    lengths: list[tuple[int, int]] = []
    for position, (field, tensor) in enumerate(zip(operator(name).inputs, tensors, strict=True)):
        if field.is_array:
            members = _members(f"{operator(name).function_name}.{field.argument_name}", tensor)
            lengths.append((position, len(members)))
            flat += members
        else:
            flat.append(tensor)
    return tuple(flat), tuple(lengths)


def _members(label: str, given: Any) -> tuple[Any, ...]:
    members = listed(given)
    if members is None:
        raise InvalidArgument(f"{label}: {type(given).__name__}; a list of tensors is needed")
    if not members:
        raise InvalidArgument(f"{label}: empty; at least one tensor is needed")
    for number, member in enumerate(members):
        if member is None or isinstance(member, int | float):
            raise InvalidArgument(f"{label}[{number}]: {shown(member)}; a tensor is needed")
    return members


@cache
def outputs_of(name: str, wanted: frozenset[str]) -> tuple[Field, ...]:
    """The fields of the outputs that a call has which wants these optional ones."""
    return tuple(
        output for output in operator(name).outputs if not output.optional or output.python_name in wanted
    )


@cache
def returns_tuple(name: str, wanted: frozenset[str]) -> bool:
    """Whether a call returns a tuple: not where its one required output is alone."""
    outputs = operator(name).outputs
    required = [output for output in outputs if not output.optional]
    return bool(wanted) or len(required) != 1 or required[0].is_array


@cache
def out_arguments(name: str, wanted: frozenset[str], count: int) -> tuple[str, ...]:
    """The names of the arrays, so many, that a call is given to write."""
    outputs = outputs_of(name, wanted)
    if not returns_tuple(name, wanted):
        return ("out",)[:count]
    if outputs and outputs[0].is_array:
        return tuple(f"out[{number}]" for number in range(count))
    return tuple(f"out.{output.argument_name}" for output in outputs[:count])


def written_of(name: str, wanted: frozenset[str], out: Any) -> tuple[Any, ...] | None:
    """What a call is to write, one for each output that it has.

    Raises:
        InvalidArgument: not what the call returns.
    """
    if out is None or not returns_tuple(name, wanted):
        return None if out is None else (out,)
    facts = operator(name)
    given = listed(out)
    if facts.outputs[0].is_array:
        if not given:
            raise InvalidArgument(f"{facts.function_name}.out: {_kind(out)}; a tuple of arrays is needed")
        for number, array in enumerate(given):
            if array is None:
                raise InvalidArgument(f"{facts.function_name}.out[{number}]: None; an array is needed")
        return given
    names = ", ".join(output.argument_name for output in facts.outputs)
    if given is None or len(given) != len(facts.outputs):
        count = _kind(out) if given is None else f"{len(given)} arrays"
        raise InvalidArgument(f"{facts.function_name}.out: {count}; a tuple is needed of {names}")
    for output, array in zip(facts.outputs, given, strict=True):
        is_wanted = not output.optional or output.python_name in wanted
        label = f"{facts.function_name}.out.{output.argument_name}"
        if is_wanted and array is None:
            raise InvalidArgument(f"{label}: None; an array is needed")
        if not is_wanted and array is not None:
            fix = f"{output.argument_name}=True asks for it"
            raise InvalidArgument(f"{label}: an array for an output that the call does not have; {fix}")
    return tuple(array for array in given if array is not None)


def _kind(value: Any) -> str:
    return "empty" if listed(value) == () else type(value).__name__


@cache
def _fields(name: str, lengths: tuple[tuple[int, int], ...]) -> tuple[Field, ...]:
    counts = dict(lengths)
    return tuple(
        field for position, field in enumerate(operator(name).inputs) for _ in range(counts.get(position, 1))
    )


@cache
def _arguments(name: str, lengths: tuple[tuple[int, int], ...]) -> tuple[str, ...]:
    counts, arguments = dict(lengths), list[str]()
    for position, field in enumerate(operator(name).inputs):
        if position in counts:
            arguments += [f"{field.argument_name}[{number}]" for number in range(counts[position])]
        else:
            arguments.append(field.argument_name)
    return tuple(arguments)
