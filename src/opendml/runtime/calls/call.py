"""One immediate call: its tensors in a row, their names in messages, and the form of its result."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from opendml.errors import InvalidArgument
from opendml.spec.kinds import sizes_key
from opendml.spec.making import outputs_tuple
from opendml.spec.outputs import RequestedOutputs
from opendml.spec.schema import Field, append_keys, operator
from opendml.spec.values import sequence_items
from opendml.spec.wording import shown

T = TypeVar("T")


@dataclass(slots=True)
class Call:
    """A call of an immediate function.

    Attributes:
        name: DirectML's name of the operator.
        tensors: the inputs in the desc's order, those of a list one after the other, None for absent ones.
        attributes: the attributes by their Python names. Those that are left out have their defaults.
        outs: the arrays to write, one for each output that the call has; None: new arrays.
        device: the caller's device.
        requested: the outputs that the call asks for, with their types and sizes where it states them.
        cast: the expression by which the caller gives an input another type.
        lengths: the number of tensors of each input field that is a list, by the field's position.
    """

    name: str
    tensors: tuple[Any, ...]
    attributes: Mapping[str, Any]
    outs: tuple[Any, ...] | None
    device: Any
    requested: RequestedOutputs
    cast: str
    lengths: tuple[tuple[int, int], ...] = ()

    def on(self, tensors: tuple[Any, ...], outs: tuple[Any, ...] | None, cast: str) -> Call:
        """Return the same call on other arrays."""
        return replace(self, tensors=tensors, outs=outs, cast=cast)

    def without_arrays(self) -> Call:
        """Return the call with marks in place of the tensors that are there, and nothing to write."""
        return self.on(tuple([None if tensor is None else ... for tensor in self.tensors]), None, self.cast)

    def key(self) -> list[Hashable]:
        """Return a key of all that the call means, except for its arrays."""
        requested = self.requested
        key: list[Hashable] = [(self.name, self.lengths, requested.wanted), self.device, requested.type]
        append_keys(key, self.name, self.attributes)
        if requested.sizes is not None:
            key.append(sizes_key(requested.sizes))
        return key

    @property
    def function(self) -> str:
        """The name of the immediate function."""
        return operator(self.name).function_name

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the tensors as arguments."""
        return tuple(argument for _, argument in _inputs(self.name, self.lengths))

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the tensors in messages."""
        return tuple(f"{self.function}.{argument}" for argument in self.arguments)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The field that each of the tensors belongs to."""
        return tuple(field for field, _ in _inputs(self.name, self.lengths))

    @property
    def outputs(self) -> tuple[Field, ...]:
        """The fields of the outputs that the call has."""
        wanted = self.requested.wanted
        outputs = operator(self.name).outputs
        return tuple([each for each in outputs if not each.optional or each.python_name in wanted])

    def out_arguments(self, count: int) -> tuple[str, ...]:
        """Return the names, as arguments, of this number of arrays that are to be written."""
        if not returns_tuple(self.name, self.requested.wanted):
            return ("out",)[:count]
        if self.outputs[0].is_array:
            return tuple(f"out[{number}]" for number in range(count))
        return tuple(f"out.{output.argument_name}" for output in self.outputs[:count])

    def out_labels(self, count: int) -> tuple[str, ...]:
        """Return the names in messages of this number of arrays that are to be written."""
        return tuple(f"{self.function}.{argument}" for argument in self.out_arguments(count))

    def grouped(self, values: Sequence[T]) -> list[T | tuple[T, ...]]:
        """Return values of the tensors by field, those of a list as a tuple."""
        result: list[T | tuple[T, ...]] = list(values)
        for position, length in self.lengths:
            result[position : position + length] = [tuple(values[position : position + length])]
        return result

    def by_output(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return values of the arrays that are to be written, by the outputs' Python names."""
        outputs = self.outputs
        if outputs and outputs[0].is_array:
            return {outputs[0].python_name: tuple(values)}
        return {output.python_name: value for output, value in zip(outputs, values, strict=True)}

    def result(self, arrays: Sequence[Any]) -> Any:
        """Return the result of the call, whose outputs are these arrays."""
        if not returns_tuple(self.name, self.requested.wanted):
            return arrays[0]
        outputs = operator(self.name).outputs
        if outputs[0].is_array:
            return tuple(arrays)
        present = {output.name: array for output, array in zip(self.outputs, arrays, strict=True)}
        return outputs_tuple(self.name)(*(present.get(output.name) for output in outputs))


def call_of(
    name: str,
    tensors: tuple[Any, ...],
    attributes: Mapping[str, Any],
    out: Any,
    device: Any,
    requested: RequestedOutputs,
    cast: str,
) -> Call:
    """Return the call of an operator with its arguments as the caller gives them.

    Raises:
        InvalidArgument: an argument is no list of tensors where one is needed, or `out` is not of the form of
            the result.
    """
    flat, lengths = flattened(name, tensors)
    return Call(name, flat, attributes, _outs(name, requested.wanted, out), device, requested, cast, lengths)


def flattened(name: str, tensors: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[tuple[int, int], ...]]:
    """Return the tensors of a call in a row, and the lengths of those that are lists.

    Raises:
        InvalidArgument: no list where one is needed, an empty one, or one with something that is no tensor.
    """
    facts = operator(name)
    if not any(field.is_array for field in facts.inputs):
        return tensors, ()
    flat: list[Any] = []
    lengths: list[tuple[int, int]] = []
    for position, (field, tensor) in enumerate(zip(facts.inputs, tensors, strict=True)):
        if field.is_array:
            members = _members(f"{facts.function_name}.{field.argument_name}", tensor)
            lengths.append((position, len(members)))
            flat += members
        else:
            flat.append(tensor)
    return tuple(flat), tuple(lengths)


def _members(label: str, given: Any) -> tuple[Any, ...]:
    members = sequence_items(given)
    if members is None:
        raise InvalidArgument(f"{label}: {type(given).__name__}; a list of tensors is needed")
    if not members:
        raise InvalidArgument(f"{label}: empty; at least one tensor is needed")
    for number, member in enumerate(members):
        if member is None or isinstance(member, int | float):
            raise InvalidArgument(f"{label}[{number}]: {shown(member)}; a tensor is needed")
    return members


@cache
def returns_tuple(name: str, wanted: frozenset[str]) -> bool:
    """Return whether a call that asks for these optional outputs returns a tuple.

    One required output alone is returned by itself.
    """
    required = [output for output in operator(name).outputs if not output.optional]
    return bool(wanted) or len(required) != 1 or required[0].is_array


def returns_truth(name: str) -> bool:
    """Return whether the elements of the output are 1 and 0 for true and false."""
    return name.startswith(("ELEMENT_WISE_LOGICAL_", "ELEMENT_WISE_IS_"))


@cache
def in_place_arguments(name: str) -> frozenset[str]:
    """Return the input tensors that the output may be written over."""
    facts = operator(name)
    return frozenset(facts.field(each).argument_name for each in facts.in_place)


def _outs(name: str, wanted: frozenset[str], out: Any) -> tuple[Any, ...] | None:
    """Return the arrays that a call is given to write, one for each output that it has."""
    if out is None or not returns_tuple(name, wanted):
        return None if out is None else (out,)
    facts = operator(name)
    label, given = f"{facts.function_name}.out", sequence_items(out)
    kind = "empty" if given == () else type(out).__name__
    if facts.outputs[0].is_array:
        if not given:
            raise InvalidArgument(f"{label}: {kind}; a tuple of arrays is needed")
        for number, array in enumerate(given):
            if array is None:
                raise InvalidArgument(f"{label}[{number}]: None; an array is needed")
        return given
    if given is None or len(given) != len(facts.outputs):
        count = kind if given is None else f"{len(given)} arrays"
        names = ", ".join(output.argument_name for output in facts.outputs)
        raise InvalidArgument(f"{label}: {count}; a tuple is needed of {names}")
    for output, array in zip(facts.outputs, given, strict=True):
        is_wanted = not output.optional or output.python_name in wanted
        if is_wanted and array is None:
            raise InvalidArgument(f"{label}.{output.argument_name}: None; an array is needed")
        if not is_wanted and array is not None:
            problem = "an array for an output that the call does not have"
            fix = f"{output.argument_name}=True asks for it"
            raise InvalidArgument(f"{label}.{output.argument_name}: {problem}; {fix}")
    return tuple(array for array in given if array is not None)


@cache
def _inputs(name: str, lengths: tuple[tuple[int, int], ...]) -> tuple[tuple[Field, str], ...]:
    """Return the field and the name as an argument of each tensor of a call."""
    counts, inputs = dict(lengths), list[tuple[Field, str]]()
    for position, field in enumerate(operator(name).inputs):
        if position in counts:
            inputs += [(field, f"{field.argument_name}[{number}]") for number in range(counts[position])]
        else:
            inputs.append((field, field.argument_name))
    return tuple(inputs)
