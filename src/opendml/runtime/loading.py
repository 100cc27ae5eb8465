"""Load and unpickle saved graphs."""

from __future__ import annotations

import copyreg
from os import PathLike
from typing import TYPE_CHECKING, Any

from opendml.across_forks import importing
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.named_model import NamedModel
from opendml.runtime.objects.compiled import CompiledOperator

if TYPE_CHECKING:
    from opendml.budget import Limits
    from opendml.runtime.objects.device import Device


def load(
    path: str | PathLike[str],
    device: str | Device | None = None,
    *,
    limits: Limits | None = None,
    trusted: bool = False,
    progress: bool = False,
) -> Model | CompiledOperator:
    """Load a model or a compiled operator that `save` has written, compiled for this machine.

    Everything in a file is checked as a caller's arguments are, so files from anywhere may be tried. Code in
    a file of `save(..., compiled=True)` is used only if the cache of this machine records that it wrote the
    file.

    Args:
        path: the file.
        device: where it is to run; None: on a device as it was saved for.
        limits: what loading and compiling it may take; `dml.Limits.untrusted()` for a file from a stranger.
            None: the defaults of `dml.Limits`.
        trusted: run the code in a compiled file that another machine has written.
        progress: print on standard error what is compiled.

    Raises:
        InvalidArgument: no such file, no saved model, or a damaged one.
        Unsupported: of another version of the format, or for a device that is not there.
        LimitExceeded: the model takes more than its limits allow.
    """
    # Programs that load nothing do not pay for the reader's imports.
    with importing:
        from opendml.runtime.saved import read
    return read.load(path, device, limits=limits, trusted=trusted, progress=progress)


def _unpickled(data: bytes) -> Model | CompiledOperator:
    with importing:
        from opendml.runtime.saved import read
    return read.loaded(data)


def _pickled(saved: Model | CompiledOperator) -> tuple[Any, ...]:
    return _unpickled, (saved._saved(),)


# Registered here, and not as `__reduce__`, because reading needs `Graph`, which needs `Model`.
copyreg.pickle(Model, _pickled)
copyreg.pickle(NamedModel, _pickled)
copyreg.pickle(CompiledOperator, _pickled)
