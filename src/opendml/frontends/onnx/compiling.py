"""Write ONNX models with their plans, machine code and packed weights into one file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from opendml.frontends.onnx.model import OnnxModel, load
from opendml.frontends.onnx.model_file import read_model
from opendml.frontends.onnx.saving import require_plans, self_contained
from opendml.frontends.onnx.sizes import NO_SIZES, Sizes
from opendml.logs import log
from opendml.runtime.objects.device import Device
from opendml.runtime.saved.write import write_compiled
from opendml.targets.compiled_files import recorded


def compile_to_file(
    path: str | PathLike[str],
    output: str | PathLike[str],
    inputs: Callable[[OnnxModel], Mapping[str, Any]],
    device: str | Device | None = None,
    sizes: Sizes = NO_SIZES,
) -> None:
    """Load a model, run it once, and write it with all that its runs need to a compiled file.

    Args:
        path: the model.
        output: the file.
        inputs: returns the inputs of the run; the file knows runs of their sizes and types.
        device: the device.
        sizes: fixed sizes, which the model in the file has.

    Raises:
        Unsupported: the model takes 2 GiB or more, or runs of several graphs or on another device than a
            processor, or plans are switched off.
        Error: as of `load` and of a run.
    """
    began = time.perf_counter()
    read, name, weights = read_model(path)
    sizes.require_used([read], name)
    content = self_contained(sizes.of(read, name), name, weights)
    with recorded() as found:
        model = load(content, device)
        model.run(inputs(model))
    require_plans(str(path), model, found)
    write_compiled(output, "onnx", content, found)
    log.info("compiled %s to %s in %.2f s", path, output, time.perf_counter() - began)
