"""The engines: each loads a prepared model, and runs it again and again on the same inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models.cases import Array
from benchmarks.models.prepare import load_arrays

Run = Callable[[], Any]

_WHOLE_PROCESS = ExitStack()


def _nothing() -> None:
    """Wait for nothing: on the CPU a run is over when it returns."""


def _same(run: Run) -> Run:
    return run


@dataclass
class Loaded:
    """A model in an engine.

    Args:
        run: computes the outputs.
        arrays: makes arrays of them.
        wait: returns when all runs are over.
        repeated: makes of `run`, which has run, what is timed.
        kernels: tells how many kernels one run launches, after `repeated`; None: unknown.
    """

    run: Run
    arrays: Callable[[Any], Sequence[Array]]
    wait: Callable[[], None] = _nothing
    repeated: Callable[[Run], Run] = _same
    kernels: Callable[[], str] | None = None


@dataclass(frozen=True)
class Engine:
    """A way to run models.

    Args:
        packages: what it needs, by the names of their modules.
        devices: where it runs.
        load: loads the model of a folder, for so many threads on a device.
        reads_modules: it runs PyTorch's module, else the ONNX model.
    """

    packages: tuple[str, ...]
    devices: tuple[str, ...]
    load: Callable[[Path, int, str], Loaded]
    reads_modules: bool = False

    def absent(self) -> str | None:
        """Return why the engine cannot be had here; None if it can."""
        missing = [name for name in self.packages if find_spec(name) is None]
        return f"{missing[0]} is not installed" if missing else None


def _opendml(folder: Path, threads: int, device: str) -> Loaded:
    import opendml as dml

    where = dml.Device("cpu", threads=threads) if device == "cpu" else dml.Device(device)
    model = dml.onnx.load(folder / "model.onnx", where)
    inputs = load_arrays(folder / "inputs.npz")

    def kernels() -> str:
        parts = model.parts(inputs)
        outside = sum(isinstance(part, str) for part in parts)
        graphs = [part.explain() for part in parts if not isinstance(part, str)]
        count = sum(kernel.times for graph in graphs for kernel in graph.kernels)
        return f"{count} + {outside} nodes" if outside else str(count)

    return Loaded(lambda: model.run(inputs), lambda found: list(found.values()), kernels=kernels)


def _opendml_in_vectors(folder: Path, threads: int, device: str) -> Loaded:
    """Run opendml in a process that uses no AMX."""
    from opendml.targets.cpu.machine import assumed, machine

    _WHOLE_PROCESS.enter_context(assumed(machine().without_matrix_registers))
    return _opendml(folder, threads, device)


def _onnxruntime(folder: Path, threads: int, device: str) -> Loaded:
    from benchmarks.sessions import onnxruntime_session

    session = onnxruntime_session(str(folder / "model.onnx"), threads)
    inputs = load_arrays(folder / "inputs.npz")
    return Loaded(lambda: session.run(None, inputs), list)


def _openvino(folder: Path, threads: int, device: str) -> Loaded:
    from benchmarks.sessions import openvino_request

    inputs = load_arrays(folder / "inputs.npz")
    sizes = {name: list(array.shape) for name, array in inputs.items()}
    request = openvino_request(str(folder / "model.onnx"), threads, sizes)
    return Loaded(
        lambda: request.infer(inputs, share_inputs=True, share_outputs=False),
        lambda found: list(found.to_tuple()),
    )


def _torch(folder: Path, threads: int, device: str, backend: Any = None) -> Loaded:
    """PyTorch, eager or compiled by a backend.

    A backend's result on CUDA is captured in a CUDA graph after the first run. Products and convolutions of
    float32 are exact there, without TF32.
    """
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    torch.backends.cudnn.allow_tf32 = False
    module = torch.load(folder / "module.pt", weights_only=False, map_location=device)
    inputs = [torch.from_numpy(each).to(device) for each in load_arrays(folder / "inputs.npz").values()]
    if backend is not None:
        if backend == "opendml":
            import opendml.torch

            backend = opendml.torch.backend
        module = torch.compile(module, backend=backend, dynamic=False, options={"freezing": True})

    def run() -> Any:
        return module(*inputs)

    def arrays(found: Any) -> list[Array]:
        return [each.cpu().numpy() for each in (found if isinstance(found, tuple) else (found,))]

    if device == "cpu":
        return Loaded(run, arrays)
    if backend is None:
        return Loaded(run, arrays, torch.cuda.synchronize)
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    return Loaded(run, arrays, torch.cuda.synchronize, partial(_captured, graph), partial(_nodes, graph))


def _captured(graph: Any, run: Run) -> Run:
    """Return what replays the runs' launches as one CUDA graph."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        outputs = run()
    graph.instantiate()

    def replay() -> Any:
        graph.replay()
        return outputs

    return replay


def _nodes(graph: Any) -> str:
    """Return the number of the nodes of a captured graph."""
    from cuda.bindings import runtime

    error, _, count = runtime.cudaGraphGetNodes(graph.raw_cuda_graph(), 0)
    assert error == runtime.cudaError_t.cudaSuccess
    return str(count)


ENGINES: dict[str, Engine] = {
    "opendml": Engine(("onnx",), ("cpu", "cuda"), _opendml),
    "opendml-torch": Engine(("torch",), ("cpu", "cuda"), partial(_torch, backend="opendml"), True),
    "onnxruntime": Engine(("onnxruntime",), ("cpu",), _onnxruntime),
    "openvino": Engine(("openvino",), ("cpu",), _openvino),
    "torch": Engine(("torch",), ("cpu", "cuda"), _torch, True),
    "inductor": Engine(("torch",), ("cpu", "cuda"), partial(_torch, backend="inductor"), True),
    "opendml-vectors": Engine(("onnx",), ("cpu",), _opendml_in_vectors),
}
"""By their names on the command line and in tables. `opendml` reads ONNX, `opendml-torch` is a backend, and
`opendml-vectors` is `opendml` without AMX."""

DEFAULT_ENGINES = {
    "cpu": ("opendml", "onnxruntime", "openvino", "torch", "inductor"),
    "cuda": ("opendml-torch", "opendml", "torch", "inductor"),
}
"""The first is the one whose ratio to the others is told."""

WARM_SECONDS = 0.2
BATCH_SECONDS = 0.003  # A batch of runs takes at least so long, so that waiting for it costs little.
LEAST_BATCHES = 3


def time_runs(run: Run, wait: Callable[[], None], seconds: float) -> tuple[list[float], list[float]]:
    """Return the milliseconds of a run, and those of processors' time of all threads.

    There is a mean for each of several batches of runs, which take `seconds` together.
    """
    begun, runs = time.perf_counter(), 0
    while runs == 0 or time.perf_counter() - begun < WARM_SECONDS:
        run()
        wait()
        runs += 1
    count = max(1, round(BATCH_SECONDS * runs / (time.perf_counter() - begun)))
    times: list[float] = []
    processor_times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < LEAST_BATCHES or time.perf_counter() < end:
        start, used = time.perf_counter(), time.process_time()
        for _ in range(count):
            run()
        wait()
        times.append((time.perf_counter() - start) / count * 1e3)
        processor_times.append((time.process_time() - used) / count * 1e3)
    return times, processor_times


def as_arrays(found: Sequence[Any]) -> list[Array]:
    """Return outputs as arrays."""
    return [np.asarray(each) for each in found]
