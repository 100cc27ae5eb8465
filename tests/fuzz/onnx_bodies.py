"""Random nodes that have graphs."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from tests.fuzz.onnx_draft import FLOATS, Draft, Made


def branch(draft: Draft) -> Made:
    """One of two graphs, which read what is outside."""
    x = draft.pick()
    y = draft.pick((x.type,))
    condition = draft.given(np.asarray(bool(draft.choices.below(2))))
    suffix = draft.name()

    def graph(operator: str, name: str) -> onnx.GraphProto:
        node = helper.make_node(operator, [name], [f"{operator}{suffix}"])
        return helper.make_graph([node], operator, [], [onnx.ValueInfoProto(name=f"{operator}{suffix}")])

    then, other = draft.choices.of((("Tanh", "Neg"), ("Abs", "Sigmoid"), ("Identity", "Abs")))
    return Made(
        "If", [condition.name], {"then_branch": graph(then, x.name), "else_branch": graph(other, y.name)}
    )


def loop(draft: Draft) -> Made:
    """A graph that runs again and again."""
    x, suffix = draft.pick(FLOATS, 1), draft.name()
    operator = draft.choices.of(("Add", "Mul", "Max"))
    y = draft.new(x.sizes[draft.choices.below(len(x.sizes) + 1) :], x.type)
    names = [f"{each}{suffix}" for each in ("i", "c", "s", "c2", "s2", "o")]
    i, c, s, c2, s2, o = names
    kind = helper.np_dtype_to_tensor_dtype(x.type)
    nodes = [
        helper.make_node("Identity", [c], [c2]),
        helper.make_node(operator, [s, y.name], [s2]),
        helper.make_node("Neg", [s], [o]),
    ]
    trips = draft.choices.of((2, 0, 1, 4))
    inputs = [
        helper.make_tensor_value_info(i, 7, []),
        helper.make_tensor_value_info(c, 9, []),
        helper.make_tensor_value_info(s, kind, x.sizes),
    ]
    outputs = [
        helper.make_tensor_value_info(c2, 9, []),
        helper.make_tensor_value_info(s2, kind, x.sizes),
        helper.make_tensor_value_info(o, kind, x.sizes),
    ]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    condition = draft.given(np.asarray(True)).name if draft.choices.below(2) else ""
    return Made("Loop", [draft.stored_list(trips), condition, x.name], {"body": body}, False, 2)


def scan(draft: Draft) -> Made:
    """A graph that runs for each part of a tensor."""
    x, suffix = draft.pick(FLOATS, 1, 4), draft.name()
    axis = draft.axis(len(x.sizes))
    sizes = list(x.sizes)
    del sizes[axis]
    start = draft.new(sizes, x.type)
    kind = helper.np_dtype_to_tensor_dtype(x.type)
    s, e, s2, o = (f"{each}{suffix}" for each in ("s", "e", "s2", "o"))
    nodes = [helper.make_node("Add", [s, e], [s2]), helper.make_node("Mul", [s, s2], [o])]
    info = [helper.make_tensor_value_info(name, kind, None) for name in (s, e, s2, o)]
    body = helper.make_graph(nodes, "body", info[:2], info[2:])
    attributes = {
        "body": body,
        "num_scan_inputs": 1,
        "scan_input_axes": [axis],
        "scan_input_directions": [draft.choices.below(2)],
    }
    if draft.choices.below(2):
        attributes |= {
            "scan_output_axes": [draft.axis(len(x.sizes))],
            "scan_output_directions": [draft.choices.below(2)],
        }
    return Made("Scan", [start.name, x.name], attributes, False, 2)
