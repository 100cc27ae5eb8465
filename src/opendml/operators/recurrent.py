"""Recurrent networks: the products with all inputs are one contraction, then step follows step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opendml.errors import Unsupported
from opendml.operators.matrix import product
from opendml.operators.registry import defines, fused
from opendml.program.functions import maximum, minimum, rounded, select
from opendml.program.node import Node, Window, convert, index
from opendml.program.node import recurrence as steps_of_recurrence
from opendml.program.scalar_type import ScalarType
from opendml.program.view import in_memory, joined, padded, reshaped, sliced, view
from opendml.spec.enums import RecurrentNetworkDirection as Direction
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc

MOST_STEPS = 2**20
"""Steps of a network, at most: each has launches of its own, for which compiling takes 0.1 ms and 2 KB."""
_COMPUTED = ScalarType.FLOAT32
Outputs = tuple[TensorDesc | None, ...]


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

    def run(own: int) -> Node:
        def step(at: _Step) -> list[Node]:
            (state,) = at.states
            new = rounded(convert(fused(activation_descs[own], at.gates(state)[0]), x.type))
            return [at.kept(new, state)]

        return network.run(direction, own, [hidden], x.type, step)

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
    """i = f(clip(x_t W_i^T + h_(t-1) R_i^T + P_i c_(t-1) + W_bi + R_bi)), o and f by the same formula;
    n = g(clip(x_t W_c^T + h_(t-1) R_c^T + W_bc + R_bc)), c_t = f c_(t-1) + i n, h_t = o h(c_t)

    As in DirectML's formula, all peepholes see the cell before the step; in ONNX that of o sees the new one.
    With CoupleInputForget f is 1 - i. Products, lengths and h as in RNN; the cell is kept in float32.
    """
    network = _Network(x, weights, recurrence, bias, lengths, gates=4)

    def clipped(value: Node) -> Node:
        return maximum(minimum(value, clip_threshold), -clip_threshold) if use_clip_threshold else value

    def run(own: int) -> Node:
        f, g, h = activation_descs[3 * own : 3 * own + 3]

        def step(at: _Step) -> list[Node]:
            state, memory = at.states
            sums = at.gates(state)
            if peephole is not None:
                for gate in range(3):
                    sums[gate] = sums[gate] + at.part(at.others[0], gate) * memory
            i, o, forget = (fused(f, clipped(each)) for each in sums[:3])
            forget = 1.0 - i if couple_input_forget else forget
            new = in_memory(at.kept(forget * memory + i * fused(g, clipped(sums[3])), memory))
            # Beside the cell, h lies in float32 too.
            return [at.kept(convert(rounded(convert(o * fused(h, new), x.type)), _COMPUTED), state), new]

        others = [] if peephole is None else [(peephole, network.of_units(own, 0, 3))]
        return network.run(direction, own, [hidden, cell], _COMPUTED, step, others)

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
    """z = f(x_t W_z^T + h_(t-1) R_z^T + W_bz + R_bz), r by the same formula; n = g(x_t W_h^T + (r h_(t-1))
    R_h^T + W_bh + R_bh), or with LinearBeforeReset n = g(x_t W_h^T + r (h_(t-1) R_h^T + R_bh) + W_bh); h_t =
    (1 - z) n + z h_(t-1)

    Products, lengths and h as in RNN; without LinearBeforeReset r h_(t-1) is rounded to the type of h too.
    """
    apart = 2 if linear_before_reset else 3
    network = _Network(x, weights, recurrence, bias, lengths, gates=3, apart=apart)

    def run(own: int) -> Node:
        f, g = activation_descs[2 * own : 2 * own + 2]

        def step(at: _Step) -> list[Node]:
            (state,) = at.states
            before = convert(state, _COMPUTED)
            if linear_before_reset:
                given, sums = at.inputs(), at.recurrent(state)
                z, r = (fused(f, given[gate] + sums[gate]) for gate in range(2))
                inner = sums[2] if bias is None else sums[2] + at.part(at.others[0], 0)
                n = fused(g, given[2] + r * inner)
            else:
                z, r = (fused(f, each) for each in at.gates(state, 0, 2))
                n = fused(g, at.gates(in_memory(rounded(convert(r * before, x.type))), 2, 3)[0])
            return [at.kept(rounded(convert((1.0 - z) * n + z * before, x.type)), state)]

        others = [] if bias is None else [(bias, network.of_units(own, 5, 1))]
        return network.run(direction, own, [hidden], x.type, step, others)

    return network.outputs(direction, run, output)


class _Network:
    """The tensors that all steps of a network read.

    Args:
        x, weights, recurrence, bias, lengths: its tensors.
        gates: how many it has.
        apart: the bias of the recurrence counts to the inputs for the gates before this one.

    Raises:
        Unsupported: there are too many steps.
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
        if self._steps > MOST_STEPS:
            raise Unsupported(f"InputTensor.Sizes[1]: {self._steps:,} steps; at most {MOST_STEPS:,}")
        _, self._directions, _, self._hidden = recurrence.sizes
        self._gates, self._recurrence, self._lengths = gates, recurrence, lengths
        columns = self._directions * gates * self._hidden
        sums = product(
            reshaped(convert(x, _COMPUTED), (self._steps * self._batch, features)),
            reshaped(convert(weights, _COMPUTED), (columns, features)),
        )
        self._inputs = sums
        """The products of all steps and gates: (steps * batch, directions * gates * hidden, 1)."""
        self._bias: Node | None = None
        """The bias of all gates, (1, 1, directions, gates * hidden). Steps add it, because a pure product is
        written while the next one is computed."""
        if bias is not None:
            # Of (directions, input or recurrence, gates, hidden).
            parts = reshaped(convert(bias, _COMPUTED), (self._directions, 2, gates, self._hidden))
            total = _before(parts, 0, gates) + _before(parts, 1, gates if apart is None else apart)
            self._bias = reshaped(total, (1, 1, self._directions, gates * self._hidden))

    def of_units(self, own: int, first: int, count: int) -> Window:
        """Return the window of parts, one for each unit, in a tensor (1, 1, directions, parts * hidden)."""
        return _whole((0, 0, own, first * self._hidden), (1, 1, 1, count * self._hidden))

    def run(
        self,
        direction: Direction,
        own: int,
        initial: Sequence[Node | None],
        type: ScalarType,
        step: Callable[[_Step], list[Node]],
        others: Sequence[tuple[Node, Window]] = (),
    ) -> Node:
        """Return the states before and after all steps of a direction: (steps + 1, states, batch, hidden).

        Args:
            direction, own: the direction of the network and the number of this one.
            initial: the states before the first step.
            type: the type of the states.
            step: a function from the view of one step to the new states.
            others: further tensors that steps read.
        """
        backward = direction is Direction.BACKWARD or own == 1
        start, way = (self._steps - 1, -1) if backward else (0, 1)
        size = self._gates * self._hidden
        inputs = Window(
            (start * self._batch, own * size, 0), (self._batch, size, 1), (way * self._batch, 0, 0)
        )
        biases = [] if self._bias is None else [(self._bias, self.of_units(own, 0, self._gates))]
        read = [
            (self._inputs, inputs),
            (self._recurrence, _whole((0, own, 0, 0), (1, 1, size, self._hidden))),
            *biases,
            *others,
        ]
        if self._lengths is not None:
            numbers = index(ScalarType.UINT32, (self._steps, 1, 1, 1), 0, (1, 0, 0, 0))
            read.append((numbers, Window((start, 0, 0, 0), (1, 1, 1, 1), (way, 0, 0, 0))))
            read.append((self._lengths, _whole((0, 0, 0, 0), (1, 1, 1, self._batch))))

        def body(state: Node, parts: Sequence[Node]) -> Node:
            first = 2 + len(biases)
            bias = parts[2] if biases else None
            has_lengths = self._lengths is not None
            at = _Step(state, parts[0], parts[1], bias, parts[first:], self._gates, has_lengths)
            return joined(step(at), 1)

        sizes = (1, 1, self._batch, self._hidden)
        nothing = convert(index(ScalarType.INT32, sizes, 0, (0,) * 4), type)
        first = [
            nothing if each is None else convert(sliced(each, (0, own, 0, 0), sizes), type)
            for each in initial
        ]
        return steps_of_recurrence(self._steps, joined(first, 1), read, body)

    def outputs(self, direction: Direction, run: Callable[[int], Node], wanted: Outputs) -> tuple[Node, ...]:
        """Return the outputs that the desc has: the states of all steps, the last one, and the last cell."""
        runs = [run(own) for own in range(self._directions)]
        state = (1, 1, self._batch, self._hidden)
        results = []
        if wanted[0] is not None:
            results.append(self._sequence(direction, runs))
        for number, output in enumerate(wanted[1:]):
            if output is not None:
                last = (self._steps, number, 0, 0)
                results.append(joined([sliced(each, last, state) for each in runs], 1))
        return tuple(results)

    def _sequence(self, direction: Direction, runs: Sequence[Node]) -> Node:
        """Return the states of all steps, 0 where a sequence is over."""
        sizes = (self._steps, 1, self._batch, self._hidden)
        parts = []
        for own, states in enumerate(runs):
            backward = direction is Direction.BACKWARD or own == 1
            first, way = (self._steps, -1) if backward else (1, 1)
            parts.append(sliced(states, (first, 0, 0, 0), sizes, (way, 1, 1, 1)))
        whole = joined(parts, 1)
        if self._lengths is None:
            return whole
        numbers = index(ScalarType.UINT32, (self._steps, 1, 1, 1), 0, (1, 0, 0, 0))
        parts = [select(numbers < _by_batch(self._lengths), convert(each, _COMPUTED), 0.0) for each in parts]
        return joined(parts, 1)


class _Step:
    """The view of one step.

    It has the states before the step, each (1, 1, batch, hidden). The inputs of all gates are (batch, gates *
    hidden, 1), the recurrence (1, 1, gates * hidden, hidden), and the bias (1, 1, 1, gates * hidden). Other
    tensors follow, and with lengths the number of the step and the lengths.
    """

    def __init__(
        self,
        states: Node,
        inputs: Node,
        weights: Node,
        bias: Node | None,
        others: Sequence[Node],
        gates: int,
        has_lengths: bool,
    ) -> None:
        _, count, self._batch, self._hidden = states.sizes
        self.states = [sliced(states, (0, each, 0, 0), (1, 1, *states.sizes[2:])) for each in range(count)]
        self.others = others
        self._inputs, self._weights, self._gates = inputs, convert(weights, _COMPUTED), gates
        self._bias = bias
        self._goes_on = others[-2] < _by_batch(others[-1]) if has_lengths else None

    def kept(self, new: Node, old: Node) -> Node:
        """Return a new state where the sequence still goes on, elsewhere the old one."""
        return new if self._goes_on is None else select(self._goes_on, new, old)

    def part(self, tensor: Node, number: int) -> Node:
        """Return a part, one for each hidden unit, of a tensor (1, 1, 1, parts * hidden)."""
        first = (0, 0, 0, number * self._hidden)
        return convert(sliced(tensor, first, (1, 1, 1, self._hidden)), _COMPUTED)

    def inputs(self, first: int = 0, last: int | None = None) -> list[Node]:
        """Return the part of the input and the bias in the gates from one up to another."""
        last = self._gates if last is None else last
        sizes = (self._batch, (last - first) * self._hidden, 1)
        found = self._by_gate(sliced(self._inputs, (0, first * self._hidden, 0), sizes))
        if self._bias is None:
            return found
        return [each + self.part(self._bias, first + gate) for gate, each in enumerate(found)]

    def recurrent(self, state: Node) -> list[Node]:
        """Return the part of a state in each gate."""
        return self._by_gate(self._products(state, 0, self._gates))

    def gates(self, state: Node, first: int = 0, last: int | None = None) -> list[Node]:
        """Return the sums of the input and a state for the gates from one up to another."""
        last = self._gates if last is None else last
        products = self._by_gate(self._products(state, first, last))
        return [a + b for a, b in zip(products, self.inputs(first, last), strict=True)]

    def _products(self, state: Node, first: int, last: int) -> Node:
        """Return the products with a state in (batch, gates * hidden, 1)."""
        sizes = (1, 1, (last - first) * self._hidden, self._hidden)
        columns = sliced(self._weights, (0, 0, first * self._hidden, 0), sizes)
        steps = ((0, 0), (0, 0), (1, 0), (0, 1))
        rows = view(convert(state, _COMPUTED), (self._batch, self._hidden), (0,) * 4, steps)
        return product(rows, reshaped(columns, sizes[2:]))

    def _by_gate(self, sums: Node) -> list[Node]:
        """Return sums (batch, gates * hidden, 1) as one tensor for each gate."""
        sizes, steps = (1, 1, self._batch, self._hidden), ((0, 0, 1, 0), (0, 0, 0, 1), (0,) * 4)
        columns = range(0, sums.sizes[1], self._hidden)
        return [view(sums, sizes, (0, column, 0), steps) for column in columns]


def _whole(first: tuple[int, ...], sizes: tuple[int, ...]) -> Window:
    """Return a window that is the same for all steps."""
    return Window(first, sizes, (0,) * len(sizes))


def _before(biases: Node, which: int, most: int) -> Node:
    """Return the biases of the input (`which` = 0) or of the recurrence (1), with 0 from the gate `most` on.

    All biases are (directions, input or recurrence, gates, hidden).
    """
    directions, _, gates, hidden = biases.sizes
    part = sliced(biases, (0, which, 0, 0), (directions, 1, most, hidden))
    return padded(part, (0, 0, 0, 0), (0, 0, gates - most, 0))


def _by_batch(lengths: Node) -> Node:
    """Return lengths (1, 1, 1, batch) beside states."""
    return view(lengths, (1, 1, lengths.sizes[3], 1), (0,) * 4, ((0,) * 4, (0,) * 4, (0,) * 4, (0, 0, 1, 0)))
