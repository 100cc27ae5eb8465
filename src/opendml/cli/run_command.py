"""`opendml run`: runs a model and prints the results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path

import click

from opendml.cli.adapters import adapters, name_of
from opendml.cli.model_kinds import Kind, kind_of
from opendml.cli.onnx_command import run_onnx
from opendml.cli.progress import Progress, progress
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import (
    Dispatched,
    DispatchModel,
    Folders,
    PreparedModel,
    Printed,
    Repetition,
    Written,
)
from opendml.frontends.dxdispatch.timing import Statistics, cold_and_hot
from opendml.frontends.onnx.sizes import Sizes
from opendml.runtime.objects.device import Device
from opendml.spec.enums import FeatureLevel

Event = Dispatched | Printed | Written


def run_model(
    model: Path,
    *,
    device: str,
    feature_level: str | None,
    threads: int | None,
    input_directory: Path | None,
    output_directory: Path | None,
    iterations: int,
    milliseconds: float,
    repeat: int,
    interval: float,
    warmup: int,
    timing: bool,
    samples: bool,
    timing_verbosity: int,
    allow_any_path: bool,
    inputs: tuple[str, ...],
    sizes: Sizes,
    as_json: bool,
) -> None:
    """Run a model, and print the results. The arguments are the options of the command.

    Raises:
        Error: the model is wrong or cannot run. Nothing is printed or written before, except when a running
            command fails, as with a full disk.
    """
    kind, where = kind_of(model), Device(device, feature_level=feature_level, threads=threads)
    if kind is Kind.ONNX:
        run_onnx(model, where, inputs, sizes, iterations, output_directory, as_json)
        return
    if inputs:
        raise click.UsageError("--input is for ONNX models")
    if sizes and kind is Kind.GRAPH:
        raise click.UsageError("sizes are for ONNX models: a serialized graph has its own")
    folders = Folders.of(model, output_directory, input_directory, any_path=allow_any_path)
    repetition = Repetition(iterations, repeat, milliseconds / 1e3, interval / 1e3)
    with progress() as shown:
        shown.begin(f"reading {model}")
        level = where.feature_level
        loaded = _loaded(model, folders, sizes, level, writes=output_directory is not None, quiet=as_json)
        shown.begin("checking", 1 + len(loaded.dispatchables) + len(loaded.commands))
        program = dxdispatch.prepare(loaded, where, lambda name: shown.begin(f"compiling '{name}'"))
        if as_json:
            events = [_as_json(event, warmup) for event in _events(program, repetition, shown)]
            found = {"file": str(model), "device": where.kind, "events": events}
            seconds = {"initialization_seconds": program.initialization_seconds}
            shown.hide()
            click.echo(json.dumps(found | seconds, indent=2, allow_nan=False))
            return
        shown.hide()
        click.echo(f"Running on '{name_of(device)}'")
        timing, samples = timing or timing_verbosity >= 1, samples or timing_verbosity >= 2
        if timing:
            for name, spent in program.initialization_seconds.items():
                click.echo(f"Initialize '{name}': {_milliseconds(spent)}")
        for event in _events(program, repetition, shown):
            shown.hide()
            for line in _lines(event, warmup, timing=timing, samples=samples):
                click.echo(line)


def _events(program: PreparedModel, repetition: Repetition, shown: Progress) -> Iterator[Event]:
    """Run the commands, and yield the result of each."""
    events = program.run(repetition)
    for command in program.model.commands:
        shown.begin(f"running {command.path}")
        yield next(events)


def _lines(event: Event, warmup: int, *, timing: bool, samples: bool) -> Iterator[str]:
    match event:
        case Dispatched():
            yield from _timings(event, warmup, timing=timing, samples=samples)
        case Printed():
            yield f"Resource '{event.resource}':{chr(10) if event.verbose else ' '}{event.text}"
        case Written():
            yield f"Resource '{event.resource}' written to '{event.path}'"


def _as_json(event: Event, warmup: int) -> dict[str, object]:
    """Return an event for JSON, with times in seconds and texts for NaN and infinities."""
    match event:
        case Dispatched():
            cold, hot = cold_and_hot(event.seconds, warmup)
            return {
                "type": "dispatch",
                "dispatchable": event.dispatchable,
                "seconds": event.seconds,
                "cold": asdict(Statistics.of(cold)) if cold else None,
                "hot": asdict(Statistics.of(hot)),
            }
        case Printed():
            values = [
                str(each) if isinstance(each, float) and not isfinite(each) else each
                for each in event.elements.tolist()
            ]
            return {"type": "print", "resource": event.resource, "values": values}
        case Written():
            return {"type": "writeFile", "resource": event.resource, "path": str(event.path)}


def _loaded(
    path: Path, folders: Folders, sizes: Sizes, level: FeatureLevel, *, writes: bool, quiet: bool
) -> DispatchModel:
    """Load a model; for a serialized graph, print the sources of its inputs."""
    if kind_of(path) is Kind.JSON:
        return dxdispatch.parse_model(dxdispatch.read(path), folders, sizes, level)
    made = dxdispatch.model_of_graph(path, folders, writes=writes)
    for name, source in () if quiet else made.sources.items():
        tensor = made.tensors[name]
        none = f"zeros, because there is no .npy file of that name in {folders.inputs} (--input-directory)"
        values = f"from '{source}'" if source else none
        click.echo(f"Input '{name}' ({tensor.data_type.name} {list(tensor.sizes)}): {values}")
    return made.model


def _timings(event: Dispatched, warmup: int, *, timing: bool, samples: bool) -> Iterator[str]:
    """Yield the lines of DxDispatch on a dispatch: the median of the hot measurements, or all statistics, and
    the measurements if requested."""
    cold, hot = cold_and_hot(event.seconds, warmup)
    head = f"Dispatch '{event.dispatchable}': {len(event.seconds)} iterations"
    if timing:
        yield head
        if cold:
            yield f"CPU Timings (Cold) : {_statistics(cold)}"
        yield f"CPU Timings (Hot)  : {_statistics(hot)}"
    else:
        yield f"{head}, {_milliseconds(Statistics.of(hot).median)} median (CPU)"
    if samples:
        yield "The timings of each iteration: "
        for index, seconds in enumerate(event.seconds):
            yield f"iteration {index}: {_milliseconds(seconds)} (CPU)"


def _statistics(seconds: Sequence[float]) -> str:
    found = Statistics.of(seconds)
    named = (
        ("average", found.mean),
        ("min", found.minimum),
        ("median", found.median),
        ("max", found.maximum),
    )
    values = ", ".join(f"{_milliseconds(value)} {name}" for name, value in named)
    return f"{found.count} samples, {values}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.4f} ms"


def show_adapters() -> None:
    """Print the devices of this machine, with the kinds by which options name them."""
    for kind, name in adapters():
        click.echo(f"{name}\n-Device: {kind}\n")
