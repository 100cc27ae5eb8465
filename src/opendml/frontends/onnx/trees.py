"""Ensembles of trees, which onnx's evaluator walks from a root to a leaf."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from opendml.errors import InvalidArgument
from opendml.frontends.onnx.node import OnnxNode

Key = Hashable


def tree_steps(node: OnnxNode) -> int:
    """Return an upper bound of the nodes that one sample meets: the sum of the trees' depths.

    Raises:
        InvalidArgument: a tree has a cycle.
    """
    children = {key: tuple(after) for key, after in _children(node)}
    try:
        order = list(TopologicalSorter(children).static_order())
    except CycleError as error:
        raise InvalidArgument(f"{node}: its trees lead in a circle") from error
    depths: dict[Key, int] = {}
    for key in order:
        depths[key] = 1 + max((depths[each] for each in children.get(key, ())), default=0)
    inner = {each for after in children.values() for each in after}
    return sum(depth for key, depth in depths.items() if key not in inner)


def _children(node: OnnxNode) -> Iterator[tuple[Key, list[Key]]]:
    """Yield the nodes of all trees with their children."""
    given = node.attributes
    sides = [(given.get(f"nodes_{side}nodeids", ()), given.get(f"nodes_{side}leafs", ())) for side in _SIDES]
    if node.operator == "TreeEnsemble":
        for number in range(min(len(ids) for ids, _ in sides)):
            after = [ids[number] for ids, leafs in sides if not (number < len(leafs) and leafs[number])]
            yield number, list(after)
        return
    keys = zip(given.get("nodes_treeids", ()), given.get("nodes_nodeids", ()), strict=False)
    modes: Mapping[int, object] = dict(enumerate(given.get("nodes_modes", ())))
    for number, (tree, key) in enumerate(keys):
        is_leaf = modes.get(number) in ("LEAF", b"LEAF")
        yield (tree, key), [] if is_leaf else [(tree, ids[number]) for ids, _ in sides if number < len(ids)]


_SIDES = ("true", "false")
