"""Read and write serialized graphs. Names join their nodes, and files beside them hold constants."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from opendml.budget import meter
from opendml.errors import Error, InvalidArgument, Unsupported, located
from opendml.folders import Folder, within
from opendml.frontends.serialized.flatbuffers import read_flatbuffer, write_flatbuffer
from opendml.frontends.serialized.nodes import read_operator, written_operator
from opendml.late_dataclass import dataclass
from opendml.model_files import read_file
from opendml.runtime.graphs.desc import (
    ConstantNode,
    GraphDesc,
    InputEdge,
    IntermediateEdge,
    OperatorNode,
    OutputEdge,
    content_of,
)
from opendml.runtime.graphs.wiring import label_of, wiring_of
from opendml.runtime.memory.packing import to_buffer
from opendml.runtime.objects.device import Device
from opendml.runtime.program import tensors_of
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import shown

_RAW_BYTES = 8
"""Constants of fewer bytes stand in the file itself, as ONNX Runtime writes them."""
_SAFE_NAME = re.compile(r"[^\w.-]")

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class SerializedNode:
    """An operator, or a constant.

    Args:
        content: the desc of an operator, or the bytes of a constant, a multiple of 4.
        inputs: the name of each input in DirectML's order, "" for an absent one; none of a constant.
        outputs: the name of each output in DirectML's order, "" for an absent one.
        name: for messages.
    """

    content: OperatorDesc | Bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True)
class SerializedGraph:
    """A graph of DirectML in the form of files.

    An input of a node reads the graph's input, or the output of an earlier node, that has its name. An output
    of the graph is the tensor that has its name.

    Args:
        inputs: the names of the graph's inputs.
        outputs: the names of its outputs.
        nodes: each after those that it reads.
        name: of the file, for messages.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[SerializedNode, ...] = field(repr=False)
    name: str = "serialized graph"

    def operators(self) -> Iterator[tuple[str, OperatorDesc]]:
        """Yield the descs of its operators, with their names in messages."""
        for number, node in enumerate(self.nodes):
            if isinstance(node.content, OperatorDesc):
                yield label_of(number, node.name), node.content

    def tensors(self, kind: str) -> dict[str, TensorDesc]:
        """Return the tensors of the graph's "inputs" or "outputs" by name, as in the first node that has
        them.

        An input that no node reads is left out.
        """
        names, found = self.inputs if kind == "inputs" else self.outputs, dict[str, TensorDesc]()
        for node in self.nodes:
            if isinstance(node.content, OperatorDesc):
                own = node.inputs if kind == "inputs" else node.outputs
                field_kind = "INPUT_TENSOR" if kind == "inputs" else "OUTPUT_TENSOR"
                for name, tensor in zip(own, tensors_of(node.content, field_kind), strict=True):
                    if name in names and tensor is not None:
                        found.setdefault(name, tensor)
        return {name: found[name] for name in names if name in found}

    def desc(self, device: Device) -> GraphDesc:
        """Return the graph for `Device.compile_graph`.

        Raises:
            InvalidArgument: a name that joins nothing, or an operator that is not valid at the device's
                feature level.
        """
        edges, nodes = _Edges(self), list[OperatorNode | ConstantNode]()
        for number, node in enumerate(self.nodes):
            with located(f"{self.name}: {label_of(number, node.name)}"):
                edges.add(number, node)
                if isinstance(node.content, OperatorDesc):
                    nodes.append(OperatorNode(device.create_operator(node.content), node.name))
                else:
                    nodes.append(ConstantNode(node.content, node.name))
        missing = [name for name in self.outputs if name not in edges.written]
        if missing:
            raise InvalidArgument(
                f"{self.name}: output {shown(missing[0])}: no node has an output of that name"
            )
        results = [OutputEdge(*edges.written[name], index, name) for index, name in enumerate(self.outputs)]
        counts = len(self.inputs), len(self.outputs)
        return GraphDesc(*counts, nodes, edges.inputs, results, edges.between)

    @classmethod
    def of(cls, desc: GraphDesc, name: str = "serialized graph") -> SerializedGraph:
        """Return the graph of a desc. Edges from the same place get one name. Files have no OWNED_BY_DML.

        Raises:
            InvalidArgument: the desc breaks a rule for graphs.
        """
        devices = [node.operator.device for node in desc.nodes if isinstance(node, OperatorNode)]
        if not devices:
            raise InvalidArgument("SerializedGraph.of: no operators")
        wiring, names = wiring_of(desc, devices[0]), _Names(desc)
        nodes = []
        for number in wiring.order:
            node = desc.nodes[number]
            if isinstance(node, ConstantNode):
                content: OperatorDesc | Bytes = to_buffer(content_of(node))
                inputs, outputs = [], [names.port(number, 0)]
            else:
                content = node.operator.desc
                sources = [wiring.sources.get((number, index)) for index in range(len(wiring.inputs[number]))]
                inputs = [names.source(source) for source in sources]
                outputs = [
                    "" if slot.tensor is None else names.port(number, index)
                    for index, slot in enumerate(wiring.outputs[number])
                ]
            nodes.append(SerializedNode(content, tuple(inputs), tuple(outputs), node.name))
        return cls(tuple(names.inputs), tuple(names.outputs), tuple(nodes), name)


class _Edges:
    """The edges of a graph, found by names."""

    def __init__(self, graph: SerializedGraph) -> None:
        self.inputs: list[InputEdge] = []
        self.between: list[IntermediateEdge] = []
        self.written: dict[str, tuple[int, int]] = {}
        self._of_graph = {name: index for index, name in enumerate(graph.inputs)}
        for kind, names in (("input", graph.inputs), ("output", graph.outputs)):
            if len(set(names)) < len(names):
                counted = Counter(names).most_common(1)[0]
                problem = f"{kind} {shown(counted[0])}: there are {counted[1]} of that name"
                raise InvalidArgument(f"{graph.name}: {problem}")

    def add(self, number: int, node: SerializedNode) -> None:
        """Add the edges of a node after those that it reads."""
        for index, name in enumerate(node.inputs):
            if name in self._of_graph:
                self.inputs.append(InputEdge(self._of_graph[name], number, index, name))
            elif name in self.written:
                self.between.append(IntermediateEdge(*self.written[name], number, index, name))
            elif name:
                what = "neither an input of the graph nor an output of an earlier node"
                raise InvalidArgument(f"input {shown(name)}: {what}")
        for index, name in enumerate(node.outputs):
            if name in self.written or name in self._of_graph:
                raise InvalidArgument(f"output {shown(name)}: there is one of that name already")
            if name:
                self.written[name] = number, index


class _Names:
    """Names for the edges of a desc."""

    def __init__(self, desc: GraphDesc) -> None:
        self._ports: dict[tuple[int, int], str] = {}
        self._taken: set[str] = set()
        inputs = {edge.graph_input_index: edge.name for edge in reversed(desc.input_edges) if edge.name}
        self.inputs = [self._free(inputs.get(n, f"input{n}")) for n in range(desc.input_count)]
        results = {edge.graph_output_index: edge for edge in desc.output_edges}
        self.outputs: list[str] = []
        for number in range(desc.output_count):
            edge = results[number]
            port = edge.from_node_index, edge.from_node_output_index
            if port in self._ports:
                problem = f"comes from the same place as output {self._ports[port]!r}, which files cannot say"
                raise Unsupported(
                    f"serialized graph: outputs[{number}] {problem}; compute it by ELEMENT_WISE_IDENTITY"
                )
            self._ports[port] = self._free(edge.name or f"output{number}")
            self.outputs.append(self._ports[port])
        for between in desc.intermediate_edges:
            port = between.from_node_index, between.from_node_output_index
            if between.name and port not in self._ports:
                self._ports[port] = self._free(between.name)

    def port(self, node: int, output: int) -> str:
        """Return the name of an output of a node."""
        if (node, output) not in self._ports:
            self._ports[node, output] = self._free(f"node{node}_{output}")
        return self._ports[node, output]

    def source(self, source: int | tuple[int, int] | None) -> str:
        """Return the name of what an input of a node reads."""
        if source is None:
            return ""
        return self.port(*source) if isinstance(source, tuple) else self.inputs[source]

    def _free(self, name: str) -> str:
        """Return the name, with a number behind it if it is taken."""
        wanted, number = name, 1
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(name)
        return name


def read_graph(path: str | PathLike[str], folder: Path | None = None) -> SerializedGraph:
    """Read the graph in a file. Its constants that are files are read from the same folder.

    Args:
        path: the file.
        folder: the folder that all files must lie in; None: the graph may lie anywhere.

    Raises:
        InvalidArgument: no such file, no serialized graph, or a constant that is no file in that folder.
    """
    path = _as_path(path)
    root = read_flatbuffer(read_file(path, path, folder), str(path))
    nodes = []
    meter().require("graph_parts", len(root["nodes"] or []), path)
    for number, each in enumerate(root["nodes"] or []):
        name = each["name"] or ""
        where = f"{path}: {label_of(number, name)}"
        inputs, outputs = tuple(each["inputNames"] or ()), tuple(each["outputNames"] or ())
        if each["desc"] is None:
            raise InvalidArgument(f"{where}: neither an operator nor a constant")
        kind, content = each["desc"]
        if kind == "OperatorNodeDesc":
            desc = read_operator(content, inputs, outputs, where)
            nodes.append(SerializedNode(desc, inputs, outputs, name))
            continue
        if inputs or len(outputs) != 1 or not outputs[0]:
            raise InvalidArgument(f"{where}: a constant has no inputs and one output with a name")
        constant = _constant(content["data"], path.parent, folder or path.parent, where)
        nodes.append(SerializedNode(constant, inputs, outputs, name))
    names = tuple(root["graphInputNames"] or ()), tuple(root["graphOutputNames"] or ())
    return SerializedGraph(*names, tuple(nodes), str(path))


def _as_path(path: Any) -> Path:
    try:
        return Path(path)
    except TypeError as error:
        raise InvalidArgument(f"{shown(path)}: {error}") from error


def _constant(data: tuple[str, Mapping[str, Any]] | None, beside: Path, folder: Path, where: str) -> Bytes:
    """Return the bytes of a constant, from the graph or from a file beside it, which must lie in a folder."""
    if data is None:
        raise InvalidArgument(f"{where}: a constant without content")
    kind, value = data
    if kind == "ConstantRawData":
        content = value["data"]
    else:
        name = value["name"] or ""
        if not name or name in (".", "..") or re.search(r"[/\\:\0]", name):
            raise InvalidArgument(
                f"{where}: constant {shown(name)}; the name of a file beside the graph is needed"
            )
        file = beside / f"{name}.bin"
        if within(beside, file.name) is None:
            raise InvalidArgument(f"{where}: constant {shown(name)}: {file} leads out of its folder")
        found = read_file(file, f"{where}: constant {shown(name)}: {file}", folder)
        content = np.frombuffer(found, np.uint8)
    if content is None or not len(content):
        raise InvalidArgument(f"{where}: a constant of 0 bytes")
    return to_buffer(content)


def write_graph(graph: SerializedGraph, path: str | PathLike[str]) -> list[Path]:
    """Write a graph, and beside it a file for each constant of 8 bytes or more: all of them, or none.

    A link that has the name of a file is replaced.

    Returns:
        The files that were written, the graph's own first.

    Raises:
        Error: they cannot be written.
    """
    path = _as_path(path)
    files: dict[str, Bytes] = {}
    nodes = []
    for number, node in enumerate(graph.nodes):
        if isinstance(node.content, OperatorDesc):
            desc: tuple[str, Any] = ("OperatorNodeDesc", written_operator(node.content))
        elif node.content.size < _RAW_BYTES:
            desc = ("ConstantNodeDesc", {"data": ("ConstantRawData", {"data": node.content})})
        else:
            name = f"{path.stem}.{number}.{_SAFE_NAME.sub('_', node.name)[:64]}".rstrip(".")
            files[name] = node.content
            desc = ("ConstantNodeDesc", {"data": ("ConstantName", {"name": name})})
        nodes.append(
            {"desc": desc, "name": node.name, "inputNames": node.inputs, "outputNames": node.outputs}
        )
    root = {"nodes": nodes, "graphInputNames": graph.inputs, "graphOutputNames": graph.outputs}
    contents = {path.name: write_flatbuffer(root)}
    contents |= {f"{name}.bin": content.tobytes() for name, content in files.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = Folder(os.path.realpath(path.parent))
        # The files get their names when all are written, the graph last.
        with ExitStack() as writing:
            for name, content in contents.items():
                file = writing.enter_context(folder.replacing(name))
                file.write(content)
                file.close()
    except OSError as error:
        raise Error(f"cannot write {error.filename or path}: {error.strerror or error}") from error
    return [path.parent / name for name in contents]
