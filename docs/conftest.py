"""The code blocks of the pages are tests: Python blocks run in order, console blocks print what they show."""

from __future__ import annotations

import shlex
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

import pytest
from click.testing import CliRunner
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

from opendml.cli import main


class ConsoleBlockParser(CodeBlockParser):  # type: ignore[misc]  # sybil is not read by mypy
    """Blocks of the language "console": a command after each "$ ", and what it prints; "..." is any text."""

    language = "console"

    def evaluate(self, example: Example) -> str | None:
        """Return what differs, or None."""
        shown = str(example.parsed).strip()
        printed = "\n".join(
            f"$ {command}\n{_output(command)}".strip()
            for command in (line[2:] for line in shown.splitlines() if line.startswith("$ "))
        )
        same = OutputChecker().check_output(shown, printed, ELLIPSIS)
        return None if same else f"expected:\n{shown}\n\nprinted:\n{printed}"


def _output(command: str) -> str:
    program, *arguments = shlex.split(command)
    assert program == "opendml", command
    output = CliRunner().invoke(main, arguments).output
    return "\n".join(line.rstrip() for line in output.splitlines())


@pytest.fixture
def at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run examples in the top folder of the repository, from which their paths are seen."""
    monkeypatch.chdir(Path(__file__).parents[1])


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS), ConsoleBlockParser(), SkipParser()],
    patterns=["*.md"],
    fixtures=["at_the_top"],
).pytest()
