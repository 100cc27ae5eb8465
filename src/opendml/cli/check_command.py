"""`opendml check`: whether the operators of models are valid, and which ONNX nodes have no mapping."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import click

from opendml.cli.model_kinds import Kind, kind_of
from opendml.cli.onnx_command import require_onnx
from opendml.cli.program import CANNOT, WRONG, report
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends import dxdispatch
from opendml.frontends.onnx.sizes import Sizes
from opendml.frontends.serialized.graph import read_graph
from opendml.json_files.node import JsonNode
from opendml.late_dataclass import dataclass
from opendml.runtime.graphs.compilable import compilable_of
from opendml.spec.enums import FeatureLevel
from opendml.spec.feature_level import as_feature_level, full_name
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.validator import failures
from opendml.spec.wording import shown


@dataclass(frozen=True)
class _Report:
    """The result for one model: the exit status, lines for people, and an object for programs."""

    status: int
    errors: Sequence[str]
    lines: Sequence[str] = ()
    as_json: dict[str, Any] = field(default_factory=dict)


def check_models(
    models: Sequence[Path],
    feature_level: str | None,
    runs: bool,
    as_json: bool,
    sizes: Sizes,
    allow_any_path: bool,
) -> int:
    """Check models, print the results, and return the highest exit status.

    Args:
        models: the files.
        feature_level: the level; None: the newest.
        runs: whether to report why a valid model cannot run.
        as_json: print JSON with all errors; otherwise errors go to standard error.
        sizes: sizes that ONNX models leave open.
        allow_any_path: whether JSON models may read and write all files.
    """
    level = as_feature_level(feature_level)
    reports = ((path, _checked(path, level, runs, sizes, allow_any_path)) for path in models)
    if as_json:
        found = list(reports)
        click.echo(json.dumps([{"file": str(path), **each.as_json} for path, each in found], indent=2))
        return max(each.status for _, each in found)
    status = 0
    for path, each in reports:
        prefix = f"{path}: " if len(models) > 1 else ""
        report(error if error.startswith(prefix) else prefix + error for error in each.errors)
        for line in each.lines:
            click.echo(prefix + line)
        status = max(status, each.status)
    return status


def _checked(path: Path, level: FeatureLevel, runs: bool, sizes: Sizes, any_path: bool) -> _Report:
    kind, obstacles = kind_of(path), tuple[str, ...]()
    errors, status, verdicts = tuple[str, ...](), 0, list[dict[str, Any]]()
    try:
        if kind is Kind.ONNX:
            return _onnx_report(path, sizes)
        if kind is Kind.GRAPH:
            named = [
                (where, where.partition(":")[2].removesuffix("]") or where, desc)
                for where, desc in read_graph(path).operators()
            ]
        else:
            root = dxdispatch.read(path)
            right, wrong = dxdispatch.examine(root)
            named = [
                (each.path, each.name, each.desc)
                for each in right.values()
                if isinstance(each.desc, OperatorDesc)
            ]
            errors = wrong.messages
            status = (WRONG if wrong.has_mistake else CANNOT) if errors else 0
        verdicts = [_verdict(*each, level, runs) for each in named]
        if runs and kind is Kind.JSON and not errors:
            obstacles = _obstacles(root, path, sizes, any_path)
    except InvalidArgument as error:
        errors, status = error.failures, WRONG
    except Error as error:
        errors, status = (str(error),), CANNOT
    if kind is Kind.ONNX:
        return _Report(status, errors, as_json={"errors": errors})
    if obstacles or any(not each.get("runs", each["valid"]) for each in verdicts):
        status = max(status, CANNOT)
    found: dict[str, Any] = {"feature_level": full_name(level), "errors": errors, "operators": verdicts}
    if runs:
        found |= {"runs": status == 0, "obstacles": obstacles}
    return _Report(status, errors, tuple(_lines(verdicts, obstacles, level)), found)


def _verdict(path: str, name: str, desc: OperatorDesc, level: FeatureLevel, runs: bool) -> dict[str, Any]:
    """Return the validity of an operator for JSON.

    "valid_from" is the first level from the requested one on at which it is valid. "runs" and "obstacle" are
    there only if `runs` asks for them.
    """
    broken, newer = tuple(failures(desc, level)), sorted(each for each in FeatureLevel if each > level)
    first = next((each for each in newer if not failures(desc, each)), None) if broken else level
    obstacle = _obstacle(desc) if runs and not broken else None
    found = {
        "name": name,
        "operator": desc.operator,
        "path": path,
        "valid": not broken,
        "valid_from": first and full_name(first),
        "failures": broken,
    }
    return found | ({"runs": not broken and obstacle is None, "obstacle": obstacle} if runs else {})


def _obstacle(desc: OperatorDesc) -> str | None:
    try:
        compilable_of(desc)
    except Unsupported as error:
        return str(error)
    return None


def _obstacles(root: JsonNode, path: Path, sizes: Sizes, any_path: bool) -> tuple[str, ...]:
    """Return why a well-formed model cannot be loaded, such as missing files, folders or libraries."""
    try:
        dxdispatch.parse_model(root, dxdispatch.Folders.of(path, any_path=any_path), sizes)
    except Error as error:
        return tuple(str(error).splitlines())
    return ()


def _lines(
    verdicts: Iterable[dict[str, Any]], obstacles: Iterable[str], level: FeatureLevel
) -> Iterator[str]:
    for each in verdicts:
        title = f"'{each['name']}' ({each['operator']})"
        if each["valid"]:
            end = f"; {each['obstacle'] or 'can be run'}" if "obstacle" in each else ""
            yield f"{title}: valid at {full_name(level)}{end}"
            continue
        newer = f"valid from {each['valid_from']}" if each["valid_from"] else "nor at any newer level"
        yield f"{title}: not valid at {full_name(level)}; {newer}"
        yield from (f"  {each['path']}: {failure}" for failure in each["failures"])
    yield from (f"cannot be run here: {obstacle}" for obstacle in obstacles)


def _onnx_report(path: Path, sizes: Sizes) -> _Report:
    """Report which nodes of an ONNX model do not become DirectML's operators, and why."""
    require_onnx()
    from opendml.frontends.onnx.check import check

    found = check(path, sizes)
    kinds = {
        "cannot run": found.unsupported,
        "on onnx's evaluator": found.evaluated,
        "known only when it runs": found.unknown,
    }
    inputs = ", ".join(f"{each.name} {shown(list(each.sizes or ()))}" for each in found.inputs) or "none"
    counts = "; ".join(f"{len(gaps)} {kind}" for kind, gaps in kinds.items() if gaps)
    lines = [
        f"opset {found.opset}, {found.nodes} nodes; inputs: {inputs}",
        counts or "all nodes run on DirectML operators",
        *(f"  {kind}: {gap.node}: {gap.reason}" for kind, gaps in kinds.items() for gap in gaps),
    ]
    gaps = {"unsupported": found.unsupported, "evaluated": found.evaluated, "unknown": found.unknown}
    report = {
        "errors": (),
        "opset": found.opset,
        "nodes": found.nodes,
        "inputs": [{"name": each.name, "sizes": each.sizes} for each in found.inputs],
        **{name: [{"node": gap.node, "reason": gap.reason} for gap in each] for name, each in gaps.items()},
    }
    return _Report(CANNOT if found.unsupported else 0, (), lines, report)
