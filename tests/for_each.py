"""Cases that take no time: one test tries them all, since pytest takes longer for a test than they do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def for_each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, but one test, which fails with the errors of all cases that fail."""
    given, chosen = (
        ((names,), [(case,) for case in cases]) if isinstance(names, str) else (names, list(cases))
    )
    assert chosen

    def decorated(test: Test) -> Test:
        @wraps(test)
        def tried(**fixtures: Any) -> None:
            errors = []
            for case in chosen:
                values = dict(zip(given, case, strict=True))
                try:
                    test(**values, **fixtures)
                except pytest.skip.Exception:
                    raise AssertionError(f"a case alone cannot be skipped: {values}") from None
                except Exception as error:
                    error.add_note(f"of {values}")
                    errors.append(error)
            if errors:
                raise ExceptionGroup(f"{len(errors)} of {len(chosen)} cases", errors)

        signature = inspect.signature(test)
        fixtures = [each for name, each in signature.parameters.items() if name not in given]
        tried.__dict__["__signature__"] = signature.replace(parameters=fixtures)
        return tried

    return decorated
