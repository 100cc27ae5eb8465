"""The cost around the arithmetic: that of a call on 1,000 elements, of importing, and of compiling."""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

ELEMENTS = 1000
CALLS = 2000
PROCESSES = 7

COMPILE_SCRIPT = """
import json, sys, time
import opendml as dml
device = dml.Device("cpu")
tensor = dml.TensorDesc(dml.FLOAT32, [8, 64, 112, 112])
row = dml.TensorDesc(dml.FLOAT32, [1, 64, 1, 1])
descs = {
    "first operator of the process": dml.descs.ActivationSigmoid(tensor, tensor),
    "ACTIVATION_HARD_SIGMOID": dml.descs.ActivationHardSigmoid(tensor, tensor),
    "ACTIVATION_CELU": dml.descs.ActivationCelu(tensor, tensor),
    "ACTIVATION_GELU": dml.descs.ActivationGelu(tensor, tensor),
    "MEAN_VARIANCE_NORMALIZATION1 + scale + bias + RELU": dml.descs.MeanVarianceNormalization1(
        tensor, row, row, tensor, axes=[2, 3], normalize_variance=True, epsilon=1e-5,
        fused_activation=dml.descs.ActivationRelu()),
}
times = {}
for name, desc in descs.items():
    operator = device.create_operator(desc)
    begun = time.perf_counter()
    device.compile_operator(operator)
    times[name] = time.perf_counter() - begun
print(json.dumps(times))
"""
GRAPH_SCRIPT = """
import json, time
import numpy as np
import opendml as dml
LAYERS = 200
activations = [
    lambda x, n: dml.activation_celu(x, alpha=0.3 + 0.013 * n),
    lambda x, n: dml.activation_elu(x, alpha=0.3 + 0.017 * n),
    lambda x, n: dml.activation_leaky_relu(x, alpha=0.01 + 0.001 * n),
    lambda x, n: dml.activation_hard_sigmoid(x, alpha=0.2 + 0.0011 * n, beta=0.4 + 0.0013 * n),
]
dml.activation_relu(np.zeros(8, np.float32))
graph = dml.Graph()
x = graph.input("x", dml.FLOAT32, [1, 8, 16, 16])
for n in range(LAYERS // 2):
    x = dml.mean_variance_normalization1(x, axes=[2, 3], epsilon=1e-5 * (1 + 0.37 * n))
    x = activations[n % len(activations)](x, n)
begun = time.perf_counter()
graph.compile({"y": x}, device="cpu")
name = f"graph of {LAYERS} normalizations and activations that differ in attributes"
print(json.dumps({name: time.perf_counter() - begun}))
"""
IMPORT_SCRIPT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
CACHE_VARIABLE = "OPENDML_CACHE_DIRECTORY"


@dataclass(frozen=True)
class Small:
    """One figure: `seconds` is a median; `limit` what it should stay below, where there is such a goal."""

    name: str
    seconds: float
    limit: float | None = None

    @property
    def text(self) -> str:
        """The time in the unit that suits it."""
        return _in_unit(self.seconds)

    @property
    def verdict(self) -> str:
        if self.limit is None:
            return ""
        return f"{'meets' if self.seconds <= self.limit else 'misses'} {_in_unit(self.limit)}"


def measure_small_work(peers: list[str], rounds: int, threads: int) -> list[Small]:
    """All figures; peers that are not installed leave theirs out."""
    return [
        *_calls(peers, rounds, threads),
        *_imports(peers),
        *_compilations(COMPILE_SCRIPT, 60e-3, 5e-3),
        *_compilations(GRAPH_SCRIPT, 0.6, 0.15),
    ]


def _calls(peers: list[str], rounds: int, threads: int) -> Iterator[Small]:
    medians = _interleaved(_call_contenders(peers, threads), rounds)
    empty, eager = medians["empty ctypes call"], medians.get("torch celu, new")
    limits = {
        "opendml bound dispatch": empty + 0.5e-6,
        "opendml activation_celu, new": eager * 1.5 if eager else None,
        "opendml model of celu": 4e-6,
    }
    if relu := medians.get("torch relu, new"):
        # 5 us on a machine where PyTorch's relu takes 2.4: clocks change between machines, and within one.
        limits |= {name: relu * 5 / 2.4 for name in medians if name.startswith("opendml on tensors")}
    for name, seconds in medians.items():
        label = name if name.startswith("empty") else f"{name}, {ELEMENTS} float32"
        yield Small(label, seconds, limits.get(name))


def _call_contenders(peers: list[str], threads: int) -> dict[str, Callable[[], object]]:
    x = np.linspace(-3, 3, ELEMENTS, dtype=np.float32)
    contenders: dict[str, Callable[[], object]] = {"empty ctypes call": empty_native_function()}
    if "opendml" in peers:
        contenders |= _opendml_calls(x, threads)
    if "torch" in peers:
        import torch

        tensor, celu, relu = torch.from_numpy(x), torch.nn.functional.celu, torch.relu
        contenders["torch celu, new"] = lambda: celu(tensor)
        contenders["torch relu, new"] = lambda: relu(tensor)
        if "opendml" in peers:
            contenders |= _calls_on_tensors(tensor)
    return contenders


def _calls_on_tensors(x: Any) -> dict[str, Callable[[], object]]:
    """Calls on PyTorch's tensors in host memory, with results that are new tensors."""
    import opendml as dml

    y = x + 1
    calls: dict[str, Callable[[], object]] = {
        "relu": lambda: dml.activation_relu(x),
        "celu": lambda: dml.activation_celu(x),
        "hard_sigmoid": lambda: dml.activation_hard_sigmoid(x),
        "add": lambda: dml.element_wise_add(x, y),
        "clip": lambda: dml.element_wise_clip(x, min=-1.0, max=1.0),
        "sum": lambda: dml.reduce(x, function="SUM", axes=[0]),
    }
    return {f"opendml on tensors, {name}": call for name, call in calls.items()}


def _opendml_calls(x: Any, threads: int) -> dict[str, Callable[[], object]]:
    import opendml as dml

    output = np.empty_like(x)
    device = dml.Device("cpu", threads=threads)
    tensor = dml.TensorDesc(dml.FLOAT32, x.shape)
    desc = dml.descs.ActivationCelu(tensor, tensor)
    bound = device.compile_operator(device.create_operator(desc)).bind([x], [output])
    graph = dml.Graph()
    y = dml.activation_celu(graph.input("x", dml.FLOAT32, x.shape))
    model = graph.compile({"y": y}, device)
    return {
        "opendml bound dispatch": bound.dispatch,
        "opendml model of celu": lambda: model(x=x),
        "opendml activation_celu, out=": lambda: dml.activation_celu(x, out=output),
        "opendml activation_celu, new": lambda: dml.activation_celu(x),
    }


def empty_native_function() -> Callable[[], object]:
    """A machine code function that does nothing, called through ctypes: the floor of every dispatch."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    module = llvm.parse_assembly("define void @empty() { ret void }")
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(None)(engine.get_function_address("empty"))
    function.engine = engine  # type: ignore[attr-defined]  # the code lives as long as its engine
    return function


def _interleaved(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of one call of each, from loops of many calls in turns."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds + 1):
        for name, call in contenders.items():
            begun = time.perf_counter()
            for _ in repeat(None, CALLS):
                call()
            times[name].append((time.perf_counter() - begun) / CALLS)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def _imports(peers: list[str]) -> Iterator[Small]:
    """Importing in a fresh process, its files in the system's cache; opendml's time includes NumPy's."""
    limits = {"opendml": 0.2}
    modules = [
        peer for peer in ("opendml", "numpy", "onnxruntime", "openvino", "torch", "jax") if peer in peers
    ]
    for module in modules:
        seconds = [float(_python(IMPORT_SCRIPT.format(module))) for _ in range(PROCESSES)]
        yield Small(f"import {module}", statistics.median(seconds), limits.get(module))


def _compilations(script: str, compiled: float, cached: float) -> Iterator[Small]:
    """Compiling with an empty cache, and again in other processes from the cache that this has filled; with
    the limits of both."""
    for kind, limit in (("compiled", compiled), ("from the cache", cached)):
        runs: list[dict[str, float]] = []
        with tempfile.TemporaryDirectory() as folder:
            for index in range(PROCESSES):
                cache = folder if kind != "compiled" else os.path.join(folder, str(index))
                runs.append(json.loads(_python(script, {CACHE_VARIABLE: cache})))
        if kind != "compiled":
            runs = runs[1:]  # the first has filled the cache
        for name in runs[0]:
            seconds = statistics.median(run[name] for run in runs)
            yield Small(f"{name}, {kind}", seconds, None if name.startswith("first") else limit)


def _python(script: str, environment: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | (environment or {})
    ).stdout


def _in_unit(seconds: float) -> str:
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"
