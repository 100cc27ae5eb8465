"""`opendml explain`: shows which kernels the operators of a JSON model become, and where their time goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from opendml.cli.console import console
from opendml.errors import InvalidArgument, Unsupported
from opendml.explain.explanation import Explanation
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch.model import Dispatchable
from opendml.runtime.objects.device import Device
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.wording import shown


def explain_model(
    path: Path,
    device: Device,
    *,
    dispatchable: str | None,
    html: Path | None,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Compiles and measures the dispatchables of a model, and prints or writes what was found.

    Args:
        path: the model.
        device: where it runs.
        dispatchable: the name of the only one that counts; None: all of them.
        html: where the page of one dispatchable is written.
        trace: where its trace is.
        as_json: print an object with the dispatchables by name.

    Raises:
        Error: the model is wrong or cannot be run here, or a file is asked for and it has several.
    """
    chosen = _chosen(dxdispatch.parse_operators(dxdispatch.read(path)), dispatchable)
    if (html or trace) and len(chosen) != 1:
        raise InvalidArgument(
            f"{path}: {len(chosen)} dispatchables, and a page or a trace shows one; name it with "
            f"--dispatchable: {', '.join(chosen)}"
        )
    found = {name: _explained(each, name, device) for name, each in chosen.items()}
    for file, kind in ((html, "html"), (trace, "trace")):
        if file is not None:
            for explanation in found.values():
                file.write_text(getattr(explanation, kind)(), encoding="utf-8")
    if as_json:
        click.echo(json.dumps({name: each.as_dict() for name, each in found.items()}, indent=2))
        return
    for name, explanation in found.items():
        console().print(f"'{name}':")
        console().print(explanation)


def _explained(dispatchable: Dispatchable, name: str, device: Device) -> Explanation:
    if not isinstance(dispatchable.desc, OperatorDesc):
        raise Unsupported(f"dispatchable {shown(name)}: no operator; explain shows operators of JSON models")
    return device.compile_operator(device.create_operator(dispatchable.desc)).explain()


def _chosen(dispatchables: Mapping[str, Dispatchable], name: str | None) -> Mapping[str, Dispatchable]:
    if name is None:
        return dispatchables
    if name not in dispatchables:
        raise InvalidArgument(
            f"dispatchable {shown(name)}: unknown; the model has {', '.join(dispatchables)}"
        )
    return {name: dispatchables[name]}
