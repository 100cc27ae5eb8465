"""`opendml check`: judges the operators of JSON models and serialized graphs, and what ONNX models need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from opendml.cli.model_kinds import Kind, kind_of
from opendml.cli.onnx_command import OnnxReport, check_onnx
from opendml.cli.program import CANNOT, WRONG, report
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends import dxdispatch
from opendml.frontends.json_files.node import Node
from opendml.frontends.onnx.sizes import Sizes
from opendml.frontends.serialized.graph import read_graph
from opendml.runtime.graphs.compilable import compilable_of
from opendml.spec.enums import FeatureLevel
from opendml.spec.feature_level import as_feature_level, full_name
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.validator import failures


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of an operator of a model."""

    path: str
    name: str
    operator: str
    failures: tuple[str, ...]
    valid_from: FeatureLevel | None
    """The first level from the asked one on at which the operator is valid; None: none."""
    obstacle: str | None
    """Why a valid operator cannot be run yet, if that was asked and is so."""


@dataclass(frozen=True, slots=True)
class Report:
    """The judgement of a model."""

    file: str
    verdicts: tuple[Verdict, ...] = ()
    errors: tuple[str, ...] = ()
    """Why the file is no model, or has operators that are not DirectML's."""
    error_status: int = 0
    obstacles: tuple[str, ...] = ()
    """Files and libraries that the model needs to run, besides its operators, and lacks."""

    @property
    def status(self) -> int:
        """The exit status that tells about this model."""
        bad = self.obstacles or any(verdict.failures or verdict.obstacle for verdict in self.verdicts)
        return self.error_status or (CANNOT if bad else 0)


def check_models(
    paths: Sequence[Path],
    feature_level: str | None,
    *,
    runs: bool,
    as_json: bool,
    sizes: Sizes,
    allow_any_path: bool,
) -> int:
    """Prints for each dispatchable of the models whether it is valid at the level, with all failures; for
    ONNX models what has no mapping.

    Args:
        paths: the models.
        feature_level: the level; None is the newest.
        runs: say too what keeps a valid model from being run.
        as_json: print all as JSON; otherwise errors of malformed models go to standard error.
        sizes: those that ONNX models leave open.
        allow_any_path: whether JSON models may read and write all files.

    Returns:
        The exit status: the highest of the models'.
    """
    level = as_feature_level(feature_level)
    judged = partial(_any_report, level=level, sizes=sizes, runs=runs, any_path=allow_any_path)
    if as_json:
        reports = [judged(path) for path in paths]
        texts = [
            each.as_json() if isinstance(each, OnnxReport) else _as_json(each, level, runs=runs)
            for each in reports
        ]
        click.echo(json.dumps(texts, indent=2))
        return max(each.status for each in reports)
    status = 0
    for path in paths:
        each = judged(path)
        prefix = f"{each.file}: " if len(paths) > 1 else ""
        report(error if error.startswith(prefix) else prefix + error for error in each.errors)
        lines = each.lines() if isinstance(each, OnnxReport) else _lines(each, level, runs=runs)
        for line in lines:
            click.echo(prefix + line)
        status = max(status, each.status)
    return status


def _any_report(
    path: Path, *, level: FeatureLevel, sizes: Sizes, runs: bool, any_path: bool
) -> Report | OnnxReport:
    match kind_of(path):
        case Kind.ONNX:
            return check_onnx(path, sizes)
        case Kind.GRAPH:
            return _graph_report(path, level, runs=runs)
        case Kind.JSON:
            return _report(path, level, sizes, runs=runs, any_path=any_path)


def _report(path: Path, level: FeatureLevel, sizes: Sizes, *, runs: bool, any_path: bool) -> Report:
    try:
        root = dxdispatch.read(path)
        dispatchables = dxdispatch.parse_operators(root)
    except InvalidArgument as error:
        return Report(str(path), errors=error.failures, error_status=WRONG)
    except Error as error:
        return Report(str(path), errors=(str(error),), error_status=CANNOT)
    verdicts = tuple(
        _verdict(each.path, each.name, each.desc, level, runs=runs)
        for each in dispatchables.values()
        if isinstance(each.desc, OperatorDesc)
    )
    return Report(str(path), verdicts, obstacles=_obstacles(root, path, sizes, any_path) if runs else ())


def _graph_report(path: Path, level: FeatureLevel, *, runs: bool) -> Report:
    """The judgement of a serialized graph."""
    try:
        graph = read_graph(path)
    except InvalidArgument as error:
        return Report(str(path), errors=error.failures, error_status=WRONG)
    named = (
        (where, where.partition(":")[2].removesuffix("]") or where, desc) for where, desc in graph.operators()
    )
    return Report(str(path), tuple(_verdict(*each, level, runs=runs) for each in named))


def _verdict(path: str, name: str, desc: OperatorDesc, level: FeatureLevel, *, runs: bool) -> Verdict:
    broken = tuple(failures(desc, level))
    obstacle = _obstacle(desc) if runs and not broken else None
    first = _first_valid(desc, level) if broken else level
    return Verdict(path, name, desc.operator, broken, first, obstacle)


def _first_valid(desc: OperatorDesc, level: FeatureLevel) -> FeatureLevel | None:
    newer = sorted(candidate for candidate in FeatureLevel if candidate > level)
    return next((candidate for candidate in newer if not failures(desc, candidate)), None)


def _obstacle(desc: OperatorDesc) -> str | None:
    try:
        compilable_of(desc)
    except Unsupported as error:
        return str(error)
    return None


def _obstacles(root: Node, path: Path, sizes: Sizes, any_path: bool) -> tuple[str, ...]:
    """The obstacles to loading a well-formed model: files that are not there, folders, libraries."""
    try:
        dxdispatch.parse_model(root, dxdispatch.Folders.of(path, any_path=any_path), sizes)
    except Error as error:
        return tuple(str(error).splitlines())
    return ()


def _lines(report: Report, level: FeatureLevel, *, runs: bool) -> Iterator[str]:
    for verdict in report.verdicts:
        title = f"'{verdict.name}' ({verdict.operator})"
        if verdict.failures:
            newer = (
                f"valid from {full_name(verdict.valid_from)}"
                if verdict.valid_from
                else "nor at any newer level"
            )
            yield f"{title}: not valid at {full_name(level)}; {newer}"
            yield from (f"  {verdict.path}: {failure}" for failure in verdict.failures)
        else:
            end = f"; {verdict.obstacle or 'can be run'}" if runs else ""
            yield f"{title}: valid at {full_name(level)}{end}"
    yield from (f"cannot be run here: {obstacle}" for obstacle in report.obstacles)


def _as_json(report: Report, level: FeatureLevel, *, runs: bool) -> dict[str, object]:
    """The report for programs; "runs" and "obstacles" are there only when they were asked for."""
    found: dict[str, object] = {
        "file": report.file,
        "feature_level": full_name(level),
        "errors": report.errors,
        "operators": [_verdict_as_json(verdict, runs=runs) for verdict in report.verdicts],
    }
    if runs:
        found |= {"runs": report.status == 0, "obstacles": report.obstacles}
    return found


def _verdict_as_json(verdict: Verdict, *, runs: bool) -> dict[str, object]:
    found: dict[str, object] = {
        "name": verdict.name,
        "operator": verdict.operator,
        "path": verdict.path,
        "valid": not verdict.failures,
        "valid_from": full_name(verdict.valid_from) if verdict.valid_from else None,
        "failures": verdict.failures,
    }
    if runs:
        found |= {"runs": not verdict.failures and verdict.obstacle is None, "obstacle": verdict.obstacle}
    return found
