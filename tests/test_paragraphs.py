"""`tools.paragraphs`: torn paragraphs of comments and docstrings are found and filled, all else stays."""

from __future__ import annotations

import pytest

from tools.paragraphs import WIDTH, mended, torn, written_files

LONG = "word " * 12 + "end"

TORN = {
    "comment": (f"# {LONG} and\n# more.\nx = 1\n", f"# {LONG} and more.\nx = 1\n"),
    "comment in a block": (
        f"if x:\n    # {LONG}\n    # a b c\n    y = 1\n",
        f"if x:\n    # {LONG} a b c\n    y = 1\n",
    ),
    "docstring": ('"""First\n\nIt goes\non.\n"""\n', '"""First\n\nIt goes on.\n"""\n'),
    "first line of a docstring": (
        f'def f() -> None:\n    """{LONG}\n    a\n    b."""\n',
        f'def f() -> None:\n    """{LONG} a b."""\n',
    ),
    "docstring of a constant": (
        'X = 1\n"""Bytes that\none thread loads."""\n',
        'X = 1\n"""Bytes that one thread loads."""\n',
    ),
    "entry whose text fell out of its indentation": (
        '"""F.\n\nArgs:\n    a: only whether\n    they are\n        even.\n"""\n',
        '"""F.\n\nArgs:\n    a: only whether they are even.\n"""\n',
    ),
}

WHOLE = {
    "list": "# Two:\n# - one\n# - two\n",
    "numbers": "# 1. one\n# 2. two\n",
    "indented formula": '"""F:\n\n    x = 1\n    y = 2\n"""\n',
    "example": '"""F:\n\n>>> f()\n1\n"""\n',
    "names": "# `a`: one\n# `b`: two\n",
    "table": "# a  b\n# 1  2\n",
    "lead to a list": "# These:\n# are the next.\n",
    "entries": '"""F.\n\nArgs:\n    a: one.\n    b: two.\n\nReturns:\n    A number.\n"""\n',
    "directive": "# fmt: off\n# noqa\nx = 1\n",
    "string": 'x = """a\nb"""\n',
    "code": "x = 1  # a\ny = 2  # b\n",
    "word that does not fit with the quotes": f'"""{"x" * (WIDTH - 6)}\nb."""\n',
}


@pytest.mark.parametrize("case", TORN)
def test_a_torn_paragraph_is_found_and_filled(case: str) -> None:
    source, expected = TORN[case]
    assert torn(source)
    assert mended(source) == expected
    assert not torn(expected)


@pytest.mark.parametrize("case", WHOLE)
def test_all_else_stays(case: str) -> None:
    assert torn(WHOLE[case]) == []
    assert mended(WHOLE[case]) == WHOLE[case]


def test_no_paragraph_of_the_project_is_torn() -> None:
    """`python -m tools.paragraphs --write` fills those that are."""
    files = written_files()
    assert files
    assert {str(path): found for path in files if (found := torn(path.read_text("utf-8")))} == {}
