"""Prints attention of few queries: the operands, the scores, and results."""

from __future__ import annotations

from opendml.compiler.attention import attention_of
from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda.chain_source import ChainPrinter
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES, converted

_ARGUMENTS = "const Parameters& p, const Shared& shared, const Offsets& at"


class FewRowsPrinter(ChainPrinter):
    """A printer of the declarations that kernels/few_rows.cuh uses."""

    def text(self) -> str:
        """Return all of the generated code."""
        nodes = attention_of(self.pattern.values)
        assert nodes is not None
        products, results = (node for node in self.nodes if node.operation is Operation.CONTRACTION)
        (scores,) = (node.operands[0] for node in self.nodes if node.operation is Operation.GREATEST)
        queries, keys = products.operands
        if not dict(self.pattern.constants)["QUERIES_FIRST"]:
            queries, keys = keys, queries
        weights, values = results.operands
        if products in ordered([values]):
            weights, values = values, weights
        return "\n\n".join(
            [
                *self.head("m", "n", "depth", "keys"),
                self._query(queries),
                *self._element("Key", keys),
                *self._element("Value", values),
                self._score(scores, products),
                self._blind(weights, products, nodes.blind is not None),
                self.exponential(),
                self._results(results),
            ]
        )

    def _query(self, value: Node) -> str:
        lines, name = self._compute([value], {}, self._group_load)
        signature = "float query_of(const Parameters& p, const Offsets& at)"
        return function(signature, [*lines, f"return {name(value)};"])

    def _element(self, kind: str, value: Node) -> list[str]:
        """Print the type of an operand in memory, and functions of an element: its address and its value.

        Numbers that are the same for all elements are read once, into a structure. An operand may be made of
        more loads, as where new rows replace some of a cache.
        """
        number = dict(self.pattern.constants)[f"{kind[0]}_LOAD"]
        loads = [node for node in ordered([value]) if node.operation is Operation.SOURCE]
        (element,) = (node for node in loads if node.attribute == number)
        shared = [node for node in loads if not node.operands and self._is_shared(number_of(node))]
        known = {id(node): f"shared.l{node.attribute}" for node in shared}
        lines, name = self._compute([value], known | {id(element): "element"}, self._group_load)
        members = " ".join(f"{TYPES[node.type]} l{node.attribute};" for node in shared)
        found = ", ".join(self._inline_load(number_of(node)) for node in shared)
        type, own = TYPES[element.type], kind.lower()
        return [
            f"typedef {type} {kind}Element;",
            f"struct {kind}Shared {{ {members} }};",
            function(
                f"{kind}Shared shared_of_{own}(const Parameters& p, const Offsets& at)",
                [f"return {{{found}}};"],
            ),
            function(
                f"const char* place_of_{own}(const Parameters& p, const Offsets& at)",
                [f"return {self._address(number)};"],
            ),
            function(
                f"float {own}_of({_ARGUMENTS}, {type} element)".replace("Shared", f"{kind}Shared"),
                [*lines, f"return {name(value)};"],
            ),
        ]

    def _is_shared(self, number: int) -> bool:
        """Return whether a load reads the same number for all elements of all matrices."""
        access = self.pattern.loads[number]
        return not (access.counter or any(access.groups) or any(access.rows))

    def _blind(self, weights: Node, products: Node, is_blind: bool) -> str:
        """Print the function of the weight of all keys for a query whose weights are NaN."""
        blind = None
        if is_blind:
            *_, outer = (node for node in ordered([weights], {id(products)}) if _replaces_nan(node))
            blind = outer.operands[2]
        lines, name = self._compute([] if blind is None else [blind], {}, self._group_load)
        result = "0" if blind is None else converted(name(blind), blind.type, ScalarType.FLOAT32)
        head = "float blind_weight(const Parameters& p, const Offsets& at)"
        return function(head, [*lines, f"return {result};"])


def _replaces_nan(node: Node) -> bool:
    """Return whether a node replaces numbers that are NaN."""
    if node.operation is not Operation.SELECT:
        return False
    condition, *_ = node.operands
    return condition.operation is Operation.EQUAL and condition.operands[0] is condition.operands[1]
