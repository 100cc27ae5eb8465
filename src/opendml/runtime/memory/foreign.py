"""Read arrays of other libraries through DLPack without copies, and convert results to them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array


def as_numpy(value: Any, name: str, *, writable: bool = False) -> Array:
    """Return an array of any library as a NumPy array over the same memory.

    Raises:
        InvalidArgument: no array, not in host memory, read-only for an output, or a tensor without memory,
            as PyTorch's lazy ones.
    """
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, np.generic) and not writable:
        return np.asarray(value)
    if not hasattr(value, "__dlpack__"):
        raise InvalidArgument(
            f"{name}: {type(value).__name__}; an array is needed (NumPy's, or one with DLPack)"
        )
    is_negated = getattr(value, "is_neg", None)
    if is_negated is not None and is_negated():  # DLPack exports PyTorch's memory without this sign
        raise InvalidArgument(f"{name}: a tensor with the negative bit set; use resolve_neg()")
    torch = _torch_of(value)
    if torch is not None and value.requires_grad:
        if torch.is_grad_enabled():
            fix = "use detach(), or torch.no_grad() around the call"
            raise InvalidArgument(f"{name}: a {type(value).__name__} that requires a gradient; {fix}")
        value = value.detach()
    is_bfloat16 = str(getattr(value, "dtype", "")).endswith("bfloat16")
    library = _library(value) if is_bfloat16 else None
    try:
        # NumPy reads no bfloat16 through DLPack.
        array: Array = np.from_dlpack(value if library is None else value.view(library.int16))
    except Exception as error:  # whatever a library raises
        raise InvalidArgument(
            f"{name}: {type(value).__name__} that cannot be read in place ({error})"
        ) from error
    if array.size and array.flags.owndata:  # NumPy takes new memory where the address is 0
        raise InvalidArgument(f"{name}: a {type(value).__name__} without memory; use clone()")
    if writable and not array.flags.writeable:
        raise InvalidArgument(f"{name}: a read-only {type(value).__name__}; an output must be writable")
    return array if library is None else array.view(ScalarType.BFLOAT16.numpy)


def like(kind: Any, result: Array) -> Any:
    """Return `result` as an array of the library of `kind`, over the same memory.

    The library is that of its class or of a base class. If none makes arrays, return the result itself.
    """
    if isinstance(kind, np.ndarray):
        return result
    library = _library(kind)
    if library is None:
        return result
    if result.dtype.name == "bfloat16":
        return library.from_dlpack(result.view(np.int16)).view(library.bfloat16)
    return library.from_dlpack(result)


def as_truth(result: Any) -> Any:
    """Return 1 and 0 as booleans, without a copy, if the array is a tensor of PyTorch.

    Arrays of other libraries stay of DirectML's type.
    """
    torch = _torch_of(result)
    return result if torch is None else result.view(torch.bool)


def _torch_of(array: Any) -> Any:
    """Return PyTorch's module if an array is a tensor of it, else None."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else None


def _library(array: Any) -> Any:
    """Return the module with the functions of an array's library; None: it makes no arrays."""
    for base in type(array).__mro__:
        name = base.__module__.partition(".")[0]
        library: Any = sys.modules.get("jax" if name == "jaxlib" else name)
        module = getattr(library, "numpy", library)
        if hasattr(module, "from_dlpack"):
            return module
    return None
