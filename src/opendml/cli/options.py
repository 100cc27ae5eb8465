"""Options that several commands share. Completions and values import the package only when they are
needed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from opendml.budget import Limits

Command: TypeAlias = Callable[..., Any]

_DAY_IN_MILLISECONDS = 24 * 60 * 60 * 1000
_MOST_THREADS = 1024  # The most that a Device accepts.

PATH = click.Path(path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


class Milliseconds(click.FloatRange):
    """A time of at most a day."""

    def __init__(self) -> None:
        super().__init__(min=0, max=_DAY_IN_MILLISECONDS)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        """Convert a text to a number within the range, and refuse NaN, which no bound excludes."""
        number = float(super().convert(value, parameter, context))
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", parameter, context)
        return number


def complete_operators(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the operators whose names, with or without their family, have this beginning."""
    from opendml.spec.schema import operators

    wanted = incomplete.upper().replace("-", "_")
    beginnings = tuple(prefix + wanted for prefix in ("", "ACTIVATION_", "ELEMENT_WISE_"))
    found = (facts for name, facts in operators().items() if name.startswith(beginnings))
    return [CompletionItem(facts.name, help=facts.summary) for facts in found]


def _complete_levels(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the feature levels, newest first, as short names or in the form of the beginning."""
    from opendml.spec.enums import FeatureLevel
    from opendml.spec.feature_level import full_name, short_name

    levels = sorted(FeatureLevel, reverse=True)
    named = (
        map(short_name, levels)
        if not incomplete
        else [name(each) for name in (short_name, full_name) for each in levels]
    )
    return [name for name in named if name.startswith(incomplete)]


def _complete_devices(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the kinds of devices."""
    from opendml.targets.registry import KINDS

    return [kind for kind in KINDS if kind.startswith(incomplete)]


feature_level = click.option(
    "--feature-level",
    metavar="LEVEL",
    shell_complete=_complete_levels,
    help="DirectML's feature level, such as 2_0 or DML_FEATURE_LEVEL_2_0. Default: the newest.",
)

_KIND = re.compile(r"cpu|reference|cuda(:\d+)?")


def _device_kind(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the kind of a device that is given by its kind, or by a part of its name."""
    if _KIND.fullmatch(value):
        return value
    from opendml.cli.adapters import kind_named

    return kind_named(value)


device = click.option(
    *("-a", "--device", "--adapter"),
    metavar="KIND",
    shell_complete=_complete_devices,
    callback=_device_kind,
    default="cpu",
    show_default=True,
    help="The device: cpu, cuda (an NVIDIA GPU; cuda:1 is the second), or reference (NumPy in float64). A "
    "part of a device's name does too, such as NVIDIA.",
)
threads = click.option(
    "--threads",
    type=click.IntRange(1, _MOST_THREADS),
    metavar="N",
    help="CPU threads. Default: OPENDML_THREADS, or all that the process may use.",
)
any_path = click.option(
    "--allow-any-path",
    is_flag=True,
    help="Let a JSON model read and write all files that you can, as DxDispatch does. Without it, the model "
    "reads only files in its own folder (--input-directory), and writes only files in --output-directory.",
)
inputs = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help="An input of an ONNX model from a .npy file. May be repeated. Other inputs get random numbers, "
    "or zeros if they are no floats.",
)


def json_option(text: str) -> Callable[[Command], Command]:
    """Return the option `--json` with this help text."""
    return click.option("--json", "as_json", is_flag=True, help=text)


_SIZE_OPTIONS = (
    (("--size", "size_names"), "NAME=N", "The size of a symbolic dimension of an ONNX model. Default: 1."),
    (("-f", "--onnx_free_dim_name_override", "free_names"), "NAME:N", "--size with DxDispatch's syntax."),
    (
        ("-F", "--onnx_free_dim_denotation_override", "denotations"),
        "DENOTATION:N",
        "The size of dimensions of an ONNX model by their denotation, such as DATA_BATCH.",
    ),
    (("-b", "--binding_shape", "shapes"), "TENSOR:N,N", "All sizes of an input or output of an ONNX model."),
)


def size_options(command: Command) -> Command:
    """Add the options for sizes to a command, which gets them as one argument `sizes`."""

    @wraps(command)
    def with_sizes(
        *arguments: Any,
        size_names: Iterable[str],
        free_names: Iterable[str],
        denotations: Iterable[str],
        shapes: Iterable[str],
        **others: Any,
    ) -> Any:
        from opendml.frontends.onnx.sizes import Sizes

        names = {**_sizes("--size", size_names, "="), **_sizes("-f", free_names, ":")}
        sizes = Sizes(names, _sizes("-F", denotations, ":"), dict(map(_shape, shapes)))
        return command(*arguments, sizes=sizes, **others)

    result: Command = with_sizes
    for names, metavar, text in reversed(_SIZE_OPTIONS):
        result = click.option(*names, multiple=True, metavar=metavar, help=f"{text} May be repeated.")(result)
    return result


def _sizes(option: str, texts: Iterable[str], separator: str) -> dict[str, int]:
    """Parse texts such as "batch=1"."""
    sizes = dict[str, int]()
    for text in texts:
        name, _, size = text.rpartition(separator)
        if not name or not _is_size(size):
            raise click.UsageError(f"{option} {text}: NAME{separator}N with a size of at least 1 is needed")
        if sizes.setdefault(name, int(size)) != int(size):
            raise click.UsageError(f"{option} {text}: {name} has the size {sizes[name]} already")
    return sizes


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Parse a text such as "x:2,2"."""
    name, _, sizes = text.rpartition(":")
    if not name or not all(map(_is_size, sizes.split(","))):
        raise click.UsageError(f"-b {text}: TENSOR:N,N with sizes of at least 1 is needed")
    return name, tuple(map(int, sizes.split(",")))


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and 1 <= int(text) < 2**32


def limit_options(command: Command) -> Command:
    """Add the options for limits to a command, and run it under these limits."""

    @wraps(command)
    def limited(*arguments: Any, limit_texts: Iterable[str], untrusted: bool, **others: Any) -> Any:
        from opendml.budget import metered

        with metered(_limits(limit_texts, untrusted)):
            return command(*arguments, **others)

    limit = click.option(
        "--limit",
        "limit_texts",
        multiple=True,
        metavar="NAME=VALUE",
        help="A limit of a model, such as memory_bytes=2e9 or kernel_steps=inf, by the names of dml.Limits. "
        "May be repeated.",
    )
    strict = click.option(
        "--untrusted",
        is_flag=True,
        help="Apply the limits for files from strangers (dml.Limits.untrusted). --limit changes single ones.",
    )
    return strict(limit(limited))


def _limits(texts: Iterable[str], untrusted: bool) -> Limits:
    """Parse the limits."""
    from opendml.budget import Limits

    limits = Limits.untrusted() if untrusted else Limits()
    names = [each.name for each in fields(Limits)]
    changes = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in names:
            raise click.UsageError(f"--limit {text}: NAME=VALUE is needed; a name is {', '.join(names)}")
        try:
            changes[name] = int(value) if value.isascii() and value.isdecimal() else float(value)
        except ValueError as error:
            raise click.UsageError(f"--limit {text}: a number is needed, or inf") from error
    return replace(limits, **changes)


_DIRECT3D = "it concerns Direct3D, which opendml does not need"
_ONNX = "it concerns ONNX Runtime, which does not run the models here"
_PIX = "it concerns captures of PIX, a tool for Direct3D"
_FLAGS_WITHOUT_EFFECT = {
    ("-S", "--show_dependencies"): "no component of DirectX is used; opendml --version tells the version",
    ("--print_commands",): "what every command did is printed anyway",
    ("--clear_shader_caches",): _DIRECT3D,
    ("--disable_gpu_timeout",): _DIRECT3D,
    ("--disable_background_processing",): _DIRECT3D,
    ("--set_stable_power_state",): _DIRECT3D,
    ("--disable_agility_sdk",): _DIRECT3D,
    ("--print_hlsl_disassembly",): _DIRECT3D,
    ("--xbox_allow_precompile",): _DIRECT3D,
    ("-p", "--print_onnx_bindings"): _ONNX,
    ("-x", "--enable_ort_extensions"): _ONNX,
    ("--enable_onnx_profiling",): f"{_ONNX}; `opendml explain` shows the kernels and their times",
}
_VALUES_WITHOUT_EFFECT = {
    ("--max_gpu_time_measurements",): "the host takes the times, as many as there are measurements",
    ("-q", "--queue_type"): _DIRECT3D,
    ("--post_dispatch_barriers",): _DIRECT3D,
    ("-c", "--pix_capture_type"): _PIX,
    ("-o", "--pix_capture_name"): f"{_PIX}; the folder for outputs is --output-directory",
    ("-e", "--onnx_session_config_entry"): _ONNX,
    ("-l", "--onnx_graph_optimization_level"): _ONNX,
    ("-L", "--onnx_logging_level"): _ONNX,
}


def options_without_effect(command: Command) -> Command:
    """Add DxDispatch's options that have no effect here to a command: each warns with the reason."""
    for options, is_flag in ((_FLAGS_WITHOUT_EFFECT, True), (_VALUES_WITHOUT_EFFECT, False)):
        for names, reason in options.items():
            command = click.option(
                *names,
                is_flag=is_flag,
                multiple=not is_flag,
                hidden=True,
                expose_value=False,
                callback=partial(_warn, " or ".join(names), reason),
            )(command)
    return command


def _warn(names: str, reason: str, context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value:
        from opendml.cli.program import warn

        warn(f"{names} of DxDispatch has no effect: {reason}")
