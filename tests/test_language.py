"""`tools.language`: docstrings that make no statement and sentences that are too long or vague are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.language import MOST_WORDS, findings, shared_class_names

LONG = "word " * MOST_WORDS + "end"

WRONG = {
    "module": '"""What stands here."""\n',
    "class": 'class A:\n    """Of a tile."""\n',
    "function": 'def f() -> None:\n    """The sum."""\n',
    "third person": 'def f() -> None:\n    """Returns the sum."""\n',
    "constant": 'X = 1\n"""How many there are."""\n',
    "long sentence": f'"""First.\n\n{LONG}.\n"""\n',
    "no imperative": 'def f() -> None:\n    """Memory of a layout."""\n',
    "formula of a helper": 'def f() -> None:\n    """2 * x"""\n',
    "name alone": 'def f() -> None:\n    """Return the model."""\n',
    "kind alone": 'class A:\n    """An operator."""\n',
    "reference without a name": 'def f() -> None:\n    """Return so many zeros."""\n',
    "long comment": f"# {LONG}.\n",
    "long entry": f'def f(x: int) -> None:\n    """Add 1 to x.\n\n    Args:\n        x: {LONG}.\n    """\n',
}

RIGHT = {
    "class": 'class A:\n    """A tile of accumulators."""\n',
    "function": 'def f() -> None:\n    """Return the sum of all."""\n',
    "imperative that ends in s": 'def f() -> None:\n    """Pass the sum on."""\n',
    "property": '@property\ndef f() -> int:\n    """The number of elements."""\n',
    "definition": '@defines("CAST")\ndef f() -> None:\n    """2 * x"""\n',
    "rule": '@rule("CAST")\ndef f() -> None:\n    """The sizes must be equal."""\n',
    "code": f'"""First.\n\n    {LONG}\n\nEnd.\n"""\n',
    "sentence that begins with code": f'"""{LONG[: MOST_WORDS * 3]}. `code` {LONG[: MOST_WORDS * 3]}."""\n',
    "two sentences": f'"""{LONG[: MOST_WORDS * 3]}. {LONG[: MOST_WORDS * 3]}."""\n'.replace(". w", ". W"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_breaks_the_rules_is_found(case: str, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(WRONG[case])
    assert len(findings(tmp_path / "file.py")) == 1


@pytest.mark.parametrize("case", RIGHT)
def test_what_keeps_the_rules_is_not(case: str, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(RIGHT[case])
    assert findings(tmp_path / "file.py") == []


def test_public_classes_that_share_a_name_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.language.PACKAGE", tmp_path)
    for name, source in {"a": "class A: ...\nclass _B: ...\n", "b": "class A: ...\nclass _B: ...\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.py").write_text(source)
    found = shared_class_names(sorted(tmp_path.rglob("*.py")))
    assert [each.text for each in found] == ["class A is also in a/file.py"]
