"""`opendml check`: judges the operators of a JSON model at a feature level."""

from __future__ import annotations

from pathlib import Path

import click

from opendml.frontends import dxdispatch
from opendml.spec.enums import FeatureLevel
from opendml.spec.feature_level import as_feature_level, full_name
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.validator import failures


def check_model(path: Path, feature_level: str | None) -> bool:
    """Prints for each dispatchable of the model whether it is valid at the level, with all failures; says
    whether all are. Raises InvalidArgument when the model is malformed."""
    level = as_feature_level(feature_level)
    valid = True
    for dispatchable in dxdispatch.load(path).dispatchables.values():
        broken = failures(dispatchable.desc, level)
        valid = valid and not broken
        title = f"'{dispatchable.name}' ({dispatchable.desc.operator})"
        if not broken:
            click.echo(f"{title}: valid at {full_name(level)}")
            continue
        click.echo(f"{title}: not valid at {full_name(level)}; {_first_valid(dispatchable.desc, level)}")
        for failure in broken:
            click.echo(f"  {dispatchable.path}: {failure}")
    return valid


def _first_valid(desc: OperatorDesc, level: FeatureLevel) -> str:
    newer = sorted(candidate for candidate in FeatureLevel if candidate > level)
    first = next((candidate for candidate in newer if not failures(desc, candidate)), None)
    return "nor at any newer level" if first is None else f"valid from {full_name(first)}"
