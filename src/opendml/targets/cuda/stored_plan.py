"""Plans of CUDA programs as JSON: launches with keys of machine code.

Kernels are a part of the JSON that is read only if tensors are not aligned as the plan says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from opendml.compiler.recipe import Recipe
from opendml.digests import digest_of
from opendml.logs import log
from opendml.program.program import Layout, Program
from opendml.program.scalar_type import ScalarType
from opendml.targets import plan_files
from opendml.targets.cuda.cubins import cubins_of_keys, environment
from opendml.targets.cuda.driver import device
from opendml.targets.cuda.executable import CudaExecutable, CudaParts
from opendml.targets.cuda.planned_launch import PlannedLaunch, launch_from_json
from opendml.targets.kept import Kept, KeptConstants


def known_executable(program: Program, device_index: int) -> CudaExecutable:
    """Return the executable of a program: of a plan in the cache, or of one that is made now."""

    def key() -> str:
        from opendml.program.digest import program_digest

        text = f"{circumstances(device_index)}\n{program_digest(program)}"
        return digest_of(text.encode()).hexdigest()

    def make() -> CudaExecutable:
        from opendml.targets.cuda.planning import compiled_program

        return compiled_program(program, device_index)

    return plan_files.known_plan(
        key, partial(executable_from_json, device_index=device_index), executable_to_json, make
    )


def circumstances(device_index: int) -> str:
    """Return all that a plan depends on beside its program: the device, its driver, and the compiler."""
    owner = device(device_index)
    return f"{environment()}\n{owner.name} {owner.machine}\n{owner.driver_version}"


def _plain_number(number: Any) -> Any:
    """Return a number as it is, which is its JSON in plans of fixed sizes."""
    return number


def executable_to_json(
    executable: CudaExecutable, written: Callable[[Any], Any] = _plain_number
) -> dict[str, Any] | None:
    """Return an executable as JSON. None: a kernel has no form in JSON. `written` makes JSON of traced
    numbers."""
    parts, keys = executable.parts, dict[str, int]()
    try:
        kernels = parts.others.to_json()
    except TypeError as error:
        log.debug("a plan is not kept: %s", error)
        return None
    return {
        "launches": [
            each.to_json(lambda key: keys.setdefault(key, len(keys)), written) for each in parts.launches
        ],
        "groups": parts.groups,
        "dispatched": parts.dispatched,
        "accesses": [[[buffer, written(offset)] for buffer, offset in each] for each in parts.accesses],
        "buffers": [parts.buffers, parts.arena, parts.first_prepared, parts.inputs],
        "bytes": [written(parts.arena_bytes), parts.initializer_bytes],
        "prepared": [[each.size, each.recipe.text, each.recipe.constants] for each in parts.prepared],
        "constants": [
            [number, layout.type.name, layout.sizes, layout.strides]
            for number, layout in parts.constants.layouts.items()
        ],
        "tensors": [[*map(written, each)] for each in parts.tensors],
        "numbers": [*map(written, parts.others.numbers)],
        "kernels": kernels,
        "codes": list(keys),
    }


def executable_from_json(
    data: dict[str, Any], read: Callable[[Any], Any] = _plain_number, device_index: int = 0
) -> CudaExecutable | None:
    """Return an executable; None: some machine code is not in the cache. `read` makes traced numbers of
    JSON."""
    cubins = cubins_of_keys(data["codes"])
    if cubins is None:
        return None
    buffers, arena, first_prepared, inputs = data["buffers"]
    arena_bytes, initializer_bytes = data["bytes"]
    prepared = [Kept(size, Recipe(text, tuple(own)), 0) for size, text, own in data["prepared"]]
    layouts = {
        number: Layout(ScalarType[type], tuple(sizes), tuple(strides))
        for number, type, sizes, strides in data["constants"]
    }
    parts = CudaParts(
        [launch_from_json(each, cubins, read) for each in data["launches"]],
        [(number, tuple(kernels)) for number, kernels in data["groups"]],
        data["dispatched"],
        [[(buffer, read(offset)) for buffer, offset in each] for each in data["accesses"]],
        buffers,
        arena,
        read(arena_bytes),
        initializer_bytes,
        first_prepared,
        prepared,
        KeptConstants(layouts, min(len(prepared), 1)),
        inputs,
        [(number, read(low), read(size), read(own)) for number, low, size, own in data["tensors"]],
        _StoredKernels(data["kernels"], [*map(read, data["numbers"])], device_index),
    )
    return CudaExecutable(parts, device_index)


class _StoredKernels:
    """The kernels of launches as JSON.

    Args:
        text: the JSON.
        numbers: the traced numbers of the kernels.
        device_index: the number of the device.
    """

    def __init__(self, text: str, numbers: Sequence[int], device_index: int) -> None:
        self._text, self.numbers, self._index = text, numbers, device_index

    def launch(self, number: int, alignments: Sequence[int], values: Sequence[int]) -> PlannedLaunch:
        """See OtherLaunches."""
        from opendml.targets.cuda.planning import kernels_from_text

        kernels = kernels_from_text(self._text, values, device(self._index).machine)
        return kernels.launch(number, alignments, ())

    def to_json(self) -> str:
        """See OtherLaunches."""
        return self._text
