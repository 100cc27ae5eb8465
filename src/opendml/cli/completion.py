"""What the shell completes: names of operators, feature levels and devices."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def operators(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The operators whose names, or whose names without their family, begin so."""
    from opendml.spec.schema import operators as known

    wanted = incomplete.upper().replace("-", "_")
    prefixes = ("", "ACTIVATION_", "ELEMENT_WISE_")
    return [
        CompletionItem(name, help=facts.summary)
        for name, facts in known().items()
        if any(name.startswith(prefix + wanted) for prefix in prefixes)
    ]


def levels(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The feature levels, newest first, in the form that was begun."""
    from opendml.spec.enums import FeatureLevel
    from opendml.spec.feature_level import full_name, short_name

    named = [name(level) for name in (short_name, full_name) for level in sorted(FeatureLevel, reverse=True)]
    found = [name for name in named if name.startswith(incomplete)]
    return found if incomplete else [name for name in found if name[0].isdigit()]


def devices(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The kinds of devices."""
    from opendml.targets.registry import KINDS

    return [kind for kind in KINDS if kind.startswith(incomplete)]
