"""The table from DirectML's operator names to definitions. Holds no definition itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from opendml.errors import Unsupported
from opendml.floating_point import default_mode
from opendml.program.functions import compute_type, rounded
from opendml.program.node import Node, convert
from opendml.program.scalar_type import ScalarType
from opendml.program.view import repeated, reshaped
from opendml.spec.declarations import Declarations
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator

Function = Callable[..., Node | tuple[Node, ...]]
Definition = TypeVar("Definition", bound=Function)


class _Declared(NamedTuple):
    """A definition, and how it takes its inputs."""

    function: Function
    stored: bool
    output: bool
    whole: bool


_DEFINITION = "definition"
_definitions: Declarations[_Declared] = Declarations("opendml.operators")


def defines(
    name: str, *, stored: bool = False, output: bool = False, whole: bool = False
) -> Callable[[Definition], Definition]:
    """Register a function as the definition of an operator.

    The function takes the inputs by position in the desc's order: None for an absent one, a tuple for an
    array of tensors. It takes the attributes as keywords with their Python names. It returns the output, or
    a tuple of the outputs that the desc has, in its order, with the members of an array one after the other.
    The caller converts them to the types of the output tensors.

    Args:
        name: DirectML's name of the operator.
        stored: the inputs come in the types that they are stored in, rather than in their compute types.
        output: the output tensor of the desc comes as the keyword `output`. An array of tensors is a tuple,
            and so are several outputs, with None for absent ones.
        whole: the inputs come repeated to the sizes that the desc has, also where a graph has them smaller
            or as numbers. Inputs that are only used element by element need not: they are repeated there.

    Raises:
        ValueError: DirectML has no such operator, or it has a definition already.
    """

    def register(definition: Definition) -> Definition:
        _definitions.add([name], _DEFINITION, _Declared(definition, stored, output, whole))
        return definition

    return register


def defines_each(
    expressions: Mapping[str, tuple[Callable[..., Node], str]],
    register: Callable[[str], Callable[[Any], object]] = defines,
) -> None:
    """Register definitions of one expression.

    Args:
        expressions: by the operators' names, a function of the inputs, and its formula.
        register: registers a definition of the operator of that name.
    """
    for name, (function, formula) in expressions.items():
        definition = partial(function)
        definition.__doc__ = formula
        register(name)(definition)


def implemented() -> Set[str]:
    """Return the names of the operators that can be run."""
    return _definitions.all().keys()


def definition_of(name: str) -> Function:
    """Return the function that defines an operator that can be run."""
    return _definitions.of(name)[_DEFINITION].function


def define(
    desc: OperatorDesc, inputs: Sequence[Node | None], output_types: Sequence[ScalarType]
) -> tuple[Node, ...]:
    """Return the outputs of `desc` over its `inputs`, rounded to their types: within a graph as in memory.

    Args:
        desc: the valid desc.
        inputs: in the desc's order, None for absent ones, those of an array one after the other.
        output_types: of the outputs that the desc has, in its order.

    Raises:
        Unsupported: the operator cannot be run yet, or not with these sizes.
    """
    if desc.operator not in implemented():
        raise Unsupported(f"{desc.operator}: cannot be run yet; `opendml ops` lists the operators that can")
    with default_mode():
        try:
            results = _results(desc, inputs)
        except Unsupported as error:
            raise Unsupported(f"{desc.operator}: {error}") from error
        return tuple([rounded(convert(*each)) for each in zip(results, output_types, strict=True)])


def fused(activation: OperatorDesc | None, value: Node) -> Node:
    """Apply the fused activation, if there is one, by the definition of the activation alone.

    An operator has one output, which is rounded once: what is activated is not rounded before.
    """
    return value if activation is None else _results(activation, [value])[0]


def _results(desc: OperatorDesc, inputs: Sequence[Node | None]) -> tuple[Node, ...]:
    """Return the outputs before they are converted to their types."""
    definition = _definitions.of(desc.operator)[_DEFINITION]
    inputs = _repeated(desc, inputs) if definition.whole else inputs
    values = inputs if definition.stored else [x and convert(x, compute_type(x.type)) for x in inputs]
    attributes = _attributes(desc)
    if definition.output:
        outputs = tuple(getattr(desc, field.python_name) for field in operator(desc.operator).outputs)
        attributes["output"] = outputs[0] if len(outputs) == 1 else outputs
    results = definition.function(*_by_field(desc, values), **attributes)
    return results if isinstance(results, tuple) else (results,)


def _repeated(desc: OperatorDesc, inputs: Sequence[Node | None]) -> Sequence[Node | None]:
    """Return the inputs in the sizes of their tensors."""
    tensors = [getattr(desc, field.python_name) for field in operator(desc.operator).inputs]
    return [
        None if x is None else repeated(x if x.sizes else reshaped(x, (1,) * len(tensor.sizes)), tensor.sizes)
        for x, tensor in zip(inputs, tensors, strict=True)
    ]


def _by_field(desc: OperatorDesc, inputs: Sequence[Node | None]) -> Sequence[Any]:
    """Return the inputs with a tuple for each array of tensors."""
    fields = operator(desc.operator).inputs
    if not any(field.is_array for field in fields):
        return inputs
    rest = iter(inputs)
    return [
        tuple(islice(rest, len(getattr(desc, field.python_name)))) if field.is_array else next(rest)
        for field in fields
    ]


def _attributes(desc: OperatorDesc) -> dict[str, Any]:
    """Return the attributes as DirectML has them: a FLOAT is a float32."""
    values = {}
    for field in operator(desc.operator).attributes:
        value = getattr(desc, field.python_name)
        values[field.python_name] = None if value is None else field.codec.rounded(value)
    return values
