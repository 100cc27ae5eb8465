"""Kernels with traced sizes are those of exact compilations, for all sizes that meet the guards."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.kernel import Kernel, KernelProgram, number_of
from opendml.compiler.memory import place
from opendml.compiler.prices import Prices
from opendml.compiler.simplify import simplify
from opendml.compiler.sized import at_sizes, plain
from opendml.compiler.stored_kernels import kernels_from_json, kernels_to_json
from opendml.program.atoms import Dimension, Relation
from opendml.program.carriers import carried
from opendml.program.node import Node, Operation, Recurrence, constant, ordered
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from opendml.program.size_values import Conditions, Values
from opendml.program.sizes import hint_of
from opendml.program.stored_sizes import ReadSizes, WrittenSizes
from opendml.program.trace import Trace
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.targets.common.forms import key_of
from opendml.targets.cpu.planning import _abilities
from tests.plans import exactly, traces_of
from tools.operator_case import Form, Strided, Typed
from tools.operator_cases import all_forms

PLAIN = Abilities(prices=Prices(least_stored=0))
"""No value is too small to be stored, because sizes that change are taken for large ones."""


def apart(sizes: Sequence[int], lifetimes: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Place temporaries one behind the other, so that their offsets do not depend on hints."""
    ends = [0, *accumulate(sizes)]
    return ends[:-1], ends[-1]


def fused(program: Program, abilities: Abilities = PLAIN) -> KernelProgram:
    program = carried(program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("opendml.compiler.fuse.place", apart)
        return fuse(replace(program, results=simplify(program.results)), abilities)


def described(program: KernelProgram) -> list[str]:
    """Return kernels as text.

    A traced integer is a counter that does not move, which exact compilations have as a constant.
    """
    return [line for kernel in program.kernels for line in _lines(kernel)] + [f"{program.arena_bytes} bytes"]


def _lines(kernel: Kernel) -> Iterator[str]:
    yield f"{kernel.domain} {kernel.axes} {kernel.numbers} {kernel.stores}"
    loads = {
        number: f"CONSTANT {access.type.name} () {access.offset}"
        if access.buffer is None and not any(access.strides)
        else f"{access}"
        for number, access in enumerate(kernel.loads)
    }
    names: dict[int, int] = {}
    for node in ordered(kernel.values):
        names[id(node)] = len(names)
        what = f"{node.operation.name} {node.type.name} {node.sizes} {node.attribute!r}"
        if node.operation is Operation.SOURCE:
            what = loads[number_of(node)]
        elif node.operation is Operation.CONSTANT:
            what = f"CONSTANT {node.type.name} () {node.attribute}"
        yield f"{what} {[names[id(each)] for each in node.operands]}"
    yield str([names[id(each)] for each in kernel.values])


def read_again(program: KernelProgram, trace: Trace) -> KernelProgram:
    """Return kernels that were written as JSON and read, after a comparison with those written."""
    written = WrittenSizes()
    content = json.dumps([kernels_to_json(program, written), written.table()])
    kernels, table = json.loads(content)
    read = kernels_from_json(kernels, ReadSizes(table, trace))
    assert described(read) == described(program)
    assert replace(read, kernels=(), initializers=()) == replace(program, kernels=(), initializers=())
    for own, others in ((read.kernels, program.kernels), (read.initializers, program.initializers)):
        assert [key_of(each) for each in own] == [key_of(each) for each in others]
        assert nodes_of(own) == nodes_of(others)
    return read


def nodes_of(kernels: Sequence[Kernel]) -> int:
    """Return the number of nodes, of which kernels may share some."""
    return len({id(node) for kernel in kernels for node in ordered(kernel.values)})


# Operators


@cache
def forms() -> Mapping[str, Form]:
    """The first form of each operator, and those of linear interpolation, by names."""
    every = list(all_forms())
    linear = {f"{form.operator} linear": form for form in every if form.name == "images by 2, linear"}
    return {form.operator: form for form in reversed(every)} | linear


def with_size(form: Form, old: int, new: int) -> Form:
    """Return a form with another size in all tensors, and in the attributes that are sizes."""
    is_scaled = form.operator.startswith(("RESAMPLE", "MAX_", "AVERAGE_"))

    def changed(sizes: Any) -> Any:
        if isinstance(sizes, list):
            return [changed(each) for each in sizes]
        if isinstance(sizes, Strided | Typed):
            return sizes._replace(sizes=changed(sizes.sizes))
        return tuple(
            [new if size == old else 2 * new if is_scaled and size == 2 * old else size for size in sizes]
        )

    attributes = {
        name: changed(value) if name in ("sizes", "input_window_sizes") else value
        for name, value in form.attributes.items()
    }
    tensors = {name: changed(sizes) for name, sizes in form.tensors.items()}
    return replace(form, tensors=tensors, attributes=attributes, sizes=form.sizes and changed(form.sizes))


def sizes_of(form: Form) -> list[int]:
    """Return the sizes of a form's tensors that are more than 1."""
    flat = [
        each for given in form.tensors.values() for each in (given if isinstance(given, list) else [given])
    ]
    return sorted({n for each in flat for n in getattr(each, "sizes", each) if n > 1})


def kept_size(form: Form, size: int) -> int | None:
    """Compare the kernels of a traced size with exact ones at another size that meets the guards, if any."""
    type = form.types_of_first[0]
    if form.operator in MASKED:
        form, size = with_size(form, size, size | 1), size | 1
    trace = Trace({"n": Dimension(size)})
    traced = fused(with_size(form, size, trace.size("n")).case(type).program)
    traced = read_again(traced, trace)
    holds, guards = Conditions(trace.guards), dict(trace.guards)
    assert holds({"n": size}), guards
    others = (2 * size, size + 1, size - 1, size // 2, 4 * size, size + 7)
    for other in (2 * size + 1, 4 * size + 1) if form.operator in MASKED else others:
        if other > 1 and holds({"n": other}):
            exact = fused(with_size(form, size, other).case(type).program)
            assert described(at_sizes(traced, {"n": other})) == described(exact), other
            assert trace.guards == guards
            return other
    return None


# Attributes, or sizes of other tensors in the case, say these sizes.
_STATED = {
    "FOLD": [576, 3136],
    "GATHER_ND": [2],
    "GATHER_ND1": [2],
    "MULTIHEAD_ATTENTION1": [512, 2048],
    "RANDOM_GENERATOR": [6],
    "ROI_ALIGN": [4],
    "ROI_ALIGN1": [4],
    "ROI_ALIGN_GRAD": [4],
    "ROI_POOLING": [5],
    "SPLIT": [64],
    "VALUE_SCALE_2D": [3],
}
# Kernels are repeated for each step of a recurrent network. Its gates stand in one tensor of weights.
_STEPS = {"GRU": [16, 256, 768, 1536], "LSTM": [16, 256, 1024, 2048], "RNN": [16, 256, 512]}
# Taps of resampled elements are found in tables, which are made of the sizes.
_TABLES = {"RESAMPLE_GRAD": [112], "RESAMPLE_GRAD1": [112], "MAX_POOLING_GRAD": [112]}
EXACT: dict[str, list[int]] = {**_STATED, **_STEPS, **_TABLES}
"""The sizes of operators' forms whose kernels serve no other size."""

MASKED = {name for name in forms() if "POOLING" in name and "GRAD" not in name and "ROI" not in name}
"""Operators that mask padding behind the last element, which exact kernels of even sizes do not need."""


@pytest.mark.parametrize("name", sorted(forms()))
def test_an_operator_with_a_traced_size_has_the_kernels_of_exact_sizes(name: str) -> None:
    form = forms()[name]
    exact = [size for size in sizes_of(form) if kept_size(form, size) is None]
    assert exact == EXACT.get(form.operator, [])


# Graphs


def weights(graph: dml.Graph, *sizes: int) -> GraphTensor:
    return graph.constant(np.linspace(-1, 1, int(np.prod(sizes)), dtype=np.float32).reshape(sizes))


def perceptron(graph: dml.Graph, batch: int) -> list[GraphTensor]:
    x = graph.input("x", dml.FLOAT32, [1, 1, batch, 64])
    hidden = dml.gemm(x, weights(graph, 1, 1, 64, 128), fused_activation=dml.descs.ActivationRelu())
    return [dml.mean_variance_normalization1(dml.gemm(hidden, weights(graph, 1, 1, 128, 64)) + x, axes=[3])]


def network(graph: dml.Graph, batch: int, height: int, width: int) -> list[GraphTensor]:
    x = graph.input("x", dml.FLOAT32, [batch, 3, height, width])
    one = {"start_padding": [1, 1], "end_padding": [1, 1]}
    halved = dml.convolution(
        x, weights(graph, 16, 3, 3, 3), weights(graph, 1, 16, 1, 1), **one, strides=[2, 2]
    )
    pooled = dml.max_pooling(halved, window_size=[3, 3], strides=[2, 2], **one)
    deep = dml.convolution(pooled, weights(graph, 16, 1, 3, 3), **one, group_count=16)
    deep = dml.convolution(deep, weights(graph, 24, 16, 1, 1))
    mean = dml.average_pooling(deep, window_size=deep.sizes[2:], include_padding=False)
    return [mean, dml.mean_variance_normalization1(deep, axes=[2, 3])]


def attention(graph: dml.Graph, batch: int, length: int, past: int = 0) -> list[GraphTensor]:
    x = graph.input("x", dml.FLOAT32, [batch, length, 64])

    def projected() -> GraphTensor:
        flat = dml.gemm(x.reshape([1, 1, batch * length, 64]), weights(graph, 1, 1, 64, 64))
        return flat.reshape([batch, length, 4, 16]).permute([0, 2, 1, 3])

    query, key, value = projected(), projected(), projected()
    if past:
        before = [graph.input(name, dml.FLOAT32, [batch, 4, past, 16]) for name in ("keys", "values")]
        key, value = (dml.join(pair, axis=2) for pair in zip(before, (key, value), strict=True))
    scores = dml.gemm(query, key, trans_b="TRANSPOSE", alpha=0.25)
    result = dml.gemm(dml.activation_softmax1(scores, axes=[3]), value)
    flat = result.permute([0, 2, 1, 3]).reshape([1, 1, batch * length, 64])
    normal = dml.mean_variance_normalization1(flat + x.reshape([1, 1, batch * length, 64]), axes=[3])
    return [normal, key, value] if past else [normal]


def cached_step(graph: dml.Graph, past: int) -> list[GraphTensor]:
    return attention(graph, 1, 1, past)


def kernels_of(
    build: Callable[..., list[GraphTensor]], sizes: Mapping[str, int], abilities: Abilities
) -> KernelProgram:
    graph = dml.Graph()
    values = [each._value for each in build(graph, **sizes)]
    (stage,) = graph._stages.work(values, {*graph._constants}, only_needed=True).stages
    return fused(stage.program, abilities)


GRAPHS = {
    perceptron: {"batch": 37},
    network: {"batch": 5, "height": 61, "width": 81},
    attention: {"batch": 5, "length": 37},
    cached_step: {"past": 83},
}


@pytest.mark.parametrize("build", GRAPHS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("abilities", [PLAIN, _abilities()], ids=["plain", "cpu"])
def test_a_graph_with_traced_sizes_has_the_kernels_of_exact_sizes(
    build: Callable[..., list[GraphTensor]], abilities: Abilities
) -> None:
    hints = GRAPHS[build]
    trace = Trace({name: Dimension(hint) for name, hint in hints.items()})
    traced = read_again(kernels_of(build, {name: trace.size(name) for name in hints}, abilities), trace)
    assert not [size for relation, size in trace.guards if relation is Relation.ZERO]
    assert described(plain(traced)) == described(kernels_of(build, hints, abilities))
    holds, generator = Conditions(trace.guards), random.Random(0)
    for _ in range(3):
        # Exact kernels of other remainders have fewer masks of windows.
        sizes = {name: hint + 4 * generator.randrange(60) for name, hint in hints.items()}
        assert holds(sizes)
        assert described(at_sizes(traced, sizes)) == described(kernels_of(build, sizes, abilities))


def test_one_trace_of_a_network_serves_pictures_of_odd_and_even_sizes() -> None:
    graph = dml.Graph()
    mean, normal = network(graph, "batch", "height", "width")  # type: ignore[arg-type]
    model = graph.compile({"mean": mean, "normal": normal})
    generator = np.random.default_rng(0)
    for sizes in ((2, 40, 61), (3, 63, 50)):
        batch, height, width = sizes
        x = generator.standard_normal((batch, 3, height, width), np.float32)
        found, wanted = model({"x": x}), exactly(model, {"x": x})
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, atol=1e-5, rtol=1e-5, err_msg=str(sizes))
    assert len(traces_of(model)) == 1


# Memory


@pytest.mark.parametrize("seed", range(30))
def test_temporaries_that_live_together_never_overlap(seed: int) -> None:
    generator = random.Random(seed)
    trace = Trace({name: Dimension(generator.randrange(2, 100)) for name in "ab"})
    a, b = trace.size("a"), trace.size("b")
    sizes = [generator.choice([a, b, a * b, a * 300, b * b, 4096, a + b]) * 4 for _ in range(12)]
    lifetimes = [(first, first + generator.randrange(4)) for first in map(generator.randrange, [10] * 12)]
    offsets, total = place(sizes, lifetimes)
    assert (list(map(hint_of, offsets)), hint_of(total)) == place(list(map(hint_of, sizes)), lifetimes)
    assert not trace.guards
    values = Values([*offsets, *sizes, total])
    for _ in range(20):
        own = {name: generator.randrange(2, 3000) for name in "ab"}
        *found, end = values(own).tolist()
        begins, lengths = found[:12], found[12:]
        for one in range(12):
            assert begins[one] % 256 == 0
            assert begins[one] + lengths[one] <= end
            for other in range(one):
                (first, last), (begin, stop) = lifetimes[one], lifetimes[other]
                if first <= stop and begin <= last:
                    is_below = begins[one] + lengths[one] <= begins[other]
                    assert is_below or begins[other] + lengths[other] <= begins[one]


def test_attributes_without_a_form_in_json_are_errors() -> None:
    node = Node(
        Operation.RECURRENCE,
        ScalarType.FLOAT32,
        (4,),
        (),
        Recurrence(2, constant(1.0, ScalarType.FLOAT32), ()),
    )
    program = KernelProgram((Kernel((4,), (), (), (), (node,)),), 0, 0, 0)
    with pytest.raises(TypeError, match="an attribute of type Recurrence has no form in JSON"):
        kernels_to_json(program, WrittenSizes())
