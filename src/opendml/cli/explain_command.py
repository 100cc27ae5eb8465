"""`opendml explain`: the kernels of a model and their times."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opendml.cli.model_kinds import Kind, kind_of
from opendml.cli.onnx_command import load_onnx, parts_of
from opendml.cli.printing import console
from opendml.errors import InvalidArgument
from opendml.folders import replacing
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch.foreign import OnnxDispatchable, SerializedDispatchable
from opendml.frontends.dxdispatch.model import NamedDispatchable
from opendml.frontends.onnx.sizes import Sizes
from opendml.frontends.serialized.graph import read_graph
from opendml.runtime.explain.explanation import ExplainedGraph
from opendml.runtime.objects.device import Device
from opendml.spec.enums import ExecutionFlags
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.wording import shown

if TYPE_CHECKING:
    from opendml.frontends.onnx.model import OnnxModel

Parts = Mapping[str, Callable[[], ExplainedGraph]]
"""Functions that explain the parts of a model, by the names of the parts."""


def explain_model(
    model: Path,
    device: str,
    *,
    feature_level: str | None,
    threads: int | None,
    dispatchable: str | None,
    html: Path | None,
    trace: Path | None,
    inputs: Sequence[str],
    sizes: Sizes,
    as_json: bool,
    allow_any_path: bool,
) -> None:
    """Compile and measure the parts of a model, and print or write the results.

    Args:
        model: the file.
        device, feature_level, threads: those of the device.
        dispatchable: the name of the only part to explain; None: all of them.
        html: the file for the page of one part.
        trace: the file for the trace of one part.
        inputs: inputs of an ONNX model as texts "NAME=FILE.npy"; others are generated.
        sizes: sizes that ONNX models leave open.
        as_json: print an object with the parts by name.
        allow_any_path: whether a JSON model may read all files.

    Raises:
        Error: the model is wrong or cannot run here, or a file is requested for several parts.
    """
    where = Device(device, feature_level=feature_level, threads=threads)
    chosen = _chosen(_parts(model, where, inputs, sizes, allow_any_path), dispatchable)
    if (html or trace) and len(chosen) != 1:
        raise InvalidArgument(
            f"{model}: {len(chosen)} dispatchables, and a page or a trace shows one; name it with "
            f"--dispatchable: {', '.join(chosen)}"
        )
    found = {name: explain() for name, explain in chosen.items()}
    for file, kind in ((html, "html"), (trace, "trace")):
        if file is not None:
            for explanation in found.values():
                with replacing(file) as writing:
                    writing.write(getattr(explanation, kind)().encode())
    if as_json:
        click.echo(json.dumps({name: each.as_dict() for name, each in found.items()}, indent=2))
        return
    for name, explanation in found.items():
        console().print(f"'{name}':")
        console().print(explanation)


def _parts(path: Path, device: Device, inputs: Sequence[str], sizes: Sizes, allow_any_path: bool) -> Parts:
    kind = kind_of(path)
    if inputs and kind is not Kind.ONNX:
        raise click.UsageError("--input is for ONNX models")
    match kind:
        case Kind.ONNX:
            return _of_onnx(path.name, load_onnx(path, device, sizes), inputs)
        case Kind.GRAPH:
            return _of_graph(path.name, SerializedDispatchable(read_graph(path)), ExecutionFlags.NONE, device)
        case Kind.JSON:
            root = dxdispatch.read(path)
            folders = dxdispatch.Folders.of(path, any_path=allow_any_path)
            dispatchables = dxdispatch.parse_operators(root, folders, sizes)
            found: dict[str, Callable[[], ExplainedGraph]] = {}
            for each in dispatchables.values():
                found |= _of_dispatchable(each, device)
            return found


def _of_dispatchable(dispatchable: NamedDispatchable, device: Device) -> Parts:
    match dispatchable.desc:
        case OnnxDispatchable() as onnx:
            return _of_onnx(dispatchable.name, onnx.model(device))
        case SerializedDispatchable() as graph:
            return _of_graph(dispatchable.name, graph, dispatchable.flags, device)
        case OperatorDesc() as desc:
            compile_operator = partial(device.compile_operator, flags=dispatchable.flags)
            return {dispatchable.name: lambda: compile_operator(device.create_operator(desc)).explain()}


def _of_graph(name: str, graph: SerializedDispatchable, flags: ExecutionFlags, device: Device) -> Parts:
    return {name: lambda: graph.compile(device, flags).explain()}


def _of_onnx(name: str, model: OnnxModel, inputs: Sequence[str] = ()) -> Parts:
    """Return the graphs of an ONNX model, and name the nodes outside of them on standard error."""
    parts = parts_of(model, inputs)
    graphs = [part for part in parts if not isinstance(part, str)]
    for part in parts:
        if isinstance(part, str):
            click.echo(f"{name}: {part} runs outside of DirectML's operators, and is not shown", err=True)
    if not graphs:
        click.echo(f"{name}: nothing of it becomes a graph of DirectML's operators", err=True)
    return {
        name if len(graphs) == 1 else f"{name}[{number}]": graph.explain
        for number, graph in enumerate(graphs)
    }


def _chosen(parts: Parts, name: str | None) -> Parts:
    if name is None:
        return parts
    if name not in parts:
        raise InvalidArgument(f"dispatchable {shown(name)}: unknown; the model has {', '.join(parts)}")
    return {name: parts[name]}
