"""`opendml export`: writes models as serialized graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from opendml.errors import InvalidArgument
from opendml.frontends import dxdispatch
from opendml.frontends.serialized.graph import SerializedGraph, write_graph
from opendml.runtime.graphs.wiring import wiring_of
from opendml.runtime.objects.device import as_device


def export_models(paths: Sequence[Path], folder: Path) -> None:
    """Writes a graph for each model into a folder, and prints the names of the files. All models are read and
    checked before.

    Raises:
        InvalidArgument: a model that is malformed, breaks DirectML's rules, or has the name of another.
        Unsupported: what a graph cannot say.
    """
    targets: dict[Path, SerializedGraph] = {}
    for path in paths:
        target = folder / f"{path.stem}.bin"
        if target in targets:
            raise InvalidArgument(f"{path}: another model is to be written to {target} too")
        targets[target] = _graph(path)
    for target, graph in targets.items():
        for file in write_graph(graph, target):
            click.echo(str(file))


def _graph(path: Path) -> SerializedGraph:
    """The graph of a model, which can be compiled."""
    graph = dxdispatch.graph_of(dxdispatch.load(path), str(path))
    device = as_device("reference")
    wiring_of(graph.desc(device), device)
    return graph
