"""Recurrent networks: the products with all inputs of all steps are one contraction, then step follows step.

A step is a few kernels of its own, whose machine code all steps share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opendml.operators.matrix import product
from opendml.operators.registry import defines, fused
from opendml.program.functions import maximum, minimum, select
from opendml.program.node import Node, convert, index
from opendml.program.scalar_type import ScalarType
from opendml.program.view import in_memory, joined, padded, reshaped, sliced, view
from opendml.spec.enums import RecurrentNetworkDirection as Direction
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc

_COMPUTED = ScalarType.FLOAT32
Outputs = tuple[TensorDesc | None, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    """What one direction gives: the state after each step, by its number, and the last ones."""

    states: dict[int, Node]
    hidden: Node
    cell: Node | None = None


@defines("RNN", stored=True, output=True)
def rnn(
    x: Node,
    weights: Node,
    recurrence: Node,
    bias: Node | None,
    hidden: Node | None,
    lengths: Node | None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: Direction,
    output: Outputs,
) -> tuple[Node, ...]:
    """h_t = f(x_t W^T + h_(t-1) R^T + W_b + R_b)

    Products are added in float32, and h is rounded to its type after every step. A batch keeps its state from
    the step on that its length is, and has 0 in the sequence there: so a length of 0 gives the initial state.
    A length beyond the sequence counts as all of it.
    """
    network = _Network(x, weights, recurrence, bias, lengths, gates=1)

    def run(own: int) -> _Run:
        state, states = network.initial(hidden, own), {}
        for t in network.order(direction, own):
            new = fused(activation_descs[own], network.gates(own, t, state)[0])
            state = states[t] = network.kept(t, new, state, x.type)
        return _Run(states, state)

    return network.outputs(direction, run, output)


@defines("LSTM", stored=True, output=True)
def lstm(
    x: Node,
    weights: Node,
    recurrence: Node,
    bias: Node | None,
    hidden: Node | None,
    cell: Node | None,
    lengths: Node | None,
    peephole: Node | None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: Direction,
    clip_threshold: float,
    use_clip_threshold: bool,
    couple_input_forget: bool,
    output: Outputs,
) -> tuple[Node, ...]:
    """i = f(clip(x_t W_i^T + h_(t-1) R_i^T + P_i c_(t-1) + W_bi + R_bi)), o and f likewise,
    n = g(clip(x_t W_c^T + h_(t-1) R_c^T + W_bc + R_bc)), c_t = f c_(t-1) + i n, h_t = o h(c_t)

    As in DirectML's formula, all peepholes see the cell before the step; in ONNX that of o sees the new one.
    With CoupleInputForget f is 1 - i. Products, lengths and h as in RNN; the cell is kept in float32.
    """
    network = _Network(x, weights, recurrence, bias, lengths, gates=4)

    def clipped(value: Node) -> Node:
        return maximum(minimum(value, clip_threshold), -clip_threshold) if use_clip_threshold else value

    def run(own: int) -> _Run:
        f, g, h = activation_descs[3 * own : 3 * own + 3]
        state, states = network.initial(hidden, own), {}
        memory = convert(network.initial(cell, own), _COMPUTED)
        for t in network.order(direction, own):
            sums = network.gates(own, t, state)
            if peephole is not None:
                for gate in range(3):
                    sums[gate] = sums[gate] + network.part(peephole, own, gate) * memory
            i, o, forget = (fused(f, clipped(each)) for each in sums[:3])
            forget = 1.0 - i if couple_input_forget else forget
            new = forget * memory + i * fused(g, clipped(sums[3]))
            memory = network.kept(t, new, memory, _COMPUTED)
            state = states[t] = network.kept(t, o * fused(h, memory), state, x.type)
        return _Run(states, state, convert(memory, x.type))

    return network.outputs(direction, run, output)


@defines("GRU", stored=True, output=True)
def gru(
    x: Node,
    weights: Node,
    recurrence: Node,
    bias: Node | None,
    hidden: Node | None,
    lengths: Node | None,
    *,
    activation_descs: Sequence[OperatorDesc],
    direction: Direction,
    linear_before_reset: bool,
    output: Outputs,
) -> tuple[Node, ...]:
    """z = f(x_t W_z^T + h_(t-1) R_z^T + W_bz + R_bz), r likewise,
    n = g(x_t W_h^T + (r h_(t-1)) R_h^T + W_bh + R_bh), or with LinearBeforeReset
    n = g(x_t W_h^T + r (h_(t-1) R_h^T + R_bh) + W_bh), h_t = (1 - z) n + z h_(t-1)

    Products, lengths and h as in RNN.
    """
    network = _Network(x, weights, recurrence, bias, lengths, gates=3, apart=2 if linear_before_reset else 3)

    def run(own: int) -> _Run:
        f, g = activation_descs[2 * own : 2 * own + 2]
        state, states = network.initial(hidden, own), {}
        for t in network.order(direction, own):
            before = convert(state, _COMPUTED)
            if linear_before_reset:
                given, sums = network.inputs(own, t), network.recurrent(own, state)
                z, r = (fused(f, given[gate] + sums[gate]) for gate in range(2))
                n = fused(g, given[2] + r * (sums[2] + network.recurrent_bias(own, 2)))
            else:
                z, r = (fused(f, each) for each in network.gates(own, t, state, 0, 2))
                reset = in_memory(convert(r * before, x.type))
                n = fused(g, network.gates(own, t, reset, 2, 3)[0])
            state = states[t] = network.kept(t, (1.0 - z) * n + z * before, state, x.type)
        return _Run(states, state)

    return network.outputs(direction, run, output)


class _Network:
    """What all steps of a network read. States have the sizes (1, 1, batch, hidden).

    Args:
        x, weights, recurrence, bias, lengths: its tensors.
        gates: how many it has.
        apart: the bias of the recurrence counts to the inputs for the gates before this one.
    """

    def __init__(
        self,
        x: Node,
        weights: Node,
        recurrence: Node,
        bias: Node | None,
        lengths: Node | None,
        gates: int,
        apart: int | None = None,
    ) -> None:
        _, self._steps, self._batch, features = x.sizes
        _, self._directions, _, self._hidden = recurrence.sizes
        self._gates, self._type = gates, x.type
        self._recurrence = convert(recurrence, _COMPUTED)
        self._lengths = None if lengths is None else reshaped(lengths, (1, 1, self._batch, 1))
        columns = self._directions * gates * self._hidden
        # Of (directions, input or recurrence, gates, hidden).
        biases = (self._directions, 2, gates, self._hidden)
        self._bias = None if bias is None else reshaped(convert(bias, _COMPUTED), biases)
        sums = product(
            reshaped(convert(x, _COMPUTED), (self._steps * self._batch, features)),
            reshaped(convert(weights, _COMPUTED), (columns, features)),
        )
        if self._bias is not None:
            total = self._biases(0, gates) + self._biases(1, gates if apart is None else apart)
            sums = sums + reshaped(total, (1, columns, 1))
        self._inputs = sums
        """Of all steps and gates, in (steps * batch, directions * gates * hidden, 1)."""

    def _biases(self, which: int, most: int) -> Node:
        """The biases of all directions for the gates before one, and 0 for the others."""
        assert self._bias is not None
        sizes = (self._directions, 1, most, self._hidden)
        return padded(
            sliced(self._bias, (0, which, 0, 0), sizes), (0, 0, 0, 0), (0, 0, self._gates - most, 0)
        )

    def recurrent_bias(self, own: int, gate: int) -> Node | float:
        """A gate's bias of the recurrence."""
        if self._bias is None:
            return 0.0
        return sliced(self._bias, (own, 1, gate, 0), (1, 1, 1, self._hidden))

    def part(self, tensor: Node, own: int, number: int) -> Node:
        """A part, one for each hidden unit, of a tensor (1, 1, directions, parts * hidden)."""
        first = (0, 0, own, number * self._hidden)
        return convert(sliced(tensor, first, (1, 1, 1, self._hidden)), _COMPUTED)

    def order(self, direction: Direction, own: int) -> Sequence[int]:
        """The steps in the order in which a direction takes them."""
        steps = range(self._steps)
        return steps[::-1] if direction is Direction.BACKWARD or own == 1 else steps

    def initial(self, state: Node | None, own: int) -> Node:
        """The state before the first step."""
        sizes = (1, 1, self._batch, self._hidden)
        if state is None:
            return in_memory(convert(index(ScalarType.INT32, sizes, 0, (0,) * 4), self._type))
        return sliced(state, (0, own, 0, 0), sizes)

    def kept(self, t: int, new: Node, old: Node, type: ScalarType) -> Node:
        """The state after step t, of a type, in memory: the new one where the sequence still goes on."""
        value = convert(new, type)
        if self._lengths is not None:
            value = select(index(ScalarType.UINT32, (), t, ()) < self._lengths, value, convert(old, type))
        return in_memory(value)

    def inputs(self, own: int, t: int) -> list[Node]:
        """What the input of step t contributes to each gate."""
        return self._by_gate(self._of_step(own, t, 0, self._gates))

    def recurrent(self, own: int, state: Node) -> list[Node]:
        """What the state contributes to each gate."""
        return self._by_gate(self._of_state(own, state, 0, self._gates))

    def gates(self, own: int, t: int, state: Node, first: int = 0, last: int | None = None) -> list[Node]:
        """What the input of step t and a state contribute to the gates from one up to another."""
        last = self._gates if last is None else last
        return self._by_gate(
            self._of_state(own, state, first, last) + self._of_step(own, t, first, last)
        )

    def _of_step(self, own: int, t: int, first: int, last: int) -> Node:
        """The inputs of one step in (batch, gates * hidden, 1)."""
        column = (own * self._gates + first) * self._hidden
        sizes = (self._batch, (last - first) * self._hidden, 1)
        return sliced(self._inputs, (t * self._batch, column, 0), sizes)

    def _of_state(self, own: int, state: Node, first: int, last: int) -> Node:
        """The products with a state in (batch, gates * hidden, 1)."""
        sizes = (1, 1, (last - first) * self._hidden, self._hidden)
        columns = sliced(self._recurrence, (0, own, first * self._hidden, 0), sizes)
        rows = view(
            convert(state, _COMPUTED),
            (self._batch, self._hidden),
            (0,) * 4,
            ((0, 0), (0, 0), (1, 0), (0, 1)),
        )
        return product(rows, reshaped(columns, sizes[2:]))

    def _by_gate(self, sums: Node) -> list[Node]:
        """Sums (batch, gates * hidden, 1) as one tensor for each gate."""
        sizes, steps = (1, 1, self._batch, self._hidden), ((0, 0, 1, 0), (0, 0, 0, 1), (0,) * 4)
        columns = range(0, sums.sizes[1], self._hidden)
        return [view(sums, sizes, (0, column, 0), steps) for column in columns]

    def outputs(
        self, direction: Direction, run: Callable[[int], _Run], wanted: Outputs
    ) -> tuple[Node, ...]:
        """The outputs that the desc has: the states of all steps, the last one, and the last cell."""
        runs = [run(own) for own in range(self._directions)]
        results = []
        if wanted[0] is not None:
            steps = [joined([each.states[t] for each in runs], 1) for t in range(self._steps)]
            results.append(self._of_sequences(joined(steps, 0)))
        if wanted[1] is not None:
            results.append(joined([each.hidden for each in runs], 1))
        if len(wanted) > 2 and wanted[2] is not None:
            results.append(joined([each.cell for each in runs if each.cell is not None], 1))
        return tuple(results)

    def _of_sequences(self, states: Node) -> Node:
        """The states of all steps, 0 where a sequence is over."""
        if self._lengths is None:
            return states
        steps = index(ScalarType.UINT32, (self._steps, 1, 1, 1), 0, (1, 0, 0, 0))
        return select(steps < self._lengths, convert(states, _COMPUTED), 0.0)
