"""The immediate functions as converters call them: without docstrings, which take longer to compose than a
small model to load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opendml import functions as dml
else:
    from opendml.functions import undocumented

    class _Functions:
        """The functions as attributes."""

        def __getattr__(self, name: str) -> Any:
            return self.__dict__.setdefault(name, undocumented(name))

    dml = _Functions()

__all__ = ["dml"]
