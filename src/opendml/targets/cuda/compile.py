"""From CUDA C++ to machine code: NVRTC, and the cache of its results."""

from __future__ import annotations

import hashlib
from functools import cache

from opendml.errors import Unsupported
from opendml.targets.cuda.kernel_source import kernel_source
from opendml.targets.cuda.pattern import Pattern
from opendml.targets.object_cache import compiler_digest, read_object, write_object


def cubin_of(pattern: Pattern, architecture: str) -> bytes:
    """The machine code of a pattern for an architecture such as "sm_90", from the cache if it is there.

    Raises:
        Unsupported: cuda-core or NVRTC is not installed.
    """
    key = hashlib.sha256(f"{_environment()}\n{architecture}\n{pattern.text()}".encode()).hexdigest()
    code = read_object(key)
    if code is None:
        code = compile_source(kernel_source(pattern), architecture)
        write_object(key, code)
    return code


def compile_source(source: str, architecture: str) -> bytes:
    """The machine code of CUDA C++. Division and square root are IEEE's, denormals stay, and nothing is
    contracted.

    Raises:
        Unsupported: cuda-core or NVRTC is not installed.
    """
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise Unsupported(f"cuda: {error}; the extra `cuda` of opendml installs what is needed") from error
    options = ProgramOptions(
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
    return bytes(Program(source, "c++", options).compile("cubin").code)


@cache
def _environment() -> str:
    """All that the code depends on apart from pattern and architecture: NVRTC, and the version of this
    printer.
    """
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"NVRTC {major}.{minor} {compiler_digest('cuda')}"
