"""Source of the desc classes: one module per family in opendml/spec/descs, and its __init__.py."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator

from opendml.spec.naming import camel_case
from opendml.spec.schema import Field, Operator, operators
from opendml.spec.wording import meaning
from tools.generate.prose import docstring_head, tensor_line
from tools.generate.text import WIDTH, call_lines, header, wrap

_ARGUMENT_TYPES = {
    "TENSOR_DESC": "TensorDesc | None",
    "TENSOR_DESC_ARRAY": "Sequence[TensorDesc]",
    "OPERATOR_DESC": "OperatorDesc",
    "OPERATOR_DESC_ARRAY": "Sequence[OperatorDesc]",
    "UINT": "int",
    "INT": "int",
    "BOOL": "bool",
    "FLOAT": "float",
    "UINT_ARRAY": "Sequence[int]",
    "INT_ARRAY": "Sequence[int]",
    "FLOAT_ARRAY": "Sequence[float]",
    "SCALE_BIAS": "ScaleBias",
    "SIZE_2D": "Size2D",
    "SCALAR_UNION": "int | float",
}


def desc_sources() -> dict[str, str]:
    """The text of every module of the package, by file name."""
    families: dict[str, list[Operator]] = {}
    for operator in operators().values():
        families.setdefault(operator.family, []).append(operator)
    sources = {f"{family}.py": _module(family, members) for family, members in families.items()}
    sources["__init__.py"] = _package(families)
    return sources


def argument_type(field: Field) -> str:
    """The type of the field as an argument of the desc class."""
    name = field_type(field)
    if field.enum:
        name = "DataTypeLike" if name == "TensorDataType" else f"{name} | str"
    return f"{name} | None" if field.optional and not field.is_tensor else name


def field_type(field: Field) -> str:
    """The type of what the field holds."""
    return camel_case(field.enum) if field.enum else _ARGUMENT_TYPES[field.type]


def default_source(field: Field) -> str | None:
    """The default of an attribute as source; None when the caller must give it."""
    if field.optional:
        return "None"
    if not field.has_default:
        return None
    return f"{camel_case(field.enum)}.{field.default}" if field.enum else repr(field.default)


def _module(family: str, members: list[Operator]) -> str:
    body = "".join(_class(operator) for operator in members)
    return header(f"Descriptions of DirectML's {family} operators.") + _imports(body) + body


def _imports(body: str) -> str:
    lines = ["\n"]
    if "Sequence[" in body:
        lines.append("from collections.abc import Sequence\n\n")
    enums = sorted({camel_case(f.enum) for o in operators().values() for f in o.fields if f.enum})
    used = [name for name in enums if f": {name}" in body]
    if used:
        lines.append(import_line("opendml.spec.enums", used))
    names = [name for name in ("OperatorDesc", "ScaleBias", "Size2D") if f"{name}" in body]
    lines.append(import_line("opendml.spec.operator_desc", names))
    names = [name for name in ("DataTypeLike", "as_member", "as_tuple") if name in body]
    if names:
        lines.append(import_line("opendml.spec.plain", names))
    lines.append("from opendml.spec.tensor_desc import TensorDesc\n")
    return "".join(lines)


def import_line(module: str, names: list[str]) -> str:
    """The statement that imports these names."""
    line = f"from {module} import {', '.join(names)}\n"
    if len(line) <= WIDTH + 1:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")\n"


def _class(operator: Operator) -> str:
    stored = [field for field in operator.fields if not field.is_count]
    names = ", ".join(f'"{field.python_name}"' for field in stored)
    if len(stored) == 1:
        names += ","
    fields = f"    fields = ({names})\n"
    if len(fields) > WIDTH + 1:
        lines = "".join(f'        "{field.python_name}",\n' for field in stored)
        fields = f"    fields = (\n{lines}    )\n"
    return (
        f"\n\nclass {operator.class_name}(OperatorDesc):\n"
        + "\n".join(_docstring(operator))
        + f'\n\n    operator = "{operator.name}"\n{fields}    __slots__ = fields\n'
        + "".join(f"    {field.python_name}: {_stored_type(field)}\n" for field in stored)
        + "\n"
        + _constructor(operator)
    )


def _stored_type(field: Field) -> str:
    held = field_type(field)
    if held.startswith("Sequence["):
        held = f"tuple[{held.removeprefix('Sequence[').removesuffix(']')}, ...]"
    return f"{held} | None" if field.optional and not field.is_tensor else held


def _constructor(operator: Operator) -> str:
    arguments = ["self"]
    for field in operator.tensors:
        empty = "()" if field.type == "TENSOR_DESC_ARRAY" else "None"
        arguments.append(f"{field.python_name}: {argument_type(field)} = {empty}")
    if operator.attributes:
        arguments.append("*")
    for field in operator.attributes:
        default = default_source(field)
        arguments.append(f"{field.python_name}: {argument_type(field)}{f' = {default}' if default else ''}")
    values = []
    for field in operator.fields:
        if not field.is_count:
            values.append(_stored(field))
    signature = call_lines("def __init__", arguments, " -> None:", "    ")
    return signature + call_lines("self._fill", values, "", "        ")


def _stored(field: Field) -> str:
    """What the constructor keeps of an argument."""
    name = field.python_name
    if field.enum:
        return f"as_member({camel_case(field.enum)}, {name})"
    is_tuple = field.type.endswith("_ARRAY") or field.type in ("SCALE_BIAS", "SIZE_2D")
    return f"as_tuple({name})" if is_tuple else name


def _docstring(operator: Operator) -> Iterator[str]:
    yield from docstring_head(operator)
    yield "    Tensors:"
    for field in operator.tensors:
        yield wrap(f"{field.python_name}: {tensor_line(operator, field)}", "        ", "    ")
    if operator.attributes:
        yield ""
        yield "    Attributes:"
    for field in operator.attributes:
        optional = ", optional" if field.optional else ""
        words = f"{field.python_name}: {field_type(field)}{optional}."
        yield wrap(f"{words} {meaning(field)}", "        ", "    ")
    yield '    """'


def _package(families: dict[str, list[Operator]]) -> str:
    """The package imports a family's module when one of its classes is first asked for."""
    parts = [
        header(
            "The desc classes of all operators, such as `ActivationCelu`.",
            "A family's module is read on first use.",
        )
    ]
    parts.append("\nfrom importlib import import_module\nfrom typing import TYPE_CHECKING, Any, Final\n\n")
    parts.append("from opendml.spec.naming import camel_case, nearest\n")
    parts.append(
        "from opendml.spec.operator_desc import OperatorDesc, ScaleBias, Size2D\n\nif TYPE_CHECKING:\n"
    )
    modules = {family: _names(members) for family, members in sorted(families.items())}
    for family, names in modules.items():
        parts.append(textwrap.indent(import_line(f"opendml.spec.descs.{family}", names), "    "))
    classes = [*itertools.chain(*modules.values()), "OperatorDesc", "ScaleBias", "Size2D"]
    parts.append(_lines("__all__ = [", [*sorted(classes, key=_by_number), "desc_class"], "]"))
    parts.append("\n_MODULES: Final = {\n")
    for family, names in modules.items():
        parts += [f'    "{name}": "{family}",\n' for name in names]
    return "".join([*parts, "}\n", _PACKAGE_FUNCTIONS])


_PACKAGE_FUNCTIONS = '''

def desc_class(operator: str) -> type[OperatorDesc]:
    """The desc class of the operator of that DirectML name, such as "ACTIVATION_CELU".

    Raises:
        AttributeError: no such operator.
    """
    found: type[OperatorDesc] = __getattr__(camel_case(operator))
    return found


def __getattr__(name: str) -> Any:
    if (family := _MODULES.get(name)) is None:
        near = nearest(name, _MODULES)
        hint = f"; did you mean {near!r}?" if near else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)
    found = getattr(import_module(f"{__name__}.{family}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
'''


def _names(members: list[Operator]) -> list[str]:
    """The class names in the order of imports, which leaves case aside."""
    return sorted((operator.class_name for operator in members), key=lambda name: _by_number(name.lower()))


def _by_number(name: str) -> list[str | int]:
    """A key that sorts numbers within names by value."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _lines(head: str, names: list[str], tail: str) -> str:
    return f"\n{head}\n" + "".join(f'    "{name}",\n' for name in names) + f"{tail}\n"
