"""The program of a process that checks sizes and types of a model by ONNX's inference.

It loads the library of the `onnx` package alone: 24 MB for 0.05 s, which the caller does not take. It imports
nothing of opendml. The model comes on the standard input behind its length. Nobody waits for the end of the
input, because a child of the caller may keep it open. The answer is `FITS`, or `WRONG` and a message.
Anything else says nothing about the model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

FITS, WRONG = b"fits", b"wrong"
_LENGTH_BYTES = 8


def request_of(model: bytes) -> bytes:
    """Return what the process reads for a model."""
    return len(model).to_bytes(_LENGTH_BYTES, "little") + model


def answer(read: Callable[[int], bytes], locations: list[str]) -> bytes:
    """Return what inference says of a model.

    Args:
        read: takes a number of bytes and returns the next ones of the request.
        locations: the folders of the package.
    """
    spec = PathFinder.find_spec("onnx.onnx_cpp2py_export", locations)
    assert spec is not None
    assert spec.loader is not None
    library = module_from_spec(spec)
    spec.loader.exec_module(library)
    library.defs.has_schema("Add", "")  # Makes all schemas, before the model comes.
    inference = library.shape_inference
    model = read(int.from_bytes(read(_LENGTH_BYTES), "little"))
    try:
        inference.infer_shapes(model, False, True, False)
    except inference.InferenceError as error:
        return WRONG + str(error).encode()
    return FITS


if __name__ == "__main__":
    sys.stdout.buffer.write(answer(sys.stdin.buffer.read, sys.argv[1:]))
