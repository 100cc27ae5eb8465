"""The cases of `cuda_families`: operators that the memory of a GPU bounds, with operands far larger than its
caches, and PyTorch's words for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import opendml as dml
from benchmarks import family_cases, movement_cases

IMAGES = (32, 64, 112, 112)
_SHARED = frozenset(("quantize_linear uint8", "dequantize_linear uint8"))
"""Cases of the CPU whose operands are broadcast: here they are said anew."""


@dataclass(frozen=True)
class Case:
    """What makes a set of inputs on the device; what opendml makes of tensors of a graph, and PyTorch of the
    inputs."""

    name: str
    inputs: Callable[[], tuple[Any, ...]]
    opendml: Callable[..., Any]
    torch: Callable[..., Any] | None = None
    read: int | None = None
    """Bytes that must be read, where they are not those of the inputs."""


def cases() -> Iterator[Case]:
    """All cases."""
    for each in family_cases.cases():
        if each.name not in _SHARED:
            yield _of_family(each)
    for case in movement_cases.image_cases(IMAGES):
        yield Case(case.name, _copies(case.inputs), case.opendml, case.torch, case.read)
    yield from _long_lines()
    yield from _indexed()
    yield from _gradients()
    yield from _trained()


def _of_family(case: family_cases.Case) -> Case:
    def call(*tensors: Any) -> Any:
        return getattr(dml, case.function)(*tensors, **case.attributes)

    return Case(case.name, _copies(case.inputs), call, case.torch)


def _copies(arrays: tuple[Any, ...]) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(torch.from_numpy(np.array(x)).cuda() for x in arrays)


def _normal(*sizes: int) -> Any:
    return torch.randn(sizes, device="cuda")


def _indices(limit: int, *sizes: int) -> Any:
    return torch.randint(0, limit, sizes, device="cuda")


def _long_lines() -> Iterator[Case]:
    """Few lines, which blocks share."""
    lines = 4, 4_000_000
    for name, call in (("softmax1", torch.softmax), ("log_softmax1", torch.log_softmax)):
        function = getattr(dml, f"activation_{name}")
        yield Case(
            f"{name} of 4 lines",
            lambda: (_normal(*lines),),
            lambda x, function=function: function(x, axes=(1,)),
            lambda x, call=call: call(x, 1),
        )
    yield Case(
        "log-sum-exp of 4 lines",
        lambda: (_normal(*lines),),
        lambda x: dml.reduce(x, function="LOG_SUM_EXP", axes=(1,)),
        lambda x: torch.logsumexp(x, 1),
    )
    yield Case(
        "running sum of 16 million",
        lambda: (_normal(1, 16_000_000),),
        lambda x: dml.cumulative_summation(x, axis=1),
        lambda x: torch.cumsum(x, 1),
    )
    yield Case(
        "running product of 4 lines",
        lambda: (1 + 1e-4 * _normal(*lines),),
        lambda x: dml.cumulative_product(x, axis=1),
        lambda x: torch.cumprod(x, 1),
    )
    yield Case(
        "greatest 64 of 64 lines",
        lambda: (_normal(64, 250_000),),
        lambda x: dml.top_k1(x, axis=1, k=64),
        lambda x: x.topk(64, 1),
    )


def _indexed() -> Iterator[Case]:
    rows = 262_144 * 64 * 4
    yield Case(
        "gather rows of 64",
        lambda: (_normal(1_000_000, 64), _indices(1_000_000, 1, 262_144)),
        lambda x, at: dml.gather(x, at, axis=0, index_dimensions=1),
        lambda x, at: x.index_select(0, at[0]),
        rows + 8 * 262_144,
    )
    yield Case(
        "gather tuples, rows of 64",
        lambda: (_normal(1000, 1000, 64), _indices(1000, 1, 262_144, 2)),
        lambda x, at: dml.gather_nd(x, at, input_dimension_count=3, indices_dimension_count=2),
        lambda x, at: x[at[0, :, 0], at[0, :, 1]],
        rows + 16 * 262_144,
    )
    square = 4096, 4096
    for axis in (0, 1):
        yield Case(
            f"gather elements axis {axis}",
            lambda: (_normal(*square), _indices(4096, *square)),
            lambda x, at, axis=axis: dml.gather_elements(x, at, axis=axis),
            lambda x, at, axis=axis: x.gather(axis, at),
        )
        yield Case(
            f"scatter axis {axis}",
            lambda: (_normal(*square), _indices(4096, *square), _normal(*square)),
            lambda x, at, updates, axis=axis: dml.scatter(x, at, updates, axis=axis),
            lambda x, at, updates, axis=axis: x.scatter(axis, at, updates),
        )
    yield Case(
        "scatter tuples, rows of 64",
        lambda: (_normal(500_000, 64), _indices(500_000, 131_072, 1), _normal(131_072, 64)),
        lambda x, at, updates: dml.scatter_nd(
            x, at, updates, input_dimension_count=2, indices_dimension_count=2
        ),
        lambda x, at, updates: x.index_copy(0, at[:, 0], updates),
    )
    yield Case(
        "one hot",
        lambda: (_indices(1000, 65_536, 1), torch.tensor([[0.0, 1.0]], device="cuda")),
        lambda at, values: dml.one_hot(at, values, axis=1, sizes=(65_536, 1000)),
        lambda at, values: torch.nn.functional.one_hot(at[:, 0], 1000),
    )
    yield Case(
        "nonzero, 1%",
        lambda: ((_normal(4096, 4096) > 2.326).float(),),
        lambda x: list(dml.nonzero_coordinates(x)),
        torch.nonzero,
    )
    yield Case(
        "reverse sequences",
        lambda: (_normal(65_536, 256), (_indices(256, 65_536, 1) + 1).to(torch.uint32)),
        lambda x, lengths: dml.reverse_subsequences(x, lengths, axis=1),
    )
    window: dict[str, Any] = {
        "window_sizes": (3, 3),
        "strides": (1, 1),
        "dilations": (1, 1),
        "start_padding": (1, 1),
        "end_padding": (1, 1),
    }
    yield Case(
        "unfold 3x3",
        lambda: (_normal(16, 64, 56, 56),),
        lambda x: dml.unfold(x, **window),
        lambda x: torch.nn.functional.unfold(x, 3, padding=1),
    )
    yield Case(
        "fold 3x3",
        lambda: (_normal(16, 576, 56 * 56),),
        lambda x: dml.fold(x, **window, sizes=(16, 64, 56, 56)),
        lambda x: torch.nn.functional.fold(x, (56, 56), 3, padding=1),
    )
    yield Case(
        "random words",
        lambda: (torch.arange(6, device="cuda").to(torch.uint32)[None],),
        lambda state: dml.random_generator(state, sizes=(1, 16_000_000)),
        lambda state: torch.empty(16_000_000, dtype=torch.int32, device="cuda").random_(),
    )


def _gradients() -> Iterator[Case]:
    aten = torch.ops.aten
    x, wide, narrow = (64, 64, 56, 56), (64, 64, 112, 112), (64, 64, 28, 28)
    window: dict[str, Any] = {
        "strides": (2, 2),
        "window_size": (3, 3),
        "start_padding": (1, 1),
        "end_padding": (0, 0),
    }
    _, places = torch.nn.functional.max_pool2d(_normal(*x), 3, 2, 1, return_indices=True)
    yield Case(
        "max pooling grad 3x3/2 (peer has the indices)",
        lambda: (_normal(*x), _normal(*narrow)),
        lambda x, g: dml.max_pooling_grad(x, g, **window),
        lambda x, g: aten.max_pool2d_with_indices_backward(
            g, x, [3, 3], [2, 2], [1, 1], [1, 1], False, places
        ),
    )
    pooled = _normal(*x)
    yield Case(
        "average pooling grad 3x3/2",
        lambda: (_normal(*narrow),),
        lambda g: dml.average_pooling_grad(g, **window, include_padding=True, sizes=x),
        lambda g: aten.avg_pool2d_backward(g, pooled, [3, 3], [2, 2], [1, 1], False, True, None),
    )
    for mode, peer, further in (
        ("NEAREST_NEIGHBOR", aten.upsample_nearest2d_backward, []),
        ("LINEAR", aten.upsample_bilinear2d_backward, [False]),
    ):
        yield Case(
            f"resample grad {mode.lower()} 2x",
            lambda: (_normal(*wide),),
            lambda g, mode=mode: dml.resample_grad(g, interpolation_mode=mode, scales=(1, 1, 2, 2), sizes=x),
            lambda g, peer=peer, further=further: peer(g, [112, 112], list(x), *further),
        )
    yield Case(
        "ReLU grad",
        lambda: (_normal(*x), _normal(*x)),
        dml.activation_relu_grad,
        lambda x, g: aten.threshold_backward(g, x, 0),
    )
    yield Case(
        "slice grad",
        lambda: (_normal(*x),),
        lambda g: dml.slice_grad(
            g,
            input_window_offsets=(0, 0, 4, 4),
            input_window_sizes=x,
            input_window_strides=(1, 1, 1, 1),
            sizes=(64, 64, 64, 64),
        ),
        lambda g: torch.nn.functional.pad(g, (4, 4, 4, 4)),
    )


def _trained() -> Iterator[Case]:
    x, channels = (64, 64, 56, 56), (1, 64, 1, 1)
    yield Case(
        "batch normalization",
        lambda: (_normal(*x), _normal(*channels), _normal(*channels) ** 2, *_two(*channels)),
        lambda x, *others: dml.batch_normalization(x, *others, epsilon=1e-5),
        lambda x, *others: torch.nn.functional.batch_norm(x, *(each.flatten() for each in others)),
    )
    yield Case(
        "batch normalization training",
        lambda: (_normal(*x), *_two(*channels)),
        lambda x, scale, bias: list(dml.batch_normalization_training(x, scale, bias, epsilon=1e-5)),
        lambda x, scale, bias: torch.native_batch_norm(
            x, scale.flatten(), bias.flatten(), None, None, True, 0.0, 1e-5
        ),
    )
    yield Case(
        "local response normalization",
        lambda: (_normal(*x),),
        lambda x: dml.local_response_normalization(x, cross_channel=True, local_size=5),
        lambda x: torch.nn.functional.local_response_norm(x, 5),
    )
    count = 16_000_000
    yield Case(
        "Adam",
        lambda: (
            *(_normal(1, 1, 1, count) for _ in range(2)),
            _normal(1, 1, 1, count) ** 2,
            _normal(1, 1, 1, count),
            torch.ones((1, 1, 1, 1), device="cuda").to(torch.uint32),
        ),
        lambda *tensors: list(dml.adam_optimizer(*tensors, learning_rate=1e-3)),
    )
    yield Case(
        "dynamic quantization",
        lambda: (_normal(1, 1, 1, count),),
        lambda x: list(dml.dynamic_quantize_linear(x, output_type=dml.UINT8)),
    )


def _two(*sizes: int) -> tuple[Any, Any]:
    return _normal(*sizes), _normal(*sizes)
