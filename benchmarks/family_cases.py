"""The cases of `families`: pointwise, reduction and scan operators, and their words in PyTorch and NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
SIZES = (64, 256, 512)
HEAVY = frozenset(
    "acos acosh asin asinh atan atanh atan_yx cos cosh constant_pow erf pow sin sinh tan tanh".split()  # noqa: SIM905
)
"""Arithmetic that may cost as much as the memory."""


@dataclass(frozen=True)
class Case:
    """A call of opendml over inputs, the same in the words of others, and the share of the floor to reach."""

    name: str
    function: str
    inputs: tuple[Array, ...]
    attributes: dict[str, Any]
    goal: float
    torch: Callable[..., Any] | None = None
    numpy: Callable[..., Any] | None = None


def cases() -> Iterator[Case]:
    """All cases."""
    yield from _unary()
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
        "clip": (lambda x: torch.clamp(x, -0.5, 0.5), lambda x, out: np.clip(x, -0.5, 0.5, out=out)),
        "constant_pow": (lambda x: torch.pow(x, 2.5), lambda x, out: np.power(x, np.float32(2.5), out=out)),
        "threshold": (
            lambda x: torch.clamp(x, min=0.1),
            lambda x, out: np.maximum(x, np.float32(0.1), out=out),
        ),
        "identity": (lambda x: x.clone(), lambda x, out: np.copyto(out, x)),
        "erf": (torch.erf, None),
        "recip": (torch.reciprocal, np.reciprocal),
        "round": (torch.round, np.rint),
        "negate": (torch.neg, np.negative),
        "is_nan": (torch.isnan, np.isnan),
        "is_infinity": (torch.isinf, np.isinf),
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
        yield Case(
            f"{name} float32", f"element_wise_{name}", (x,), attributes.get(name, {}), _goal(name), *peers
        )
    for name in ("abs", "exp", "floor", "negate", "sqrt", "tanh"):
        peers = special.get(name) or (getattr(torch, name), getattr(np, name))
        half = np.abs(_normal("float16"))
        yield Case(f"{name} float16", f"element_wise_{name}", (half,), {}, _goal(name), *peers)


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
        "difference_square": (lambda a, b: torch.square(a - b), None),
        "mean": (lambda a, b: (a + b) * 0.5, None),
        "logical_equals": (torch.eq, np.equal),
        "logical_greater_than": (torch.gt, np.greater),
        "logical_less_than_or_equal": (torch.le, np.less_equal),
    }
    a, b = np.abs(_normal()) + np.float32(0.1), np.abs(_normal(seed=2)) + np.float32(0.1)
    for name, pair in peers.items():
        yield Case(f"{name} float32", f"element_wise_{name}", (a, b), {}, _goal(name), *pair)
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
        lambda c, x, y: torch.where(c.bool(), x, y),
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
        lambda x, *_: torch.quantize_per_tensor(x, 0.05, 128, torch.quint8),
    )
    quantized = _whole("uint8", 0)
    yield Case(
        "dequantize_linear uint8",
        "element_wise_dequantize_linear",
        (quantized, np.broadcast_to(scale, SIZES), np.broadcast_to(zero, SIZES)),
        {},
        0.85,
        lambda x, *_: (x.float() - 128) * 0.05,
    )


def _casts() -> Iterator[Case]:
    import torch

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
        dtype = getattr(torch, target)
        yield Case(
            f"cast {source} {target}",
            "cast",
            (x,),
            attributes,
            0.85,
            lambda x, dtype=dtype: x.to(dtype),
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
        "MULTIPLY": lambda x, dim: torch.prod(x, dim[0]) if len(dim) == 1 else torch.prod(x),
        "L1": lambda x, dim: torch.linalg.vector_norm(x, 1, dim),
        "L2": lambda x, dim: torch.linalg.vector_norm(x, 2, dim),
        "SUM_SQUARE": lambda x, dim: torch.sum(x * x, dim),
        "LOG_SUM": lambda x, dim: torch.log(torch.sum(x, dim)),
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
                lambda x, call=call, axes=axes: call(x, dim=axes),
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
                lambda x, name=name, axes=axes: getattr(torch, name)(x, dim=axes[0]),
            )
    for where in ("middle", "last"):
        (axis,) = axes_of[where]
        for name, call in (("softmax1", torch.softmax), ("log_softmax1", torch.log_softmax)):
            yield Case(
                f"{name} {where}",
                f"activation_{name}",
                (_normal(),),
                {"axes": (axis,)},
                0.7,
                lambda x, call=call, axis=axis: call(x, dim=axis),
            )
    for where in ("first", "middle", "last"):
        (axis,) = axes_of[where]
        yield Case(
            f"cumulative_summation {where}",
            "cumulative_summation",
            (_normal(),),
            {"axis": axis},
            0.5,
            lambda x, axis=axis: torch.cumsum(x, axis),
            lambda x, out, axis=axis: np.cumsum(x, axis, out=out),
        )
