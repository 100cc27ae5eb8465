"""`opendml run`: executes a JSON model and prints what its commands did."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median

import click

from opendml.errors import Unsupported
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import Dispatched, Printed, Written
from opendml.runtime.device import Device


def run_model(
    path: Path,
    device: str,
    *,
    feature_level: str | None,
    iterations: int,
    threads: int | None,
    timing: bool,
    output_directory: Path | None,
) -> None:
    """Runs the model in the file `path`. Raises opendml's errors before anything was printed or written,
    except for those that only a running command can meet, such as a full disk."""
    if path.suffix.lower() == ".onnx":
        raise Unsupported(f"{path}: ONNX models cannot be run yet")
    model = dxdispatch.load(path, output_directory)
    target = Device(device, feature_level=feature_level, threads=threads)
    program = dxdispatch.prepare(model, target)
    if timing:
        for name, seconds in program.initialization_seconds.items():
            click.echo(f"Initialize '{name}': {_milliseconds(seconds)}")
    for event in program.run(iterations):
        match event:
            case Dispatched():
                if timing or iterations > 1:
                    click.echo(_timings(event))
            case Printed():
                click.echo(f"Resource '{event.resource}':{chr(10) if event.verbose else ' '}{event.text}")
            case Written():
                click.echo(f"Resource '{event.resource}' written to '{event.path}'")


def _timings(event: Dispatched) -> str:
    """One line. The first of several iterations pays for cold caches and pages, so it stands apart."""
    first, *others = event.seconds
    line = f"Dispatch '{event.dispatchable}': {_milliseconds(first)}"
    if not others:
        return line
    statistics = (("median", median(others)), ("min", min(others)), ("mean", fmean(others)))
    shown = ", ".join(f"{_milliseconds(seconds)} {name}" for name, seconds in statistics)
    return f"{line} first, then {len(others)} iterations: {shown}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.4f} ms"
