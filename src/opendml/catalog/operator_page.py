"""The page of one operator, from the validator's data and the operator's definition."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from opendml import functions
from opendml.catalog.content import Block, CodeBlock, Items, Page, Section, Table
from opendml.catalog.examples import example_of, worked_examples
from opendml.catalog.signatures import signature
from opendml.operators.registry import implemented
from opendml.operators.texts import definition_text
from opendml.spec.descs import desc_class
from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import tolerance_facts
from opendml.spec.feature_level import as_feature_level, full_name, short_name
from opendml.spec.fused_activation import fusable_since, fused_activations
from opendml.spec.rules import rule_texts
from opendml.spec.schema import Field, OperatorSchema, Support, TensorSupport
from opendml.spec.wording import join, meaning, ranks, same_words, sentence
from opendml.targets.registry import KINDS

_KINDS = {"INPUT_TENSOR": "input", "OUTPUT_TENSOR": "output"}
_FORMULA_WIDTH = 92


def operator_page(operator: OperatorSchema, feature_level: str | None = None) -> Page:
    """Return the page of an operator, without empty sections.

    Args:
        operator: the operator.
        feature_level: show only the types and dimensions of this level; None: of all levels.

    Raises:
        InvalidArgument: the level does not exist.
    """
    sections = {
        "Formula": _formula(operator),
        "Definition": _definition(operator),
        "Python": _python(operator),
        "Runs": (_runs(operator),),
        "Example": _example(operator),
        "Worked examples of DirectML": tuple(map(CodeBlock, worked_examples(operator))),
        "Fields": (_fields(operator),),
        "Types and dimensions": (_support(operator, feature_level),),
        "In place": (_in_place(operator),),
        "Fusion": _fusion(operator),
        "Accuracy": _accuracy(operator),
        "Constraints": _constraints(operator, feature_level),
        "Decisions": _decisions(operator),
    }
    return Page(
        title=operator.name,
        lead=(f"{operator.family}, from {full_name(operator.introduced)}", operator.summary),
        sections=tuple(Section(title, blocks) for title, blocks in sections.items() if blocks),
    )


def runs_on(operator: OperatorSchema) -> tuple[str, ...]:
    """Return the kinds of devices that run an operator: all or none, because all run the same program."""
    return KINDS if operator.name in implemented() else ()


def _formula(operator: OperatorSchema) -> tuple[Block, ...]:
    formula = CodeBlock("\n".join(map(_wrapped, _statements(operator.formula))))
    return (formula, operator.semantics) if operator.semantics else (formula,)


def _statements(formula: str) -> Iterator[str]:
    """Yield the parts between semicolons that are outside of brackets."""
    depth, start = 0, 0
    for position, character in enumerate(formula):
        depth += (character in "([{") - (character in ")]}")
        if character == ";" and depth <= 0:
            yield formula[start:position].strip()
            start = position + 1
    yield formula[start:].strip()


def _wrapped(line: str) -> str:
    return textwrap.fill(
        line, _FORMULA_WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _definition(operator: OperatorSchema) -> tuple[Block, ...]:
    formula, *decisions = definition_text(operator.name) or [""]
    return (CodeBlock(_wrapped(formula)), *decisions) if formula else ()


def _python(operator: OperatorSchema) -> tuple[Block, ...]:
    """Return the signatures of the immediate function and of the desc class."""
    name = operator.function_name
    desc = signature(f"dml.descs.{operator.class_name}", desc_class(operator.name))
    if not runs_on(operator):
        return (CodeBlock(desc, "python"),)
    call = signature(f"dml.{name}", getattr(functions, name))
    arrays = "T is an array: of NumPy, or of any library whose arrays can be exchanged."
    return (CodeBlock(call, "python"), arrays, CodeBlock(desc, "python"))


def _runs(operator: OperatorSchema) -> str:
    kinds = runs_on(operator)
    return f"On {join(kinds, 'and')}." if kinds else "Not yet: it can be described and validated."


def _example(operator: OperatorSchema) -> tuple[Block, ...]:
    code, result = example_of(operator.name)
    return (
        (CodeBlock(code, "python"), "gives, to four digits,", CodeBlock(result))
        if result
        else (CodeBlock(code, "python"),)
    )


def _constraints(operator: OperatorSchema, feature_level: str | None) -> tuple[Block, ...]:
    equal = map(same_words, operator.same)
    stated = iter(operator.constraints)
    texts = (*equal, *stated, *rule_texts(operator, as_feature_level(feature_level)))
    return (Items(tuple(map(sentence, texts))),) if texts else ()


def _fields(operator: OperatorSchema) -> Table:
    rows = tuple((field.name, _kind(field), _default(field), _meaning(field)) for field in operator.fields)
    return Table(("Field", "Kind", "Default", "Meaning"), rows)


def _meaning(field: Field) -> str:
    limits = sentence(field.range.words()) if field.range else ""
    return " ".join(filter(None, [meaning(field), limits]))


def _kind(field: Field) -> str:
    kind = _KINDS.get(field.kind) or field.enum or field.type
    several = "s" if field.is_tensor and field.type.endswith("_ARRAY") else ""
    optional = ", optional" if field.optional else ""
    since = f" from {short_name(field.optional_since)}" if field.optional_since else ""
    return kind + several + optional + since


def _default(field: Field) -> str:
    if field.is_count:
        return "derived"
    return str(field.default) if field.has_default else ""


def _support(operator: OperatorSchema, feature_level: str | None) -> Block:
    """Return the tables, newest level first; tensors of the same types and dimensions share a row."""
    level = as_feature_level(feature_level)
    supports = _at(operator, level) if feature_level else list(operator.support)
    if not supports:
        return f"None: the operator does not exist at {full_name(level)}."
    rows: list[tuple[str, ...]] = []
    for support in supports:
        start = short_name(support.level)
        if support.functions:
            rows.append((start, "", "", f"with {', '.join(support.functions)}:"))
            start = ""
        for tensor, names in _alike(support).items():
            rows.append((start, ", ".join(names), ranks(tensor.dims), ", ".join(tensor.types)))
            start = ""
    return Table(("From", "Tensors", "Dimensions", "Types"), tuple(rows))


def _alike(support: Support) -> dict[TensorSupport, list[str]]:
    """Group the names of tensors by their types and dimensions."""
    found: dict[TensorSupport, list[str]] = {}
    for name, tensor in support.tensors.items():
        found.setdefault(tensor, []).append(name)
    return found


def _at(operator: OperatorSchema, level: FeatureLevel) -> list[Support]:
    """Return the tables of a level: one, or for REDUCE one for each group of functions."""
    functions = {function for support in operator.support for function in support.functions or (None,)}
    found = [operator.support_at(level, function) for function in functions]
    return [support for support in operator.support if support in found]


def _in_place(operator: OperatorSchema) -> str:
    if not operator.in_place:
        return "Never: the output must not overlap an input."
    return f"The output may be the same buffer as {join(operator.in_place, 'or')}."


def _fusion(operator: OperatorSchema) -> tuple[Block, ...]:
    """Return the activations that the operator fuses, or the note that others fuse it."""
    if any(field.name == "FusedActivation" for field in operator.fields):
        since = {name: fusable_since(operator.name, name) for name in fused_activations()}
        allowed = [_since(name, level, operator) for name, level in since.items() if level is not None]
        return (f"FusedActivation may be {', '.join(allowed)}.",)
    if operator.name in fused_activations():
        return (
            "Operators with a FusedActivation field may fuse it, without tensors of its own; their pages say "
            "from which level.",
        )
    return ()


def _since(name: str, level: FeatureLevel, operator: OperatorSchema) -> str:
    return name if level == operator.introduced else f"{name} (from {short_name(level)})"


def _accuracy(operator: OperatorSchema) -> tuple[Block, ...]:
    """Return the promised and measured greatest distances from the exact result."""
    rows = tuple(
        (
            type,
            *(_counted(fact[name], fact["unit"], type) for name in ("bound", "measured")),
            fact["measured_over"],
        )
        for type, fact in tolerance_facts().get(operator.name, {}).items()
    )
    return (Table(("Type", "At most", "Measured", "Over"), rows),) if rows else ()


def _counted(distance: float, unit: str, type: str) -> str:
    """Return a distance with its unit in words."""
    if unit == "ulp":
        return f"{distance:g} ULP"
    if unit == "greatest":
        return f"{distance:g} * {'2^-23' if type == 'FLOAT32' else '2^-10'} of the greatest result"
    return f"{distance:g} * 2^-23 of the terms, and rounding"


def _decisions(operator: OperatorSchema) -> tuple[Block, ...]:
    """Return the decisions about open questions and errors of DirectML's page."""
    texts = decisions(operator)
    return (Items(texts),) if texts else ()


def decisions(operator: OperatorSchema) -> tuple[str, ...]:
    """Return a text for each decision about an unclear or contradictory page of DirectML."""
    corrections = (f"{item['what']} ({item['why']})" for item in operator.corrections)
    return tuple(map(sentence, filter(None, (operator.notes, *corrections))))
