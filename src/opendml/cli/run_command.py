"""`opendml run`: executes a JSON model and prints what its commands did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import Dispatched, Folders, Model, Printed, Repetition, Written
from opendml.frontends.dxdispatch.timing import Statistics, cold_and_hot
from opendml.runtime.objects.device import Device


def run_model(
    path: Path,
    device: Device,
    repetition: Repetition,
    *,
    warmup: int,
    timing: bool,
    samples: bool,
    input_directory: Path | None,
    output_directory: Path | None,
) -> None:
    """Runs the model in the file `path`.

    Args:
        path: a JSON model, or a serialized graph (.bin).
        device: where it runs.
        repetition: how often each dispatch runs. What is more than one measurement is printed.
        warmup: how many measurements are cold.
        timing: print statistics, and the time of initialization.
        samples: print every measurement.
        input_directory: where source files are sought first; None for the model's folder.
        output_directory: where relative target paths start; None for the current directory.

    Raises:
        Error: before anything was printed or written, except for what only a running command can meet, such
            as a full disk.
    """
    program = dxdispatch.prepare(_loaded(path, output_directory, input_directory), device)
    if timing:
        for name, seconds in program.initialization_seconds.items():
            click.echo(f"Initialize '{name}': {_milliseconds(seconds)}")
    for event in program.run(repetition):
        match event:
            case Dispatched():
                if timing or samples or len(event.seconds) > 1:
                    click.echo("\n".join(_timings(event, warmup, timing=timing, samples=samples)))
            case Printed():
                click.echo(f"Resource '{event.resource}':{chr(10) if event.verbose else ' '}{event.text}")
            case Written():
                click.echo(f"Resource '{event.resource}' written to '{event.path}'")


def _loaded(path: Path, output_directory: Path | None, input_directory: Path | None) -> Model:
    """The model; of a serialized graph it is told which inputs no file has values for."""
    if path.suffix.lower() != ".bin":
        return dxdispatch.load(path, output_directory, input_directory)
    folders = Folders.of(path, output_directory, input_directory)
    made = dxdispatch.model_of_graph(path, folders, writes=output_directory is not None)
    for name, source in made.sources.items():
        tensor = made.tensors[name]
        values = f"from '{source}'" if source else "zeros, because there is no .npy file of that name"
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
