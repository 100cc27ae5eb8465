"""The data of a DxDispatch model: resources to allocate, dispatchables to compile, and commands to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from opendml.folders import within
from opendml.frontends.dxdispatch.values import Bytes
from opendml.late_dataclass import dataclass
from opendml.spec.enums import ExecutionFlags, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc

if TYPE_CHECKING:
    from opendml.frontends.dxdispatch.foreign import ForeignDispatchable


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders that a model may read from and write to. Its relative paths start there."""

    inputs: Path
    outputs: Path
    any_path: bool = False
    """The model may also read and write all other files, as DxDispatch lets it. Files that are not in
    `inputs` are then sought in the current directory."""

    @classmethod
    def of(
        cls,
        model: Path,
        outputs: Path | None = None,
        inputs: Path | None = None,
        *,
        any_path: bool = False,
    ) -> Folders:
        """Return the given folders; without them the model's folder and the current directory."""
        return cls(inputs or model.parent, outputs or Path(), any_path)

    @property
    def sources(self) -> Path | None:
        """The folder that files must lie in to be read; None: any."""
        return None if self.any_path else self.inputs

    @property
    def targets(self) -> Path | None:
        """The folder that files must lie in to be written; None: any."""
        return None if self.any_path else self.outputs

    def source(self, name: str) -> Path | None:
        """Return the path of a file that is read; None if there is none, or none that may be read."""
        if self.any_path:
            return next((path for path in (self.inputs / name, Path(name)) if os.path.isfile(path)), None)
        path = self.inputs / name
        return path if os.path.isfile(path) and within(self.inputs, name) is not None else None


@dataclass(frozen=True, slots=True)
class Initializer:
    """The initial values of a resource. Nothing is allocated before `write`.

    Args:
        size_in_bytes: bytes that the values take, without padding.
        element_count: the number of values.
        write: writes the values into an array of exactly `size_in_bytes` bytes.
    """

    size_in_bytes: int
    element_count: int
    write: Callable[[Bytes], None]


@dataclass(frozen=True, slots=True)
class Resource:
    """A buffer with initial values. A dispatch may read it as any other type."""

    path: str
    name: str
    data_type: TensorDataType
    """Type of the initial values; UNKNOWN when they are a list of values of several types."""
    initializer: Initializer
    offset: int
    """Byte at which the initial values start."""
    size_in_bytes: int
    """Bytes that print and writeFile may see."""
    is_deferred: bool = False
    """An output of an ONNX model becomes the resource, with its type and sizes. It has no values before."""

    @property
    def allocated_bytes(self) -> int:
        """The buffer's size: DirectML reads buffers in units of 4 bytes."""
        return (self.size_in_bytes + 3) // 4 * 4


@dataclass(frozen=True, slots=True)
class ResourceBinding:
    """A resource, seen from byte `offset`, for one tensor."""

    path: str
    resource: str
    offset: int
    shape: tuple[int, ...] | None = None
    """Sizes of a tensor of an ONNX model, in place of those of its bind point."""


Resources = Mapping[str, Resource | None]
"""Resources by name, None for those that are not known."""

Bindings = Mapping[str, tuple[ResourceBinding | None, ...]]
"""Name of a desc's tensor field to one binding for each of its tensors, None for those bound elsewhere."""


@dataclass(frozen=True, slots=True)
class BindPoint:
    """A tensor field of a desc, where resources can be bound: one tensor, several, or none (left null)."""

    name: str
    is_output: bool
    tensors: tuple[TensorDesc, ...]
    declared: tuple[int | None, ...] | None = None
    """The shape that a binding may have, with None for any size; None: it may have none."""
    is_optional: bool = False
    """A dispatch may leave the tensor out: the input is zeros then, and the output is lost."""


@dataclass(frozen=True, slots=True)
class NamedDispatchable:
    """A DirectML operator, or a model in a file of its own, to compile, and the buffers that initialization
    reads (OWNED_BY_DML)."""

    path: str
    name: str
    desc: OperatorDesc | ForeignDispatchable
    flags: ExecutionFlags
    bind_points: tuple[BindPoint, ...]
    initial_bindings: Bindings


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Run a dispatchable with these buffers."""

    path: str
    dispatchable: str
    bindings: Bindings


@dataclass(frozen=True, slots=True)
class Print:
    """Print a resource, on one line or (verbose) one element a line with its bits."""

    path: str
    resource: str
    verbose: bool


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write a resource to a file; the kind of file follows from the path's extension."""

    path: str
    resource: str
    target: Path
    dimensions: tuple[int, ...] | None
    folder: Path | None
    """The folder that the file must lie in; None: any."""


Command = Dispatch | Print | WriteFile


@dataclass(frozen=True, slots=True)
class DispatchModel:
    """Resources and dispatchables by name, and the commands in their order."""

    resources: Mapping[str, Resource]
    dispatchables: Mapping[str, NamedDispatchable]
    commands: tuple[Command, ...]
