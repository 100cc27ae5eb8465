"""Prints attention kernels whose warpgroups multiply tiles that the copy engine loads."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.compiler.kernel import number_of
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.guards import loads_of
from opendml.targets.cuda.cxx import function
from opendml.targets.cuda.expression import TYPES
from opendml.targets.cuda.pattern import CudaAccess
from opendml.targets.cuda.warpgroup_source import (
    UNIT,
    WarpgroupPrinter,
    product_of_registers,
    product_of_warpgroup,
)

_ORDERS = (Operation.LESS, Operation.LESS_EQUAL)
_NUMBERS = (Operation.CONSTANT, Operation.PARAMETER)
_POSITION = "const Parameters& p, const Offsets& at"
_MOST_TERMS = 2
"""Parts of scores that depend on keys alone, at most: each takes shared memory."""
_TERM_TYPES = frozenset(
    {
        ScalarType.BOOLEAN,
        ScalarType.UINT8,
        ScalarType.INT8,
        ScalarType.UINT16,
        ScalarType.INT16,
        ScalarType.FLOAT32,
    }
)
"""Types whose numbers are numbers of FLOAT32."""


class AttentionPrinter(WarpgroupPrinter):
    """A printer of the declarations that kernels/sm90/attention.cuh uses."""

    def text(self) -> str:
        """Return all of the generated code."""
        constants = dict(self.pattern.constants)
        products, results = (node for node in self.nodes if node.operation is Operation.CONTRACTION)
        (scores,) = (node.operands[0] for node in self.nodes if node.operation is Operation.GREATEST)
        parts = Scores.of(scores, products, bool(constants["HIDES"]))
        return "\n\n".join(
            [
                *products_of_attention(constants["KEYS"], constants["WIDTH"], bool(constants["BFLOAT16"])),
                *self.head("m", "n", "keys"),
                self.tensor("Q", constants["Q_LOAD"], 1 + constants["LOOPS_M"]),
                *(self.tensor(name, constants[f"{name}_LOAD"]) for name in "KV"),
                f"constexpr bool SCALED = {str(parts.scaled_by is not None).lower()};",
                *self._hidden(parts),
                self._scale(parts.scaled_by),
                self._scores(parts.visible, products),
                *self._terms(parts.visible, products),
                *self._mask(parts.visible, products),
                self.unit_of_results(results, UNIT),
            ]
        )

    def _hidden(self, scores: Scores) -> list[str]:
        """Print three functions: how far a key lies behind those that a query sees, whether a hidden key
        weighs nothing, and the score of a hidden key."""
        lines: list[str] = []
        distance, number = "0", "0"
        if scores.hidden is not None and scores.hides_by is not None:
            lines, name = self._compute([*scores.hidden.operands, scores.hides_by], {}, self._group_load)
            smaller, greater = map(name, scores.hidden.operands)
            equal = int(scores.hidden.operation is Operation.LESS_EQUAL)
            distance, number = f"(long long){greater} - (long long){smaller} + {equal}", name(scores.hides_by)
        given = number if scores.replaces else f"{number} + score"
        return [
            function(f"long long distance_beyond({_POSITION})", [*lines, f"return {distance};"]),
            function(
                "bool skips_hidden(const Parameters& p)", [f"return {number} == __int_as_float(0xff800000);"]
            ),
            function("float score_of_hidden(const Parameters& p, float score)", [f"return {given};"]),
        ]

    def _scale(self, scale: Node | None) -> str:
        lines, name = self._compute([] if scale is None else [scale], {}, self._group_load)
        return function(
            "float scale_of(const Parameters& p)", [*lines, f"return {name(scale) if scale else '1'};"]
        )

    def _scores(self, visible: Node, products: Node) -> str:
        """Print the function that makes scores of two sums: that of a visible key, and of the next key if
        there is one."""
        paired = dict(self.pattern.constants)["PAIRED"]

        def load(number: int, *guard: str) -> str:
            access = self.pattern.loads[number]
            type, along = TYPES[access.type], ""
            if access.rows[-1]:
                along = f" + (lane < there ? lane : 0) * (Index)p.row{number}_{self.pattern.row_loops - 1}"
            if access.counter:
                return f"({type})({self._lies_at(number)}{along})"
            if guard:
                return self._read_where(number, f"{self._address(number)}{along}", *guard)
            return (
                f"l{number}.data[lane]"
                if paired >> number & 1
                else f"*(const {type}*)({self._address(number)}{along})"
            )

        lines, name = self._compute([visible], {id(products): "sums[lane]"}, load)
        before = []
        for node in ordered([visible], {id(products)}):
            if node.operation is Operation.SOURCE and paired >> number_of(node) & 1:
                number = number_of(node)
                before.append(f"Vector<{TYPES[node.type]}, 2> l{number};")
                before.append(f"load(l{number}, {self._address(number)});")
        loop = ["#pragma unroll", "for (int lane = 0; lane < 2; lane++) {"]
        body = [*before, "const int there = 1 + is_next_there;", *loop, *(f"    {line}" for line in lines)]
        body += [f"    found[lane] = {name(visible)};", "}", "sums[0] = found[0];", "sums[1] = found[1];"]
        arguments = f"{_POSITION}, float (&sums)[2], bool is_next_there"
        return function(f"void find_scores({arguments})", ["float found[2];", *body])

    def _terms(self, visible: Node, products: Node) -> list[str]:
        """Print three functions: whether all queries of a warp have the same terms, the terms of a key, and
        the scores of two keys from their terms."""
        parts = terms_of(visible, products, self.pattern.loads)
        alike = ["bool alike = true;"]
        for number in parts.shared_loads:
            first, second = (self._inline_load(number).replace("at.a", f"at[{row}].a") for row in range(2))
            alike += [
                "{",
                f"    const long long own = {first}, other = {second};",
                "    const long long shared = __shfl_sync(~0u, own, 0);",
                "    alike = alike && own == shared && other == shared;",
                "}",
            ]
        lines, name = self._compute(parts.terms, {}, self._group_load)
        lines += [f"found[{place}] = (float){name(term)};" for place, term in enumerate(parts.terms)]
        known = {
            id(term): f"({TYPES[term.type]})terms[{place}].data[lane]"
            for place, term in enumerate(parts.terms)
        }
        arguments = f"{_POSITION}, float (&sums)[2], const Vector<float, 2> (&terms)[TERMS + 1]"
        rest, named = self._compute(
            [visible] if parts.terms else [], known | {id(products): "sums[lane]"}, self._group_load
        )
        if parts.terms:
            loop = ["#pragma unroll", "for (int lane = 0; lane < 2; lane++) {"]
            rest = [*loop, *(f"    {line}" for line in rest), f"    sums[lane] = {named(visible)};", "}"]
        return [
            function(
                "bool rows_are_alike(const Parameters& p, const Offsets (&at)[2])",
                [*alike, "return __all_sync(~0u, alike);"],
            ),
            function(f"void find_terms({_POSITION}, float (&found)[TERMS + 1])", lines),
            function(f"void finish_scores({arguments})", rest),
        ]

    def _mask(self, visible: Node, products: Node) -> list[str]:
        """Print two functions if scores have a mask: the address of a truth value, and the scores of two keys
        from theirs."""
        constants = dict(self.pattern.constants)
        mask = mask_of(visible, products, self.pattern.loads) if constants["MASKED"] else None
        bits, address, rest = {}, ["return nullptr;"], list[str]()
        if mask is not None:
            bits = {id(mask): "(bits >> lane & 1)", id(products): "sums[lane]"}
            address = [f"return {self._address(number_of(mask))};"]
            lines, name = self._compute([visible], bits, self._group_load)
            loop = ["#pragma unroll", "for (int lane = 0; lane < 2; lane++) {"]
            rest = [*loop, *(f"    {line}" for line in lines), f"    sums[lane] = {name(visible)};", "}"]
        return [
            function(f"const char* mask_at({_POSITION})", address),
            function(f"void mask_scores({_POSITION}, float (&sums)[2], unsigned bits)", rest),
        ]


@dataclass(frozen=True, slots=True)
class Scores:
    """The parts that scores are made of.

    Args:
        visible: the score of a visible key, made of the products.
        scaled_by: the number by which the products are multiplied; None if scores are more than that.
        hidden: the condition that hides a key, which depends on positions alone.
        hides_by: the number that is added to the score of a hidden key.
        replaces: whether that number replaces the score.
    """

    visible: Node
    scaled_by: Node | None
    hidden: Node | None = None
    hides_by: Node | None = None
    replaces: bool = False

    @classmethod
    def of(cls, scores: Node, products: Node, hides: bool = True) -> Scores:
        """Return the parts of scores that are made of products; without `hides` no key is hidden."""
        found = _hiding(scores) if hides else None
        if found is None:
            return cls(scores, _scale_of(scores, products))
        visible, hidden, number, replaces = found
        return cls(visible, _scale_of(visible, products), hidden, number, replaces)


@dataclass(frozen=True, slots=True)
class Terms:
    """The parts of scores that depend on keys and that all queries of a warp may share.

    Args:
        terms: the parts, each as large as possible; none if they cannot be shared.
        shared_loads: the loads in them that queries move, which are shared if they have the same values.
    """

    terms: tuple[Node, ...] = ()
    shared_loads: tuple[int, ...] = ()


def terms_of(visible: Node, products: Node, loads: Sequence[CudaAccess]) -> Terms:
    """Return the parts of the score of a visible key that its queries may share.

    The last loop of the accesses is over keys, the last but one over columns, those before over queries.
    """
    nodes = list(ordered([visible], {id(products)}))
    summed, keyed = {id(products)}, set[int]()
    for node in nodes:
        summed |= {id(node) for each in node.operands if id(each) in summed}
        if any(loads[number].rows[-1] for number in loads_of([node])):
            keyed.add(id(node))
    apart = keyed - summed
    terms = {
        id(each): each for node in nodes if id(node) in summed for each in node.operands if id(each) in apart
    }
    found = tuple(terms.values())
    shared = sorted(number for number in loads_of(found) if any(loads[number].rows[:-2]))
    for number in shared:
        access = loads[number]
        if access.rows[-1] or access.counter or access.guarded or access.type.is_float:
            return Terms()
    if len(found) > _MOST_TERMS or any(each.type not in _TERM_TYPES for each in found):
        return Terms()
    return Terms(found, tuple(shared))


def mask_of(visible: Node, products: Node, loads: Sequence[CudaAccess]) -> Node | None:
    """Return the load of truth values that scores depend on, if nothing else that they need depends on keys.

    The last loop of the accesses is over keys.
    """
    keyed = [
        node
        for node in ordered([visible], {id(products)})
        if node.operation is Operation.SOURCE and loads[number_of(node)].rows[-1]
    ]
    if len(keyed) != 1 or keyed[0].type is not ScalarType.BOOLEAN or keyed[0].operands:
        return None
    return None if loads[number_of(keyed[0])].counter else keyed[0]


def _hiding(scores: Node) -> tuple[Node, Node, Node, bool] | None:
    """Return the scores of visible keys, the condition that hides keys, the number that hidden keys have, and
    whether this number replaces their scores."""
    if scores.operation is Operation.SELECT:
        condition, number, visible = scores.operands
        if number.operation in _NUMBERS and condition.operation in _ORDERS:
            return visible, condition, number, True
    if scores.operation is Operation.ADD:
        for added, visible in (scores.operands, scores.operands[::-1]):
            found = _hiding(added)
            if found is not None and found[0].operation is Operation.CONSTANT and found[0].attribute == 0:
                return visible, *found[1:3], False
    return None


def _scale_of(visible: Node, products: Node) -> Node | None:
    """Return the number by which the products are multiplied, if scores are nothing else."""
    if visible is products:
        return Node(Operation.CONSTANT, ScalarType.FLOAT32, (), (), 1.0)
    others = [each for each in visible.operands if each is not products]
    if visible.operation is not Operation.MULTIPLY or len(others) != 1:
        return None
    return others[0] if others[0].operation in _NUMBERS else None


def products_of_attention(keys: int, width: int, is_bfloat16: bool) -> Sequence[str]:
    """Return the functions that multiply queries by `keys` keys, and weights by values of `width` elements.

    The weights are in registers.
    """
    type = "bf16" if is_bfloat16 else "f16"
    return product_of_warpgroup(keys, False, False, type), product_of_registers(
        width, f"m64n{{}}k16.f32.{type}.{type}", ", 1"
    )
