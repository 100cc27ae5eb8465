"""The options of DxDispatch that `opendml run` does not have, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., object])

_DIRECT3D = "it concerns Direct3D, which opendml does not need"
_ONNX = "it concerns ONNX Runtime, which does not run the models here"
_PIX = "it concerns captures of PIX, a tool for Direct3D"
_FLAGS = {
    ("-S", "--show_dependencies"): "no component of DirectX is used; opendml --version tells the version",
    ("-s", "--show_adapters"): "--device has cpu, cuda, cuda:1 and so on, and reference",
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
    ("--enable_onnx_profiling",): _ONNX,
}
_WITH_VALUE = {
    ("--max_gpu_time_measurements",): "the host takes the times, as many as there are measurements",
    ("-q", "--queue_type"): _DIRECT3D,
    ("--post_dispatch_barriers",): _DIRECT3D,
    ("-c", "--pix_capture_type"): _PIX,
    ("-o", "--pix_capture_name"): f"{_PIX}; the folder for outputs is --output-directory",
    ("-e", "--onnx_session_config_entry"): _ONNX,
    ("-l", "--onnx_graph_optimization_level"): _ONNX,
    ("-L", "--onnx_logging_level"): _ONNX,
}


def refused_options(command: _Function) -> _Function:
    """Gives a command the options of DxDispatch that have no meaning here: each is an error that says why."""
    for options, is_flag in ((_FLAGS, True), (_WITH_VALUE, False)):
        for names, reason in options.items():
            refuse = _refusal(" or ".join(names), reason)
            add = click.option(
                *names,
                is_flag=is_flag,
                multiple=not is_flag,
                is_eager=True,
                hidden=True,
                expose_value=False,
                callback=refuse,
            )
            command = add(command)
    return command


def _refusal(names: str, reason: str) -> Callable[[click.Context, click.Parameter, object], None]:
    def refuse(context: click.Context, parameter: click.Parameter, value: object) -> None:
        if value:
            raise click.UsageError(f"{names} of DxDispatch has no meaning here: {reason}", context)

    return refuse
