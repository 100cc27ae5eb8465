"""Times contractions on a CUDA device beside PyTorch (float32 without TF32, the fastest algorithms of cuDNN),
and the floor: operations over the rate of the units that do them, or bytes over the speed of a copy,
whichever is longer.

python -m benchmarks.cuda_contractions [--words WORD ...] [--tiles] [--out FILE]

The cases are calls of public operators, compiled as for users (`cuda_contraction_cases` lists them without a
device). Beside its times a case has its kernels, the bytes that these write for each other, and the units
that multiply. With --tiles, every tile of the CUDA target is timed on every case, to judge the table and its
choice.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.cuda import SET_BYTES, Call, median_seconds
from benchmarks.cuda_contraction_cases import OPERATIONS, Case, cases
from benchmarks.cuda_contraction_peers import torch_call
from opendml.program.program import Layout
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda.driver import device
from opendml.targets.cuda.executable import CudaInstance
from opendml.targets.cuda.launch import alignments_of
from opendml.targets.cuda.planning import Scheduler, compiled_program, plan
from opendml.targets.cuda.schedule import schedule
from tools.cuda_tiles import schedulers
from tools.kernel_table import kernel_summary

TORCH = {
    ScalarType.FLOAT32: torch.float32,
    ScalarType.FLOAT16: torch.float16,
    ScalarType.INT8: torch.int8,
    ScalarType.UINT8: torch.uint8,
    ScalarType.INT32: torch.int32,
}
TILES = {"FLOAT32": ("fma", "wgmma_part"), "FLOAT16": ("mma", "wgmma"), "INT8": ("imma",)}
"""The first words of the names of tiles that multiply a type."""
CALLS = 24
"""Calls in the CUDA graph of each contender."""
MOST_SETS = 12
"""Sets of tensors that calls go around, at most: so no call of a large case finds its data in the cache."""


def floor_seconds(case: Case, copied_bytes_per_second: float) -> float:
    """Return the least time that the case can take: that of its operations or of its bytes, whichever is
    longer."""
    machine = device().machine
    rates = OPERATIONS.get(machine.capability, OPERATIONS[90])
    cycles = 1e3 * device()._attribute("CLOCK_RATE")
    rate = rates[case.type] * machine.multiprocessors * cycles
    return max(case.operations / rate, case.moved / copied_bytes_per_second)


def copy_speed() -> float:
    """Bytes per second, read and written, of a copy within the device."""
    source, target = (torch.randn(2**27, device="cuda") for _ in range(2))
    return 2 * 4 * 2**27 / median_seconds([lambda: target.copy_(source)])


def time_case(case: Case, ways: list[tuple[str, Scheduler]], copied: float) -> dict[str, Any]:
    """Time opendml in every way, and PyTorch if it has a call for the case. Errors are those of the first
    output, relative to the sums of magnitudes.
    """
    program, peer = case.program, torch_call(case.call.desc)
    count = min(MOST_SETS, -(-SET_BYTES // case.moved))
    sets = [[drawn(each) for each in program.inputs] for _ in range(count)]
    outputs = [[drawn(each) for each in program.outputs] for _ in range(count)]
    # A graph uses the scratch of the instances that it has recorded, so these live as long.
    graphs, errors, recorded = dict[str, Any](), dict[str, float](), list[list[Call]]()
    judge = None if peer is None else Judge(peer, sets[0])
    row: dict[str, Any] = {"name": case.name, "floor": floor_seconds(case, copied)}
    for way, scheduler in ways:
        executable = compiled_program(program, scheduler=scheduler)
        calls: list[Call] = []
        for tensors, results in zip(sets, outputs, strict=True):
            instance = executable.instantiate()
            for number, tensor in enumerate((*tensors, *results)):
                instance.bind(number, tensor.data_ptr())
            calls.append(partial(_enqueue, instance))
        first = outputs[0][0]
        first.fill_(float("nan") if first.is_floating_point() else 77)
        graphs[way] = _recorded(calls)
        recorded.append(calls)
        if judge is not None:
            errors[way] = judge.error(first)
        if way == "opendml":
            machine = device().machine
            kernels = plan(program, machine).kernels.kernels
            launches = [scheduler(each, machine, alignments_of([each])) for each in kernels]
            row["chosen"] = " ".join(dict.fromkeys(_described(each.pattern) for each in launches))
            row["kernels"] = kernel_summary(program, machine).text
    if peer is not None and judge is not None:
        graphs["torch"] = _recorded([partial(peer, *tensors) for tensors in sets])
        errors["torch"] = judge.error(peer(*sets[0]))
    return row | {"seconds": _seconds_in_turn(graphs), "errors": errors}


class Judge:
    """Compares results with those of FLOAT64."""

    def __init__(self, peer: Callable[..., Any], inputs: Sequence[Any]) -> None:
        self._exact = peer(*(each.double() for each in inputs))
        self._magnitude = peer(*(each.double().abs() for each in inputs)).abs().clamp(min=1e-30)

    def error(self, found: Any) -> float:
        """Return the greatest error, relative to the sum of the magnitudes of the summands."""
        difference = (found.double().reshape(self._exact.shape) - self._exact).abs()
        return float((difference / self._magnitude).max())


def drawn(layout: Layout, where: str = "cuda") -> Any:
    """Make a tensor of random numbers in a layout."""
    type = layout.type
    strides = [stride // type.bytes for stride in layout.strides]
    count = 1 + sum((size - 1) * stride for size, stride in zip(layout.sizes, strides, strict=True))
    if type.is_float:
        memory = torch.randn(count, device=where).to(TORCH[type])
    else:
        low, high = (0, 256) if type is ScalarType.UINT8 else (-128, 128)
        memory = torch.randint(low, high, (count,), device=where, dtype=TORCH[type])
    return memory.as_strided(layout.sizes, strides)


def _enqueue(instance: CudaInstance) -> None:
    instance.enqueue(torch.cuda.current_stream().cuda_stream)


def _recorded(calls: Sequence[Callable[[], object]]) -> Any:
    """A CUDA graph of CALLS calls, of which none waits for the host."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(CALLS):
            calls[number % len(calls)]()
    return graph


def _seconds_in_turn(graphs: dict[str, Any], rounds: int = 9) -> dict[str, float]:
    """The median time of a call of each graph, which are replayed in turn: the card's clock falls under
    load."""
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for name, graph in (*graphs.items(),) * rounds:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        graph.replay()
        last.record()
        last.synchronize()
        times[name].append(float(first.elapsed_time(last)) / 1e3 / CALLS)
    return {name: statistics.median(found) for name, found in times.items()}


def _described(pattern: Any) -> str:
    constants = dict(pattern.constants)
    across = constants.get("COLUMNS_OF_TILE", constants.get("KEYS"))
    shape = f" {constants['ROWS']}x{across}" if "DEPTH" in constants else ""
    return f"{pattern.mode.value}{shape}{' split' if constants.get('SPLIT') else ''}"


def line(row: dict[str, Any]) -> str:
    """Return a row as it is printed."""
    seconds, errors, floor = row["seconds"], row["errors"], row["floor"]
    text = f"{row['name']:72} floor {floor * 1e6:8.1f} us; opendml {_time(seconds['opendml'], floor)}"
    if "torch" in seconds:
        text += f", torch {_time(seconds['torch'], floor)}"
        text += f"; errors {errors['opendml']:.1e} {errors['torch']:.1e}"
    return f"{text}; {row['kernels']}; {row['chosen']}"


def _time(seconds: float, floor: float) -> str:
    return f"{seconds * 1e6:8.1f} us ({floor / seconds:.2f})"


def main() -> int:
    """Time the cases and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", nargs="*", default=[])
    parser.add_argument("--tiles", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    copied, rows = copy_speed(), []
    for case in cases():
        if not all(word in case.name for word in arguments.words):
            continue
        ways: list[tuple[str, Scheduler]] = [("opendml", schedule)]
        if arguments.tiles:
            ways += [each for each in schedulers() if each[0].startswith(TILES[case.type])]
        row = time_case(case, ways, copied)
        rows.append(row)
        print(line(row), flush=True)
        others = {way: f"{row['seconds'][way] * 1e6:.1f}" for way, _ in ways[1:]}
        if others:
            print(f"    {others}", flush=True)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"copied": copied, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
