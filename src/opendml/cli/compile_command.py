"""`opendml compile`: models with their plans, machine code and packed weights in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from opendml.cli.model_kinds import Kind, kind_of
from opendml.cli.onnx_command import require_onnx, run_inputs
from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.onnx.sizes import Sizes
from opendml.model_files import open_file
from opendml.runtime.graphs.model import Model
from opendml.runtime.loading import load
from opendml.runtime.objects.device import Device
from opendml.runtime.saved.container import MAGIC


def compile_model(
    path: Path, output: Path, device: str, threads: int | None, inputs: Sequence[str], sizes: Sizes
) -> None:
    """Write a compiled file of an ONNX model or of a saved model, and print its name.

    Args:
        path: the model.
        output: the file.
        device: the kind of device.
        threads: CPU threads.
        inputs: texts "NAME=FILE.npy" for an ONNX model; other inputs are generated.
        sizes: sizes that an ONNX model leaves open; others are 1.

    Raises:
        Error: the model is wrong, or cannot run here.
    """
    where = Device(device, threads=threads)
    if _is_saved(path):
        if inputs or sizes:
            raise click.UsageError("--input and sizes are for ONNX models")
        model = load(path, where)
        if not isinstance(model, Model):
            raise Unsupported(f"{path}: a compiled operator; a model of `Graph.compile` is needed")
        model.save(output, compiled=True)
    elif kind_of(path) is Kind.ONNX:
        if output.exists() and path.exists() and output.samefile(path):
            raise click.UsageError(f"{output} is the model, which the file would replace")
        require_onnx()
        from opendml.frontends.onnx.compiling import compile_to_file

        compile_to_file(path, output, lambda model: run_inputs(model, inputs), where, sizes)
    else:
        with open_file(path, path):
            raise InvalidArgument(f"{path}: an ONNX model (FILE.onnx) or a file of Model.save is needed")
    click.echo(str(output))


def _is_saved(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False  # What reads the model says why.
