"""Serialized graphs with damage: they run, or an error of opendml says why not, and soon."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import opendml as dml
from opendml import serialized
from opendml.errors import InvalidArgument
from opendml.runtime.program import tensors_of
from opendml.serialized import SerializedGraph, SerializedNode
from opendml.spec.validator import failures
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.fuzz.random_descs import any_desc

_MOST_BYTES = 1 << 24
"""Tensors that a graph is run with: damage may say any sizes."""
_WORDS = (0, 1, 4, 255, 65_535, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1)


@dataclass(frozen=True, repr=False)
class OnSerialized(Case):
    """A graph of one operator, one input of which is constant, after some damage.

    Attributes:
        seed: of the operator's desc.
        damage: of the graph's file: the position of four bytes, and what stands there instead.
        length: what is left of the file; None: all.
    """

    seed: int
    damage: tuple[tuple[int, int], ...] = ()
    length: int | None = None

    @property
    def subject(self) -> str:
        return _desc(self.seed).operator

    def check(self) -> None:
        with TemporaryDirectory() as folder:
            path, *_ = serialized.write(_graph(_desc(self.seed)), Path(folder) / "graph.bin")
            content = bytearray(path.read_bytes())
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
    model = serialized.load(path)
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
    return SerializedGraph(tuple(given), tuple(name for name in outputs if name), tuple(nodes))


def _names(desc: dml.OperatorDesc, kind: str, name: str) -> tuple[str, ...]:
    tensors = tensors_of(desc, kind)
    return tuple("" if tensor is None else f"{name}{number}" for number, tensor in enumerate(tensors))


def make(choices: Choices) -> OnSerialized:
    """Any operator with up to four words that are others, or a part of the file."""

    def word() -> int:
        return choices.of(_WORDS) if choices.below(2) else choices.below(512)

    seed = choices.below(10_000)
    damage = choices.several(lambda: (choices.below(4096), word()), 0, 4)
    return OnSerialized(seed, tuple(damage), choices.below(1024) if choices.rarely(8) else None)
