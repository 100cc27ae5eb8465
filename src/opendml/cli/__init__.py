"""The `opendml` command. What a subcommand needs is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opendml.cli import completion
from opendml.cli.dxdispatch_options import refused_options
from opendml.cli.limit_options import limit_options
from opendml.cli.program import Program
from opendml.cli.size_options import size_options

if TYPE_CHECKING:
    from opendml.frontends.onnx.sizes import Sizes

_DAY_IN_MILLISECONDS = 24 * 60 * 60 * 1000
_MOST_MEASUREMENTS = 10_000_000  # all are kept for the percentiles
_MOST_THREADS = 1024  # as for a Device


class _Milliseconds(click.FloatRange):
    """A time up to a day. NaN, to which no bound applies, is none."""

    def __init__(self) -> None:
        super().__init__(min=0, max=_DAY_IN_MILLISECONDS)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        number = float(super().convert(value, parameter, context))
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", parameter, context)
        return number


_feature_level = click.option(
    "--feature-level",
    metavar="LEVEL",
    shell_complete=completion.levels,
    help="DirectML's feature level, such as 2_0 or DML_FEATURE_LEVEL_2_0. Default: the newest.",
)

_device = click.option(
    "-a",
    "--device",
    "--adapter",
    metavar="KIND",
    shell_complete=completion.devices,
    default="cpu",
    show_default=True,
    help="Where the operators run: cpu, cuda (an NVIDIA GPU; cuda:1 is the second), or reference (NumPy in "
    "float64).",
)
_threads = click.option(
    "--threads",
    type=click.IntRange(1, _MOST_THREADS),
    metavar="N",
    help="CPU threads. Default: OPENDML_THREADS, or all that the process may use.",
)


_any_path = click.option(
    "--allow-any-path",
    is_flag=True,
    help="Let a JSON model read and write all files that you can, as DxDispatch does. Without it, it reads "
    "files in its own folder (--input-directory) and writes files in --output-directory alone.",
)


_inputs = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help="An input of an ONNX model from a .npy file; may be repeated. Others get random numbers, or "
    "zeros if they are no floats.",
)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="opendml")
def main() -> None:
    """DirectML's operators, object model and graphs on any machine.

    Exit status: 0 when all is well; 1 when the input is right but something cannot be done here (check: when
    an operator is not valid); 2 when the input or an option is wrong; 130 after Ctrl-C.
    """


@main.command(short_help="Run an ONNX model, a JSON model of DxDispatch, or a serialized graph.")
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option(
    "-m", "--model", "model_option", type=click.Path(path_type=Path), help="MODEL, as DxDispatch has it too."
)
@_device
@_feature_level
@_threads
@click.option(
    "--input-directory",
    "--input_path",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where files with initial values are. Default: the model's folder.",
)
@click.option(
    "--output-directory",
    "--output_path",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where writeFile puts files. Default: the current directory.",
)
@click.option(
    "-i",
    "--iterations",
    "--dispatch_iterations",
    type=click.IntRange(1, _MOST_MEASUREMENTS),
    metavar="N",
    default=1,
    show_default=True,
    help="How often each dispatch is measured, at least. Of more than one, the median is printed.",
)
@click.option(
    "-t",
    "--milliseconds",
    "--milliseconds_to_run",
    type=_Milliseconds(),
    metavar="N",
    default=0,
    help="Measure each dispatch until this much time has passed.",
)
@click.option(
    "-r",
    "--repeat",
    "--dispatch_repeat",
    type=click.IntRange(1, 2**32 - 1),
    metavar="N",
    default=1,
    show_default=True,
    help="Dispatches in each measurement, which tells their mean.",
)
@click.option(
    "-I",
    "--interval",
    "--dispatch_interval",
    type=_Milliseconds(),
    metavar="N",
    default=0,
    help="Milliseconds from the start of one measurement to the next, at least.",
)
@click.option(
    "-w",
    "--warmup",
    "--warmup_samples",
    type=click.IntRange(0, _MOST_MEASUREMENTS),
    metavar="N",
    default=1,
    show_default=True,
    help="First measurements that are cold and stay out of the statistics.",
)
@click.option("--timing", is_flag=True, help="Print statistics, and the time of initialization.")
@click.option("--samples", is_flag=True, help="Print every measurement.")
@click.option(
    "-v",
    "--timing_verbosity",
    type=click.IntRange(0, 2),
    metavar="N",
    default=0,
    help="As DxDispatch has it: 1 is --timing, 2 is --timing --samples.",
)
@click.option(
    "-d",
    "--debug",
    is_flag=True,
    expose_value=False,
    help="Changes nothing: what DxDispatch's debug layers check is always checked.",
)
@_any_path
@_inputs
@size_options
@limit_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all that was done.")
@refused_options
def run(
    model: Path | None,
    model_option: Path | None,
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
    """Run MODEL: an ONNX model (FILE.onnx), a JSON model of Microsoft's DxDispatch tool ("-" is standard
    input), or a serialized DirectML graph (.bin), whose inputs are read from NAME.npy.

    Of an ONNX model the outputs are summed up, and written as .npy files to --output-directory if that is
    given; --device, --feature-level, --threads and --iterations hold for it, too.

    Of a JSON model the whole is read, checked and compiled before the first command runs. Resources are in
    host memory: on cuda every dispatch copies them to the device and back, which its timing contains. Exit
    status: 2 when the model is wrong (each line on standard error names the field by its JSON path), 1 when
    it is right but cannot be run here. DxDispatch's names of the options work too.
    """
    from opendml.cli.model_kinds import Kind, kind_of
    from opendml.cli.onnx_command import run_onnx
    from opendml.cli.run_command import run_model
    from opendml.frontends.dxdispatch import Repetition
    from opendml.runtime.objects.device import Device

    if (model is None) == (model_option is None):
        raise click.UsageError("one MODEL is needed, as an argument or after --model")
    path = model or model_option or Path()
    where = Device(device, feature_level=feature_level, threads=threads)
    if kind_of(path) is Kind.ONNX:
        run_onnx(
            path,
            where,
            inputs=inputs,
            sizes=sizes,
            iterations=iterations,
            output_directory=output_directory,
            as_json=as_json,
        )
        return
    if inputs:
        raise click.UsageError("--input is for ONNX models")
    if sizes and kind_of(path) is Kind.GRAPH:
        raise click.UsageError("sizes are for ONNX models: a serialized graph has its own")
    run_model(
        path,
        where,
        Repetition(iterations, repeat, milliseconds / 1e3, interval / 1e3),
        warmup=warmup,
        timing=timing or timing_verbosity >= 1,
        samples=samples or timing_verbosity >= 2,
        as_json=as_json,
        sizes=sizes,
        input_directory=input_directory,
        output_directory=output_directory,
        allow_any_path=allow_any_path,
    )


@main.command(short_help="Check whether models are valid at a feature level.")
@click.argument("models", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="MODEL...")
@_feature_level
@click.option("--runs", is_flag=True, help="Say too whether the models can be run here, and if not, why.")
@_any_path
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array with an object for each model.")
@size_options
@limit_options
def check(
    models: tuple[Path, ...],
    feature_level: str | None,
    runs: bool,
    allow_any_path: bool,
    as_json: bool,
    sizes: Sizes,
) -> int:
    """Check whether the operators of each MODEL (JSON, or a serialized graph: .bin) are valid at a feature
    level; "-" is standard input.

    Of an ONNX model (FILE.onnx), which is not run: which nodes DirectML's operators cannot say, and why; exit
    status 1 if there is one that does not run on the evaluator of the onnx package either.

    If not, say which field, why, and from which level on. Files with values, which the models name, need not
    be there. Exit status: 0 when all operators are valid, 1 when one is not (with --runs: or cannot be run),
    2 when a model is malformed.
    """
    from opendml.cli.check_command import check_models

    return check_models(
        models, feature_level, runs=runs, as_json=as_json, sizes=sizes, allow_any_path=allow_any_path
    )


@main.command(short_help="Write models as serialized graphs.")
@click.argument("models", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="FOLDER",
    help="Where MODEL becomes MODEL.bin, with a file beside it for each constant.",
)
@_any_path
@size_options
@limit_options
def export(models: tuple[Path, ...], output: Path, allow_any_path: bool, sizes: Sizes) -> None:
    """Write each MODEL, a JSON model of DxDispatch or an ONNX model (FILE.onnx), as a serialized DirectML
    graph, which `opendml run` and DxDispatch run.

    Of a JSON model the dispatches become the nodes; resources that are read before they are written become
    inputs, by their names, those bound at initialization constants. An ONNX model must be one graph of
    DirectML's operators for the sizes that its inputs have; sizes that it leaves open are 1, if no option
    says them. A serialized graph (.bin) is read, checked and written again.
    """
    from opendml.cli.export_command import export_models

    export_models(models, output, sizes, allow_any_path=allow_any_path)


@main.command(short_help="Show which kernels a model becomes, and where the time goes.")
@click.argument("model", type=click.Path(path_type=Path))
@_device
@_feature_level
@_threads
@click.option(
    "--dispatchable",
    metavar="NAME",
    help="Only this one of a JSON model's dispatchables, or of an ONNX model's graphs. Default: all of them.",
)
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page to this file too."
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a trace to this file too, for Perfetto or chrome://tracing.",
)
@_any_path
@_inputs
@size_options
@limit_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with one for each dispatchable.")
def explain(
    model: Path,
    device: str,
    feature_level: str | None,
    threads: int | None,
    dispatchable: str | None,
    html: Path | None,
    trace: Path | None,
    allow_any_path: bool,
    inputs: tuple[str, ...],
    sizes: Sizes,
    as_json: bool,
) -> None:
    """Compile the operators of MODEL and measure their kernels: an ONNX model (FILE.onnx), a JSON model of
    DxDispatch ("-" is standard input), or a serialized graph (.bin).

    For each kernel: the operators that it computes, its time, and its floor, the time of a copy of as many
    bytes or of as many operations of a matrix product on this machine. Inputs are made up: floats between 0
    and 1, integers 0. Files with values, which a JSON model names, need not be there. An ONNX model is run
    once, since inputs may decide what it computes; it may become several graphs, with nodes between them that
    DirectML cannot say, which are named.
    """
    from opendml.cli.explain_command import explain_model
    from opendml.runtime.objects.device import Device

    explain_model(
        model,
        Device(device, feature_level=feature_level, threads=threads),
        dispatchable=dispatchable,
        html=html,
        trace=trace,
        inputs=inputs,
        sizes=sizes,
        as_json=as_json,
        allow_any_path=allow_any_path,
    )


@main.command(short_help="List the operators, or describe one.")
@click.argument("name", required=False, shell_complete=completion.operators)
@_feature_level
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array with an object for each operator.")
def ops(name: str | None, feature_level: str | None, as_json: bool) -> None:
    """List the operators, or describe the operator NAME: formula, fields, types and ranks per level.

    NAME may have any spelling, lack its prefix (celu), or be the name that ONNX, WebNN or PyTorch has for it
    (MatMul). Where several operators have it, they are listed.
    """
    from opendml.cli.ops_command import describe_operator, list_operators, print_json

    if as_json:
        print_json(name, feature_level)
    elif name is None:
        list_operators(feature_level)
    else:
        describe_operator(name, feature_level)
