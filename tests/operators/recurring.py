"""Recurrent networks by their formulas in float64, step by step and batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opendml.runtime.memory.host_array import Array

Function = Callable[[Array], Array]


class Tensors(NamedTuple):
    """The inputs of a network in DirectML's order; RNN and GRU have neither a cell nor peepholes."""

    x: Array
    weights: Array
    recurrence: Array
    bias: Array | None = None
    hidden: Array | None = None
    cell: Array | None = None
    lengths: Array | None = None
    peephole: Array | None = None


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))"""
    return np.asarray(1 / (1 + np.exp(-x)))


def network(
    kind: str,
    tensors: Tensors,
    functions: Sequence[Function],
    backward: Sequence[bool],
    clip: float = np.inf,
    couple: bool = False,
    linear_before_reset: bool = False,
) -> tuple[Array, Array, Array]:
    """The states of all steps, the last ones and the last cells of the directions, each forward or backward.

    Args:
        kind: "RNN", "LSTM" or "GRU".
        tensors: the inputs.
        functions: the activations, one, three or two for each direction.
        backward: for each direction, whether it begins at the end.
        clip: bounds what activations see.
        couple: the gate that forgets is what the input's gate leaves.
        linear_before_reset: the reset gate of a GRU acts on products.
    """
    given = Tensors(*(None if each is None else each.astype(np.float64) for each in tensors))  # type: ignore[arg-type]
    _, steps, batch, _ = given.x.shape
    hidden = given.recurrence.shape[3]
    each = len(functions) // len(backward)
    sequence = np.zeros((steps, len(backward), batch, hidden))
    single, cells = (np.zeros((1, len(backward), batch, hidden)) for _ in range(2))
    for own, is_backward in enumerate(backward):
        step = _step(kind, given, own, functions[each * own : each * own + each], clip, couple)
        for b in range(batch):
            h, c = (
                np.zeros(hidden) if state is None else state[0, own, b]
                for state in (given.hidden, given.cell)
            )
            length = steps if given.lengths is None else min(int(given.lengths[0, 0, 0, b]), steps)
            for t in range(length)[:: -1 if is_backward else 1]:
                h, c = step(given.x[0, t, b], h, c, linear_before_reset)
                sequence[t, own, b] = h
            single[0, own, b], cells[0, own, b] = h, c
    return sequence, single, cells


def _step(
    kind: str, given: Tensors, own: int, functions: Sequence[Function], clip: float, couple: bool
) -> Callable[[Array, Array, Array, bool], tuple[Array, Array]]:
    w, r = given.weights[0, own], given.recurrence[0, own]
    hidden = r.shape[1]
    w_bias, r_bias = (np.zeros(2 * len(r)) if given.bias is None else given.bias[0, 0, own]).reshape(2, -1)
    p = (np.zeros(3 * hidden) if given.peephole is None else given.peephole[0, 0, own]).reshape(3, -1)

    def rnn(x: Array, h: Array, c: Array, _: bool) -> tuple[Array, Array]:
        return functions[0](w @ x + r @ h + w_bias + r_bias), c

    def lstm(x: Array, h: Array, c: Array, _: bool) -> tuple[Array, Array]:
        f, g, last = functions
        gates = (w @ x + r @ h + w_bias + r_bias).reshape(4, -1)
        gates[:3] += p * c
        i, o, forget, new = np.clip(gates, -clip, clip)
        kept = 1 - f(i) if couple else f(forget)
        c = kept * c + f(i) * g(new)
        return f(o) * last(c), c

    def gru(x: Array, h: Array, c: Array, linear_before_reset: bool) -> tuple[Array, Array]:
        f, g = functions
        xs, hs = (w @ x + w_bias).reshape(3, -1), (r @ h + r_bias).reshape(3, -1)
        z, reset = f(xs[0] + hs[0]), f(xs[1] + hs[1])
        inner = reset * hs[2] if linear_before_reset else r[2 * hidden :] @ (reset * h) + r_bias[2 * hidden :]
        return (1 - z) * g(xs[2] + inner) + z * h, c

    return {"RNN": rnn, "LSTM": lstm, "GRU": gru}[kind]


def random_tensors(kind: str, seed: int, directions: int, sizes: Sequence[int], **has: Any) -> Tensors:
    """The tensors of a network of sizes (steps, batch, features, hidden).

    Args:
        kind: as of `network`.
        seed: decides the numbers.
        directions: how many there are.
        sizes: those of the network.
        has: whether there are "bias", "hidden", "cell", "lengths", "peephole"; and "dtype".
    """
    steps, batch, features, hidden = sizes
    generator = np.random.default_rng(seed)
    dtype = has.get("dtype", np.float32)
    gates = {"RNN": 1, "LSTM": 4, "GRU": 3}[kind]

    def made(name: str, *shape: int) -> Any:
        if not has.get(name, True):
            return None
        return generator.uniform(-1, 1, shape).astype(dtype)

    state = (1, directions, batch, hidden)
    lengths = generator.integers(0, steps + 2, (1, 1, 1, batch)).astype(np.uint32)
    return Tensors(
        made("x", 1, steps, batch, features),
        made("weights", 1, directions, gates * hidden, features),
        made("recurrence", 1, directions, gates * hidden, hidden) / np.asarray(hidden**0.5, dtype),
        made("bias", 1, 1, directions, 2 * gates * hidden),
        made("hidden", *state),
        made("cell", *state) if kind == "LSTM" else None,
        lengths if has.get("lengths", True) else None,
        made("peephole", 1, 1, directions, 3 * hidden) if kind == "LSTM" else None,
    )
