"""Operators that a program defines: a Python function on graph tensors or on NumPy arrays."""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from opendml.across_forks import importing
from opendml.errors import Error, InvalidArgument, LimitExceeded, Unsupported, located
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.registry import CONVERTERS, OWN, Converter
from opendml.frontends.onnx.values import array_of, stored_type
from opendml.late_dataclass import dataclass
from opendml.spec.values import as_counts, is_integer
from opendml.spec.wording import shown

if TYPE_CHECKING:
    from opendml.frontends.onnx.conversion import OnnxConversion, Result
    from opendml.frontends.onnx.node import OnnxNode
    from opendml.frontends.onnx.tensor_info import TensorInfo

F = TypeVar("F", bound=Callable[..., Any])
_KINDS = ("graph", "arrays")


@dataclass(frozen=True)
class CustomOperator:
    """A function that is an operator.

    Args:
        function: the function.
        on: "graph" or "arrays".
        constants: the numbers of inputs that a function on graph tensors gets as arrays.
        types: the NumPy types of the outputs of a function on graph tensors; None: those of its tensors.
    """

    function: Callable[..., Any]
    on: str
    constants: tuple[int, ...]
    types: tuple[np.dtype[Any] | None, ...]

    @property
    def name(self) -> str:
        """The name of the function in errors."""
        return str(getattr(self.function, "__qualname__", self.function))


class _EndlessRecursion(InvalidArgument):
    """A function runs its own model without end. Each of the many runs passes the error on as it is."""

    def _within(self, where: object) -> _EndlessRecursion:
        return self


_operators: dict[tuple[str, str], dict[int, CustomOperator]] = defaultdict(dict)


def custom_operator(
    domain: str,
    name: str,
    *,
    version: int = 1,
    on: Literal["graph", "arrays"] = "graph",
    constants: Sequence[int] = (),
    types: Sequence[Any] = (),
) -> Callable[[F], F]:
    """Register the decorated function as an operator of ONNX models, for models that are loaded afterwards.

    The function takes the inputs of a node in order (None for an absent one), and its attributes as keywords
    in Python's types. It returns the output, or a tuple of the outputs.

    A function on graph tensors calls DirectML's functions. It is part of the compiled graph, and is called
    when the model is traced, not in each run. Sizes that change are integers with which it may compute. A
    scalar has one dimension there, truth values are UINT8, and bfloat16 is FLOAT32. A function on arrays is
    called in each run, with arrays that it must not write to. Its results must be as the model declares them.

    The domains "", "ai.onnx" and "opendml" are closed. A function may replace an operator of another domain
    that only onnx's evaluator runs, such as those of `ai.onnx.ml`.

    >>> import numpy as np, onnx, opendml as dml
    >>> @dml.onnx.custom_operator("my.domain", "Squared")
    ... def squared(x, *, factor=1.0):
    ...     return x * x * factor
    >>> text = '''<ir_version: 10, opset_import: ["" : 20, "my.domain" : 1]>
    ... g (float[n] x) => (float[n] y) { y = my.domain.Squared <factor = 0.5> (x) }'''
    >>> dml.onnx.load(onnx.parser.parse_model(text))(np.array([1, 2], np.float32))["y"]
    array([0.5, 2. ], dtype=float32)

    Args:
        domain: the domain of the operator, as nodes name it.
        name: its name.
        version: the first version of the domain's operator set that has this meaning. It holds up to the
            next version that is registered.
        on: "graph" for a function on graph tensors, "arrays" for one on NumPy arrays.
        constants: the numbers of inputs whose content a function on graph tensors needs, such as axes. It
            gets them as arrays. If they follow from data, the model is compiled for each content.
        types: the NumPy types of outputs that are not those of the graph tensors, such as np.bool_; None for
            the others.

    Raises:
        InvalidArgument: an argument is wrong; the domain is closed; or opendml has the operator.
    """
    where = f"custom_operator: {shown(domain)}, {shown(name)}"
    if not isinstance(domain, str) or not isinstance(name, str) or not name:
        raise InvalidArgument(f"{where}; the names of a domain and of an operator are needed")
    if domain in ("", "ai.onnx", OWN):
        raise InvalidArgument(f"{where}: the domain is not open to other operators; name one of your own")
    if (domain, name) in {*CONVERTERS.names()}:
        raise InvalidArgument(f"{where}: opendml has this operator; name another one")
    if not is_integer(version, 1, sys.maxsize):
        raise InvalidArgument(f"{where}: version {shown(version)}; a whole number from 1 on is needed")
    if on not in _KINDS:
        raise InvalidArgument(f"{where}: on={shown(on)}; must be one of {', '.join(map(repr, _KINDS))}")
    if on == "arrays" and (constants or types):
        raise InvalidArgument(f"{where}: constants and types are for functions on graph tensors")
    output_types = _output_types(types, where)
    contents = as_counts(constants)
    if contents is None:
        raise InvalidArgument(f"{where}: constants={shown(constants)}; the numbers of inputs are needed")

    def register(function: F) -> F:
        if not callable(function):
            raise InvalidArgument(f"{where}: {shown(function)}; a function is needed")
        _operators[domain, name][version] = CustomOperator(function, on, contents, output_types)
        return function

    return register


def _output_types(types: Sequence[Any], where: str) -> tuple[np.dtype[Any] | None, ...]:
    """Return the NumPy types of outputs.

    Raises:
        InvalidArgument: one is no type, or is none that a graph tensor can carry.
    """
    try:
        found = tuple(None if each is None else np.dtype(each) for each in types)
        for each in found:
            if each is not None:
                stored_type(each)
    except (NotExpressible, TypeError) as error:
        raise InvalidArgument(f"{where}: types: {error}") from error
    return found


def custom_of(node: OnnxNode) -> CustomOperator | None:
    """Return the function that is the operator of a node; None: there is none."""
    versions = _operators.get((node.domain, node.operator)) if node.domain else None
    since = max((each for each in versions or () if each <= node.version), default=None)
    return None if versions is None or since is None else versions[since]


def converter_of(node: OnnxNode) -> Converter | None:
    """Return what makes operators of DirectML of a node; None: there is nothing."""
    custom = custom_of(node)
    if custom is None:
        return CONVERTERS.find(node.operator, node.version, node.domain)
    return partial(_converted, custom) if custom.on == "graph" else None


def custom_on_arrays(
    node: OnnxNode, declared: Mapping[str, TensorInfo]
) -> Callable[[Mapping[str, Any]], dict[str, Any]] | None:
    """Return a node whose operator is a function on arrays as a function of contents by name.

    Args:
        node: the node.
        declared: what the model declares of its tensors, by name.
    """
    custom = custom_of(node)
    return partial(_run, custom, node, declared) if custom is not None and custom.on == "arrays" else None


def _run(
    custom: CustomOperator, node: OnnxNode, declared: Mapping[str, TensorInfo], contents: Mapping[str, Any]
) -> dict[str, Any]:
    """Call a function on arrays."""
    given = [_read_only(contents[name]) if name else None for name in node.inputs]
    found = {}
    with located(node):
        for number, result in _results(custom, node, given):
            if not isinstance(result, np.ndarray | np.generic | list):
                raise _wrong(custom, number, result, "a NumPy array")
            array = result if isinstance(result, list) else np.asarray(result)
            if not isinstance(array, list) and not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
            for each in array if isinstance(array, list) else [array]:
                if not _is_of_onnx(each):
                    raise _wrong(custom, number, each, "an array of a type that ONNX has")
            info = declared.get(node.outputs[number])
            form = (None, None) if isinstance(array, list) else (array.dtype, array.shape)
            if problem := "" if info is None else info._problem(*form):
                raise InvalidArgument(f"{custom.name}: output {number} {problem}, as the model declares")
            found[node.outputs[number]] = array
    return found


def _is_of_onnx(array: Any) -> bool:
    """Return whether ONNX has tensors like an array: numbers, truth values or texts."""
    with importing:
        from onnx.helper import np_dtype_to_tensor_dtype
    if not isinstance(array, np.ndarray | np.generic):
        return False
    if array.dtype.hasobject:
        return array.dtype.kind == "O" and all(isinstance(each, str) for each in array.flat)
    try:
        np_dtype_to_tensor_dtype(array.dtype)
    except (KeyError, ValueError):
        return False
    return True


def _read_only(content: Any) -> Any:
    """Return an array over the memory of another one, which may be the caller's or a weight."""
    if not isinstance(content, np.ndarray):
        return content
    view = content.view()
    view.flags.writeable = False
    return view


def _converted(custom: CustomOperator, conversion: OnnxConversion) -> Result:
    """Call a function on graph tensors."""
    with importing:
        from opendml.frontends.onnx.conversion import NotRunnable
        from opendml.runtime.graphs.tensor import GraphTensor
    node = conversion.node
    found: list[Any] = [None] * len(node.outputs)
    try:
        given = [_operand(custom, conversion, number) for number in range(conversion.input_count)]
        for number, result in _results(custom, node, given):
            if not isinstance(result, GraphTensor):
                raise _wrong(custom, number, result, "a graph tensor")
            if result.graph is not conversion.graph:
                raise InvalidArgument(f"{custom.name}: output {number} is a tensor of another graph")
            wanted = custom.types[number] if number < len(custom.types) else None
            if wanted is not None and result.data_type != stored_type(wanted):
                problem = f"output {number} is {result.data_type.name}; {stored_type(wanted).name} is needed"
                raise InvalidArgument(f"{custom.name}: {problem} for its type {wanted.name}")
            found[number] = conversion.result(result, type=wanted)
    except LimitExceeded:
        raise
    except Error as error:  # No evaluator runs the node instead.
        raise NotRunnable(str(error)) from error
    return tuple(found)


def _operand(custom: CustomOperator, conversion: OnnxConversion, number: int) -> Any:
    """Return an input of a function on graph tensors."""
    if not conversion.has(number):
        return None
    if number in custom.constants:
        return conversion.known(number)
    try:
        return conversion.tensor(number)
    except NotExpressible as reason:
        fix = "a function that is registered with on='arrays' takes it"
        raise Unsupported(f"{custom.name}: {reason}; {fix}") from reason


def _results(custom: CustomOperator, node: OnnxNode, given: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Call a function, and yield the numbers and values of the outputs that the node names."""
    attributes = {name: _value(each) for name, each in node.attributes.items()}
    try:
        inspect.signature(custom.function).bind(*given, **attributes)
    except TypeError as error:
        raise InvalidArgument(f"{custom.name}: {error}") from error
    except ValueError:
        pass  # A function of another language has no signature.
    try:
        results = custom.function(*given, **attributes)
    except (Error, RecursionError) as error:
        if isinstance(error, Error) and not _is_recursion(error):
            raise error._within(custom.name) from error
        if isinstance(error, _EndlessRecursion):
            raise
        raise _EndlessRecursion(f"{node}: {custom.name}: calls itself without end") from error
    except Exception as error:  # whatever the program's function raises
        raise InvalidArgument(f"{custom.name}: {type(error).__name__}: {error}") from error
    several = results if isinstance(results, tuple) else (results,)
    wanted = [number for number, name in enumerate(node.outputs) if name]
    if wanted and len(several) <= wanted[-1]:
        problem = f"returns {len(several)} values; the node has {len(node.outputs)} outputs"
        raise InvalidArgument(f"{custom.name}: {problem}")
    for number in wanted:
        yield number, several[number]


def _is_recursion(error: BaseException) -> bool:
    """Return whether an error is, or comes from, one about the depth of Python's calls."""
    seen, each = set[int](), error
    while id(each) not in seen:
        if isinstance(each, RecursionError | _EndlessRecursion):
            return True
        seen.add(id(each))
        each = each.__cause__ or each.__context__ or each
    return False


def _wrong(custom: CustomOperator, number: int, result: Any, needed: str) -> InvalidArgument:
    is_array = isinstance(result, np.ndarray | np.generic)
    kind = f"an array of {result.dtype}" if is_array else f"of type {type(result).__name__}"
    problem = f"output {number} is {kind}; {needed} is needed"
    return InvalidArgument(f"{custom.name}: {problem}")


def _value(attribute: Any) -> Any:
    """Return an attribute in Python's types, a tensor as an array."""
    with importing:
        from onnx import TensorProto
    return array_of(attribute) if isinstance(attribute, TensorProto) else attribute
