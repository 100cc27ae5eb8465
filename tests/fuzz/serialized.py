"""Serialized graphs with damage: they run, or an error of opendml says why not, and soon."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import opendml as dml
from opendml import serialized
from opendml.errors import InvalidArgument
from opendml.frontends.serialized.flatbuffers import read_flatbuffer, write_flatbuffer
from opendml.runtime.program import tensors_of
from opendml.serialized import SerializedGraph, SerializedNode
from opendml.spec.validator import failures
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.fuzz.random_descs import any_desc

_MOST_BYTES = 1 << 24
"""Tensors that a graph is run with: damage may say any sizes."""
_LIMITS = dml.Limits(memory_bytes=1 << 28, kernel_steps=10**9, compile_seconds=8)
_WORDS = (0, 1, 4, 255, 65_535, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1)
_TEXTS: tuple[str, ...] = (
    "",
    "in0",
    "out0",
    "end0",
    "node",
    "constant",
    "\0",
    "..",
    "/dev/zero",
    "a" * 10_000,
    "\u00fc",
)
_TEXTS += ("DML_OPERATOR_ACTIVATION_RELU", "DML_TENSOR_DATA_TYPE_INT4", "DML_TENSOR_DATA_TYPE_FLOAT64")
_NUMBERS = (0, 1, 2, 3, 5, 8, 9, 255, 65_536, 2**31 - 1, -1, 2**31, 2**32 - 1, 2**63)


@dataclass(frozen=True)
class TableChange:
    """One place of a graph's tables that is something else.

    Attributes:
        what: "set", "remove", "repeat", or "place": as another place of its kind has it.
        place: which one, among all; counted from the start again where there are not so many.
        value: which of the values, or of the other places.
    """

    what: str
    place: int
    value: int


@dataclass(frozen=True, repr=False)
class OnSerialized(Case):
    """A graph of one operator, one input of which is constant, and of copies of its outputs, after damage.

    Attributes:
        seed: of the operator's desc.
        changes: of the graph's tables.
        damage: of the graph's file: the position of four bytes, and what stands there instead.
        length: what is left of the file; None: all.
    """

    seed: int
    changes: tuple[TableChange, ...] = ()
    damage: tuple[tuple[int, int], ...] = ()
    length: int | None = None

    @property
    def subject(self) -> str:
        return _desc(self.seed).operator

    def check(self) -> None:
        with TemporaryDirectory() as folder:
            path, *_ = serialized.write(_graph(_desc(self.seed)), Path(folder) / "graph.bin")
            root = read_flatbuffer(path.read_bytes(), "graph")
            for change in self.changes:
                _change(root, change)
            try:
                content = bytearray(write_flatbuffer(root))
            except (
                AttributeError,
                LookupError,
                OverflowError,
                TypeError,
                ValueError,
                struct.error,
            ):  # a change that no file can have
                return
            for position, word in self.damage:
                place = position % (len(content) - 3)
                content[place : place + 4] = word.to_bytes(4, "little")
            path.write_bytes(content[: self.length])
            try:
                _run(path)
            except dml.Error:
                return


def _run(path: Path) -> None:
    graph = serialized.read(path)
    tensors = [*graph.tensors("inputs").values(), *graph.tensors("outputs").values()]
    if sum(tensor.size_in_bytes for tensor in tensors) > _MOST_BYTES:
        return
    model = serialized.load(path, limits=_LIMITS)
    model.run({name: np.zeros(tensor.size_in_bytes, np.uint8) for name, tensor in model.inputs.items()})


@cache
def _desc(seed: int) -> dml.OperatorDesc:
    """A valid desc without tensors that are OWNED_BY_DML."""
    while True:
        try:
            desc = any_desc(Choices(seed))
            if not failures(desc):
                return desc
        except InvalidArgument:
            pass
        seed += 1


def _graph(desc: dml.OperatorDesc) -> SerializedGraph:
    inputs = _names(desc, "INPUT_TENSOR", "in")
    outputs = _names(desc, "OUTPUT_TENSOR", "out")
    nodes = [SerializedNode(desc, inputs, outputs, "node")]
    given = [name for name in inputs if name]
    tensors = [tensor for tensor in tensors_of(desc, "INPUT_TENSOR") if tensor is not None]
    if len(given) > 1:
        constant = np.zeros(tensors[-1].size_in_bytes, np.uint8)
        nodes.insert(0, SerializedNode(constant, (), (given.pop(),), "constant"))
    ends = list[str]()
    for name, tensor in zip(outputs, tensors_of(desc, "OUTPUT_TENSOR"), strict=True):
        if tensor is not None:
            ends.append(f"end{len(ends)}")
            copy = dml.descs.ElementWiseIdentity(tensor, tensor)
            nodes.append(SerializedNode(copy, (name,), (ends[-1],), "copy"))
    return SerializedGraph(tuple(given), tuple(ends), tuple(nodes))


def _change(root: dict[str, Any], change: TableChange) -> None:
    """Changes one place."""
    places = list(_places(root))
    holder, key = places[change.place % len(places)]
    found = holder[key]
    match change.what:
        case "remove" if isinstance(holder, list):
            del holder[key]
        case "remove":
            holder[key] = None
        case "repeat" if isinstance(holder, list):
            holder.append(deepcopy(found))
        case "place":
            alike = [
                each[at] for each, at in places if isinstance(each[at], type(found)) and type(at) is type(key)
            ]
            holder[key] = deepcopy(alike[change.value % len(alike)])
        case "set" if isinstance(found, str):
            holder[key] = _TEXTS[change.value % len(_TEXTS)]
        case "set" if isinstance(found, int | float):
            holder[key] = _NUMBERS[change.value % len(_NUMBERS)]
        case "set" if isinstance(found, np.ndarray):
            values = list(found)
            values.insert(change.value % (len(values) + 1), _NUMBERS[change.value % len(_NUMBERS)])
            holder[key] = np.asarray(values[change.value % 3 :]).astype(found.dtype)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of some tables: what holds it, and its name or number there."""
    keys = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
    for key in keys:
        yield value, key
        held = value[key]
        yield from _places(held[1] if isinstance(held, tuple) else held)


def _names(desc: dml.OperatorDesc, kind: str, name: str) -> tuple[str, ...]:
    tensors = tensors_of(desc, kind)
    return tuple("" if tensor is None else f"{name}{number}" for number, tensor in enumerate(tensors))


def make(choices: Choices) -> OnSerialized:
    """Any operator with up to four places of its tables or words of its file that are others, or a part of
    its file."""

    def change() -> TableChange:
        what = choices.of(("set", "set", "place", "remove", "repeat"))
        return TableChange(what, choices.below(10_000), choices.below(10_000))

    def word() -> int:
        return choices.of(_WORDS) if choices.below(2) else choices.below(512)

    seed = choices.below(10_000)
    if choices.below(2):
        return OnSerialized(seed, tuple(choices.several(change, 1, 4)))
    damage = choices.several(lambda: (choices.below(4096), word()), 0, 4)
    return OnSerialized(seed, (), tuple(damage), choices.below(1024) if choices.rarely(8) else None)
