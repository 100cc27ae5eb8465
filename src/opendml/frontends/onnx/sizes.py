"""Fixed sizes for ONNX models with symbolic ones. This module works without the `onnx` package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from opendml.errors import InvalidArgument
from opendml.late_dataclass import dataclass
from opendml.spec.wording import shown

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Sizes:
    """Fixed sizes for dimensions that a model leaves open.

    Args:
        names: sizes by the names of symbolic dimensions, such as "batch".
        denotations: sizes by the denotations of dimensions, such as "DATA_BATCH".
        tensors: all sizes of inputs and outputs, by their names.
    """

    names: Mapping[str, int] = field(default_factory=dict)
    denotations: Mapping[str, int] = field(default_factory=dict)
    tensors: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.names or self.denotations or self.tensors)

    def over(self, others: Sizes) -> Sizes:
        """Return these sizes, completed by others."""
        return Sizes(
            {**others.names, **self.names},
            {**others.denotations, **self.denotations},
            {**others.tensors, **self.tensors},
        )

    def of(self, model: onnx.ModelProto, name: str = "model") -> onnx.ModelProto:
        """Return a model with these sizes in its inputs and outputs.

        Sizes of whole tensors win over denotations, and these over names. Messages begin with `name`.

        Raises:
            InvalidArgument: the model declares other sizes of a tensor.
        """
        if not self:
            return model
        new = type(model)()
        new.CopyFrom(model)
        for value in _values(new):
            dimensions, given = value.type.tensor_type.shape.dim, self.tensors.get(value.name)
            if given is not None:
                _require_fitting(value, given, name)
            for axis, dimension in enumerate(dimensions):
                if given is not None:
                    dimension.dim_value = given[axis]
                elif not dimension.HasField("dim_value") and dimension.denotation in self.denotations:
                    dimension.dim_value = self.denotations[dimension.denotation]
                elif dimension.dim_param in self.names:
                    dimension.dim_value = self.names[dimension.dim_param]
        return new

    def require_used(self, models: Sequence[onnx.ModelProto], name: str) -> None:
        """Check that some model has each name. Messages begin with `name`.

        Raises:
            InvalidArgument: no model has a name.
        """
        unused = list(self._unused(models))
        if unused:
            raise InvalidArgument(f"{name}: {each}" for each in unused)

    def _unused(self, models: Sequence[onnx.ModelProto]) -> Iterator[str]:
        values = [value for model in models for value in _values(model)]
        dimensions = [dimension for value in values for dimension in value.type.tensor_type.shape.dim]
        for what, given, known in (
            ("size of the name", self.names, {each.dim_param for each in dimensions}),
            ("dimension with the denotation", self.denotations, {each.denotation for each in dimensions}),
            ("tensor of the name", self.tensors, {value.name for value in values}),
        ):
            there = ", ".join(sorted(filter(None, known))) or "none"
            missing = [name for name in given if name not in known]
            yield from (f"no input or output has a {what} {name!r}; there are: {there}" for name in missing)


NO_SIZES = Sizes()


def _values(model: onnx.ModelProto) -> list[Any]:
    """Return the inputs and outputs."""
    return [*model.graph.input, *model.graph.output]


def _require_fitting(value: onnx.ValueInfoProto, given: Sequence[int], name: str) -> None:
    tensor = value.type.tensor_type
    declared = [each.dim_value if each.HasField("dim_value") else None for each in tensor.shape.dim]
    fits = len(declared) == len(given) and all(
        size in (None, one) for size, one in zip(declared, given, strict=True)
    )
    if not fits:
        wanted = shown([each.dim_value or each.dim_param or "?" for each in tensor.shape.dim])
        raise InvalidArgument(f"{name}: tensor {value.name!r}: sizes {shown(list(given))}; must be {wanted}")
