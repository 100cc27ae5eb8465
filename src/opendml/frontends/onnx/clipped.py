"""RNN and GRU with clipped gates, as a Scan over the steps. DirectML clips in LSTM alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.inlining import inlined
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.operators.activations import recurrent_activations
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.values import Value

_USUAL = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"]}
_TYPES = {np.dtype(np.float32): onnx.TensorProto.FLOAT, np.dtype(np.float16): onnx.TensorProto.FLOAT16}
_BACKWARD = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
"""For each direction of a network, whether it goes through the steps from the last to the first."""


def clipped_nodes(node: OnnxNode, values: Sequence[Value | None], prefix: str) -> tuple[OnnxNode, ...] | None:
    """Return nodes for a network that clips. None: it is another node, or the converter refuses it.

    They compute in float32, from a float16 input too.

    Args:
        node: the node.
        values: its inputs.
        prefix: the prefix of the names of new tensors.
    """
    if node.domain or node.operator not in _USUAL or not node.attributes.get("clip"):
        return None
    x, recurrence = values[0], values[2]
    backward = _BACKWARD.get(node.attribute("direction"))
    if x is None or x.type not in _TYPES or recurrence is None or not recurrence.sizes or backward is None:
        return None
    activations = _activations(node, len(backward))
    if activations is None:
        return None
    network = _Network(node, recurrence.sizes[-1], activations)
    lines = "\n".join(network.lines(_TYPES[x.type], backward))
    given = ", ".join(name if given else f"no_{name}" for name, given in network.has.items())
    text = f'<domain: "opendml", opset_import: ["" : 21]> clipped ({given}) => (Y, Y_h) {{\n{lines}\n}}'
    return inlined(node, onnx.parser.parse_function(text), prefix, {})


def _activations(node: OnnxNode, directions: int) -> list[str] | None:
    """Return the activations of all directions as calls without operands; None: some are refused."""
    try:
        found = recurrent_activations(node, _USUAL[node.operator], directions)
    except NotExpressible:
        return None
    calls = []
    for name, _, keywords in found:
        listed = ", ".join(f"{key} = {value:.9e}" for key, value in keywords.items())
        calls.append(f"{name} <{listed}>" if listed else name)
    return calls


class _Network:
    """The text of a function of X, W, R, B, sequence_lens and initial_h that gives Y and Y_h.

    Args:
        node: the node.
        hidden: the number of hidden units.
        activations: the activations of all directions.
    """

    def __init__(self, node: OnnxNode, hidden: int, activations: Sequence[str]) -> None:
        self._node, self._hidden, self._activations = node, hidden, activations
        self._gates = 1 if node.operator == "RNN" else 3
        self._per_direction = len(_USUAL[node.operator])
        """The activations of a direction."""
        names = ("X", "W", "R", "B", "lengths", "initial")
        given = [*node.inputs, *[""] * len(names)]
        self.has = {name: bool(each) for name, each in zip(names, given, strict=False)}
        self._by_batch = bool(node.attribute("layout"))

    def lines(self, type: int, backward: Sequence[bool]) -> Iterator[str]:
        """Yield the nodes of all directions.

        Args:
            type: ONNX's number of the element type of the results.
            backward: for each direction whether it begins with the last step.
        """
        turn = "Transpose <perm = [1, 0, 2]>"
        yield "single = Cast <to = 1> (X)"
        yield f"steps = {turn if self._by_batch else 'Identity'} (single)"
        yield f"greatest = Constant <value_float = {self._node.attributes['clip']:.9e}> ()"
        yield "least = Neg (greatest)"
        yield "front = Constant <value_ints = [0]> ()"
        yield "beside = Constant <value_ints = [1]> ()"
        yield "batch = Shape <start = 1, end = 2> (steps)"
        if self.has["lengths"]:
            yield from self._step_numbers()
        if self.has["initial"]:
            yield "started = Cast <to = 1> (initial)"
            yield f"states = {turn if self._by_batch else 'Identity'} (started)"
        for number, is_backward in enumerate(backward):
            yield from self._direction(number, int(is_backward))
        for name, axis in (("h", "0"), ("y", "1")):
            parts = ", ".join(f"{name}{number}_line" for number in range(len(backward)))
            yield f"{name}s = Concat <axis = {axis}> ({parts})"
        yield f"sequence = {'Transpose <perm = [2, 0, 1, 3]>' if self._by_batch else 'Identity'} (ys)"
        yield f"final = {turn if self._by_batch else 'Identity'} (hs)"
        yield f"Y = Cast <to = {type}> (sequence)"
        yield f"Y_h = Cast <to = {type}> (final)"

    @staticmethod
    def _step_numbers() -> Iterator[str]:
        """Yield the nodes that number the steps, and give each sequence the number at which it ends."""
        yield "count = Shape <start = 0, end = 1> (steps)"
        yield "zero = Constant <value_int = 0> ()"
        yield "one = Constant <value_int = 1> ()"
        yield "last = Squeeze (count)"
        yield "numbers = Range (zero, last, one)"
        yield "wide = Cast <to = 7> (lengths)"
        yield "ends = Unsqueeze (wide, beside)"

    def _direction(self, number: int, backward: int) -> Iterator[str]:
        """Yield the nodes of a direction, whose tensors begin with `d`. One node multiplies all inputs."""
        gates, hidden, d = self._gates, self._hidden, f"d{number}_"
        yield f"{d}n = Constant <value_int = {number}> ()"
        for name in ("W", "R"):
            yield f"{d}{name}_own = Gather <axis = 0> ({name}, {d}n)"
            yield f"{d}{name}_single = Cast <to = 1> ({d}{name}_own)"
            yield f"{d}{name} = Transpose <perm = [1, 0]> ({d}{name}_single)"
        yield f"{d}products = MatMul (steps, {d}W)"
        inputs = f"{d}products"
        if self.has["B"]:
            yield f"{d}B_own = Gather <axis = 0> (B, {d}n)"
            yield f"{d}B = Cast <to = 1> ({d}B_own)"
            yield f"{d}Wb, {d}Rb = Split <axis = 0, num_outputs = 2> ({d}B)"
            yield f"{d}biased = Add ({d}products, {d}Wb)"
            inputs = f"{d}biased"
        if gates > 1:
            split = f"Split <axis = 1> ({d}R, {d}sizes)"
            yield f"{d}sizes = Constant <value_ints = [{2 * hidden}, {hidden}]> ()"
            yield f"{d}R_gates, {d}R_new = {split}"
            if self.has["B"]:
                yield f"{d}Rb_gates, {d}Rb_new = Split <axis = 0> ({d}Rb, {d}sizes)"
        if self.has["initial"]:
            yield f"{d}first = Gather <axis = 0> (states, {d}n)"
        else:
            yield f"{d}hidden = Constant <value_ints = [{hidden}]> ()"
            yield f"{d}shape = Concat <axis = 0> (batch, {d}hidden)"
            yield f"{d}first = ConstantOfShape ({d}shape)"
        scanned = [inputs, "numbers"] if self.has["lengths"] else [inputs]
        types = [f"float[b, {gates * hidden}] x", "int64 t"][: len(scanned)]
        activations = self._activations[number * self._per_direction :][: self._per_direction]
        body = " ".join(self._step(d, activations))
        state = f"float[b, {hidden}]"
        ways = ", ".join([str(backward)] * len(scanned))
        yield (
            f"h{number}, y{number} = Scan <num_scan_inputs = {len(scanned)}, "
            f"scan_input_directions = [{ways}], scan_output_directions = [{backward}], "
            f"body = step ({state} h, {', '.join(types)}) => "
            f"({state} next, {state} out) {{ {body} }}> ({d}first, {', '.join(scanned)})"
        )
        yield f"h{number}_line = Unsqueeze (h{number}, front)"
        yield f"y{number}_line = Unsqueeze (y{number}, beside)"

    def _step(self, d: str, activations: Sequence[str]) -> Iterator[str]:
        """Yield the nodes of a step, from `h` and `x` to `next` and `out`."""
        yield from self._rnn(d, *activations) if self._gates == 1 else self._gru(d, *activations)
        if not self.has["lengths"]:
            yield "next = Identity (new)"
            yield "out = Identity (new)"
            return
        yield "goes_on = Less (t, ends)"
        yield "next = Where (goes_on, new, h)"
        yield "nothing = Sub (h, h)"
        yield "out = Where (goes_on, new, nothing)"

    def _clipped(self, activation: str, result: str, operand: str) -> Iterator[str]:
        """Yield the nodes that clip an operand of an activation, and apply it."""
        yield f"{result}_clipped = Clip ({operand}, least, greatest)"
        yield f"{result} = {activation} ({result}_clipped)"

    def _plus(self, result: str, operand: str, bias: str) -> str:
        """Return the sum with a bias, if there is one."""
        return f"{result} = Add ({operand}, {bias})" if self.has["B"] else f"{result} = Identity ({operand})"

    def _rnn(self, d: str, activation: str) -> Iterator[str]:
        yield f"product = MatMul (h, {d}R)"
        yield self._plus("recurrent", "product", f"{d}Rb")
        yield "sum = Add (x, recurrent)"
        yield from self._clipped(activation, "new", "sum")

    def _gru(self, d: str, of_gates: str, of_state: str) -> Iterator[str]:
        yield "xz, xr, xn = Split <axis = 1, num_outputs = 3> (x)"
        yield f"product = MatMul (h, {d}R_gates)"
        yield self._plus("recurrent", "product", f"{d}Rb_gates")
        yield "hz, hr = Split <axis = 1, num_outputs = 2> (recurrent)"
        for gate in "zr":
            yield f"{gate}_sum = Add (x{gate}, h{gate})"
            yield from self._clipped(of_gates, gate, f"{gate}_sum")
        if self._node.attribute("linear_before_reset"):
            yield f"inner_product = MatMul (h, {d}R_new)"
            yield self._plus("inner", "inner_product", f"{d}Rb_new")
            yield "hn = Mul (r, inner)"
        else:
            yield "reset = Mul (r, h)"
            yield f"inner = MatMul (reset, {d}R_new)"
            yield self._plus("hn", "inner", f"{d}Rb_new")
        yield "n_sum = Add (xn, hn)"
        yield from self._clipped(of_state, "n", "n_sum")
        yield "distance = Sub (h, n)"  # (1 - z) n + z h = n + z (h - n)
        yield "way = Mul (z, distance)"
        yield "new = Add (n, way)"
