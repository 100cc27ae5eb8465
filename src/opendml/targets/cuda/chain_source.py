"""Prints a softmax between products: the operands, the scores, and what is made of the sums."""

from __future__ import annotations

from opendml.program import vector_math
from opendml.program.node import Node, Operation, apply, ordered, source
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda.contraction_source import TilePrinter
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.reduction_source import assigned

_EXPONENTIAL = vector_math.expand(apply(Operation.EXPONENTIAL, source(0, ScalarType.FLOAT32)))


class ChainPrinter(TilePrinter):
    """Prints what kernels/chain.cuh is written in."""

    def text(self) -> str:
        """Return all of the generated code."""
        products, results = (node for node in self.nodes if node.operation is Operation.CONTRACTION)
        (scores,) = (node.operands[0] for node in self.nodes if node.operation is Operation.GREATEST)
        queries, keys = products.operands
        weights, values = results.operands
        if not dict(self.pattern.constants)["QUERIES_FIRST"]:
            queries, keys = keys, queries
        if products in ordered([values]):
            values = weights
        return "\n\n".join(
            [
                *self.head("m", "n", "depth", "keys"),
                self.operand("Q", queries, ("m", "ROWS"), ("depth", "DEPTH")),
                self.operand("K", keys, ("keys", "KEYS"), ("depth", "DEPTH")),
                self.operand("V", values, ("n", "WIDTH"), ("keys", "KEYS")),
                self._score(scores, products),
                self.exponential(),
                self._results(results),
            ]
        )

    def exponential(self) -> str:
        """Print the exponential with all digits of FLOAT32."""
        return function(
            "float exact_exponential(float x)",
            ["float result;", *assigned(["result"], [_EXPONENTIAL], ["x"], "e"), "return result;"],
        )

    def _results(self, total: Node) -> str:
        """Print the results that are made of one sum."""
        roots = [root for _, _, root in self.stores]
        lines, name = self._compute(roots, {id(total): "sum"}, self._group_load)
        lines += [f"store({self._address(number)}, {name(root)});" for number, _, root in self.stores]
        head = "void store_results(const Parameters& p, const Offsets& at, float sum)"
        return function(head, lines)

    def _score(self, scores: Node, products: Node) -> str:
        lines, name = self._compute([scores], {id(products): "sum"}, self._group_load)
        head = "float score(const Parameters& p, const Offsets& at, float sum)"
        return function(head, [*lines, f"return {name(scores)};"])
