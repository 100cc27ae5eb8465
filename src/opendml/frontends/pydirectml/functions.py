"""The functions of `pydirectml` and `directml`: those of the table, made when they are first asked for, and
those that do more than record one operator."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from inspect import Parameter
from itertools import zip_longest
from typing import Any

from opendml.frontends.pydirectml import enumerations
from opendml.frontends.pydirectml.activations import FusedActivation
from opendml.frontends.pydirectml.adaptations import ADAPTED
from opendml.frontends.pydirectml.docstrings import function_docstring
from opendml.frontends.pydirectml.enumerations import DataType, TensorDataType, as_data_type
from opendml.frontends.pydirectml.errors import Refused
from opendml.frontends.pydirectml.expressions import (
    Expression,
    InPlace,
    Scope,
    known,
    member,
    record,
    reinterpreted,
)
from opendml.frontends.pydirectml.table import MODULES, OUTPUTS, Row, row_of
from opendml.frontends.pydirectml.tensors import TensorDesc
from opendml.spec import enums
from opendml.spec.facts import enum_facts
from opendml.spec.making import made_function

REQUIRED: Any = Parameter.empty
"""The default of a parameter that must be given although others before it need not be."""

_NAMESPACE = {**vars(enums), **vars(enumerations), "REQUIRED": REQUIRED, "__name__": __name__}


class _EmptyOutputs:
    """The outputs of an operator, with an empty Expression for each that is not asked for."""

    def __init__(self, *outputs: Expression | None) -> None:
        for name, output in zip_longest(OUTPUTS[type(self).__name__], outputs):
            setattr(self, name, output or InPlace())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"<{type(self).__name__} {fields}>"


def outputs_class(module: str, name: str) -> Any:
    """Make a class of outputs: a named tuple for the fork, a class with attributes for Microsoft's module."""
    documented = f"The outputs of an operator: {', '.join(OUTPUTS[name])}."
    if module == "pydirectml":
        return type(name, (_EmptyOutputs,), {"__doc__": documented, "__module__": __name__})
    made: Any = namedtuple(name, OUTPUTS[name], module=__name__)  # type: ignore[misc]
    made.__doc__ = f"{documented} Those that are not asked for are None."
    return made


CLASSES: Mapping[str, Mapping[str, Any]] = {
    "pydirectml": {name: outputs_class("pydirectml", name) for name in ("GRUOutputs", "MaxPoolingOutputs")},
    "directml": {name: outputs_class("directml", name) for name in OUTPUTS},
}
"""The classes of outputs of each module by their names."""


def table_function(module: str, name: str) -> Callable[..., Any]:
    """Make the function that a row of the table describes."""
    row = row_of(module, name)
    arguments = ", ".join(f"{each.argument!r}: {each.name}" for each in row.parameters)
    called = partial(_called, row, CLASSES[module].get(row.result))
    body = f"return _called({{{arguments}}})"
    function: Callable[..., Any] = made_function(
        name, row.source, row.result, body, _NAMESPACE | {"_called": called}
    )
    function.__doc__ = function_docstring(row, module)
    return function


def _called(row: Row, outputs: Any, given: dict[str, Any]) -> Any:
    """Record the operator of a row, with arguments by the names of the immediate function's arguments."""
    missing = [each.name for each in row.parameters if given[each.argument] is REQUIRED]
    if missing:
        raise TypeError(f"{row.name}() missing required arguments: {', '.join(missing)}")
    adapt = ADAPTED.get(row.name)
    name = (adapt and adapt(given)) or row.operator
    results = record(name, given, function=row.name, scope=given.pop("graph", None))
    if outputs is not None:
        return outputs(*results)
    return results if row.result.startswith("list") else results[0]


def _constructor(name: str) -> Any:
    """Make the static method of FusedActivation for an activation, with the defaults of its function."""
    row = row_of("directml", name.lower())
    values = "".join(f", {each.name}" for each in row.parameters[1:])
    body = f"return FusedActivation(OperatorType.{row.operator}{values})"
    source = [each for each in row.source[1:] if each != "*"]
    made: Any = made_function(
        name, source, "FusedActivation", body, _NAMESPACE | {"FusedActivation": FusedActivation}
    )
    made.__doc__ = f"Return {row.operator} as a fused activation."
    return staticmethod(made)


for _name in enum_facts()["fused_activation"]["activations"]:
    setattr(FusedActivation, _name.removeprefix("ACTIVATION_").lower(), _constructor(_name))


def input_tensor(scope: Scope, input_index: int, tensor_desc: TensorDesc) -> Expression:
    """Add an input to a graph. Bindings are given in the order of `input_index`.

    Args:
        scope: a GraphBuilder.
        input_index: the number of the input, which no other has.
        tensor_desc: its tensor.

    Raises:
        TypeError: an argument of another class.
        Refused: the number is taken, or none from 0 to 65535.
    """
    if not isinstance(scope, Scope):
        raise TypeError(f"input_tensor.scope: {type(scope).__name__}; a GraphBuilder is needed")
    if not isinstance(tensor_desc, TensorDesc):
        raise TypeError(f"input_tensor.tensor_desc: {type(tensor_desc).__name__}; a TensorDesc is needed")
    if type(input_index) is not int or not 0 <= input_index < 65_536:
        raise Refused(f"input_tensor.input_index: {input_index!r}; must be an integer from 0 to 65535")
    return scope.add_input(input_index, tensor_desc._desc)


def reinterpret(
    input: Expression, new_type: TensorDataType, new_size: Sequence[int], new_strides: Sequence[int] | None
) -> Expression:
    """Return the bytes of an expression as another tensor.

    Args:
        input: an expression.
        new_type: the type of the elements.
        new_size: elements per dimension.
        new_strides: elements of the new type from one index to the next; None: packed.

    Raises:
        Refused: the tensor has another number of bytes than the expression.
    """
    number = member(TensorDataType, new_type, "reinterpret.new_type")
    return reinterpreted(input, enums.TensorDataType(number), new_size, new_strides)


def _reinterpret(
    input: Expression,
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    dtype: DataType | None = None,
) -> Expression:
    """Return the bytes of an expression as another tensor.

    `reinterpret(input, new_type, new_size, new_strides)`, the form of the interface before, is taken too.

    Args:
        input: an expression.
        sizes: elements per dimension.
        strides: elements of the new type from one index to the next; None: packed.
        dtype: the type of the elements; None: the input's.

    Raises:
        Refused: the tensor has another number of bytes than the expression.
    """
    own = known(input, "reinterpret.input")._desc.data_type
    return reinterpreted(input, own if dtype is None else as_data_type(dtype), sizes, strides)


_reinterpret.__name__ = _reinterpret.__qualname__ = "reinterpret"  # The name in Python's messages.


@wraps(_reinterpret)
def reinterpret_in_either_form(input: Expression, *args: Any, **kwargs: Any) -> Expression:
    is_before = isinstance(next(iter(args), None), TensorDataType) or any(
        each.startswith("new_") for each in kwargs
    )
    return (reinterpret if is_before else _reinterpret)(input, *args, **kwargs)


def broadcast(input: Expression, shape: Sequence[int]) -> Expression:
    """Return an expression repeated to a shape as NumPy repeats arrays, by strides of 0. Nothing is copied.

    Args:
        input: an expression.
        shape: the shape, of which the last axes are the expression's or repeat its axes of size 1.

    Raises:
        Refused: the shapes do not fit.
    """
    desc, wanted = known(input, "broadcast.input")._desc, tuple(shape)
    if desc.sizes == wanted:
        return input
    more = len(wanted) - len(desc.sizes)
    fits = more >= 0 and all(size in (1, new) for size, new in zip(desc.sizes, wanted[more:], strict=True))
    if not fits:
        problem = "the shape has fewer axes" if more < 0 else "only axes of 1 are repeated"
        raise Refused(f"broadcast: cannot broadcast {list(desc.sizes)} to {list(wanted)}; {problem}")
    axes = zip(desc.sizes, wanted[more:], desc.effective_strides, strict=True)
    strides = [0] * more + [stride if size == new else 0 for size, new, stride in axes]
    return reinterpreted(input, desc.data_type, wanted, strides)


def multihead_attention(
    query: Expression, key: Expression, value: Expression, head_count: int, scale: float
) -> Expression:
    """Return attention without a mask: softmax(scale * query @ key') @ value for each head.

    Args:
        query: a tensor of sizes [batch, 1, tokens, heads * size]. The result has its tokens.
        key: a tensor like the query, with tokens of its own.
        value: a tensor like the key, with a size of its own.
        head_count: the number of heads that the last axis has.
        scale: the factor of the products, such as 1 / sqrt(size).

    Raises:
        Refused: the tensors do not fit.
    """
    tensors = {"query": query, "key": key, "value": value}
    given: dict[str, Any] = {name: _with_batch_at(each, 1, name) for name, each in tensors.items()}
    given |= {"head_count": head_count, "scale": scale, "mask_filter_value": 0.0}
    given["mask_type"] = enums.MultiheadAttentionMaskType.NONE
    tokens, size = (known(given[name], name)._desc.sizes for name in ("query", "value"))
    (attended, *_) = record("MULTIHEAD_ATTENTION", given | {"sizes": (*tokens[:-1], size[-1])})
    return _with_batch_at(attended, 0, "output")


def _with_batch_at(expression: Expression, axis: int, name: str) -> Expression:
    """Exchange the first two of four dimensions if the one of that axis has size 1."""
    desc = known(expression, f"multihead_attention.{name}")._desc
    if len(desc.sizes) != 4 or desc.sizes[axis] != 1:
        return expression
    sizes, strides = ((b, a, *rest) for a, b, *rest in (desc.sizes, desc.effective_strides))
    return reinterpreted(expression, desc.data_type, sizes, None if desc.strides is None else strides)


HAND_WRITTEN: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "pydirectml": {"input_tensor": input_tensor, "reinterpret": reinterpret},
    "directml": {
        "broadcast": broadcast,
        "input_tensor": input_tensor,
        "multihead_attention": multihead_attention,
        "reinterpret": reinterpret_in_either_form,
    },
}
"""The functions of each module that are not in the table, by their names."""


def names(module: str) -> list[str]:
    """Return the names of the functions of a module and of their outputs' classes."""
    return [*MODULES[module], *HAND_WRITTEN[module], *CLASSES[module]]


def public(module: str, name: str) -> Any:
    """Return a function of a module, or a class of outputs, or raise AttributeError."""
    fixed = {**HAND_WRITTEN[module], **CLASSES[module]}
    if name not in fixed.keys() | MODULES[module].keys():
        raise AttributeError(f"module 'opendml.{module}' has no attribute {name!r}", name=name)
    made = fixed[name] if name in fixed else table_function(module, name)
    return _with_input(made) if (module, name) == ("directml", "join") else made


def _with_input(join: Callable[..., Expression]) -> Callable[..., Expression]:
    """Let `join` take its inputs as `input` too, as in the interface before."""

    @wraps(join)
    def renamed(*args: Any, **kwargs: Any) -> Expression:
        return join(*args, **{"inputs" if name == "input" else name: each for name, each in kwargs.items()})

    return renamed
