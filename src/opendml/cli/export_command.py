"""`opendml export`: serialized graphs of models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from opendml.cli.model_kinds import Kind, kind_of
from opendml.cli.onnx_command import load_onnx, parts_of
from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends import dxdispatch
from opendml.frontends.onnx.sizes import Sizes
from opendml.frontends.serialized.calls import graph_of_model
from opendml.frontends.serialized.graph import SerializedGraph, read_graph, write_graph
from opendml.runtime.graphs.wiring import wiring_of
from opendml.runtime.objects.device import as_device


def export_models(paths: Sequence[Path], folder: Path, sizes: Sizes, *, allow_any_path: bool) -> None:
    """Write a graph for each model after reading and checking all of them, and print the names of the files.

    Args:
        paths: the models.
        folder: the folder for the graphs.
        sizes: sizes that ONNX models leave open.
        allow_any_path: whether JSON models may read all files.

    Raises:
        InvalidArgument: a model is malformed, breaks DirectML's rules, or has the same name as another.
        Unsupported: a graph cannot express a model.
    """
    targets: dict[Path, SerializedGraph] = {}
    for path in paths:
        target = folder / f"{path.stem}.bin"
        if target in targets:
            raise InvalidArgument(f"{path}: another model is to be written to {target} too")
        targets[target] = _graph(path, sizes, allow_any_path)
    for target, graph in targets.items():
        for file in write_graph(graph, target):
            click.echo(str(file))


def _graph(path: Path, sizes: Sizes, allow_any_path: bool) -> SerializedGraph:
    """Return the graph of a model after checking that it compiles."""
    match kind_of(path):
        case Kind.ONNX:
            graph = _of_onnx(path, sizes)
        case Kind.GRAPH:
            graph = read_graph(path)
        case Kind.JSON:
            model = dxdispatch.load(path, allow_any_path=allow_any_path)
            graph = dxdispatch.graph_of(model, str(path))
    device = as_device("reference")
    wiring_of(graph.desc(device), device)
    return graph


def _of_onnx(path: Path, sizes: Sizes) -> SerializedGraph:
    """Return the graph of an ONNX model.

    Raises:
        Unsupported: the model is not exactly one graph.
    """
    model = load_onnx(path, as_device("cpu"), sizes)
    parts = parts_of(model)
    if decisive := model._tracer.decisive:
        raise Unsupported(f"{path}: numbers of input {decisive[0]!r} decide what the graph is")
    outside = [part for part in parts if isinstance(part, str)]
    graphs = [part for part in parts if not isinstance(part, str)]
    if outside:
        raise Unsupported(f"{path}: a graph of DirectML has no {outside[0]}, which runs outside of one")
    if len(graphs) > 1:
        raise Unsupported(f"{path}: {len(graphs)} graphs: what follows the first depends on what it computes")
    missing = [name for name in model.output_names if not graphs or name not in graphs[0].output_names]
    if missing:
        raise Unsupported(
            f"{path}: output {missing[0]!r} is an input or always the same: no operator makes it"
        )
    return graph_of_model(graphs[0], str(path))
