"""Names of objects, for whoever debugs."""

from __future__ import annotations

from opendml.errors import InvalidArgument
from opendml.spec.wording import shown


class Named:
    """What can be given a name (IDMLObject)."""

    _given_name = ""

    @property
    def name(self) -> str:
        """The name that `set_name` gave; "" without one."""
        return self._given_name

    def set_name(self, name: str) -> None:
        """Give a name, which reprs and messages show (IDMLObject::SetName); "" takes it away.

        Raises:
            InvalidArgument: a name that is no text.
        """
        if not isinstance(name, str):
            raise InvalidArgument(f"set_name: {shown(name)}; a string is needed")
        self._given_name = name

    def _with_name(self, text: str) -> str:
        """Return the text, and the name after it where there is one: "GEMM 'head'"."""
        return f"{text} {shown(self._given_name)}" if self._given_name else text
