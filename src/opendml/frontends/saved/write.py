"""Models and compiled operators as the bytes of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.errors import InvalidArgument, Unsupported
from opendml.folders import replacing
from opendml.frontends.saved.container import Arrays, packed_file
from opendml.frontends.saved.values import to_json
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.desc import ConstantNode, GraphDesc
from opendml.runtime.graphs.steps import (
    ConstantStep,
    InputStep,
    OperatorStep,
    Recipe,
    Reference,
    Reinterpretation,
    Slicing,
    Step,
)
from opendml.runtime.memory.host_array import data_type_of
from opendml.spec.feature_level import short_name
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


def write_file(path: Any, data: bytes) -> None:
    """Write a file, whole or not at all.

    Raises:
        InvalidArgument: it cannot be written there.
    """
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror or error}") from error
    except (TypeError, ValueError) as error:  # no path, or one with a zero byte
        raise InvalidArgument(f"{path!r}: {error}") from error


def saved_model(recipe: Recipe | None, device: Device) -> bytes:
    """A model that a graph was compiled to.

    Raises:
        Unsupported: it was not.
    """
    if recipe is None:
        raise Unsupported("this model was not made by Graph.compile, and cannot be saved")
    arrays = Arrays()
    program = {
        "kind": "graph",
        "device": _device(device),
        "feature_level": short_name(recipe.feature_level),
        "steps": [_step(step, arrays) for step in recipe.steps],
        "outputs": recipe.outputs,
    }
    return packed_file(program, arrays)


def saved_operator(source: OperatorDesc | GraphDesc, flags: int, device: Device) -> bytes:
    """A compiled operator, or a graph in DirectML's form as one."""
    arrays = Arrays()
    head = {"device": _device(device), "flags": int(flags)}
    if isinstance(source, OperatorDesc):
        return packed_file({"kind": "operator", **head, "desc": to_json(source)}, arrays)
    program = {
        "kind": "graph_desc",
        **head,
        "input_count": source.input_count,
        "output_count": source.output_count,
        "nodes": [_node(node, arrays) for node in source.nodes],
        "input_edges": [
            [edge.graph_input_index, edge.to_node_index, edge.to_node_input_index, edge.name]
            for edge in source.input_edges
        ],
        "output_edges": [
            [edge.from_node_index, edge.from_node_output_index, edge.graph_output_index, edge.name]
            for edge in source.output_edges
        ],
        "intermediate_edges": [
            [
                edge.from_node_index,
                edge.from_node_output_index,
                edge.to_node_index,
                edge.to_node_input_index,
                edge.name,
            ]
            for edge in source.intermediate_edges
        ],
    }
    return packed_file(program, arrays)


def _device(device: Device) -> dict[str, object]:
    level = short_name(device.feature_level)
    return {"kind": device.kind, "feature_level": level, "threads": device.threads}


def _step(step: Step, arrays: Arrays) -> dict[str, object]:
    match step:
        case InputStep():
            type, sizes, strides = step.data_type.name, step.sizes, step.strides
            return {"input": step.name, "data_type": type, "sizes": sizes, "strides": strides}
        case ConstantStep():
            type_of = ScalarType.of(data_type_of(step.aligned, "constant"))
            return {"constant": arrays.add(step.aligned, type_of)}
        case Reinterpretation():
            return {"reinterpret": step.of, "sizes": step.sizes, "strides": step.strides}
        case Slicing():
            window = step.window
            return {"slice": step.of, "first": window.first, "sizes": window.sizes, "strides": window.strides}
        case OperatorStep():
            optional = [output for output in operator(step.name).outputs if output.optional]
            return {
                "call": step.name,
                "tensors": _tensors(step.tensors),
                "attributes": to_json(step.attributes),
                "output_type": to_json(step.output_type),
                "sizes": to_json(step.sizes),
                "wanted": [output.python_name in step.wanted for output in optional],
            }


def _tensors(given: Sequence[Any]) -> list[object]:
    return [
        _tensors(each)
        if isinstance(each, tuple)
        else {"tensor": each.number}
        if isinstance(each, Reference)
        else to_json(each)
        for each in given
    ]


def _node(node: Any, arrays: Arrays) -> dict[str, object]:
    if isinstance(node, ConstantNode):
        content = np.frombuffer(node.data, np.uint8)
        return {"constant": arrays.add(content, ScalarType.UINT8), "name": node.name}
    return {"desc": to_json(node.operator.desc), "name": node.name}
