"""Saved models with damage under a digest that fits: they run, or an error says why not, and soon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import opendml as dml
from opendml.runtime.graphs.model import Model
from opendml.runtime.saved.container import Arrays, opened_file, packed_file
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices

_LIMITS = dml.Limits(memory_bytes=1 << 28, kernel_steps=10**9, compile_seconds=8)
_VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 8, 9, 64, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 10**30),
    *(0.5, -1e300, None, True, "", "x", "a" * 10_000, "FLOAT16", "INT4", "ELEMENT_WISE_ADD", "\0"),
    *([], {}, [0, 2**32 - 1, 2**32 - 1], [1] * 9, [[[]]], {"tensor": 0}, {"float": "nan"}),
)


@dataclass(frozen=True)
class JsonChange:
    """One place of the JSON that is something else.

    Attributes:
        what: "set", "remove", "repeat", or "place": as another place has it.
        place: which one, among all; counted from the start again where there are not so many.
        value: which of the values, or of the other places.
    """

    what: str
    place: int
    value: int


@dataclass(frozen=True, repr=False)
class OnSaved(Case):
    """A saved model after some changes.

    Attributes:
        name: of the model.
        changes: of its JSON.
    """

    name: str
    changes: tuple[JsonChange, ...]

    @property
    def subject(self) -> str:
        return self.name

    def check(self) -> None:
        program, arrays = _opened(self.name)
        program = deepcopy(program)
        for change in self.changes:
            _change(program, change)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.odml"
            path.write_bytes(packed_file(program, arrays))
            try:
                found = dml.load(path, limits=_LIMITS)
                if isinstance(found, Model):
                    given = zip(found.input_names, found._program.inputs, strict=False)
                    found(**{name: np.zeros(each.sizes, each.type.numpy) for name, each in given})
            except dml.Error:
                return


def make(choices: Choices) -> OnSaved:
    """Any of the models with up to four changes."""

    def change() -> JsonChange:
        what = choices.of(("set", "set", "place", "remove", "repeat"))
        return JsonChange(what, choices.below(10_000), choices.below(10_000))

    return OnSaved(choices.of(tuple(_models())), tuple(choices.several(change, 1, 4)))


def _change(program: dict[str, Any], change: JsonChange) -> None:
    """Changes one place."""
    places = list(_places(program))
    if not places:
        return
    holder, key = places[change.place % len(places)]
    match change.what:
        case "set":
            holder[key] = deepcopy(_VALUES[change.value % len(_VALUES)])
        case "remove":
            del holder[key]
        case "repeat" if isinstance(holder, list):
            holder.append(deepcopy(holder[key]))
        case "place":
            other, at = places[change.value % len(places)]
            holder[key] = deepcopy(other[at])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All members and elements within a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


@cache
def _opened(name: str) -> tuple[dict[str, Any], Arrays]:
    """The JSON of a model, and its arrays."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        _models()[name].save(path)
        data = path.read_bytes()
    node, content = opened_file(data)
    arrays = Arrays()
    arrays.parts = [bytes(content)]
    return json.loads(json.dumps(node.value)), arrays


@cache
def _models() -> dict[str, Any]:
    """A model of calls, one of descs, and an operator, each with constants where it can have them."""
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [1, 2, 4, 4])
    w = graph.constant(np.ones((2, 2, 3, 3), np.float32))
    y = dml.convolution(x, w, strides=[1, 1], dilations=[1, 1], start_padding=[1, 1], end_padding=[1, 1])
    z = dml.activation_softmax1(y[:, 1:].reshape(1, 1, 2, 8), axes=[3])
    device = dml.Device("reference")
    tensor = dml.TensorDesc(dml.FLOAT32, [2, 3])
    add = device.create_operator(dml.descs.ElementWiseAdd(tensor, tensor, tensor))
    desc = dml.GraphDesc(
        1,
        1,
        [dml.OperatorNode(add), dml.ConstantNode(np.ones((2, 3), np.float32))],
        [dml.InputEdge(0, 0, 0)],
        [dml.OutputEdge(0, 0, 0)],
        [dml.IntermediateEdge(1, 0, 0, 1)],
    )
    return {
        "calls": graph.compile({"z": z, "y": y}, device),
        "descs": device.compile_graph(desc),
        "operator": device.compile_operator(add),
    }
