"""The options that say the sizes that an ONNX model leaves open, by opendml's names and by DxDispatch's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import click

_OPTIONS = (
    (("--size", "size_names"), "NAME=N", "The size of a symbolic dimension of an ONNX model. Default: 1."),
    (("-f", "--onnx_free_dim_name_override", "free_names"), "NAME:N", "--size, as DxDispatch has it."),
    (
        ("-F", "--onnx_free_dim_denotation_override", "denotations"),
        "DENOTATION:N",
        "The size of dimensions of an ONNX model by their denotation, such as DATA_BATCH.",
    ),
    (("-b", "--binding_shape", "shapes"), "TENSOR:N,N", "All sizes of an input or output of an ONNX model."),
)


def size_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options, which may all be repeated, and of them one argument: `sizes`."""

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
        sizes = Sizes(names, _sizes("-F", denotations, ":"), dict(_shape(text) for text in shapes))
        return command(*arguments, sizes=sizes, **others)

    result: Callable[..., Any] = with_sizes
    for names, metavar, text in reversed(_OPTIONS):
        result = click.option(*names, multiple=True, metavar=metavar, help=f"{text} May be repeated.")(result)
    return result


def _sizes(option: str, texts: Iterable[str], separator: str) -> dict[str, int]:
    """Sizes from texts such as "batch=1"."""
    sizes = {}
    for text in texts:
        name, _, size = text.rpartition(separator)
        if not name or not _is_size(size):
            raise click.UsageError(f"{option} {text}: NAME{separator}N with a size of at least 1 is needed")
        sizes[name] = int(size)
    return sizes


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    """The sizes of a tensor from a text such as "x:2,2"."""
    name, _, sizes = text.rpartition(":")
    if not name or not all(map(_is_size, sizes.split(","))):
        raise click.UsageError(f"-b {text}: TENSOR:N,N with sizes of at least 1 is needed")
    return name, tuple(map(int, sizes.split(",")))


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and 1 <= int(text) < 2**32
