"""Times matrix products, convolutions and attention on a CUDA device beside PyTorch (float32 without TF32),
and the floor: operations over the rate of the units that do them, or bytes over the speed of a copy,
whichever is longer.

python -m benchmarks.cuda_contractions [--words WORD ...] [--tiles] [--out FILE]

With --tiles, every tile of the CUDA target is timed on every case, to judge the table and its choice.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.cuda import SET_BYTES, Call, median_seconds
from opendml.program.program import Layout, Program
from opendml.program.scalar_type import ScalarType
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import MatrixTransform, MultiheadAttentionMaskType
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda.driver import device
from opendml.targets.cuda.executable import CudaExecutable, CudaInstance, Scheduler
from opendml.targets.cuda.schedule import schedule
from tools.cuda_tiles import schedulers

TYPES = ("float32", "float16")
TORCH = {
    ScalarType.FLOAT32: torch.float32,
    ScalarType.FLOAT16: torch.float16,
    ScalarType.INT8: torch.int8,
    ScalarType.INT32: torch.int32,
}
OPERATIONS = {
    80: {"float32": 128, "float16": 2048, "int8": 4096},
    90: {"float32": 256, "float16": 4096, "int8": 8192},
    100: {"float32": 256, "float16": 8192, "int8": 16384},
}
"""Of a multiprocessor in a cycle, by compute capability; those of FLOAT16 and INT8 on tensor cores."""
PRODUCTS = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (1536, 1536, 1536),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (128, 768, 768),
    (128, 768, 3072),
    (1, 4096, 4096),
    (8, 4096, 4096),
    (4096, 64, 64),
    (50176, 64, 147),
)
"""m, n, k."""
TURNED_PRODUCTS = (
    *((2048, 2048, 2048), (4096, 4096, 4096), (256, 4096, 4096), (1576, 3072, 768)),
    *((8, 4096, 4096), (64, 4096, 4096), (128, 768, 3072)),
)
"""m, n, k of products that are computed in each order of the operands."""
BATCHED_PRODUCTS = ((96, 512, 512, 64), (16, 512, 512, 512))
"""Matrices, m, n, k."""
CONVOLUTIONS: tuple[tuple[tuple[int, int, int, int], tuple[int, int], int, int], ...] = (
    ((32, 3, 224, 224), (64, 7), 2, 1),
    ((32, 64, 56, 56), (64, 3), 1, 1),
    ((32, 256, 56, 56), (64, 1), 1, 1),
    ((32, 128, 28, 28), (128, 3), 1, 1),
    ((32, 512, 7, 7), (512, 3), 1, 1),
    ((1, 256, 14, 14), (256, 3), 1, 1),
    ((32, 144, 56, 56), (144, 3), 1, 144),
    ((1, 32, 720, 720), (3, 9), 1, 1),
)
"""Images; outputs and side of the window; stride, groups. Padding keeps the size."""
RESNET = (
    *((64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1), (256, 56, 128, 1, 1)),
    *((128, 56, 128, 3, 2), (128, 28, 512, 1, 1), (512, 28, 128, 1, 1), (128, 28, 128, 3, 1)),
    *((256, 56, 512, 1, 2), (512, 28, 256, 1, 1), (256, 28, 256, 3, 2), (256, 14, 1024, 1, 1)),
    *((1024, 14, 256, 1, 1), (256, 14, 256, 3, 1), (512, 28, 1024, 1, 2), (1024, 14, 512, 1, 1)),
    *((512, 14, 512, 3, 2), (512, 7, 2048, 1, 1), (2048, 7, 512, 1, 1), (512, 7, 512, 3, 1)),
    (1024, 14, 2048, 1, 2),
)
"""Channels, side of the image, outputs, side of the window, stride: of ResNet-50, but the first."""
UNET = (
    *((320, 64, 320, 3, 1), (640, 32, 640, 3, 1), (1280, 16, 1280, 3, 1), (1280, 8, 1280, 3, 1)),
    *((320, 32, 640, 3, 1), (2560, 16, 1280, 3, 1), (1920, 32, 640, 3, 1), (960, 64, 320, 3, 1)),
    *((320, 64, 320, 3, 2), (640, 32, 640, 3, 2), (320, 64, 4, 3, 1), (320, 64, 320, 1, 1)),
    *((640, 32, 640, 1, 1), (1280, 16, 1280, 1, 1)),
)
"""The same of a diffusion model's UNet."""
MODELS = (("ResNet-50", 1, RESNET), ("ResNet-50", 32, RESNET), ("UNet", 2, UNET))
"""Names, batches and convolutions of models, whose tensors have their channels last or are packed."""
INTEGER_PRODUCTS = (512, 1024, 4096)
"""m, n and k of products of INT8."""
ATTENTIONS = ((1, 12, 12, 128, 64), (1, 12, 12, 1024, 64), (8, 12, 12, 1024, 64), (4, 16, 4, 4096, 128))
"""Batch, heads, those of keys and values, tokens, elements of a head."""
CALLS = 24
"""Calls in the CUDA graph of each contender."""
MOST_SETS = 12
"""Sets of tensors that calls go around, at most: so no call of a large case finds its data in the cache."""


@dataclass(frozen=True)
class Case:
    """A program over packed inputs of normal numbers, or of any integers, and PyTorch's words for it."""

    name: str
    program: Program
    dtype: str
    operations: float
    torch_call: Callable[..., Any]


def cases() -> Iterator[Case]:
    """All cases, as programs of public operators."""
    for dtype in TYPES:
        for m, n, k in PRODUCTS:
            name = f"{dtype} product {m}x{n}x{k}"
            yield Case(name, _gemm(dtype, m, n, k), dtype, 2.0 * m * n * k, torch.matmul)
        for m, n, k in TURNED_PRODUCTS:
            for a_turned, b_turned in ((False, True), (True, False), (True, True)):
                name = f"{dtype} product {m}x{n}x{k} {'NT'[a_turned]}{'NT'[b_turned]}"
                call = partial(_turned, a_turned=a_turned, b_turned=b_turned)
                program = _gemm(dtype, m, n, k, a_turned, b_turned)
                yield Case(name, program, dtype, 2.0 * m * n * k, call)
        for batch, m, n, k in BATCHED_PRODUCTS:
            name = f"{dtype} {batch} products {m}x{n}x{k} NT"
            call = partial(_turned, a_turned=False, b_turned=True)
            program = _gemm(dtype, m, n, k, False, True, batch)
            yield Case(name, program, dtype, 2.0 * batch * m * n * k, call)
        m = n = k = 2048
        biased = _gemm(dtype, m, n, k, bias=True)
        yield Case(f"{dtype} product {m} bias relu", biased, dtype, 2.0 * m * n * k, _biased)
        for images, (outputs, side), stride, groups in CONVOLUTIONS:
            yield _convolution(dtype, images, outputs, side, stride, groups)
        yield from _attentions(dtype)
    for model, batch, shapes in MODELS:
        for is_last in (True, False):
            for channels, size, outputs, side, stride in shapes:
                images = batch, channels, size, size
                case = _convolution("float16", images, outputs, side, stride, 1, is_last)
                yield replace(
                    case, name=f"{case.name} of {model}, {'channels last' if is_last else 'packed'}"
                )
    yield from _integer_products()


def _gemm(
    dtype: str,
    m: int,
    n: int,
    k: int,
    a_turned: bool = False,
    b_turned: bool = False,
    batch: int = 1,
    bias: bool = False,
) -> Program:
    """A product of GEMM; with a bias of the columns, behind a RELU."""
    type = dtype.upper()
    a, b = ((k, m) if a_turned else (m, k)), ((n, k) if b_turned else (k, n))
    output = TensorDesc(type, (1, batch, m, n))
    transforms = (MatrixTransform.NONE, MatrixTransform.TRANSPOSE)
    return program_of(
        descs.Gemm(
            TensorDesc(type, (1, batch, *a)),
            TensorDesc(type, (1, batch, *b)),
            TensorDesc(type, output.sizes, strides=(0, 0, 0, 1)) if bias else None,
            output,
            trans_a=transforms[a_turned],
            trans_b=transforms[b_turned],
            fused_activation=descs.ActivationRelu() if bias else None,
        )
    )


def _convolution(
    dtype: str,
    images: tuple[int, int, int, int],
    outputs: int,
    side: int,
    stride: int,
    groups: int,
    is_last: bool = False,
) -> Case:
    """A convolution of packed tensors, or of such with their channels last."""
    margin = side // 2
    n, channels, *image = images

    def tensor(*sizes: int) -> TensorDesc:
        _, c, h, w = sizes
        return TensorDesc(dtype.upper(), sizes, strides=(c * h * w, 1, w * c, c) if is_last else None)

    result = tensor(n, outputs, *((size + 2 * margin - side) // stride + 1 for size in image))
    desc = descs.Convolution(
        tensor(*images),
        tensor(outputs, channels // groups, side, side),
        None,
        result,
        strides=[stride] * 2,
        dilations=[1, 1],
        start_padding=[margin] * 2,
        end_padding=[margin] * 2,
        output_padding=[0, 0],
        group_count=groups,
    )
    operations = 2.0 * math.prod(result.sizes) * channels // groups * side * side
    call = partial(_convolved, stride=stride, padding=margin, groups=groups)
    name = f"{dtype} convolution {images} {outputs}x{side}x{side} /{stride} groups {groups}"
    return Case(name, program_of(desc), dtype, operations, call)


def _attentions(dtype: str) -> Iterator[Case]:
    for batch, heads, own, tokens, size in ATTENTIONS:
        q, k = (TensorDesc(dtype.upper(), (batch, tokens, count * size)) for count in (heads, own))
        desc = descs.MultiheadAttention1(
            q,
            k,
            k,
            output_tensor=q,
            scale=size**-0.5,
            query_head_count=heads,
            key_value_head_count=own,
            mask_type=MultiheadAttentionMaskType.NONE,
        )
        operations = 4.0 * batch * heads * tokens**2 * size
        name = f"{dtype} attention {batch}x{tokens}, {heads} heads of {size}, {own} of keys"
        yield Case(name, program_of(desc), dtype, operations, partial(_attended, size=size))


def _attended(q: Any, k: Any, v: Any, size: int) -> Any:
    parts = (each.unflatten(2, (-1, size)).transpose(1, 2) for each in (q, k, v))
    grouped = q.shape[2] != k.shape[2]
    results = torch.nn.functional.scaled_dot_product_attention(*parts, enable_gqa=grouped)
    return results.transpose(1, 2).flatten(2)


def _integer_products() -> Iterator[Case]:
    for size, turned in itertools.product(INTEGER_PRODUCTS, (False, True)):
        sizes = (1, 1, size, size)
        other = TensorDesc("INT8", sizes, strides=(size * size, size * size, 1, size) if turned else None)
        desc = descs.MatrixMultiplyInteger(
            TensorDesc("INT8", sizes), None, other, None, TensorDesc("INT32", sizes)
        )
        name = f"int8 product {size}{' NT' if turned else ''}"
        call = partial(_integers_multiplied, turned=turned)
        yield Case(name, program_of(desc), "int8", 2.0 * size**3, call)


def _integers_multiplied(a: Any, b: Any, turned: bool) -> Any:
    # The tensor has the sizes of the operand as it is multiplied, over the memory of its transpose.
    return torch._int_mm(a[0, 0], b[0, 0]) if a.dtype is torch.int8 else a[0, 0] @ b[0, 0]


def _turned(a: Any, b: Any, a_turned: bool, b_turned: bool) -> Any:
    return torch.matmul(a.transpose(-1, -2) if a_turned else a, b.transpose(-1, -2) if b_turned else b)


def _biased(a: Any, b: Any, bias: Any) -> Any:
    return torch.relu(torch.matmul(a, b) + bias)


def _convolved(x: Any, weights: Any, stride: int, padding: int, groups: int) -> Any:
    return torch.nn.functional.conv2d(x, weights, None, stride, padding, 1, groups)


def floor_seconds(case: Case, copied_bytes_per_second: float) -> float:
    """The time below which the case cannot be."""
    machine = device().machine
    rates = OPERATIONS.get(machine.capability, OPERATIONS[90])
    cycles = 1e3 * device()._attribute("CLOCK_RATE")
    rate = rates[case.dtype] * machine.multiprocessors * cycles
    layouts = (*case.program.inputs, *case.program.outputs)
    moved = sum(layout.element_count * layout.type.bytes for layout in layouts)
    return max(case.operations / rate, moved / copied_bytes_per_second)


def copy_speed() -> float:
    """Bytes per second, read and written, of a copy within the device."""
    source, target = (torch.randn(2**27, device="cuda") for _ in range(2))
    return 2 * 4 * 2**27 / median_seconds([lambda: target.copy_(source)])


def time_case(case: Case, ways: list[tuple[str, Scheduler]], copied: float) -> dict[str, Any]:
    """Seconds of opendml in every way and of PyTorch, and both errors relative to the sums of magnitudes."""
    (layout,) = case.program.outputs
    layouts = (*case.program.inputs, layout)
    bytes_each = sum(each.element_count * each.type.bytes for each in layouts)
    count = min(MOST_SETS, -(-SET_BYTES // bytes_each))
    sets = [[_drawn(each) for each in case.program.inputs] for _ in range(count)]
    outputs = [_drawn(layout) for _ in range(count)]
    inputs, output = sets[0], outputs[0]
    # A graph uses the scratch of the instances that it has recorded, so these live as long.
    graphs, errors, recorded = dict[str, Any](), dict[str, float](), list[list[Call]]()
    exact = case.torch_call(*(each.double() for each in inputs))
    magnitude = case.torch_call(*(each.double().abs() for each in inputs)).clamp(min=1e-30)

    def error(found: Any) -> float:
        return float(((found.double().reshape(exact.shape) - exact).abs() / magnitude).max())

    for way, scheduler in ways:
        executable = CudaExecutable(case.program, scheduler=scheduler)
        calls: list[Call] = []
        for tensors, result in zip(sets, outputs, strict=True):
            instance = executable.instantiate()
            for number, tensor in enumerate((*tensors, result)):
                instance.bind(number, tensor.data_ptr())
            calls.append(partial(_enqueue, instance))
        output.fill_(float("nan") if layout.type.is_float else -1)
        graphs[way] = _recorded(calls)
        recorded.append(calls)
        errors[way] = error(output)
        modes = [each.launch.pattern for each in executable._prepared.values()]
        if way == "opendml":
            chosen = " ".join(_described(pattern) for pattern in modes)
    graphs["torch"] = _recorded([partial(case.torch_call, *tensors) for tensors in sets])
    seconds = _seconds_in_turn(graphs)
    errors["torch"] = error(case.torch_call(*inputs))
    floor = floor_seconds(case, copied)
    return {"name": case.name, "seconds": seconds, "errors": errors, "floor": floor, "chosen": chosen}


def _drawn(layout: Layout) -> Any:
    """A tensor of random numbers that lie as a layout says."""
    type = layout.type
    strides = [stride // type.bytes for stride in layout.strides]
    count = 1 + sum((size - 1) * stride for size, stride in zip(layout.sizes, strides, strict=True))
    if type.is_float:
        memory = torch.randn(count, device="cuda").to(TORCH[type])
    else:
        memory = torch.randint(-128, 128, (count,), device="cuda", dtype=TORCH[type])
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


def main() -> int:
    """Times the cases and prints the table."""
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
            suitable = {"float32": ("fma",), "float16": ("mma", "wgmma"), "int8": ("imma",)}[case.dtype]
            ways += [(way, scheduler) for way, scheduler in schedulers() if way.startswith(suitable)]
        row = time_case(case, ways, copied)
        rows.append(row)
        seconds, errors = row["seconds"], row["errors"]
        print(
            f"{case.name:62} floor {row['floor'] * 1e6:8.1f} us; opendml {seconds['opendml'] * 1e6:8.1f} us "
            f"({row['floor'] / seconds['opendml']:.2f}), torch {seconds['torch'] * 1e6:8.1f} us "
            f"({row['floor'] / seconds['torch']:.2f}); errors {errors['opendml']:.1e} {errors['torch']:.1e}; "
            f"{row['chosen']}",
            flush=True,
        )
        others = {way: f"{seconds[way] * 1e6:.1f}" for way, _ in ways[1:]}
        if others:
            print(f"    {others}", flush=True)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"copied": copied, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
