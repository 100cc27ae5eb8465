"""JSON models with mistakes: they run, or an error of opendml says why not, and soon."""

from __future__ import annotations

import re
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import opendml as dml
from opendml.budget import metered
from opendml.frontends import dxdispatch
from tests.conftest import SHARED
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices

_LIMITS = dml.Limits(memory_bytes=1 << 30, kernel_steps=10**10, compile_seconds=8)
ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "examples", SHARED / "models" / "dxdispatch")
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|[-+.\w]+|\s+|.', re.DOTALL)
REPLACEMENTS = Path(__file__).with_name("replacements.txt").read_text(encoding="utf-8").splitlines()
"""Python expressions of texts that replace tokens."""


@dataclass(frozen=True)
class Edit:
    """Tokens from `start` up to `stop` give way to what a Python expression gives."""

    start: int
    stop: int
    text: str


@dataclass(frozen=True, repr=False)
class OnModel(Case):
    """A model file after some edits, which concern the tokens of the file as it is.

    Attributes:
        name: of the file.
        edits: of its tokens.
        damage: bytes of the data files beside it: a position, and what stands there instead.
    """

    name: str
    edits: tuple[Edit, ...]
    damage: tuple[tuple[int, int], ...] = ()

    @property
    def subject(self) -> str:
        return self.name

    def check(self) -> None:
        source = next(folder / self.name for folder in FOLDERS if (folder / self.name).is_file())
        tokens = list(_tokens(source))
        for edit in sorted(self.edits, key=lambda edit: edit.start, reverse=True):
            tokens[edit.start : edit.stop] = [eval(edit.text)]
        with TemporaryDirectory() as folder, chdir(folder):
            path = Path(folder) / self.name
            for other in source.parent.glob("*.[dn][ap][ty]"):
                content = bytearray(other.read_bytes())
                for position, byte in self.damage:
                    content[position % len(content)] = byte
                (Path(folder) / other.name).write_bytes(content)
            path.write_bytes("".join(tokens).encode("utf-8", "surrogatepass"))
            try:
                with metered(_LIMITS):
                    for _ in dxdispatch.prepare(dxdispatch.load(path), dml.Device("cpu")).run():
                        pass
            except dml.Error:
                return


def make(choices: Choices) -> OnModel:
    """Any model with up to three edits."""
    paths = _models()
    path = choices.of(paths)
    count = len(_tokens(path))

    def edit() -> Edit:
        start = choices.below(count)
        stop = start + choices.of((1, 0, 2, 5, 20))
        text = choices.of(REPLACEMENTS) if choices.below(3) else repr("".join(_some(choices, path)))
        return Edit(start, min(stop, count), text)

    edits = tuple(choices.several(edit, 0, 3))
    damage = choices.several(lambda: (choices.below(160), choices.below(256)), 0, 3)
    return OnModel(path.name, edits, tuple(damage))


def _some(choices: Choices, path: Path) -> tuple[str, ...]:
    """A few tokens in a row from the same file."""
    tokens = _tokens(path)
    start = choices.below(len(tokens))
    return tokens[start : start + choices.of((1, 3, 10, 40))]


@cache
def _models() -> list[Path]:
    return [path for folder in FOLDERS if folder.is_dir() for path in sorted(folder.glob("*.json"))]


@cache
def _tokens(path: Path) -> tuple[str, ...]:
    """The words, signs and gaps of a file."""
    return tuple(TOKEN.findall(path.read_text()))
