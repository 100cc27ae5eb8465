"""`python -m benchmarks.models`: times whole models, and writes the table as Markdown and JSON."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import click

from benchmarks.__main__ import RESULTS, pin_threads
from benchmarks.models.cases import CASES, QUICK, TYPES, Case
from benchmarks.models.engines import DEFAULT_ENGINES, ENGINES
from benchmarks.models.prepare import folder_of, is_ready
from benchmarks.models.rounds import Row, Settings, measure, run_command, start_process
from benchmarks.models.table import Report, line, write

MODELS = Path(__file__).parent.parent.parent / "build" / "models"
COMPARISON = "floors, comparison of results"


@click.command(context_settings={"show_default": True})
@click.option("--case", "patterns", help="Only models whose name contains one of these, with commas between.")
@click.option("--types", default="float32", help="Types, with commas between: " + ", ".join(TYPES) + ".")
@click.option("--engines", "engine_names", help="Engines, with commas between: " + ", ".join(ENGINES) + ".")
@click.option("--threads", default=2, type=click.IntRange(1), help="Threads of every engine.")
@click.option("--rounds", default=3, type=click.IntRange(1), help="Processes of each engine.")
@click.option("--seconds", default=1.0, type=click.FloatRange(0), help="Timed seconds of each process.")
@click.option("--timeout", default=600.0, help="Seconds after which a process is given up.")
@click.option("--device", default="cpu", type=click.Choice(["cpu", "cuda"]), help="Where models run.")
@click.option("--quick", is_flag=True, help="Only " + ", ".join(QUICK) + ".")
@click.option(
    "--output", type=click.Path(path_type=Path), help="The Markdown or JSON file; both are written."
)
@click.option("--note", default="", help="A sentence for the head of the table, as about the machine's load.")
@click.option("--models", type=click.Path(path_type=Path), default=MODELS, help="Folder of the made models.")
@click.option("--prepare", "only_prepare", is_flag=True, help="Only make the models.")
@click.option("--list", "list_only", is_flag=True, help="Only list the models.")
def main(
    patterns: str | None,
    types: str,
    engine_names: str | None,
    threads: int,
    rounds: int,
    seconds: float,
    timeout: float,
    device: str,
    quick: bool,
    output: Path | None,
    note: str,
    models: Path,
    only_prepare: bool,
    list_only: bool,
) -> None:
    """Times whole models in opendml and in the engines that are installed.

    Each engine has a process of its own in each round, and the processes of all engines alternate.
    Outputs are compared with those of ONNX Runtime in float32. Models are made once; delete
    their folder to make them again.
    """
    cases = chosen_cases(patterns, quick)
    if list_only:
        for case in cases:
            click.echo(f"{case.name:20} {', '.join(case.types)}")
        return
    chosen_types = _known("--types", types, TYPES)
    engines = [name for name, engine in ENGINES.items() if device in engine.devices]
    names = _known("--engines", engine_names or ",".join(DEFAULT_ENGINES[device]), engines)
    pin_threads(threads)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # The process that runs ends too.
    os.environ["OPENDML_THREADS"] = os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = str(threads)
    skipped = {name: reason for name in names if (reason := ENGINES[name].absent())}
    if find_spec("onnxruntime") is None:
        skipped[COMPARISON] = "onnxruntime is not installed"
    skipped |= {case.name: reason for case in cases if (reason := case.absent())}
    for name, reason in skipped.items():
        click.echo(f"{name}: left out ({reason})", err=True)
    names = [name for name in names if name not in skipped]
    report = Report(_versions(names), device, threads, rounds, note, skipped=skipped)
    if device == "cuda":
        report.processor = _device_name()
    output = output or RESULTS / f"{report.day}-{'-'.join(report.processor.lower().split())}-models.md"
    settings = Settings(models, device, threads, rounds, seconds, timeout)
    for case in cases:
        for type in chosen_types:
            if case.name in skipped or type not in case.types:
                continue
            row = _row(case, type, names, settings, only_prepare)
            report.rows.append(row)
            click.echo(line(row))
            if not only_prepare:
                write(report, output)
    if report.rows and not only_prepare:
        click.echo(f"wrote {output.with_suffix('.md')} and {output.with_suffix('.json').name}")


def chosen_cases(patterns: str | None, quick: bool) -> list[Case]:
    """Return the cases that the options name.

    Raises:
        click.UsageError: a pattern that is in no name; it lists the names.
    """
    names = list(QUICK if quick else CASES)
    if patterns is None:
        return [CASES[name] for name in names]
    words = patterns.split(",")
    for word in words:
        if not any(word in name for name in names):
            raise click.UsageError(f"--case {word}: no such model; there are {', '.join(names)}")
    return [CASES[name] for name in names if any(word in name for word in words)]


def _known(option: str, given: str, known: Collection[str]) -> list[str]:
    """Return the names of an option, if all are known."""
    names = given.split(",")
    for name in names:
        if name not in known:
            raise click.UsageError(f"{option} {name}: unknown; there are {', '.join(known)}")
    return names


def _row(case: Case, type: str, names: list[str], settings: Settings, only_prepare: bool) -> Row:
    """Return the row of a case in a type; the model is made before, in a process of its own."""
    if not is_ready(folder_of(settings.root, case, type)):
        command = [sys.executable, "-m", "benchmarks.models.prepare", case.name, type, str(settings.root)]
        status, printed = run_command(command, {}, settings.timeout)
        if status:
            return Row(case.name, type, problem=f"the model cannot be made: {printed or status}")
    engines = [name for name in names if can_run(name, case, type)]
    if only_prepare:
        engines = []
    return measure(
        case, type, engines, settings, lambda job, variables: start_process(job, variables, settings.timeout)
    )


def can_run(engine: str, case: Case, type: str) -> bool:
    """Whether an engine has the model in this type: PyTorch has no ONNX models, and no quantized ones."""
    return not ENGINES[engine].reads_modules or (case.is_network and not type.startswith("int8"))


def _device_name() -> str:
    """Return the name of the GPU. PyTorch, which knows it, must not start threads in this process."""
    command = [sys.executable, "-c", "import torch; print(torch.cuda.get_device_name())"]
    status, printed = run_command(command, {}, timeout=60)
    if status:
        raise click.UsageError(f"--device cuda: PyTorch finds no GPU: {printed}")
    return printed


def _versions(names: Collection[str]) -> dict[str, str]:
    found = {}
    for name in names:
        package = "opendml" if name.startswith("opendml") else ENGINES[name].packages[0]
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            found[name] = "of this checkout"
    return found


if __name__ == "__main__":
    main()
