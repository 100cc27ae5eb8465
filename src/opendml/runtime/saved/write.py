"""Write graphs to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opendml.errors import InvalidArgument, Unsupported
from opendml.folders import replacing
from opendml.runtime.graphs.steps import (
    ConstantStep,
    GraphData,
    InputStep,
    NumberStep,
    OperatorStep,
    RoundStep,
    Step,
    ViewStep,
)
from opendml.runtime.memory.host_array import layout_in_graph
from opendml.runtime.saved.container import Arrays, packed_file
from opendml.runtime.saved.values import tensor_to_json, to_json
from opendml.spec.feature_level import short_name
from opendml.targets.compiled_files import Recorder, write_compiled_file
from opendml.targets.object_cache import record_file

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


def write_file(path: Any, data: bytes) -> None:
    """Write a file, whole or not at all.

    Raises:
        InvalidArgument: it cannot be written there.
    """
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror or error}") from error
    except (TypeError, ValueError) as error:  # no path, or one with a zero byte
        raise InvalidArgument(f"{path!r}: {error}") from error


def write_compiled(path: Any, kind: str, model: bytes, found: Recorder) -> None:
    """Write a compiled file, whole or not at all, and record it in the cache.

    Raises:
        InvalidArgument: it cannot be written there.
    """
    try:
        with replacing(path) as file:
            digest = write_compiled_file(file, kind, model, found)
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror or error}") from error
    except (TypeError, ValueError) as error:  # no path, or one with a zero byte
        raise InvalidArgument(f"{path!r}: {error}") from error
    record_file(digest)


def saved_graph(graph: GraphData | None, device: Device, flags: int | None = None) -> bytes:
    """Return the file of a graph.

    Args:
        graph: the graph that was compiled; None: there is none.
        device: what it was compiled for.
        flags: those of a compiled operator; None: it is a model.

    Raises:
        Unsupported: there is no graph.
    """
    if graph is None:
        raise Unsupported("this model was not made by Graph.compile, and cannot be saved")
    arrays = Arrays()
    program: dict[str, object] = {
        "device": {
            "kind": device.kind,
            "feature_level": short_name(device.feature_level),
            "threads": device.threads,
        },
        "flags": None if flags is None else int(flags),
        "feature_level": short_name(graph.feature_level),
        "inputs": graph.inputs,
        "steps": [_step(step, arrays) for step in graph.steps],
        "outputs": graph.outputs,
    }
    if graph.dimensions:
        program["dimensions"] = {name: list(ends) for name, ends in graph.dimensions.items()}
        program["choices"] = [[relation.name, to_json(size)] for relation, size in graph.choices]
    return packed_file(program, arrays)


def _step(step: Step, arrays: Arrays) -> dict[str, object]:
    match step:
        case InputStep():
            kind = {"is_bfloat16": True} if step.is_bfloat16 else {}
            return {"input": step.position, "tensor": tensor_to_json(step.tensor), **kind}
        case ConstantStep():
            values = step.values()
            type = layout_in_graph(values, "constant").type
            tensor = None if step.tensor is None else tensor_to_json(step.tensor)
            return {"constant": arrays.add(values, type), "tensor": tensor}
        case NumberStep():
            return {"number": to_json(step.value), "data_type": step.data_type.name}
        case ViewStep():
            return {
                "view": step.of,
                "data_type": step.data_type.name,
                "sizes": to_json(step.sizes),
                "strides": to_json(step.strides),
                "offset": to_json(step.offset),
                "of_bytes": step.of_bytes,
            }
        case RoundStep():
            return {"round": step.of}
        case OperatorStep():
            return {"desc": to_json(step.desc), "inputs": step.inputs, "name": step.name}
