"""ONNX models on the command line."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from opendml.budget import meter
from opendml.cli.adapters import name_of
from opendml.cli.printing import console, table_of
from opendml.errors import Error, InvalidArgument, LimitExceeded, Unsupported
from opendml.folders import replacing_within
from opendml.frontends.onnx.sizes import Sizes
from opendml.model_files import open_file
from opendml.runtime.objects.device import Device
from opendml.spec.wording import shown

if TYPE_CHECKING:
    from opendml.frontends.onnx.model import OnnxModel
    from opendml.frontends.onnx.tensor_info import TensorInfo
    from opendml.runtime.graphs.model import Model


def require_onnx() -> None:
    """Raise Unsupported with an installation hint if the `onnx` package is absent."""
    try:
        import opendml.onnx  # noqa: F401
    except ModuleNotFoundError as error:
        raise Unsupported(f"ONNX models: {error}") from error


class _Input(NamedTuple):
    """An input of a run: its array, and the source of the array."""

    name: str
    array: Any
    source: str


def run_onnx(
    path: Path,
    device: Device,
    inputs: Sequence[str],
    sizes: Sizes,
    iterations: int,
    output_directory: Path | None,
    as_json: bool,
) -> None:
    """Run an ONNX model, and print its outputs and times.

    Args:
        path: the model.
        device: the device.
        inputs: texts "NAME=FILE.npy". Other inputs get random numbers, or zeros if they are no floats.
        sizes: sizes that the model leaves open; others are 1.
        iterations: the number of runs after the first one.
        output_directory: the folder for outputs as NAME.npy; None: they are not written.
        as_json: print JSON.

    Raises:
        Error: the model or an input is wrong, or cannot run.
    """
    began = time.perf_counter()
    model = load_onnx(path, device, sizes)
    files = _files(inputs)
    given = list(_given(model, files))
    loaded = time.perf_counter()
    feed = {each.name: each.array for each in given}
    with warnings.catch_warnings(record=True) as caught, _assuming(model, files):
        warnings.simplefilter("always")
        results = model.run(feed)
    first = time.perf_counter()
    seconds = []
    for _ in range(iterations):
        start = time.perf_counter()
        model.run(feed)
        seconds.append(time.perf_counter() - start)
    report = {
        "file": str(path),
        "device": device.kind,
        "inputs": [{**_described(each.name, each.array), "source": each.source} for each in given],
        "outputs": [_output(name, array, output_directory) for name, array in results.items()],
        "evaluated": [str(each.message) for each in caught],
        "load_seconds": loaded - began,
        "first_run_seconds": first - loaded,
        "median_seconds": float(np.median(seconds)),
    }
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _print(report)


def _files(texts: Sequence[str]) -> dict[str, Path]:
    files = {}
    for text in texts:
        name, _, file = text.partition("=")
        if not name or not file:
            raise InvalidArgument(f"--input {text}: NAME=FILE.npy is needed")
        files[name] = Path(file)
    return files


def run_inputs(model: OnnxModel, inputs: Sequence[str] = ()) -> dict[str, Any]:
    """Return the inputs of a run by name: from files "NAME=FILE.npy", and generated ones."""
    return {each.name: each.array for each in _given(model, _files(inputs))}


def load_onnx(path: Path, device: Device, sizes: Sizes) -> OnnxModel:
    """Load an ONNX model.

    Raises:
        Error: the model is wrong, or the `onnx` package is absent.
    """
    require_onnx()
    from opendml.frontends.onnx.model import load

    return load(path, device, sizes=sizes)


def parts_of(model: OnnxModel, inputs: Sequence[str] = ()) -> tuple[Model | str, ...]:
    """Run a model, and return its graphs and the names of nodes that run outside of them.

    Args:
        model: the model.
        inputs: texts "NAME=FILE.npy"; other inputs are generated.

    Raises:
        Error: an input is wrong, or the model cannot run.
    """
    files = _files(inputs)
    given = {each.name: each.array for each in _given(model, files)}
    with warnings.catch_warnings(), _assuming(model, files):
        warnings.simplefilter("ignore")  # The parts name these nodes.
        return model.parts(given)


@contextmanager
def _assuming(model: OnnxModel, files: Container[str]) -> Iterator[None]:
    """Add to errors which generated inputs have assumed sizes, because these may be the cause.

    Args:
        model: the model that runs in the block.
        files: the inputs that are not generated.
    """
    try:
        yield
    except Error as error:
        for each in model.inputs:
            sizes = each._assumed_sizes
            if each.name not in files and each.sizes is not None and sizes != tuple(each.sizes):
                form = ",".join("N" for _ in sizes)
                problem = f"input {each.name!r} was {shown(list(sizes))}, as the model leaves sizes open"
                hint = f"{problem}: -b {each.name}:{form} says others"
                if isinstance(error, LimitExceeded):
                    raise error._within(hint) from error
                raise type(error)(f"{error}; {hint}") from error
        raise


def _given(model: OnnxModel, files: dict[str, Path]) -> Iterator[_Input]:
    """Yield the inputs of a run, in the model's order."""
    random = np.random.default_rng(0)
    own = {each.name: each for each in model.inputs}
    for name, info in own.items():
        yield _Input(name, _read(files[name]), str(files[name])) if name in files else _made(info, random)
    for name, file in files.items():
        if name not in own:
            yield _Input(name, _read(file), str(file))


def _read(file: Path) -> Any:
    try:
        with open_file(file, file) as opened:
            return np.load(opened, allow_pickle=False)
    except (EOFError, ValueError) as error:
        raise InvalidArgument(f"{file}: no .npy file ({error})") from error


def _made(info: TensorInfo, random: np.random.Generator) -> _Input:
    """Generate an input: random numbers for floats, else zeros."""
    if info.type is None or info.sizes is None:
        raise InvalidArgument(
            f"input {info.name!r} cannot be made up: --input {info.name}=FILE.npy is needed"
        )
    lengths = info._assumed_sizes
    meter().require_tensor(lengths, 8 + info.type.itemsize, f"input {info.name!r} of sizes {list(lengths)}")
    if info.type.kind == "f":
        return _Input(info.name, random.standard_normal(lengths).astype(info.type), "random")
    return _Input(info.name, np.zeros(lengths, info.type), "zeros")


def _described(name: str, content: Any) -> dict[str, Any]:
    """Return the name, type and sizes of a tensor for JSON."""
    if not isinstance(content, np.ndarray):
        return {"name": name, "type": type(content).__name__, "sizes": None}
    return {"name": name, "type": content.dtype.name, "sizes": list(content.shape)}


def _output(name: str, content: Any, folder: Path | None) -> dict[str, Any]:
    """Return a summary of an output for JSON, and write it to the folder if there is one."""
    found = _described(name, content)
    if isinstance(content, np.ndarray) and content.size and content.dtype.kind in "fiub":
        wide = content.astype(np.float64)
        found |= {"minimum": float(wide.min()), "maximum": float(wide.max()), "mean": float(wide.mean())}
    if folder is not None and isinstance(content, np.ndarray):
        file = folder / f"{''.join(each if each.isalnum() or each in '-_.' else '_' for each in name)}.npy"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with replacing_within(folder, file.name) as writing:
                np.save(writing, content, allow_pickle=False)
        except OSError as error:
            raise Error(f"cannot write {file}: {error.strerror or error}") from error
        found["file"] = str(file)
    return found


def _print(report: dict[str, Any]) -> None:
    out = console()
    out.print(f"Running on '{name_of(report['device'])}'")
    rows = ((each["name"], each["type"], _sizes(each), each["source"]) for each in report["inputs"])
    out.print(table_of(("Input", "Type", "Sizes", "From"), rows))
    out.print()
    columns = ("Output", "Type", "Sizes", "Minimum", "Maximum", "Mean", "Written to")
    out.print(table_of(columns, map(_output_row, report["outputs"])))
    out.print()
    for text in report["evaluated"]:
        out.print(text)
    first, median = (f"{report[key] * 1e3:.4f} ms" for key in ("first_run_seconds", "median_seconds"))
    out.print(f"On {report['device']}: first run, which compiles, {first}; then {median} median")


def _output_row(output: dict[str, Any]) -> list[str]:
    numbers = [f"{output[key]:.6g}" if key in output else "" for key in ("minimum", "maximum", "mean")]
    return [output["name"], output["type"], _sizes(output), *numbers, output.get("file", "")]


def _sizes(described: dict[str, Any]) -> str:
    return "" if described["sizes"] is None else shown(described["sizes"])
