"""The `opendml` command. Subcommands import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opendml.cli import options
from opendml.cli.program import CommandGroup

if TYPE_CHECKING:
    from opendml.frontends.onnx.sizes import Sizes

_MOST_MEASUREMENTS = 10_000_000  # All stay in memory for the percentiles.

_models = click.argument("models", type=options.PATH, nargs=-1, required=True, metavar="MODEL...")


@click.group(
    cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="opendml")
def main() -> None:
    """DirectML's operators, object model and graphs on any machine.

    Exit status: 0 on success; 1 if the input is right but cannot be processed here (check: if an operator is
    not valid); 2 if the input or an option is wrong; 130 after Ctrl-C.
    """


@main.command(short_help="Run an ONNX model, a JSON model of DxDispatch, or a serialized graph.")
@click.argument("model", type=options.PATH, required=False)
@click.option("-m", "--model", "model_option", type=options.PATH, help="MODEL, as in DxDispatch.")
@options.device
@options.feature_level
@options.threads
@click.option(
    *("--input-directory", "--input_path"),
    type=options.FOLDER,
    help="The folder of files with initial values. Default: the model's folder.",
)
@click.option(
    *("--output-directory", "--output_path"),
    type=options.FOLDER,
    help="The folder for files of writeFile. Default: the current directory.",
)
@click.option(
    *("-i", "--iterations", "--dispatch_iterations"),
    type=click.IntRange(1, _MOST_MEASUREMENTS),
    metavar="N",
    default=1,
    show_default=True,
    help="The least number of measurements of each dispatch.",
)
@click.option(
    *("-t", "--milliseconds", "--milliseconds_to_run"),
    type=options.Milliseconds(),
    metavar="N",
    default=0,
    help="Measure each dispatch until this much time has passed.",
)
@click.option(
    *("-r", "--repeat", "--dispatch_repeat"),
    type=click.IntRange(1, 2**32 - 1),
    metavar="N",
    default=1,
    show_default=True,
    help="Dispatches in each measurement, which is their mean.",
)
@click.option(
    *("-I", "--interval", "--dispatch_interval"),
    type=options.Milliseconds(),
    metavar="N",
    default=0,
    help="The least number of milliseconds from the start of one measurement to the next.",
)
@click.option(
    *("-w", "--warmup", "--warmup_samples"),
    type=click.IntRange(0, _MOST_MEASUREMENTS),
    metavar="N",
    default=1,
    show_default=True,
    help="First measurements that are cold and stay out of the statistics.",
)
@click.option("--timing", is_flag=True, help="Print statistics, and the time of initialization.")
@click.option("--samples", is_flag=True, help="Print every measurement.")
@click.option(
    *("-v", "--timing_verbosity"),
    type=click.IntRange(0, 2),
    metavar="N",
    default=0,
    help="DxDispatch's option: 1 is --timing, 2 is --timing --samples.",
)
@click.option(
    *("-d", "--debug"),
    is_flag=True,
    expose_value=False,
    help="No effect: opendml always checks what DxDispatch's debug layers check.",
)
@click.option(
    *("-s", "--show_adapters", "show_adapters_"),
    is_flag=True,
    help="Print the devices of this machine by kind and name.",
)
@options.any_path
@options.inputs
@options.size_options
@options.limit_options
@options.json_option("Print one JSON object with all results.")
@options.options_without_effect
def run(model: Path | None, model_option: Path | None, **settings: Any) -> None:
    """Run MODEL: an ONNX model (FILE.onnx), a JSON model of Microsoft's DxDispatch tool ("-" is standard
    input), or a serialized DirectML graph (.bin), whose inputs are read from NAME.npy.

    For an ONNX model, a summary of each output is printed. With --output-directory the outputs are also
    written as .npy files. --device, --feature-level, --threads and --iterations apply, too.

    A JSON model is read, checked and compiled as a whole before the first command runs. Resources are in host
    memory: on cuda every dispatch copies them to the device and back, and its time includes the copies. Exit
    status: 2 if the model is wrong (each line on standard error names the field by its JSON path), 1 if it
    cannot run here. DxDispatch's names of the options work too, and those that have nothing to do here warn.
    """
    from opendml.cli.run_command import run_model, show_adapters

    if settings.pop("show_adapters_"):
        show_adapters()
        if model is None and model_option is None:
            return
    if (model is None) == (model_option is None):
        raise click.UsageError("one MODEL is needed, as an argument or after --model")
    run_model(model or model_option or Path(), **settings)


@main.command(short_help="Check whether models are valid at a feature level.")
@_models
@options.feature_level
@click.option("--runs", is_flag=True, help="Report too whether the models can run here, and if not, why.")
@options.any_path
@options.json_option("Print a JSON array with an object for each model.")
@options.size_options
@options.limit_options
def check(**settings: Any) -> int:
    """Check whether the operators of each MODEL (JSON, or a serialized graph: .bin) are valid at a feature
    level; "-" is standard input.

    If an operator is not valid, the report names the field, the reason, and the level from which it is valid.
    Files with values, which a model names, may be absent.

    An ONNX model (FILE.onnx) is not run. The report names the nodes that DirectML's operators cannot express,
    and the reasons. The exit status is 1 if the evaluator of the onnx package cannot run one of them either.

    Exit status: 0 if all operators are valid, 1 if one is not (with --runs: or cannot run), 2 if a model is
    malformed.
    """
    from opendml.cli.check_command import check_models

    return check_models(**settings)


@main.command("compile", short_help="Write a model with its machine code, for a quick start.")
@click.argument("model", type=options.PATH)
@click.option(
    *("-o", "--output"), type=options.FILE, required=True, metavar="FILE", help="The compiled file."
)
@options.device
@options.threads
@options.inputs
@options.size_options
@options.limit_options
def compile_(model: Path, output: Path, **settings: Any) -> None:
    """Write a compiled file: MODEL with its plans, machine code and packed weights.

    MODEL is an ONNX model (FILE.onnx) or a file of `Model.save`. `dml.onnx.load` and `dml.load` (for a saved
    model) map the compiled file. They need no tracing, scheduling, compiling or packing. An ONNX model is run
    once, and the file is quick for inputs of the sizes and types of that run. Other inputs are compiled when
    they come. On another processor, with another number of threads or another version of opendml, the model
    in the file is compiled like any other.
    """
    from opendml.cli.compile_command import compile_model

    compile_model(model, output, **settings)


@main.command(short_help="Write models as serialized graphs.")
@_models
@click.option(
    *("-o", "--output"),
    type=options.FOLDER,
    required=True,
    metavar="FOLDER",
    help="The folder for MODEL.bin, with a file beside it for each constant.",
)
@options.any_path
@options.size_options
@options.limit_options
def export(models: tuple[Path, ...], output: Path, allow_any_path: bool, sizes: Sizes) -> None:
    """Write each MODEL, a JSON model of DxDispatch or an ONNX model (FILE.onnx), as a serialized DirectML
    graph, which `opendml run` and DxDispatch run.

    The dispatches of a JSON model become nodes. Resources that are read before they are written become inputs
    by their names, and those bound at initialization become constants. An ONNX model must be one graph of
    DirectML's operators for its input sizes; open sizes are 1 unless an option fixes them. A serialized graph
    (.bin) is read, checked and written again.
    """
    from opendml.cli.export_command import export_models

    export_models(models, output, sizes, allow_any_path=allow_any_path)


@main.command(short_help="Show the kernels of a model, and their times.")
@click.argument("model", type=options.PATH)
@options.device
@options.feature_level
@options.threads
@click.option(
    "--dispatchable",
    metavar="NAME",
    help="Only this dispatchable of a JSON model, or this graph of an ONNX model. Default: all of them.",
)
@click.option("--html", type=options.FILE, help="Write a page to this file too.")
@click.option(
    "--trace", type=options.FILE, help="Write a trace to this file too, for Perfetto or chrome://tracing."
)
@options.any_path
@options.inputs
@options.size_options
@options.limit_options
@options.json_option("Print a JSON object with one entry for each dispatchable.")
def explain(**settings: Any) -> None:
    """Compile the operators of MODEL and measure their kernels: an ONNX model (FILE.onnx), a JSON model of
    DxDispatch ("-" is standard input), or a serialized graph (.bin).

    Each kernel has a line with its operators, its time and its floor. The floor is the time of a copy of as
    many bytes, or of as many operations of a matrix product, on this machine. Inputs are generated: floats
        between 0 and 1,
    integers 0. Files with values, which a JSON model names, may be absent. An ONNX model is run once, because
    inputs may decide what it computes. It may become several graphs; the nodes between them, which DirectML
    cannot express, are named.
    """
    from opendml.cli.explain_command import explain_model

    explain_model(**settings)


@main.command(short_help="List the operators, or describe one.")
@click.argument("name", required=False, shell_complete=options.complete_operators)
@options.feature_level
@options.json_option("Print a JSON array with an object for each operator.")
def ops(name: str | None, feature_level: str | None, as_json: bool) -> None:
    """List the operators, or describe the operator NAME: formula, fields, types and ranks per level.

    NAME may have any spelling, lack its prefix (celu), or be the name in ONNX, WebNN or PyTorch (MatMul). If
    several operators have the name, they are listed.
    """
    from opendml.cli.ops_command import describe_operator, list_operators, print_json

    if as_json:
        print_json(name, feature_level)
    elif name is None:
        list_operators(feature_level)
    else:
        describe_operator(name, feature_level)
