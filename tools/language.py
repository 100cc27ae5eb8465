"""`python -m tools.language [PATH ...]` checks the prose of sources; `make lint` runs it.

It reports docstrings that do not begin with a full statement, or that say no more than a name. It reports
sentences that are too long, words in `_VAGUE`, and public classes of the package that share a name. It reads
the package and the folders in `OTHERS`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "opendml"
OTHERS = tuple(ROOT / each for each in ("examples", "docs", "tools/docs", "tools/generate"))
"""Folders outside of the package whose prose is checked."""

SHARED_NAMES = ("directml.py", "pydirectml", "frontends/pydirectml", "frontends/onnxruntime")
"""Rooms whose public class names another library prescribes."""

MOST_WORDS = 28
"""Words of the longest sentence. The aim is 25; code in backticks counts as one word."""

_OPENINGS = {"What", "Of", "As", "So", "Whether", "How", "Where", "Which", "Likewise", "The same"}
_NO_IMPERATIVE = {
    *("The", "A", "An", "All", "Every", "Each", "It", "Its", "This", "These", "That", "Those", "They"),
    *("One", "Two", "If", "When", "In", "On", "With", "Without", "For", "From", "By", "To", "At", "Not"),
    *("No", "Nothing", "And", "Or", "But", "Also", "Their", "Only", "True", "False", "Some", "Any"),
}
_IMPERATIVES_IN_S = {"Bias", "Focus", "Canvas", "Alias"}
_STATES_CONDITIONS = {"rule", "shape"}
_STATES_FORMULAS_OR_TITLES = {"defines", "defines_scaled", "group"}
_VAGUE = ("so many", "whether so", "likewise")
"""Words that make a reader search for what they refer to. A name such as `count` says it."""

_SAYS_NOTHING = re.compile(r"(Return|Add|Check|Convert) ((a|an|the) )?[a-z]+\.?$|(A|An|The|One) \w+\.?$")
_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Note|Example|Examples|Tensors):$")
_ENTRY = re.compile(r"\s*\*{0,2}[`\w.]+(, [`\w.]+)*( \([^)]*\))?: ")
_CODE = re.compile(r"\s*(>>>|\.\.\.|\||```|~~~|[-+*•] |\d+[.)] )")
_DIRECTIVE = re.compile(r"#\s*(type|noqa|fmt|mypy|ruff|pragma|isort)\b|#!")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"']?\s+(?=[A-Z`\"'(>])|;\s+|:\s")


class Finding(NamedTuple):
    """A place in a source file whose prose breaks a rule."""

    path: Path
    line: int
    text: str


def findings(path: Path) -> list[Finding]:
    """Return what is wrong with the docstrings and comments of one file, in the order of lines."""
    source = path.read_text("utf-8")
    found = [*_of_docstrings(ast.parse(source)), *_of_comments(source)]
    return [Finding(path, line, text) for line, text in sorted(found)]


def shared_class_names(paths: Iterable[Path]) -> list[Finding]:
    """Return the public classes of these files whose names another one has taken before."""
    classes: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    for path in paths:
        if path.relative_to(PACKAGE).as_posix().startswith(SHARED_NAMES):
            continue
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append((path, node.lineno))
    return [
        Finding(path, line, f"class {name} is also in {places[0][0].relative_to(PACKAGE)}")
        for name, places in classes.items()
        for path, line in places[1:]
    ]


def _of_docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if text := ast.get_docstring(node):
            line = node.body[0].lineno
            yield from _of_prose(line, text)
            if wrong := _wrong_opening(node, text):
                yield line, wrong
        for before, after in pairwise(node.body):
            match before, after:
                case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(text))):
                    yield from _of_prose(after.lineno, text)
                    if wrong := _forbidden(text):
                        yield after.lineno, wrong


def _wrong_opening(node: ast.AST, text: str) -> str | None:
    decorators = {_name(each) for each in getattr(node, "decorator_list", ())}
    if decorators & _STATES_CONDITIONS:
        return None
    if wrong := _forbidden(text):
        return wrong
    word = _first_word(text)
    first = text.partition("\n\n")[0]
    if decorators & _STATES_FORMULAS_OR_TITLES or any("property" in each for each in decorators):
        return None
    if _SAYS_NOTHING.match(first):
        return f"{first!r} says no more than a name"
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    third_person = re.fullmatch(r"[A-Z][a-z]+[^s]s", word) and word not in _IMPERATIVES_IN_S
    is_noun = not re.match(r"[A-Z][a-z]+ (?!of\b)", text)
    if word in _NO_IMPERATIVE or third_person or is_noun:
        return f"begins with {first.split()[0]!r}; a function's docstring begins with an imperative"
    return None


def _forbidden(text: str) -> str | None:
    word = "The same" if text.startswith("The same") else _first_word(text)
    return f"begins with {word!r}, which begins no statement" if word in _OPENINGS else None


def _name(decorator: ast.expr) -> str:
    inner = decorator.func if isinstance(decorator, ast.Call) else decorator
    return inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")


def _first_word(text: str) -> str:
    return re.match(r"\W*(\w*)", text)[1]  # type: ignore[index]


def _of_comments(source: str) -> Iterator[tuple[int, str]]:
    block: list[str] = []
    last = start = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        line = token.start[0]
        if line != last + 1:
            yield from _of_prose(start, "\n".join(block))
            block, start = [], line
        block.append(token.string[1:].removeprefix(" "))
        last = line
    yield from _of_prose(start, "\n".join(block))


def _of_prose(line: int, text: str) -> Iterator[tuple[int, str]]:
    for offset, paragraph in _paragraphs(text):
        plain = re.sub(r"`[^`]*`", "`code`", paragraph)
        for sentence in _SENTENCE_END.split(plain):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > MOST_WORDS:
                yield line + offset, f"a sentence of {len(words)} words: {' '.join(words[:8])} ..."
            for vague in _VAGUE:
                if re.search(rf"\b{vague}\b", sentence, re.IGNORECASE):
                    yield line + offset, f"{vague!r}, which names nothing: {' '.join(words[:8])} ..."


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of prose with their first lines, from 0; lists, code and formulas are left out."""
    current: list[str] = []
    start = 0
    in_section = False
    for number, line in enumerate([*text.splitlines(), ""]):
        in_section = bool(_SECTION.match(line)) or (in_section and (not line or line.startswith(" ")))
        is_code = bool(_CODE.match(line)) or (line.startswith("    ") and not in_section)
        if not line.strip() or is_code or _ENTRY.match(line) or _SECTION.match(line):
            if current:
                yield start, " ".join(current)
            current = []
        if line.strip() and not is_code and not _SECTION.match(line):
            start = number if not current else start
            current.append(_ENTRY.sub("", line).strip())


def main(arguments: list[str]) -> int:
    """Print the findings in these files or folders, or in all; return 1 if there are any."""
    every = sorted(PACKAGE.rglob("*.py"))
    others = sorted(path for folder in OTHERS for path in folder.rglob("*.py"))
    roots = [Path(each).resolve() for each in arguments] or [ROOT]
    asked = [path for path in (*every, *others) if any(root in (path, *path.parents) for root in roots)]
    found = [finding for path in asked for finding in findings(path)]
    found += [finding for finding in shared_class_names(every) if finding.path in asked]
    for path, line, text in found:
        print(f"{path.relative_to(ROOT)}:{line}: {text}")
    print(f"{len(found)} findings in {len(asked)} files", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
