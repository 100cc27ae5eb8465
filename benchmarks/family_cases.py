"""The cases of `families`: pointwise, reduction and scan operators, and their words in PyTorch and NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
SIZES = (64, 256, 1024)  # 16.8 million elements, in rows of 1,024
HEAVY = frozenset(
    "acos acosh asin asinh atan atanh atan_yx cos cosh constant_pow erf pow sin sinh tan tanh".split()  # noqa: SIM905
)
"""Arithmetic that may cost as much as the memory."""


@dataclass(frozen=True)
class Case:
    """A call of opendml over inputs, the same call in other libraries, and the share of the floor to reach.

    `torch` takes the inputs and `out`, a tensor of `torch_type` (by default the type of opendml's result). It
    stands in `torch_new`, without `out`, where PyTorch has no form that writes into an existing tensor.
    """

    name: str
    function: str
    inputs: tuple[Array, ...]
    attributes: dict[str, Any]
    goal: float
    torch: Callable[..., Any] | None = None
    numpy: Callable[..., Any] | None = None
    torch_new: Callable[..., Any] | None = None
    torch_type: str | None = None


def cases() -> Iterator[Case]:
    """Yield all cases."""
    yield from _unary()
    yield from _activations()
    yield from _binary()
    yield from _integers()
    yield from _casts()
    yield from _groups()


def _normal(dtype: str = "float32", seed: int = 0, sizes: Sequence[int] = SIZES) -> Array:
    return np.random.default_rng(seed).standard_normal(sizes, np.float32).astype(dtype)


def _uniform(low: float, high: float) -> Array:
    return (np.random.default_rng(1).random(SIZES, np.float32) * (high - low) + low).astype(np.float32)


def _whole(dtype: str, seed: int) -> Array:
    low, high = (1, 100) if seed else (0, 100)
    return np.random.default_rng(seed).integers(low, high, SIZES).astype(dtype)


def _goal(name: str) -> float:
    return 0.5 if name in HEAVY else 0.85


def _unary() -> Iterator[Case]:
    import torch

    inputs = {"acos": _uniform(-0.9, 0.9), "asin": _uniform(-0.9, 0.9), "atanh": _uniform(-0.9, 0.9)}
    inputs |= {"acosh": _uniform(1.1, 9), "log": _uniform(0.1, 9), "sqrt": _uniform(0, 9)}
    attributes: dict[str, dict[str, Any]] = {
        "clip": {"min": -0.5, "max": 0.5},
        "constant_pow": {"exponent": 2.5},
        "threshold": {"min": 0.1},
    }
    inputs["constant_pow"] = _uniform(0.1, 9)
    special: dict[str, tuple[Any, Any]] = {
        "clip": (
            lambda x, out: torch.clamp(x, -0.5, 0.5, out=out),
            lambda x, out: np.clip(x, -0.5, 0.5, out=out),
        ),
        "constant_pow": (
            lambda x, out: torch.pow(x, 2.5, out=out),
            lambda x, out: np.power(x, np.float32(2.5), out=out),
        ),
        "threshold": (
            lambda x, out: torch.clamp(x, min=0.1, out=out),
            lambda x, out: np.maximum(x, np.float32(0.1), out=out),
        ),
        "identity": (_copied, lambda x, out: np.copyto(out, x)),
        "erf": (torch.erf, None),
        "recip": (torch.reciprocal, np.reciprocal),
        "round": (torch.round, np.rint),
        "negate": (torch.neg, np.negative),
        "is_nan": (lambda x, out: torch.ne(x, x, out=out), np.isnan),
        "is_infinity": (None, np.isinf),
    }
    ufuncs = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh"}
    ufuncs |= {"atan": "arctan", "atanh": "arctanh"}
    names = (
        "abs acos acosh asin asinh atan atanh ceil clip constant_pow cos cosh erf exp floor identity "
        "is_infinity is_nan log negate recip round sign sin sinh sqrt tan tanh threshold"
    )
    for name in names.split():
        peers = special.get(name) or (getattr(torch, name), getattr(np, ufuncs.get(name, name)))
        x = inputs.get(name, _normal())
        is_condition = name.startswith("is_")
        yield Case(
            f"{name} float32",
            f"element_wise_{name}",
            (x,),
            attributes.get(name, {}),
            _goal(name),
            *peers,
            torch_new=torch.isinf if name == "is_infinity" else None,
            torch_type="bool" if is_condition else None,
        )
    for name in ("abs", "exp", "floor", "negate", "sqrt", "tanh"):
        peers = special.get(name) or (getattr(torch, name), getattr(np, name))
        half = np.abs(_normal("float16"))
        yield Case(f"{name} float16", f"element_wise_{name}", (half,), {}, _goal(name), *peers)


def _activations() -> Iterator[Case]:
    import torch

    aten, alpha, gamma = torch.ops.aten, 1.6732632423543772, 1.0507009873554805
    calls: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {
        "sigmoid": ({}, torch.sigmoid),
        "swish": ({}, aten.silu.out),
        "gelu": ({}, aten.gelu.out),
        "softplus": ({"steepness": 1.0}, aten.softplus.out),
        "parametric_softplus": (
            {"alpha": 0.5, "beta": 2.0},
            lambda x, out: aten.softplus.out(x, 2.0, out=out),
        ),
        "elu": ({"alpha": 1.0}, aten.elu.out),
        "celu": ({"alpha": 0.7}, lambda x, out: aten.elu.out(x, 0.7, 1.0, 1.0 / 0.7, out=out)),
        "scaled_elu": (
            {"alpha": alpha, "gamma": gamma},
            lambda x, out: aten.elu.out(x, alpha, gamma, out=out),
        ),
        "scaled_tanh": (
            {"alpha": 1.5, "beta": 0.5},
            lambda x, out: torch.mul(x, 0.5, out=out).tanh_().mul_(1.5),
        ),
        "hard_sigmoid": ({"alpha": 1 / 6, "beta": 0.5}, aten.hardsigmoid.out),
        "hard_swish": ({"alpha": 1 / 6, "beta": 0.5}, aten.hardswish.out),
        "leaky_relu": ({"alpha": 0.01}, aten.leaky_relu.out),
        "relu": ({}, aten.relu.out),
    }
    for dtype in ("float32", "float16"):
        for name, (attributes, call) in calls.items():
            x = _normal(dtype)
            yield Case(f"{name} {dtype}", f"activation_{name}", (x,), attributes, 0.85, call)


def _copied(x: Any, out: Any) -> Any:
    """Return a tensor written into another one, converted to its type."""
    return out.resize_(x.shape).copy_(x)


def _binary() -> Iterator[Case]:
    import torch

    peers: dict[str, tuple[Any, Any]] = {
        "add": (torch.add, np.add),
        "subtract": (torch.sub, np.subtract),
        "multiply": (torch.mul, np.multiply),
        "divide": (torch.div, np.divide),
        "max": (torch.maximum, np.maximum),
        "min": (torch.minimum, np.minimum),
        "pow": (torch.pow, np.power),
        "atan_yx": (torch.atan2, np.arctan2),
        "modulus_truncate": (torch.fmod, np.fmod),
        "modulus_floor": (torch.remainder, np.mod),
        "difference_square": (lambda a, b, out: torch.sub(a, b, out=out).square_(), None),
        "mean": (lambda a, b, out: torch.add(a, b, out=out).mul_(0.5), None),
        "logical_equals": (torch.eq, np.equal),
        "logical_greater_than": (torch.gt, np.greater),
        "logical_less_than_or_equal": (torch.le, np.less_equal),
    }
    a, b = np.abs(_normal()) + np.float32(0.1), np.abs(_normal(seed=2)) + np.float32(0.1)
    for name, pair in peers.items():
        type = "bool" if name.startswith("logical") else None
        yield Case(f"{name} float32", f"element_wise_{name}", (a, b), {}, _goal(name), *pair, torch_type=type)
    for name in ("add", "multiply", "max"):
        half = (a.astype(np.float16), b.astype(np.float16))
        yield Case(f"{name} float16", f"element_wise_{name}", half, {}, 0.85, *peers[name])
    condition = (a > b).astype(np.uint8)
    yield Case(
        "if float32",
        "element_wise_if",
        (condition, a, b),
        {},
        0.85,
        lambda c, x, y, out: torch.where(c.view(torch.bool), x, y, out=out),
        None,
    )


def _integers() -> Iterator[Case]:
    import torch

    peers: dict[str, tuple[Any, Any]] = {
        "add": (torch.add, np.add),
        "multiply": (torch.mul, np.multiply),
        "max": (torch.maximum, np.maximum),
        "bit_and": (torch.bitwise_and, np.bitwise_and),
        "bit_shift_left": (torch.bitwise_left_shift, np.left_shift),
    }
    for dtype in ("int8", "uint8", "int16", "int32", "int64"):
        for name in ("add", "multiply", "max"):
            pair = (_whole(dtype, 0), _whole(dtype, 1))
            yield Case(f"{name} {dtype}", f"element_wise_{name}", pair, {}, 0.85, *peers[name])
    for dtype in ("uint8", "uint16", "uint32"):
        for name in ("bit_and", "bit_shift_left"):
            pair = (_whole(dtype, 0), _whole(dtype, 1) % np.array(7, dtype))
            known = peers[name] if dtype == "uint8" else (None, peers[name][1])
            yield Case(f"{name} {dtype}", f"element_wise_{name}", pair, {}, 0.85, *known)
    # Division has no vector instruction.
    yield Case("divide int32", "element_wise_divide", (_whole("int32", 0), _whole("int32", 1)), {}, 0.85)
    x, scale, zero = _normal(), np.array([[[0.05]]], np.float32), np.array([[[128]]], np.uint8)
    from opendml import UINT8

    yield Case(
        "quantize_linear uint8",
        "element_wise_quantize_linear",
        (x, np.broadcast_to(scale, SIZES), np.broadcast_to(zero, SIZES)),
        {"output_type": UINT8},
        0.85,
        torch_new=lambda x, *_: torch.quantize_per_tensor(x, 0.05, 128, torch.quint8),
    )
    quantized = _whole("uint8", 0)
    yield Case(
        "dequantize_linear uint8",
        "element_wise_dequantize_linear",
        (quantized, np.broadcast_to(scale, SIZES), np.broadcast_to(zero, SIZES)),
        {},
        0.85,
        lambda x, *_, out: _copied(x, out).sub_(128).mul_(0.05),
    )


def _casts() -> Iterator[Case]:
    import opendml as dml

    pairs = (
        ("float32", "float16"),
        ("float16", "float32"),
        ("float32", "uint8"),
        ("uint8", "float32"),
        ("int32", "float32"),
        ("float32", "int32"),
        ("int8", "int32"),
        ("int32", "int8"),
        ("int64", "int32"),
        ("float64", "float32"),
    )
    for source, target in pairs:
        x = _normal(source) if source.startswith("float") else _whole(source, 0)
        if target == "uint8":
            x = np.abs(x) * np.array(10, source)
        attributes = {"output_type": getattr(dml, target.upper())}
        yield Case(
            f"cast {source} {target}",
            "cast",
            (x,),
            attributes,
            0.85,
            _copied,
            lambda x, out: np.copyto(out, x, casting="unsafe"),
        )


def _groups() -> Iterator[Case]:
    import torch

    from opendml.spec.enums import ReduceFunction

    positive = np.abs(_normal()) + np.float32(0.5)
    calls: dict[str, Callable[..., Any]] = {
        "SUM": torch.sum,
        "AVERAGE": torch.mean,
        "MAX": torch.amax,
        "MIN": torch.amin,
        "MULTIPLY": lambda x, dim, out: (
            torch.prod(x, dim[0], out=out) if len(dim) == 1 else torch.ops.aten.prod.out(x, out=out)
        ),
        "L1": lambda x, dim, out: torch.linalg.vector_norm(x, 1, dim, out=out),
        "L2": lambda x, dim, out: torch.linalg.vector_norm(x, 2, dim, out=out),
        "SUM_SQUARE": lambda x, dim, out: torch.linalg.vector_norm(x, 2, dim, out=out).square_(),
        "LOG_SUM": lambda x, dim, out: torch.sum(x, dim, out=out).log_(),
        "LOG_SUM_EXP": torch.logsumexp,
    }
    axes_of: dict[str, tuple[int, ...]] = {"first": (0,), "middle": (1,), "last": (2,), "all": (0, 1, 2)}
    for name, call in calls.items():
        for where, axes in axes_of.items():
            yield Case(
                f"reduce {name} {where}",
                "reduce",
                (positive,),
                {"function": ReduceFunction[name], "axes": axes},
                0.8,
                lambda x, out, call=call, axes=axes: call(x, dim=axes, out=out),
            )
    for name in ("argmin", "argmax"):
        for where, axes in axes_of.items():
            if where == "all":
                continue
            yield Case(
                f"{name} {where}",
                name,
                (positive,),
                {"axes": axes},
                0.8,
                lambda x, out, name=name, axes=axes: getattr(torch, name)(x, dim=axes[0], out=out),
                torch_type="int64",
            )
    softmaxes = (
        ("softmax1", torch.ops.aten._softmax.out),
        ("log_softmax1", torch.ops.aten._log_softmax.out),
    )
    for where in ("middle", "last"):
        (axis,) = axes_of[where]
        for name, call in softmaxes:
            yield Case(
                f"{name} {where}",
                f"activation_{name}",
                (_normal(),),
                {"axes": (axis,)},
                0.7,
                lambda x, out, call=call, axis=axis: call(x, axis, False, out=out),
            )
    for where in ("first", "middle", "last"):
        (axis,) = axes_of[where]
        yield Case(
            f"cumulative_summation {where}",
            "cumulative_summation",
            (_normal(),),
            {"axis": axis},
            0.5,
            lambda x, out, axis=axis: torch.cumsum(x, axis, out=out),
            lambda x, out, axis=axis: np.cumsum(x, axis, out=out),
        )
