"""Times the CUDA target on a device, side by side with PyTorch (eager and compiled), JAX, and the copy of the
same bytes.

python -m benchmarks.cuda [--peers] [--words WORD ...] [--out DIRECTORY]

Every figure is the median over several timings by events of a run of calls that go around several sets of
tensors, so that no call finds its data in the L2 cache. Data is random.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

import opendml as dml
from opendml.program.program import Program
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda.launcher import CapturedLaunches
from opendml.targets.cuda.planning import compiled_program

Call = Callable[[], None]

SET_BYTES = 256 * 1024 * 1024
"""Together, the sets of tensors that calls go around have at least this many bytes."""
TYPES = {"float32": (torch.float32, dml.FLOAT32), "float16": (torch.float16, dml.FLOAT16)}
NORMALIZED_SIZES = (
    (32, 256, 56, 56),
    (8, 64, 224, 224),
    (64, 1024, 1, 1024),
    (256, 2048, 7, 7),
    (4096, 1, 1, 8192),
)
NORMALIZED_AXES = ((2, 3), (0, 2, 3), (1, 2, 3), (3,), (1,))
POINTWISE_SIZES = (64, 64, 128, 128)
ACTIVATIONS: dict[str, tuple[dict[str, float], Callable[[Any], Any]]] = {
    "celu": ({"alpha": 1.0}, torch.nn.functional.celu),
    "hard_sigmoid": ({"alpha": 1 / 6, "beta": 0.5}, torch.nn.functional.hardsigmoid),
    "elu": ({"alpha": 1.0}, torch.nn.functional.elu),
    "gelu": ({}, torch.nn.functional.gelu),
    "identity": ({}, torch.clone),
    "leaky_relu": ({"alpha": 0.01}, torch.nn.functional.leaky_relu),
    "linear": ({"alpha": 0.5, "beta": 1.0}, lambda x: x * 0.5 + 1.0),
    "parametric_softplus": ({"alpha": 0.5, "beta": 2.0}, lambda x: 0.5 * torch.nn.functional.softplus(2 * x)),
    "relu": ({}, torch.relu),
    "scaled_elu": ({"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}, torch.nn.functional.selu),
    "scaled_tanh": ({"alpha": 1.5, "beta": 0.5}, lambda x: 1.5 * torch.tanh(0.5 * x)),
    "shrink": ({"bias": 0.5, "threshold": 0.5}, torch.nn.functional.softshrink),
    "sigmoid": ({}, torch.sigmoid),
    "softplus": ({"steepness": 1.0}, torch.nn.functional.softplus),
    "softsign": ({}, torch.nn.functional.softsign),
    "tanh": ({}, torch.tanh),
    "thresholded_relu": ({"alpha": 1.0}, lambda x: torch.nn.functional.threshold(x, 1.0, 0.0)),
}


@dataclass(frozen=True)
class Case:
    """A timed case: a program on one input (and scale and bias), PyTorch's and JAX's words for it, and the
    goal.
    """

    name: str
    program: Program
    sizes: tuple[int, ...]
    dtype: str
    torch_call: Callable[..., Any]
    jax_call: Callable[..., Any] | None
    parameter_sizes: tuple[int, ...] | None
    goal: float


def cases() -> Iterator[Case]:
    """All cases."""
    for dtype, (_, data_type) in TYPES.items():
        for name, (attributes, function) in ACTIVATIONS.items():
            tensor = TensorDesc(data_type, POINTWISE_SIZES)
            camel = "".join(part.capitalize() for part in name.split("_"))
            program = program_of(getattr(descs, f"Activation{camel}")(tensor, tensor, **attributes))
            yield Case(
                f"{name} {dtype}",
                program,
                POINTWISE_SIZES,
                dtype,
                function,
                _jax_activation(name),
                None,
                0.97,
            )
        yield _transposition(dtype, data_type)
        for sizes in NORMALIZED_SIZES:
            for axes in NORMALIZED_AXES:
                yield _normalization(dtype, data_type, sizes, axes)


def _transposition(dtype: str, data_type: TensorDataType) -> Case:
    n, c, h, w = POINTWISE_SIZES
    input = TensorDesc(data_type, POINTWISE_SIZES, (c * h * w, 1, w * c, c))
    program = program_of(descs.ActivationRelu(input, TensorDesc(data_type, POINTWISE_SIZES)))

    def call(x: Any) -> Any:
        return torch.relu(x.view(n, h, w, c).permute(0, 3, 1, 2)).contiguous()

    return Case(f"relu from NHWC {dtype}", program, POINTWISE_SIZES, dtype, call, None, None, 0.6)


def _normalization(
    dtype: str, data_type: TensorDataType, sizes: tuple[int, ...], axes: tuple[int, ...]
) -> Case:
    axis = 3 if axes == (3,) else 1
    parameter_sizes = tuple(size if i == axis else 1 for i, size in enumerate(sizes))
    tensor, parameter = TensorDesc(data_type, sizes), TensorDesc(data_type, parameter_sizes)
    desc = descs.MeanVarianceNormalization1(
        tensor,
        parameter,
        parameter,
        tensor,
        axes=axes,
        normalize_variance=True,
        epsilon=1e-5,
        fused_activation=descs.ActivationRelu(),
    )
    group_bytes = tensor_elements([sizes[i] for i in axes]) * (4 if dtype == "float32" else 2)
    goal = 0.9 if group_bytes <= 64 * 1024 else 0.8 if group_bytes <= 400 * 1024 else 0.65

    def torch_call(x: Any, scale: Any, bias: Any) -> Any:
        wide = x.float()
        variance, mean = torch.var_mean(wide, dim=axes, correction=0, keepdim=True)
        result = (wide - mean) * torch.rsqrt(variance + 1e-5) * scale.float() + bias.float()
        return torch.relu(result).to(x.dtype)

    def jax_call(x: Any, scale: Any, bias: Any) -> Any:
        import jax.numpy as jnp

        wide = x.astype(jnp.float32)
        mean, variance = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
        result = (wide - mean) * (variance + 1e-5) ** -0.5 * scale.astype(jnp.float32) + bias.astype(
            jnp.float32
        )
        return jnp.maximum(result, 0).astype(x.dtype)

    name = f"normalization {dtype} {sizes} {axes}".replace(" ", "").replace("normalization", "normalization ")
    return Case(name, program_of(desc), sizes, dtype, torch_call, jax_call, parameter_sizes, goal)


def _jax_activation(name: str) -> Callable[..., Any] | None:
    def call(x: Any) -> Any:
        import jax

        return getattr(jax.nn, name)(x)

    known = {"celu", "elu", "relu", "sigmoid", "softplus", "leaky_relu"}
    if name == "hard_sigmoid":
        return call
    return call if name in known else None


def tensor_elements(sizes: Sequence[int]) -> int:
    """The product of sizes."""
    result = 1
    for size in sizes:
        result *= size
    return result


def median_seconds(calls: Sequence[Call], repeats: int = 9) -> float:
    """The median time of one call, going around `calls`."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        count = max(1, 12 // len(calls)) * len(calls)
        first.record()
        for number in range(count):
            calls[number % len(calls)]()
        last.record()
        last.synchronize()
        times.append(float(first.elapsed_time(last)) / 1e3 / count)
    return statistics.median(times)


def opendml_calls(
    program: Program, tensors: Sequence[Sequence[Any]], outputs: Sequence[Any]
) -> tuple[list[Call], float]:
    """Dispatches over each set of tensors on PyTorch's current stream, and the seconds of compilation."""
    start = time.perf_counter()
    executable = compiled_program(program)
    seconds = time.perf_counter() - start
    stream = torch.cuda.current_stream().cuda_stream
    result: list[Call] = []
    for inputs, output in zip(tensors, outputs, strict=True):
        instance = executable.instantiate()
        for number, tensor in enumerate((*inputs, output)):
            instance.bind(number, tensor.data_ptr())
        result.append(lambda instance=instance: instance.enqueue(stream))  # type: ignore[misc]
    return result, seconds


def time_case(case: Case, peers: bool) -> dict[str, Any]:
    """Seconds of all contenders on one case, and the largest difference from PyTorch's result."""
    dtype = TYPES[case.dtype][0]
    bytes_each = 2 * tensor_elements(case.sizes) * dtype.itemsize
    sets = max(2, -(-SET_BYTES // bytes_each))
    inputs = [[torch.randn(case.sizes, device="cuda", dtype=torch.float32).to(dtype)] for _ in range(sets)]
    if case.parameter_sizes:
        for tensors in inputs:
            tensors += [torch.randn(case.parameter_sizes, device="cuda").to(dtype) for _ in range(2)]
    outputs = [torch.empty_like(tensors[0]).fill_(float("nan")) for tensors in inputs]
    calls, compilation = opendml_calls(case.program, inputs, outputs)
    copies: list[Call] = [partial(b.copy_, a[0]) for a, b in zip(inputs, outputs, strict=True)]
    copy_seconds = [median_seconds(copies)]
    seconds = {"opendml": median_seconds(calls)}
    expected = case.torch_call(*inputs[0])
    difference = float((expected.float() - outputs[0].float()).abs().max())
    del expected
    if peers:
        seconds |= peer_seconds(case, inputs)
    copy_seconds.append(median_seconds(copies))
    seconds["copy"] = min(copy_seconds)
    return {
        "name": case.name,
        "goal": case.goal,
        "of_copy": seconds["copy"] / seconds["opendml"],
        "gigabytes_per_second": {who: bytes_each / value / 1e9 for who, value in seconds.items()},
        "compilation_seconds": compilation,
        "difference": difference,
    }


def peer_seconds(case: Case, inputs: Sequence[Sequence[Any]]) -> dict[str, float]:
    """Seconds of PyTorch eager, PyTorch compiled, and JAX."""

    def around(function: Callable[..., Any], sets: Sequence[Sequence[Any]]) -> list[Call]:
        return [lambda tensors=tensors: function(*tensors) for tensors in sets]  # type: ignore[misc]

    torch._dynamo.reset()
    seconds = {"torch": median_seconds(around(case.torch_call, inputs), 5)}
    compiled = torch.compile(case.torch_call, dynamic=False)
    seconds["torch compiled"] = median_seconds(around(compiled, inputs), 5)
    if case.jax_call is not None:
        import jax

        jitted = jax.jit(case.jax_call)
        sets = [[jax.dlpack.from_dlpack(tensor) for tensor in tensors] for tensors in inputs]
        seconds["jax"] = jax_seconds(lambda number: jitted(*sets[number % len(sets)]))
    return seconds


def jax_seconds(call: Callable[[int], Any]) -> float:
    """JAX has streams of its own: the wall clock over a run of calls, less than a microsecond of it unshared
    by each.
    """
    for number in range(4):
        call(number).block_until_ready()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for number in range(12):
            last = call(number)
        last.block_until_ready()
        times.append((time.perf_counter() - start) / 12)
    return statistics.median(times)


def host_costs() -> dict[str, float]:
    """Microseconds of the host: a dispatch of a bound operator, a replay of ten, an immediate call,
    PyTorch's, and a compilation from the cache.
    """
    tensor = TensorDesc(dml.FLOAT32, (1024,))
    program = program_of(descs.ActivationCelu(tensor, tensor, alpha=1.0))
    data = torch.randn(1024, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    start = time.perf_counter()
    executable = compiled_program(program)
    again = time.perf_counter() - start
    instances = []
    for _ in range(10):
        instance = executable.instantiate()
        instance.bind(0, data.data_ptr())
        instance.bind(1, data.data_ptr())
        instances.append(instance)
    recording = CapturedLaunches(instances)

    def microseconds(call: Call) -> float:
        times = []
        for _ in range(200):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(10):
                call()
            times.append((time.perf_counter() - start) / 10 * 1e6)
        return statistics.median(times)

    return {
        "dispatch": microseconds(lambda: instances[0].enqueue(stream)),
        "replay of ten": microseconds(lambda: recording.enqueue(stream)),
        "immediate call": microseconds(lambda: dml.activation_celu(data)),
        "torch": microseconds(lambda: torch.nn.functional.celu(data)),
        "compiled again": again * 1e6,
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    who = ["copy", "opendml", "torch", "torch compiled", "jax"]
    lines = ["| case | goal | of copy | " + " | ".join(f"{w} GB/s" for w in who) + " | |", "|---" * 9 + "|"]
    for row in rows:
        speeds = row["gigabytes_per_second"]
        cells = " | ".join(f"{speeds[w]:.0f}" if w in speeds else "" for w in who)
        best = max((speeds[w] for w in who[2:] if w in speeds), default=0)
        missed = row["of_copy"] < row["goal"] or speeds["opendml"] < best
        lines.append(
            f"| {row['name']} | {row['goal']} | {row['of_copy']:.2f} | {cells} "
            f"| {'below' if missed else ''} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Times the cases and prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--words", nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    for case in cases():
        if all(word in case.name for word in arguments.words):
            rows.append(time_case(case, arguments.peers))
            row = rows[-1]
            speeds = {who: round(value) for who, value in row["gigabytes_per_second"].items()}
            print(
                f"{row['name']:52} {row['of_copy']:.3f} of {row['goal']} {speeds} "
                f"compiled {row['compilation_seconds']:.2f} s, difference {row['difference']:.2g}",
                flush=True,
            )
    costs = host_costs()
    print({name: round(value, 2) for name, value in costs.items()}, "microseconds of the host")
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        facts = {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "host": costs,
            "rows": rows,
        }
        (arguments.out / "cuda.json").write_text(json.dumps(facts, indent=1))
        (arguments.out / "cuda.md").write_text(table(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
