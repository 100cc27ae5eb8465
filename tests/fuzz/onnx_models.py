"""ONNX models with damage: they run, or an error of opendml says why not, and soon."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

import opendml as dml
import opendml.onnx
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.fuzz.onnx_graphs import drafted, model_of

_INTEGERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    8,
    9,
    10,
    16,
    100,
    2**20,
    2**31 - 1,
    -(2**31),
    2**31,
    2**40,
    2**63 - 1,
    -(2**63),
)
_FLOATS = (0.0, -1.0, 1e38, float("inf"), float("nan"), 1e-45, 3.5)
_TEXTS = (
    "",
    "x",
    "t1",
    "\0",
    "ai.onnx",
    "com.microsoft",
    "../x",
    "/dev/zero",
    "w.bin",
    "0",
    "-1",
    "a" * 10_000,
)
_MOST_ELEMENTS = 1 << 20
"""Of inputs that a model is run with: damage may say any sizes."""
_LIMITS = dml.Limits(
    memory_bytes=1 << 28, kernel_steps=10**9, compile_seconds=8, evaluator_steps=10**7, evaluator_seconds=5
)
"""Damage may ask for anything, which it would have a right to by default."""


@dataclass(frozen=True)
class Change:
    """One place of a model that is something else.

    Attributes:
        what: "set" a field, "remove" it, "repeat" it, exchange it for that of another "place", make a tensor
            "external", or make it "long".
        place: which field, among all; counted from the start again where there are not so many.
        value: which of the values, or of the other places.
    """

    what: str
    place: int
    value: int


@dataclass(frozen=True, repr=False)
class OnOnnxModel(Case):
    """A model of random nodes after some damage.

    Attributes:
        choices: of the generator of nodes.
        changes: of the message.
        damage: of the bytes of the file: a position, and what stands there instead.
        length: what is left of the file; None: all.
    """

    choices: tuple[int, ...]
    changes: tuple[Change, ...] = ()
    damage: tuple[tuple[int, int], ...] = ()
    length: int | None = None

    def check(self) -> None:
        model = base(self.choices)
        for change in self.changes:
            _change(model, change)
        try:
            content = bytearray(model.SerializeToString())
        except ValueError:  # a change that no file can have
            return
        for position, byte in self.damage:
            content[position % len(content)] = byte
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (Path(folder) / "w.bin").write_bytes(bytes(4096))
            path = Path(folder) / "model.onnx"
            path.write_bytes(content[: self.length])
            refusal = _refusal(path)
            assert refusal is None or "model.onnx" in refusal, f"no file in: {refusal}"


def make(choices: Choices) -> OnOnnxModel:
    """Any graph of nodes with up to four changes, or other bytes, or a part of the file."""
    what = ("set", "set", "place", "place", "remove", "repeat", "external", "long")

    def change() -> Change:
        return Change(choices.of(what), choices.below(10_000), choices.below(10_000))

    start = len(choices.tape)
    model_of(drafted(choices))
    graph = tuple(choices.tape[start:])
    if choices.rarely(4):
        damage = choices.several(lambda: (choices.below(10_000), choices.below(256)), 1, 8)
        return OnOnnxModel(graph, (), tuple(damage), choices.below(4096) if choices.rarely(8) else None)
    return OnOnnxModel(graph, tuple(choices.several(change, 1, 4)))


def base(choices: tuple[int, ...]) -> onnx.ModelProto:
    """The model before its damage."""
    return model_of(drafted(Choices(tape=choices)))


def _refusal(path: Path) -> str | None:
    """What the error says; None: it runs."""
    try:
        _run(path)
    except dml.Error as error:
        return str(error)
    return None


def _run(path: Path) -> None:
    model = dml.onnx.load(path, "reference", limits=_LIMITS)
    feed = {}
    for each in model.inputs:
        if each.type is None:
            return
        sizes = [size if isinstance(size, int) and size > 0 else 2 for size in each.sizes or ()]
        if np.prod([1.0, *sizes]) > _MOST_ELEMENTS or len(sizes) > 32:
            return
        feed[each.name] = np.ones(sizes, each.type)
    for _ in range(2):
        model.run(feed)


def _change(model: onnx.ModelProto, change: Change) -> None:
    """Changes one place; nothing where there is none of its kind."""
    places = list(_places(model))
    message, field, index = places[change.place % len(places)]
    values = getattr(message, field.name)
    match change.what:
        case "set" if field.type != field.TYPE_MESSAGE:
            _put(message, field, index, _value(field, change.value))
        case "remove":
            if index is None:
                message.ClearField(field.name)
            else:
                del values[index]
        case "repeat" if index is not None:
            values.append(values[index])
        case "long" if index is not None and field.type != field.TYPE_MESSAGE:
            values.extend([values[index]] * (change.value % 300))
        case "place":
            others = [
                each
                for each in places
                if each[1].type == field.type and _kind(each) == _kind(places[change.place % len(places)])
            ]
            other, there, number = others[change.value % len(others)]
            found = getattr(other, there.name) if number is None else getattr(other, there.name)[number]
            _put(message, field, index, found)
        case "external":
            tensors = [each for each in _messages(model) if isinstance(each, onnx.TensorProto)]
            if tensors:
                _externalize(tensors[change.place % len(tensors)], change.value)


def _kind(place: tuple[Any, Any, int | None]) -> str | None:
    """The type of the message that stands at a place."""
    return place[1].message_type.full_name if place[1].message_type else None


def _externalize(tensor: onnx.TensorProto, value: int) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for number, key in enumerate(("location", "offset", "length", "checksum")):
        if value >> number & 1:
            text = (
                ("w.bin", *_TEXTS)[value % 13]
                if key == "location"
                else str(_INTEGERS[value % len(_INTEGERS)])
            )
            tensor.external_data.add(key=key, value=text)


def _value(field: Any, number: int) -> Any:
    if field.type == field.TYPE_STRING:
        return _TEXTS[number % len(_TEXTS)]
    if field.type == field.TYPE_BYTES:
        return (
            b"",
            b"x",
            b"\xff" * 3,
            struct.pack("<q", _INTEGERS[number % len(_INTEGERS)]) * (1 + number % 3),
        )[number % 4]
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return _FLOATS[number % len(_FLOATS)]
    return _INTEGERS[number % len(_INTEGERS)]


def _put(message: Any, field: Any, index: int | None, value: Any) -> None:
    """Sets a field, if it may have that value."""
    try:
        if field.type == field.TYPE_MESSAGE:
            copied = type(value)()
            copied.CopyFrom(value)
            (getattr(message, field.name) if index is None else getattr(message, field.name)[index]).CopyFrom(
                copied
            )
        elif index is None:
            setattr(message, field.name, value)
        else:
            getattr(message, field.name)[index] = value
    except (TypeError, ValueError):
        return


def _places(message: Any) -> Iterator[tuple[Any, Any, int | None]]:
    """Every field of a message and of those in it, with the index in a list."""
    for each in _messages(message):
        for field, value in each.ListFields():
            if _is_list(value):
                yield from ((each, field, index) for index in range(min(len(value), 64)))
            else:
                yield each, field, None


def _messages(message: Any) -> Iterator[Any]:
    """A message and all that is in it."""
    yield message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in value if _is_list(value) else (value,):
                yield from _messages(each)


def _is_list(value: Any) -> bool:
    return hasattr(value, "append") or hasattr(value, "add")
