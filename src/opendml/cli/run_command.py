"""`opendml run`: executes a JSON model and prints what its commands did."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path

import click

from opendml.cli.model_kinds import Kind, kind_of
from opendml.cli.progress import Progress, progress
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import Dispatched, Folders, Model, Printed, Program, Repetition, Written
from opendml.frontends.dxdispatch.timing import Statistics, cold_and_hot
from opendml.frontends.onnx.sizes import Sizes
from opendml.runtime.objects.device import Device

Event = Dispatched | Printed | Written


def run_model(
    path: Path,
    device: Device,
    repetition: Repetition,
    *,
    warmup: int,
    timing: bool,
    samples: bool,
    as_json: bool,
    sizes: Sizes,
    input_directory: Path | None,
    output_directory: Path | None,
    allow_any_path: bool,
) -> None:
    """Runs the model in the file `path`.

    Args:
        path: a JSON model, or a serialized graph (.bin).
        device: where it runs.
        repetition: how often each dispatch runs. What is more than one measurement is printed.
        warmup: how many measurements are cold.
        timing: print statistics, and the time of initialization.
        samples: print every measurement.
        as_json: print one JSON object with all measurements instead.
        sizes: those that ONNX models leave open.
        input_directory: where source files are; None for the model's folder.
        output_directory: where files are written; None for the current directory.
        allow_any_path: let the model read and write all other files too.

    Raises:
        Error: before anything was printed or written, except for what only a running command can meet, such
            as a full disk.
    """
    with progress() as shown:
        shown.begin(f"reading {path}")
        folders = Folders.of(path, output_directory, input_directory, any_path=allow_any_path)
        model = _loaded(path, folders, sizes, writes=output_directory is not None, quiet=as_json)
        shown.begin("checking", 1 + len(model.dispatchables) + len(model.commands))
        program = dxdispatch.prepare(model, device, lambda name: shown.begin(f"compiling '{name}'"))
        if as_json:
            events = []
            for event in _each(program, repetition, shown):
                events.append(_as_json(event, warmup))
            found = {"file": str(path), "device": device.kind, "events": events}
            seconds = {"initialization_seconds": program.initialization_seconds}
            shown.hide()
            click.echo(json.dumps(found | seconds, indent=2, allow_nan=False))
            return
        shown.hide()
        if timing:
            for name, spent in program.initialization_seconds.items():
                click.echo(f"Initialize '{name}': {_milliseconds(spent)}")
        for event in _each(program, repetition, shown):
            shown.hide()
            for line in _lines(event, warmup, timing=timing, samples=samples):
                click.echo(line)


def _each(program: Program, repetition: Repetition, shown: Progress) -> Iterator[Event]:
    """What the commands did, one after the other."""
    events = program.run(repetition)
    for command in program.model.commands:
        shown.begin(f"running {command.path}")
        yield next(events)


def _lines(event: Event, warmup: int, *, timing: bool, samples: bool) -> Iterator[str]:
    match event:
        case Dispatched():
            if timing or samples or len(event.seconds) > 1:
                yield from _timings(event, warmup, timing=timing, samples=samples)
        case Printed():
            yield f"Resource '{event.resource}':{chr(10) if event.verbose else ' '}{event.text}"
        case Written():
            yield f"Resource '{event.resource}' written to '{event.path}'"


def _as_json(event: Event, warmup: int) -> dict[str, object]:
    """An event for programs: times in seconds; numbers that JSON lacks are "nan", "inf" and "-inf"."""
    match event:
        case Dispatched():
            cold, hot = cold_and_hot(event.seconds, warmup)
            statistics = {
                "cold": asdict(Statistics.of(cold)) if cold else None,
                "hot": asdict(Statistics.of(hot)),
            }
            return {
                "type": "dispatch",
                "dispatchable": event.dispatchable,
                "seconds": event.seconds,
                **statistics,
            }
        case Printed():
            values = [
                str(each) if isinstance(each, float) and not isfinite(each) else each
                for each in event.elements.tolist()
            ]
            return {"type": "print", "resource": event.resource, "values": values}
        case Written():
            return {"type": "writeFile", "resource": event.resource, "path": str(event.path)}


def _loaded(path: Path, folders: Folders, sizes: Sizes, *, writes: bool, quiet: bool) -> Model:
    """The model; of a serialized graph it is told which inputs no file has values for."""
    if kind_of(path) is Kind.JSON:
        return dxdispatch.parse_model(dxdispatch.read(path), folders, sizes)
    made = dxdispatch.model_of_graph(path, folders, writes=writes)
    for name, source in () if quiet else made.sources.items():
        tensor = made.tensors[name]
        none = f"zeros, because there is no .npy file of that name in {folders.inputs} (--input-directory)"
        values = f"from '{source}'" if source else none
        click.echo(f"Input '{name}' ({tensor.data_type.name} {list(tensor.sizes)}): {values}")
    return made.model


def _timings(event: Dispatched, warmup: int, *, timing: bool, samples: bool) -> Iterator[str]:
    """The median of the hot measurements; with `timing` all statistics, with `samples` each measurement."""
    cold, hot = cold_and_hot(event.seconds, warmup)
    count = f"{len(event.seconds)} iteration{'s' if len(event.seconds) > 1 else ''}"
    yield f"Dispatch '{event.dispatchable}': {count}, {_milliseconds(Statistics.of(hot).median)} median"
    if timing:
        if cold:
            yield _statistics("cold", cold)
        yield _statistics("hot", hot)
    if samples:
        for index, seconds in enumerate(event.seconds):
            yield f"  iteration {index}: {_milliseconds(seconds)}"


def _statistics(temperature: str, seconds: Sequence[float]) -> str:
    found = Statistics.of(seconds)
    named = (
        ("mean", found.mean),
        ("min", found.minimum),
        ("median", found.median),
        ("90 %", found.percentile_90),
        ("99 %", found.percentile_99),
        ("max", found.maximum),
    )
    values = ", ".join(f"{name} {_milliseconds(value)}" for name, value in named)
    return f"  {temperature} ({found.count}): {values}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.4f} ms"
