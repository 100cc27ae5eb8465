"""From CUDA C++ to machine code: NVRTC, and the cache of its results."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from types import ModuleType
from typing import TYPE_CHECKING

from opendml.digests import digest_of
from opendml.errors import Unsupported
from opendml.targets.cuda.cubins import Cubin, environment
from opendml.targets.cuda.kernel_source import kernel_source
from opendml.targets.cuda.pattern import CudaPattern
from opendml.targets.object_cache import read_object, write_object

if TYPE_CHECKING:
    from cuda.core import ProgramOptions


def cubins_of(patterns: Sequence[CudaPattern], architecture: str) -> list[Cubin]:
    """Return the machine code of patterns for an architecture such as "sm_90a". Code that is not cached is
    compiled on all processors: NVRTC takes several sources at a time.

    Raises:
        Unsupported: cuda-core or NVRTC is not installed.
    """
    keys = [_key(pattern, architecture) for pattern in patterns]
    codes: dict[str, bytes] = {}
    missing: dict[str, CudaPattern] = {}
    for key, pattern in zip(keys, patterns, strict=True):
        code = read_object(key)
        if code is None:
            missing[key] = pattern
        else:
            codes[key] = code
    if missing:
        sources = map(kernel_source, missing.values())
        with ThreadPoolExecutor() as compilers:
            compiled = compilers.map(machine_code, sources, repeat(nvrtc_options(architecture)))
            for key, code in zip(missing, compiled, strict=True):
                write_object(key, code)
                codes[key] = code
    return [Cubin(key, codes[key]) for key in keys]


def machine_code(source: str, options: ProgramOptions) -> bytes:
    """Compile CUDA C++ with NVRTC."""
    return bytes(_cuda_core().Program(source, "c++", options).compile("cubin").code)


def nvrtc_options(architecture: str) -> ProgramOptions:
    """Return the product's options: division and square root are IEEE's, denormals stay, and nothing is
    contracted.

    Raises:
        Unsupported: cuda-core is not installed.
    """
    return _cuda_core().ProgramOptions(
        std="c++17",
        arch=architecture,
        fma=False,
        ftz=False,
        prec_div=True,
        prec_sqrt=True,
        # Lambdas say nothing of where they run.
        device_as_default_execution_space=True,
        disable_warnings=True,
        # Nothing is declared that kernels do not use, such as textures: NVRTC reads less.
        minimal=True,
    )


def _cuda_core() -> ModuleType:
    """Import cuda-core.

    Raises:
        Unsupported: the package is not installed.
    """
    try:
        import cuda.core
    except ImportError as error:
        raise Unsupported(f"cuda: {error}; the extra `cuda` of opendml installs what is needed") from error
    module: ModuleType = cuda.core
    return module


def _key(pattern: CudaPattern, architecture: str) -> str:
    """Return the key of the code in the cache."""
    return digest_of(f"{environment()}\n{architecture}\n{pattern.text()}".encode()).hexdigest()
