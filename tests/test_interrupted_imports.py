"""Packages whose import is interrupted while their modules declare what they have."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from opendml.errors import Unsupported
from opendml.frontends.common.registry import Registry
from opendml.spec import declarations
from opendml.spec.declarations import Declarations

DECLARATIONS = {
    "declarations": "DECLARED.add(['GEMM'], 'definition', 1)",
    "converters": "DECLARED.converts('Gemm')(print)",
}


@pytest.mark.parametrize("kind", DECLARATIONS)
def test_an_interrupted_import_is_complete(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"interrupted_{kind}"
    declared = Declarations[int](name) if kind == "declarations" else Registry[type](name)
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    lines = [
        "import signal",
        f"from {__name__} import DECLARED_BY_NAME",
        f"DECLARED = DECLARED_BY_NAME[{name!r}]",
        DECLARATIONS[kind],
        "signal.raise_signal(signal.SIGINT)",
    ]
    (folder / "module.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(DECLARED_BY_NAME, name, declared)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            found(declared)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found(declared)


def found(declared: Declarations[int] | Registry[type]) -> object:
    """Return a declaration. The first lookup imports the package."""
    return declared.of("GEMM") if isinstance(declared, Declarations) else declared.find("Gemm")


DECLARED_BY_NAME: dict[str, Declarations[int] | Registry[type]] = {}


def test_modules_that_cannot_be_listed_are_an_error_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system lists none to a process that may open no more files."""
    found: Declarations[object] = Declarations("opendml.spec.rules")
    with monkeypatch.context() as patched:
        patched.setattr(declarations, "iter_modules", lambda _: iter(()))
        with pytest.raises(Unsupported, match="cannot be listed"):
            found.all()
        assert not found._is_loaded
    found.all()
    assert found._is_loaded
