"""Models that were changed at random: the commands answer each with an exit status, and never a traceback."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from opendml.cli import main
from opendml.json_files import text as json_text

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.json"))
COMMANDS = [["run", "--device", "reference"], ["check"], ["check", "--json"], ["check", "--runs"]]
VALUES: list[Any] = [
    *[None, True, 0, 1, -1, 7, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 10**400, 0.5, -0.0, 1e-300, 1e308],
    *["", "x", "nan", "-inf", "\0", "\ud800", "ü" * 300, ".", "/", "/dev/null", "a.png", "FLOAT16", "INT4"],
    *["UNKNOWN", "OWNED_BY_DML", "deferred", [], [[]], [None], [1, 2, 3], [0] * 9, [2**32 - 1] * 4, {}],
    *[{"": {}}, {"type": "ACTIVATION_RELU"}, {"name": "x"}, {"sourcePath": "."}, {"Float32": 1}],
    {"valueCount": 5, "valueStart": 1, "valueDelta": "inf"},
]
NAMES = (
    *("Type", "Desc", "Strides", "Flags", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment"),
    *("elementOffset", "elementCount", "sizeInBytes", "initialValuesOffsetInBytes", "bindings", "dimensions"),
    *("executionFlags", "FusedActivation", "ScaleBias", "x\ud800"),
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each array or object inside of `value`, with each of its indices or names."""
    for key, child in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(child, dict | list):
            yield from _places(child)


def _mutated(model: Any, draw: random.Random) -> str:
    """The model's text after a few changes to its values, and sometimes to its characters."""
    model = copy.deepcopy(model)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 6])):
        places = list(_places(model))
        if not places:
            break
        parent, key = draw.choice(places)
        other, other_key = draw.choice(places)
        match draw.choice(["replace", "replace", "copy", "remove", "add"]):
            case "replace":
                parent[key] = copy.deepcopy(draw.choice(VALUES))
            case "copy":
                parent[key] = copy.deepcopy(other[other_key])
            case "remove":
                del parent[key]
            case "add":
                value = copy.deepcopy(draw.choice([other[other_key], *VALUES]))
                if isinstance(parent, list):
                    parent.append(value)
                else:
                    parent[draw.choice(NAMES)] = value
    text = list(json.dumps(model))
    for _ in range(draw.choice([0, 0, 0, 1, 3])):
        text[draw.randrange(len(text))] = draw.choice('{}[],:"\\/*0e-')
    return "".join(text)


@pytest.mark.parametrize("seed", range(20))
def test_mutated_models_are_answered(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw = random.Random(seed)
    models = [json_text.read(path) for path in EXAMPLES]
    for index in range(20):
        path = tmp_path / "model.json"
        path.write_text(_mutated(draw.choice(models), draw))
        result = CliRunner().invoke(main, [*draw.choice(COMMANDS), str(path)])
        if not isinstance(result.exception, SystemExit | None):
            pytest.fail(f"{index}: {path.read_text()}: {result.exception!r}")
        assert result.exit_code in (0, 1, 2)
        assert all(line.startswith("Error: ") for line in result.stderr.splitlines())
