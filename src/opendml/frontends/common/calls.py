"""The immediate functions as converters call them: without docstrings, which take longer to compose than a
small model to load.

A function is made when it is first called. Tables of converters name 70 functions, of which a model calls
few. To make all of them took a twentieth of the processor time until the first result of a small new model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opendml import functions as dml
else:
    from opendml.functions import __all__ as names
    from opendml.functions import undocumented

    class _Function:
        """A function that is made when it is first called."""

        def __init__(self, name: str) -> None:
            self.__name__ = name

        def __call__(self, *arguments: Any, **named: Any) -> Any:
            return undocumented(self.__name__)(*arguments, **named)

    class _Functions:
        """The functions as attributes."""

        def __getattr__(self, name: str) -> Any:
            if name not in names:
                raise AttributeError(name)
            return self.__dict__.setdefault(name, _Function(name))

    dml = _Functions()

__all__ = ["dml"]
