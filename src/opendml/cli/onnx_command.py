"""ONNX models on the command line: run, checked, and loaded for other commands."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.table import Table

from opendml.budget import meter
from opendml.cli.console import console
from opendml.cli.program import CANNOT, WRONG
from opendml.errors import Error, InvalidArgument, LimitExceeded, Unsupported
from opendml.folders import replacing_within
from opendml.frontends.dxdispatch.foreign import assumed_sizes
from opendml.frontends.onnx.sizes import Sizes
from opendml.runtime.objects.device import Device
from opendml.spec.wording import shown

if TYPE_CHECKING:
    from opendml.frontends.onnx.check import Findings, Gap
    from opendml.frontends.onnx.model import OnnxModel, TensorInfo
    from opendml.runtime.graphs.model import Model


def require_onnx() -> None:
    """Raises Unsupported, which says what to install, without the `onnx` package."""
    try:
        import opendml.onnx  # noqa: F401
    except ModuleNotFoundError as error:
        raise Unsupported(f"ONNX models: {error}") from error


@dataclass(frozen=True)
class Given:
    """An input of a run: its array, and where that is from."""

    name: str
    array: Any
    source: str


def run_onnx(
    path: Path,
    device: Device,
    *,
    inputs: Sequence[str],
    sizes: Sizes,
    iterations: int,
    output_directory: Path | None,
    as_json: bool,
) -> None:
    """Runs an ONNX model and prints what its outputs are, and the times.

    Args:
        path: the model.
        device: where it runs.
        inputs: "NAME=FILE.npy"; the others get random numbers, integers zeros.
        sizes: those that the model leaves open; the others are 1.
        iterations: how often it runs behind the first run.
        output_directory: where outputs are written as NAME.npy; None: nowhere.
        as_json: print JSON.

    Raises:
        Error: what is wrong with the model or the inputs, or cannot be run.
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


def load_onnx(path: Path, device: Device, sizes: Sizes) -> OnnxModel:
    """An ONNX model.

    Raises:
        Error: what is wrong with it, or without the `onnx` package.
    """
    require_onnx()
    from opendml.frontends.onnx.model import load

    return load(path, device, sizes=sizes)


def parts_of(model: OnnxModel, inputs: Sequence[str] = ()) -> tuple[Model | str, ...]:
    """The graphs that a model becomes, and the names of nodes that run outside of them.

    Args:
        model: which is run for that.
        inputs: "NAME=FILE.npy"; the others are made up.

    Raises:
        Error: what is wrong with the model or the inputs, or cannot be run.
    """
    files = _files(inputs)
    given = {each.name: each.array for each in _given(model, files)}
    with warnings.catch_warnings(), _assuming(model, files):
        warnings.simplefilter("ignore")  # what runs outside is among the parts
        return model.parts(given)


@contextmanager
def _assuming(model: OnnxModel, files: Container[str]) -> Iterator[None]:
    """Adds to errors which inputs got sizes that nobody said, since they may come of these.

    Args:
        model: which runs.
        files: the inputs that are not made up.
    """
    try:
        yield
    except Error as error:
        for each in model.inputs:
            sizes = assumed_sizes(each)
            if each.name not in files and each.sizes is not None and sizes != tuple(each.sizes):
                form = ",".join("N" for _ in sizes)
                problem = f"input {each.name!r} was {shown(list(sizes))}, as the model leaves sizes open"
                hint = f"{problem}: -b {each.name}:{form} says others"
                if isinstance(error, LimitExceeded):
                    raise error._within(hint) from error
                raise type(error)(f"{error}; {hint}") from error
        raise


def _given(model: OnnxModel, files: dict[str, Path]) -> Iterator[Given]:
    """The inputs of a run, in the model's order."""
    random = np.random.default_rng(0)
    own = {each.name: each for each in model.inputs}
    for name, info in own.items():
        if name in files:
            yield Given(name, _read(files[name]), str(files[name]))
        else:
            yield _made(info, random)
    for name, file in files.items():
        if name not in own:
            yield Given(name, _read(file), str(file))


def _read(file: Path) -> Any:
    try:
        return np.load(file, allow_pickle=False)
    except OSError as error:
        raise InvalidArgument(f"{file}: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidArgument(f"{file}: no .npy file ({error})") from error


def _made(info: TensorInfo, random: np.random.Generator) -> Given:
    """An input that was not given: random numbers for floats, zeros otherwise."""
    if info.type is None or info.sizes is None:
        raise InvalidArgument(
            f"input {info.name!r} cannot be made up: --input {info.name}=FILE.npy is needed"
        )
    lengths = assumed_sizes(info)
    meter().require_tensor(lengths, 8 + info.type.itemsize, f"input {info.name!r} of sizes {list(lengths)}")
    if info.type.kind == "f":
        return Given(info.name, random.standard_normal(lengths).astype(info.type), "random")
    return Given(info.name, np.zeros(lengths, info.type), "zeros")


def _described(name: str, content: Any) -> dict[str, Any]:
    """A tensor in words that JSON has."""
    if not isinstance(content, np.ndarray):
        return {"name": name, "type": type(content).__name__, "sizes": None}
    return {"name": name, "type": content.dtype.name, "sizes": list(content.shape)}


def _output(name: str, content: Any, folder: Path | None) -> dict[str, Any]:
    """What is said about an output; it is written, too, if there is a folder."""
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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="underline")
    for column in ("Input", "Type", "Sizes", "From"):
        table.add_column(column, overflow="fold")
    for each in report["inputs"]:
        table.add_row(each["name"], each["type"], _sizes(each), each["source"])
    out.print(table)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="underline")
    for column in ("Output", "Type", "Sizes", "Minimum", "Maximum", "Mean", "Written to"):
        table.add_column(column, overflow="fold")
    for each in report["outputs"]:
        numbers = [f"{each[key]:.6g}" if key in each else "" for key in ("minimum", "maximum", "mean")]
        table.add_row(each["name"], each["type"], _sizes(each), *numbers, each.get("file", ""))
    out.print()
    out.print(table)
    out.print()
    for text in report["evaluated"]:
        out.print(text)
    first, median = (f"{report[key] * 1e3:.4f} ms" for key in ("first_run_seconds", "median_seconds"))
    out.print(f"On {report['device']}: first run, which compiles, {first}; then {median} median")


def _sizes(described: dict[str, Any]) -> str:
    return "" if described["sizes"] is None else shown(described["sizes"])


@dataclass(frozen=True)
class OnnxReport:
    """What `opendml check` says about an ONNX model."""

    file: str
    findings: Findings | None = None
    errors: tuple[str, ...] = ()
    error_status: int = 0

    @property
    def status(self) -> int:
        """The exit status that tells about this model."""
        return self.error_status or (CANNOT if self.findings and self.findings.unsupported else 0)

    def lines(self) -> Iterator[str]:
        """The report for people."""
        if self.findings is None:
            return
        found = self.findings
        kinds = self._kinds(found)
        counts = [f"{len(gaps)} {kind}" for kind, gaps in kinds.items() if gaps]
        sizes = ", ".join(f"{each.name} {shown(list(each.sizes or ()))}" for each in found.inputs)
        yield f"opset {found.opset}, {found.nodes} nodes; inputs: {sizes or 'none'}"
        yield f"{'; '.join(counts) or 'all nodes run on DirectML operators'}"
        for kind, gaps in kinds.items():
            yield from (f"  {kind}: {gap.node}: {gap.reason}" for gap in gaps)

    def as_json(self) -> dict[str, object]:
        """The report for programs."""
        if self.findings is None:
            return {"file": self.file, "errors": self.errors}
        found = self.findings
        return {
            "file": self.file,
            "errors": self.errors,
            "opset": found.opset,
            "nodes": found.nodes,
            "inputs": [{"name": each.name, "sizes": each.sizes} for each in found.inputs],
            "unsupported": [{"node": gap.node, "reason": gap.reason} for gap in found.unsupported],
            "evaluated": [{"node": gap.node, "reason": gap.reason} for gap in found.evaluated],
            "unknown": [{"node": gap.node, "reason": gap.reason} for gap in found.unknown],
        }

    @staticmethod
    def _kinds(found: Findings) -> dict[str, tuple[Gap, ...]]:
        return {
            "cannot run": found.unsupported,
            "on onnx's evaluator": found.evaluated,
            "known only when it runs": found.unknown,
        }


def check_onnx(path: Path, sizes: Sizes) -> OnnxReport:
    """Checks an ONNX model, for sizes that it leaves open; others are 1."""
    try:
        require_onnx()
        from opendml.frontends.onnx.check import check

        return OnnxReport(str(path), check(path, sizes))
    except InvalidArgument as error:
        return OnnxReport(str(path), errors=error.failures, error_status=WRONG)
    except Error as error:
        return OnnxReport(str(path), errors=(str(error),), error_status=CANNOT)
