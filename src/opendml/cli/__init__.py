"""The `opendml` command. What a subcommand needs is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click

_feature_level = click.option(
    "--feature-level",
    metavar="LEVEL",
    help="DirectML's feature level, such as 2_0 or DML_FEATURE_LEVEL_2_0. Default: the newest.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="opendml")
def main() -> None:
    """DirectML's operators, object model and graphs on any machine."""


@main.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--device",
    metavar="KIND",
    default="cpu",
    show_default=True,
    help="Where the operators run: cpu, cuda (an NVIDIA GPU; cuda:1 is the second), or reference (NumPy in "
    "float64).",
)
@_feature_level
@click.option("--threads", type=click.IntRange(min=1), help="CPU threads. Default: all cores.")
@click.option(
    "--output-directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where writeFile puts files with relative paths. Default: the model's folder.",
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How often each dispatch is measured, at least. Of more than one, the median is printed.",
)
@click.option(
    "--milliseconds",
    type=click.FloatRange(min=0),
    default=0,
    help="Measure each dispatch until this much time has passed.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Dispatches in each measurement, which tells their mean.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0),
    default=0,
    help="Milliseconds from the start of one measurement to the next, at least.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="First measurements that are cold and stay out of the statistics.",
)
@click.option("--timing", is_flag=True, help="Print statistics, and the time of initialization.")
@click.option("--samples", is_flag=True, help="Print every measurement.")
def run(
    model: Path,
    device: str,
    feature_level: str | None,
    threads: int | None,
    output_directory: Path | None,
    iterations: int,
    milliseconds: float,
    repeat: int,
    interval: float,
    warmup: int,
    timing: bool,
    samples: bool,
) -> None:
    """Run MODEL, a JSON model of Microsoft's DxDispatch tool.

    The whole model is read, checked and compiled before the first command runs. Resources are in host memory:
    on cuda every dispatch copies them to the device and back, which its timing contains. Exit status: 2 when
    the model is wrong (each line on standard error names the field by its JSON path), 1 when it is right but
    cannot be run here.
    """
    from opendml.cli.run_command import run_model
    from opendml.frontends.dxdispatch import Repetition
    from opendml.runtime.device import Device

    with _exit_status():
        run_model(
            model,
            Device(device, feature_level=feature_level, threads=threads),
            Repetition(iterations, repeat, milliseconds / 1e3, interval / 1e3),
            warmup=warmup,
            timing=timing,
            samples=samples,
            output_directory=output_directory,
        )


@main.command()
@click.argument("model", type=click.Path(path_type=Path))
@_feature_level
def check(model: Path, feature_level: str | None) -> None:
    """Check whether the operators of MODEL are valid at a feature level.

    If not, say which field, why, and from which level on. Exit status: 0 when all are valid, 1 when one is
    not, 2 when the model is malformed.
    """
    from opendml.cli.check_command import check_model

    with _exit_status():
        sys.exit(0 if check_model(model, feature_level) else 1)


@main.command()
@click.argument("name", required=False)
@_feature_level
def ops(name: str | None, feature_level: str | None) -> None:
    """List the operators, or describe the operator NAME: formula, fields, types and ranks per level."""
    from opendml.cli.ops_command import describe_operator, list_operators

    with _exit_status():
        if name is None:
            list_operators(feature_level)
        else:
            describe_operator(name, feature_level)


@contextmanager
def _exit_status() -> Iterator[None]:
    """Prints opendml's own errors without a traceback: status 2 for wrong input, 1 for what can't be done."""
    from opendml.errors import Error, InvalidArgument

    try:
        yield
    except InvalidArgument as error:
        _fail(error, 2)
    except Error as error:
        _fail(error, 1)


def _fail(error: Exception, status: int) -> NoReturn:
    for line in str(error).splitlines():
        click.echo(f"{click.style('Error:', fg='red', bold=True)} {line}", err=True)
    sys.exit(status)
