"""Named tuples that the immediate functions of operators with several outputs return.

A class is made when it is first asked for. Type checkers read the stub that `tools.generate` writes.
"""

from __future__ import annotations

from typing import Any

from opendml.spec.making import outputs_tuple
from opendml.spec.parameters import has_outputs_class, outputs_class
from opendml.spec.schema import operators

_NAMES = {outputs_class(each): each.name for each in operators().values() if has_outputs_class(each)}

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return globals().setdefault(name, outputs_tuple(_NAMES[name]))


def __dir__() -> list[str]:
    return __all__
