"""Names of DirectML's objects."""

from __future__ import annotations

from opendml.errors import InvalidArgument
from opendml.spec.wording import shown


class Named:
    """An object that can be given a name (IDMLObject)."""

    _given_name = ""

    @property
    def name(self) -> str:
        """The name that `set_name` gave; "" without one."""
        return self._given_name

    def set_name(self, name: str) -> None:
        """Set the name that reprs and messages show (IDMLObject::SetName); "" removes it.

        Raises:
            InvalidArgument: a name that is no text.
        """
        if not isinstance(name, str):
            raise InvalidArgument(f"set_name: {shown(name)}; a string is needed")
        self._given_name = name

    def _with_name(self, text: str) -> str:
        """Return the text, followed by the name if there is one: "GEMM 'head'"."""
        return f"{text} {shown(self._given_name)}" if self._given_name else text
