"""`python -m tools.paragraphs` names torn paragraphs of comments and docstrings; `--write` fills them again.

A paragraph is torn where a line ends early although the next word would have fitted. Only prose is looked at:
lists, code, tables, formulas, and whatever else is indented or aligned, stay as they are.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "tests", "tools", "benchmarks", "examples", "docs")
WIDTH = 110
EARLY = 24
"""Columns that a line leaves empty, from which on it ends early. A break before a formula leaves fewer."""

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Note|Example|Examples):")
_ENTRIES = ("Args:", "Attributes:", "Raises:")
_ENTRY = re.compile(r"\*{0,2}[\w.]+(, [\w.]+)*( \([^)]*\))?: ")
_MARK = re.compile(
    r"(>>>|\.\.\.|`\w+`: |[-+*•] |\d+[.)] |\||```|~~~|[:.@!]\w|(type|noqa|fmt|mypy|ruff|pragma)\b)"
)
_ALIGNED = re.compile(r"\S  +\S")
_DIRECTIVE = re.compile(r"#\s*(type|noqa|fmt|mypy|ruff|pragma|isort)\b|#!")


@dataclass
class Paragraph:
    """Prose on the lines `start` to `stop` of a file.

    Attributes:
        first: what stands in front of the text of the first line: indentation, and the mark of a comment or
            docstring.
        later: what stands in front of the text of the other lines.
        texts: the lines without that.
        end: what stands behind the last line: closing quotes, or nothing.
        closed_below: the closing quotes of a docstring of this paragraph alone have a line of their own.
    """

    start: int
    first: str
    later: str
    texts: list[str]
    end: str = ""
    closed_below: bool = False

    @property
    def stop(self) -> int:
        """The line behind the last one."""
        return self.start + len(self.texts) + self.closed_below

    @property
    def is_torn(self) -> bool:
        """Whether a line ends early although the first word of the next one would have fitted."""
        last = len(self.texts) - 1
        for index, (text, following) in enumerate(pairwise(self.texts)):
            word, *others = following.split(" ", 1)
            closing = self.end if index + 1 == last and not others else ""
            used = len(self.later if index else self.first) + len(text)
            if used <= WIDTH - EARLY and used + len(f" {word}{closing}") <= WIDTH:
                return True
        return False

    def filled(self) -> list[str] | None:
        """The lines again, each as full as it can be.

        None where one would no longer be prose, or where a docstring's one line has no room for its quotes.
        """
        lines = textwrap.wrap(
            " ".join(self.texts),
            WIDTH,
            initial_indent=self.first,
            subsequent_indent=self.later,
            break_long_words=False,
            break_on_hyphens=False,
        )
        if not all(_is_prose(line.removeprefix(self.later)) for line in lines[1:]):
            return None
        fits = len(lines[-1]) + len(self.end) <= WIDTH
        if len(lines) == 1 and not fits:
            return None
        if not fits or (self.closed_below and len(lines) > 1):
            return [*lines, f"{self.later}{self.end}"]
        return [*lines[:-1], lines[-1] + self.end]


def paragraphs(source: str) -> list[Paragraph]:
    """The paragraphs of all comments and docstrings of a Python file, in their order."""
    lines = source.splitlines()
    found = [*_in_comments(lines, source), *_in_docstrings(lines, ast.parse(source))]
    return sorted(found, key=lambda paragraph: paragraph.start)


def mended(source: str) -> str:
    """The file with its torn paragraphs filled."""
    lines = source.splitlines()
    for paragraph in reversed(paragraphs(source)):
        if paragraph.is_torn and (filled := paragraph.filled()):
            lines[paragraph.start : paragraph.stop] = filled
    result = "\n".join(lines) + "\n"
    assert _meaning(result) == _meaning(source)
    return result


def torn(source: str) -> list[int]:
    """The first lines, from 1, of the paragraphs that can be mended."""
    return [each.start + 1 for each in paragraphs(source) if each.is_torn and each.filled()]


def _in_comments(lines: list[str], source: str) -> Iterator[Paragraph]:
    """The paragraphs of comments that have lines of their own, if any have more than one line."""
    begins = [line.lstrip().startswith("#") for line in lines]
    if not any(above and below for above, below in pairwise(begins)):
        return  # Tokens of all files take 5 seconds, and one line is never torn.
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    alone = {
        token.start[0] - 1: token.start[1]
        for token in tokens
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
    }
    block: list[tuple[int, str]] = []
    indent = -1
    for number in [*alone, len(lines) + 1]:
        column = alone.get(number, -1)
        text = lines[number][column + 1 :] if number in alone else ""
        starts = not block or number != block[-1][0] + 1 or column != indent
        if starts or _DIRECTIVE.match("#" + text):
            yield from _prose(block, " " * indent + "# ")
            block = []
        indent = column
        if number in alone and not _DIRECTIVE.match("#" + text):
            block.append((number, text[1:] if text.startswith(" ") else text))


def _prose(block: Iterable[tuple[int, str]], prefix: str) -> Iterator[Paragraph]:
    """The paragraphs within numbered lines whose common indentation is cut off."""
    current: Paragraph | None = None
    for number, text in block:
        is_prose = _is_prose(text)
        if is_prose and current:
            current.texts.append(text)
        elif is_prose:
            current = Paragraph(number, prefix, prefix, [text])
        if current and (not is_prose or text.endswith(":")):
            yield current
            current = None
    if current:
        yield current


def _is_prose(text: str) -> bool:
    return bool(text) and not text[0].isspace() and not _MARK.match(text) and not _ALIGNED.search(text)


def _in_docstrings(lines: list[str], tree: ast.AST) -> Iterator[Paragraph]:
    """The paragraphs of strings that are statements, on more than one line."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        value = node.value
        last = (value.end_lineno or value.lineno) - 1
        if (
            not isinstance(value.value, str)
            or last < value.lineno
            or "\\\n" in "\n".join(lines[value.lineno - 1 : last])
        ):
            continue
        yield from _in_docstring(lines, value.lineno - 1, last, " " * value.col_offset)


def _in_docstring(lines: list[str], start: int, last: int, indent: str) -> Iterator[Paragraph]:
    opening = re.match(r'\s*r?"""', lines[start])
    if not opening or not lines[last].endswith('"""'):
        return
    texts = [lines[start][opening.end() :]]
    texts += [line.removeprefix(indent) for line in lines[start + 1 : last]]
    closing = lines[last].removeprefix(indent).removesuffix('"""')
    texts += [closing] if closing.strip() else []
    for paragraph in _split(texts, start, indent):
        if paragraph.start == start:
            paragraph.first = opening[0]
        if closing.strip() and paragraph.stop == last + 1:
            paragraph.end = '"""'
        elif paragraph.start == start and paragraph.stop == last:
            paragraph.end, paragraph.closed_below = '"""', True
        yield paragraph


def _split(texts: list[str], start: int, indent: str) -> Iterator[Paragraph]:
    """The paragraphs at the docstring's own indentation, and those of its sections."""
    free: list[tuple[int, str]] = []
    index = 0
    while index < len(texts):
        if not _SECTION.fullmatch(texts[index]):
            free.append((start + index, texts[index]))
            index += 1
            continue
        yield from _prose(free, indent)
        free = []
        body = index + 1
        while body < len(texts) and texts[body].startswith("    "):
            body += 1
        inner = [(start + number, texts[number][4:]) for number in range(index + 1, body)]
        entries = texts[index] in _ENTRIES
        yield from (_entries if entries else _prose)(inner, indent + "    ")
        index = body
    yield from _prose(free, indent)


def _entries(block: Iterable[tuple[int, str]], prefix: str) -> Iterator[Paragraph]:
    """The entries of a section, "name: text", whose later lines are indented once more, or should be."""
    current: Paragraph | None = None
    for number, text in block:
        within = _is_prose(text.strip())
        if not text[:1].isspace() and _ENTRY.match(text):
            if current:
                yield current
            current = Paragraph(number, prefix, prefix + "    ", [text])
        elif current and within and not text.startswith("     "):
            current.texts.append(text.strip())
        else:
            if current:
                yield current
            current = None
    if current:
        yield current


def _meaning(source: str) -> tuple[str, list[str]]:
    """The program, and the words of its comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            node.value.value = " ".join(node.value.value.split())
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string.lstrip("#") for token in tokens if token.type == tokenize.COMMENT]
    return ast.dump(tree), " ".join(comments).split()


def written_files() -> list[Path]:
    """The Python files that are not generated."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [
        path for path in files if "\nGenerated from opendml/spec/data" not in path.read_text("utf-8")[:600]
    ]


def main(arguments: list[str]) -> int:
    """Names or mends; 1 where torn paragraphs were left."""
    left = False
    for path in written_files():
        source = path.read_text("utf-8")
        if "--write" in arguments:
            if (result := mended(source)) != source:
                path.write_text(result, "utf-8")
            continue
        for line in torn(source):
            left = True
            print(f"{path.relative_to(ROOT)}:{line}")
    return int(left)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
