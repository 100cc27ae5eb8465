"""What a dispatch of a compiled graph needs, by the names that both interfaces of the fork have for it."""

from __future__ import annotations

from opendml.runtime.objects.compiled import CompiledOperator


class Sizes:
    """Of a class that keeps what it dispatches in `_compiled`."""

    _compiled: CompiledOperator

    @property
    def temporary_size(self) -> int:
        """The bytes that a dispatch needs for what it computes on the way."""
        return self._compiled.binding_properties.temporary_resource_size

    @property
    def persistent_size(self) -> int:
        """The bytes that what was handed over at initialization takes."""
        return self._compiled.binding_properties.persistent_resource_size

    @property
    def descriptor_count(self) -> int:
        """The descriptors that a dispatch of DirectML would bind."""
        return self._compiled.binding_properties.required_descriptor_count
