"""Checks the CUDA target on a device: every case of `cuda_cases` against the reference. Timings are in
`benchmarks/cuda.py`.

python -m tools.cuda_check [--emulated] [--most-elements N] [WORD ...]

With words, only cases whose name has them all. `--emulated`: where there is no device (`cuda_emulator`; a C++
compiler takes about a second for each kernel). `tools.cuda_sanitize` runs the small ones under
compute-sanitizer.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import cycle
from zlib import crc32

import numpy as np

from opendml.program.program import Layout
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda import driver
from opendml.targets.cuda.pattern import WARPGROUP_MODES, CudaMode
from opendml.targets.cuda.planning import Scheduler, compiled_program
from opendml.targets.cuda.schedule import schedule
from opendml.targets.reference.backend import ReferenceExecutable
from tools.cuda_case import Case
from tools.cuda_cases import all_cases, random_input
from tools.cuda_emulator import emulated
from tools.cuda_tiles import chain_schedulers, modes_of, schedulers

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


def results(case: Case, scheduler: Scheduler = schedule) -> tuple[list[Bytes], list[Bytes], list[str]]:
    """The outputs of the device and of the reference, and the modes of the kernels that ran."""
    generator = np.random.default_rng(crc32(case.name.encode()))
    layouts = (*case.program.inputs, *case.program.outputs)
    inputs = [random_input(layout, generator, case) for layout in case.program.inputs]
    poison = [
        np.full(layout.span[1] + case.offset * layout.type.bytes, 0xFF, np.uint8)
        for layout in case.program.outputs
    ]
    host = [array.copy() for array in (*inputs, *poison)]
    reference = ReferenceExecutable(case.program).instantiate()
    executable = compiled_program(case.program, scheduler=scheduler)
    instance = executable.instantiate()
    memory = []
    for number, (array, layout) in enumerate(zip(host, layouts, strict=True)):
        offset = case.offset * layout.type.bytes
        reference.bind(number, array.ctypes.data + offset)
        memory.append(driver.device().allocate(array.nbytes))
        memory[-1].write(array.ctypes.data, array.nbytes)
        instance.bind(number, memory[-1].address + offset)
    reference.dispatch()
    instance.dispatch()
    instance.dispatch()
    first = len(inputs)
    received = []
    for array, room in zip(poison, memory[first:], strict=True):
        room.read(array.ctypes.data, array.nbytes)
        received.append(array)
    modes = [launch.mode for launch in executable.launches]
    return received, host[first:], modes


def worst_error(
    received: Bytes, expected: Bytes, layout: Layout, is_normalization: bool, case: Case
) -> float:
    """The greatest error as a multiple of what is allowed: what the case says, and for normalizations 4e-6 of
    the deviation in FLOAT32; of integers, none.
    """
    type = layout.type.numpy
    if not layout.type.is_float:
        return 0.0 if np.array_equal(received.view(type), expected.view(type)) else float("inf")
    a, b = received.view(type).astype(np.float64), expected.view(type).astype(np.float64)
    if np.any(np.isnan(a) != np.isnan(b)):
        return float("inf")
    if layout.type is ScalarType.FLOAT16:
        # Infinity is one unit above the greatest number.
        a, b = (np.where(np.isinf(values), np.copysign(2.0**16, values), values) for values in (a, b))
    finite = np.isfinite(b)
    if np.any(a[~finite & ~np.isnan(b)] != b[~finite & ~np.isnan(b)]):
        return float("inf")
    half = layout.type is ScalarType.FLOAT16
    facts = np.finfo(layout.type.name.lower())
    exponent = np.floor(np.log2(np.maximum(np.abs(b[finite]), float(facts.smallest_normal))))
    unit = np.exp2(exponent - facts.nmant)
    allowed = unit * (1.01 if half else case.ulps) + is_normalization * (1e-6 if half else 4e-6)
    allowed += case.absolute
    return float(np.max(np.abs(a[finite] - b[finite]) / allowed, initial=0.0))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Checks the CUDA target on a device.")
    parser.add_argument("words", nargs="*", help="only cases whose name has all of them")
    parser.add_argument("--emulated", action="store_true", help="on the processor, thread by thread")
    parser.add_argument("--most-elements", type=int, default=2**32, help="only cases with so many elements")
    return parser.parse_args()


def runs() -> Iterator[tuple[Case, str, Scheduler]]:
    """Yield all cases, each in the tile that is chosen (the way is empty), contractions also in two of the
    tiles of each kind, in turn, and a softmax between products in each tile that takes it."""
    modes = tuple(mode.value for mode in (CudaMode.FMA, CudaMode.MMA, CudaMode.IMMA, *WARPGROUP_MODES))
    ways = {mode: cycle([way for way in schedulers() if way[0].split()[0] == mode]) for mode in modes}
    for case in all_cases():
        yield case, "", schedule
        if case.name.startswith("contraction"):
            for mode in modes_of(case.name):
                yield from ((case, *next(ways[mode])) for _ in range(2))
        if case.name.startswith("chain"):
            modes_of_chain = modes_of(case.name)
            yield from ((case, *way) for way in chain_schedulers() if way[0].startswith(modes_of_chain))


def worst_of(case: Case, scheduler: Scheduler) -> tuple[float, list[str]]:
    """The greatest error of a case as a multiple of what is allowed, and the modes of its kernels."""
    received, expected, used = results(case, scheduler)
    kind = is_of_normalization(case)
    compared = zip(received, expected, case.program.outputs, strict=True)
    return max(worst_error(a, b, layout, kind, case) for a, b, layout in compared), used


def is_of_normalization(case: Case) -> bool:
    """Whether a case is allowed the errors of normalizations."""
    return "normalization" in case.name or "centering" in case.name


def main() -> int:
    """Runs the cases; 1 if any fails."""
    arguments = _arguments()
    with emulated() if arguments.emulated else nullcontext():
        return _checked(arguments)


def _checked(arguments: argparse.Namespace) -> int:
    modes: Counter[str] = Counter()
    failed, worst = [], {"pointwise": 0.0, "normalization": 0.0}
    for case, way, scheduler in runs():
        elements = sum(layout.element_count for layout in case.program.inputs)
        if elements > arguments.most_elements or not all(word in case.name for word in arguments.words):
            continue
        error, used = worst_of(case, scheduler)
        if way and way.split()[0] not in used:
            continue
        modes.update(used)
        kind = "normalization" if is_of_normalization(case) else "pointwise"
        if error <= 1:
            worst[kind] = max(worst[kind], error)
        else:
            failed.append(case.name)
            print(f"FAILED {case.name} {way}: {used} error {error:.3g} of what is allowed", flush=True)
    print(f"{sum(modes.values())} kernels {dict(modes)}; worst {worst}; {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
