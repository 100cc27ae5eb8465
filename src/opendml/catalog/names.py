"""Operators by the names that DirectML, ONNX, WebNN and PyTorch give them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from string import digits

from opendml.errors import InvalidArgument
from opendml.frontends.onnx.registry import CONVERTERS
from opendml.frontends.torch.registry import directml_names
from opendml.operators.registry import implemented
from opendml.spec.facts import alias_facts, enum_facts
from opendml.spec.naming import FAMILIES, camel_case, compared_part, ending, nearest, operator_name
from opendml.spec.schema import OperatorSchema, operators
from opendml.spelling import close_matches

_COUNTERPARTS = {
    "DMLCreateDevice": "Device",
    "DMLCreateDevice1": "Device",
    "DML_BUFFER_TENSOR_DESC": "TensorDesc",
    "DML_OPERATOR_DESC": "OperatorDesc",
    "DML_OPERATOR_TYPE": "descs",
    "DML_TENSOR_DESC": "TensorDesc",
    "ConstantData": "Graph.constant",
    "ConvolutionBuilder": "convolution",
    "Expression": "GraphTensor",
    "FusedActivation": "descs.ActivationRelu",
    "GemmBuilder": "gemm",
    "InputTensor": "Graph.input",
    "MaxPoolingBuilder": "max_pooling2",
    "OperatorType": "descs",
    "Reinterpret": "GraphTensor.reinterpret",
    "TensorPolicy": "TensorDesc",
}
"""Names of DirectML and DirectMLX, and those here that say the same in other words."""


def find_operators(name: str) -> tuple[OperatorSchema, ...]:
    """Return the operators that `name` may mean, in DirectML's order.

    Case, hyphens and underscores do not matter. An operator's full name (ACTIVATION_CELU,
    DML_OPERATOR_ACTIVATION_CELU, ActivationCelu) means only this operator. A name without the family (celu,
    tanh), or of ONNX (LayerNormalization), WebNN (conv2d) or PyTorch (batch_norm), means all operators that
    have it.

    Raises:
        InvalidArgument: no operator has the name; the message has the nearest names.
    """
    key = _key(operator_name(name.upper()))
    found = _by_own_name().get(key) or _by_other_name().get(key)
    if not found:
        raise InvalidArgument(f"no operator is named {name}; {_hint(_key(compared_part(name.upper())))}")
    return tuple(operator for operator in operators().values() if operator.name in found)


def missing(module: str, name: str, names: Sequence[str]) -> AttributeError:
    """Return the error for a name that a module does not have.

    Its hint is the first of these that there is. DirectML's headers may call something so. A longer name may
    have that end. An operator may have the name in another library. Another name may be spelt alike.
    """
    near = _of_headers(name) or ending(name, names)
    hint = _elsewhere(name) if near is None else ""
    if not hint:
        near = near or nearest(name, names)
        hint = f"; did you mean {near!r}?" if near else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)


def _of_headers(name: str) -> str | None:
    """Return the name here of what DirectML.h or DirectMLX.h calls `name`, in other words.

    >>> _of_headers("DML_GEMM_OPERATOR_DESC"), _of_headers("DML_PADDING_MODE_EDGE")
    ('descs.Gemm', 'PaddingMode.EDGE')
    """
    if name in _COUNTERPARTS or not name.startswith("DML_"):
        return _COUNTERPARTS.get(name)
    if (operator := operator_name(name)) in operators():
        is_desc = name.endswith("_DESC")
        return f"descs.{camel_case(operator)}" if is_desc else operators()[operator].function_name
    facts = enum_facts()
    for key, members in facts["enums"].items():
        singular = f"DML_{key.removesuffix('S')}_"
        if name == f"DML_{key}":
            return camel_case(key)
        member = name.removeprefix(singular)
        if name.startswith(singular) and member in members:
            return member if key == "TENSOR_DATA_TYPE" else f"{camel_case(key)}.{member}"
    return name.removeprefix("DML_") if name.removeprefix("DML_") in facts["constants"] else None


def _elsewhere(name: str) -> str:
    """Return a hint at the operator that has this name in ONNX, WebNN or PyTorch."""
    meant = [operators()[each] for each in sorted(_by_other_name().get(_key(name), ()))]
    running = [repr(each.function_name) for each in meant if each.name in implemented()]
    if running:
        return f"; did you mean {' or '.join(running)}?"
    return f"; DirectML's {' and '.join(each.name for each in meant)} cannot be run yet" if meant else ""


@cache
def _by_own_name() -> dict[str, set[str]]:
    return {_key(name): {name} for name in operators()}


@cache
def _by_other_name() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in operators():
        for family in FAMILIES:
            prefix = family.upper()
            if family and name.startswith(prefix):
                found.setdefault(_key(name.removeprefix(prefix)), set()).add(name)
    for alias, meant in framework_names():
        found.setdefault(_key(alias), set()).update(meant)
    return found


def framework_names() -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the names of operators in ONNX, PyTorch and WebNN, and DirectML's operators that say the same.

    The converters of ONNX and PyTorch state those that they have, of which each includes its elder variants.
    data/aliases.json has those without a converter.
    """
    for stated in (CONVERTERS.directml_names(), directml_names()):
        for name, meant in stated.items():
            yield name, frozenset(each for each in operators() if any(_is_elder(each, one) for one in meant))
    for names in alias_facts().values():
        for name, each in names.items():
            yield name, frozenset(each)


def _is_elder(name: str, variant: str) -> bool:
    """Return whether an operator is a variant of another, or what it was before: GEMM of GEMM1, say."""
    stem = variant.rstrip(digits)
    return name.rstrip(digits) == stem and name[len(stem) :] <= variant[len(stem) :]


def _hint(key: str) -> str:
    """Return a hint at the operators whose own name contains `key`, else at similar names."""
    own, known = _by_own_name(), _by_other_name() | _by_own_name()
    containing = [own[each] for each in own if key in each] if key else []
    nearest = containing or [known[each] for each in close_matches(key, known, 3, 0.5)]
    names = list(dict.fromkeys(name for each in nearest for name in sorted(each)))[:5]
    return f"did you mean {' or '.join(names)}?" if names else "`opendml ops` lists them all"


def _key(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "", name.upper())
