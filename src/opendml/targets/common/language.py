"""The languages of targets: a table that says how each operation is written, and the walk of a printer.

A target writes a table for its language. The walk turns the nodes of a kernel into values of the language,
operands first and each once. For a language of statements that are text, `Statements` is the whole printer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from opendml.compiler.kernel import number_of
from opendml.errors import Unsupported
from opendml.late_dataclass import dataclass
from opendml.program.node import COMPARISONS, Node, Operation, always_needed, is_rare, ordered
from opendml.program.scalar_type import ScalarType

Value = TypeVar("Value")
Context = TypeVar("Context")
Writer = Callable[[Context, Node, Sequence[Value]], Value]
"""Writes a node over operands that are written already."""

FLOATS = tuple(type for type in ScalarType if type.is_float)
SINGLES = (ScalarType.FLOAT32, ScalarType.FLOAT64)
"""Floats that targets compute in. FLOAT16 is a type of elements in memory."""
SIGNED = tuple(type for type in ScalarType if type.is_signed and not type.is_four_bit)
UNSIGNED = (ScalarType.UINT8, ScalarType.UINT16, ScalarType.UINT32, ScalarType.UINT64)
INTEGERS = SIGNED + UNSIGNED
BOOLEANS = (ScalarType.BOOLEAN,)
TYPES = FLOATS + INTEGERS + BOOLEANS
"""All types of kernels, in which elements of 4 bits are bytes."""

Row = tuple[Sequence[ScalarType], Mapping[Operation, Writer[Context, Value]]]
"""Operations that are written alike for some types. That of a comparison is the type of its operands."""


class Language(Generic[Context, Value]):
    """A target's language: a writer for each operation and type that the target has.

    A later row replaces what an earlier one says of an operation and a type.
    """

    def __init__(self, name: str, rows: Iterable[Row[Context, Value]]) -> None:
        self.name = name
        self._writers = {
            (operation, type): writer
            for types, writers in rows
            for operation, writer in writers.items()
            for type in types
        }

    def write(self, context: Context, node: Node, operands: Sequence[Value]) -> Value:
        """Return a node over operands that are written already.

        Raises:
            Unsupported: the language has no such operation for the node's type.
        """
        type = node.operands[0].type if node.operation in COMPARISONS else node.type
        writer = self._writers.get((node.operation, type))
        if writer is None:
            raise Unsupported(f"{node.operation.name} of {type.name} on {self.name}")
        return writer(context, node, operands)


class Walk(ABC, Generic[Value]):
    """The walk of a printer over nodes.

    A subclass says what loads, leaves, operations and branches become.
    """

    def walk(self, nodes: Iterable[Node], needed: Container[int], values: dict[int, Value]) -> None:
        """Add to `values` those of the `nodes`, operands first, that are `needed` and no leaves."""
        for node in nodes:
            if id(node) not in needed or id(node) in values or self.is_leaf(node):
                continue
            if is_rare(node):
                values[id(node)] = self.branch(node, values)
            elif node.operation is Operation.SOURCE:
                values.update(self.load(node, values))
            else:
                values[id(node)] = self.write(node, self.operands(node, values))

    def inside_branch(self, node: Node, values: Mapping[int, Value]) -> dict[int, Value]:
        """Write what only the branch of a rare selection needs. Return all values that are known there."""
        inside = dict(values)
        for part in ordered([node.operands[1]], inside):
            if part.operation is Operation.SOURCE:
                inside.update(self.load(part, inside))
            elif not self.is_leaf(part):
                inside[id(part)] = self.write(part, self.operands(part, inside))
        return inside

    def operands(self, node: Node, values: Mapping[int, Value]) -> list[Value]:
        """Return the values of a node's operands."""
        return [self.value(operand, values) for operand in node.operands]

    def value(self, node: Node, values: Mapping[int, Value]) -> Value:
        """Return the value of a node that is written already, or a leaf."""
        return self.leaf(node) if self.is_leaf(node) else values[id(node)]

    @abstractmethod
    def is_leaf(self, node: Node) -> bool:
        """Return whether a node is written where it is used."""

    @abstractmethod
    def leaf(self, node: Node) -> Value:
        """Return a node that is written where it is used."""

    @abstractmethod
    def load(self, node: Node, values: dict[int, Value]) -> Mapping[int, Value]:
        """Return the value of a SOURCE, and of others that are loaded with it, by identity."""

    @abstractmethod
    def write(self, node: Node, operands: list[Value]) -> Value:
        """Return the value of an operation."""

    @abstractmethod
    def branch(self, node: Node, values: dict[int, Value]) -> Value:
        """Return the value of a rare selection, whose second operand is computed in a branch."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """The statements of a language that is text.

    Args:
        constant: the declaration of a `{name}` of a `{type}` with a `{value}`.
        variable: that of one that may be assigned again.
        assignment: the statement that gives a `{name}` another `{value}`.
        branch: the line that begins the statements that run where a `{condition}` holds.
        end: the line after these statements; empty if there is none.
    """

    constant: str
    variable: str
    assignment: str
    branch: str
    end: str


class TextLanguage(Language[None, str]):
    """A language whose values are texts of expressions.

    A row may have a format instead of a writer. In it, `{0}`, `{1}` and `{2}` are the operands, `{type}` the
    name of the node's type, and `{source}` that of its first operand.
    """

    def __init__(
        self,
        name: str,
        types: Mapping[ScalarType, str],
        syntax: Syntax,
        rows: Iterable[tuple[Sequence[ScalarType], Mapping[Operation, str | Writer[None, str]]]],
    ) -> None:
        self.types, self.syntax = types, syntax
        super().__init__(
            name,
            [
                (own, {key: self._formatted(each) if isinstance(each, str) else each for key, each in row})
                for own, row in ((own, writers.items()) for own, writers in rows)
            ],
        )

    def _formatted(self, text: str) -> Writer[None, str]:
        def write(_: None, node: Node, operands: Sequence[str]) -> str:
            source = self.types[node.operands[0].type] if node.operands else ""
            return text.format(*operands, type=self.types[node.type], source=source)

        return write

    def expression(self, node: Node, operands: Sequence[str]) -> str:
        """Return a node as an expression of operands that are printed already."""
        return self.write(None, node, operands)


class Statements(Walk[str]):
    """Statements that compute nodes in a language that is text: each node gets a name of its own.

    Args:
        language: the language.
        names: the names of nodes by identity.
        known: expressions of nodes that are computed elsewhere.
        load: the expression of a load of some number, given the expressions of its guard and distances.
        parameter: the expression of a PARAMETER.
    """

    def __init__(
        self,
        language: TextLanguage,
        names: Mapping[int, str],
        known: Mapping[int, str],
        load: Callable[..., str],
        parameter: Callable[[Node], str],
    ) -> None:
        self.lines: list[str] = []
        self._language, self._syntax = language, language.syntax
        self._names, self._known = names, known
        self._load, self._parameter = load, parameter

    def compute(self, roots: Iterable[Node]) -> list[str]:
        """Print what `roots` need that is not known. Return the lines."""
        roots = list(roots)
        # What only a rare branch needs is printed there, even if it is loaded.
        self.walk(ordered(roots, self._known), always_needed(roots), dict(self._known))
        return self.lines

    def name(self, node: Node) -> str:
        """Return the expression of a node that is printed or known."""
        if self.is_leaf(node):
            return self.leaf(node)
        return self._known.get(id(node), self._names[id(node)])

    def is_leaf(self, node: Node) -> bool:
        """Return whether a node is a number."""
        return node.operation in (Operation.CONSTANT, Operation.PARAMETER)

    def leaf(self, node: Node) -> str:
        """Return a CONSTANT, or the expression of a PARAMETER."""
        return (
            self._parameter(node)
            if node.operation is Operation.PARAMETER
            else self._language.expression(node, [])
        )

    def load(self, node: Node, values: dict[int, str]) -> Mapping[int, str]:
        """Declare the value of a load."""
        value = self._load(number_of(node), *self.operands(node, values))
        return {id(node): self.declared(node, value)}

    def write(self, node: Node, operands: list[str]) -> str:
        """Declare the value of an operation."""
        return self.declared(node, self._language.expression(node, operands))

    def branch(self, node: Node, values: dict[int, str]) -> str:
        """Declare the usual value of a rare selection, and assign the other one in a branch."""
        condition, wanted, usual = node.operands
        name, syntax = self._names[id(node)], self._syntax
        self._add(syntax.variable, node, value=self.value(usual, values))
        self.lines.append(syntax.branch.format(condition=self.value(condition, values)))
        first = len(self.lines)
        inside = self.inside_branch(node, values)
        self._add(syntax.assignment, node, value=self.value(wanted, inside))
        self.lines[first:] = [f"    {line}" for line in self.lines[first:]]
        self.lines += filter(None, [syntax.end])
        return name

    def declared(self, node: Node, value: str) -> str:
        """Declare a node's name, and return it."""
        self._add(self._syntax.constant, node, value)
        return self._names[id(node)]

    def _add(self, statement: str, node: Node, value: str) -> None:
        name, type = self._names[id(node)], self._language.types[node.type]
        self.lines.append(statement.format(name=name, type=type, value=value))
