"""Kernels of equal form are scheduled once: what the memo gives is what would be found anew, word by word."""

from __future__ import annotations

import threading
from dataclasses import fields, replace
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.simplify import simplify
from opendml.errors import Unsupported
from opendml.program.node import Attribute, Node, Operation, View, apply, constant, reduction, source
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from opendml.runtime.program import program_of
from opendml.spec.validator import failures
from opendml.targets.common.forms import Memo, form_of, structure_of
from opendml.targets.cpu import schedule as cpu
from opendml.targets.cpu.contraction.chain import is_chained
from opendml.targets.cpu.contraction.roles import Varying
from opendml.targets.cpu.launch import CpuLaunch, Table
from opendml.targets.cpu.machine import assumed
from opendml.targets.cuda import schedule as cuda
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.schedule_chain import is_chained as is_chained_on_device
from tests.for_each import for_each
from tests.fuzz.choices import Choices
from tests.fuzz.random_descs import OPERATORS, any_desc
from tests.processes import has_fork, succeeds_in_child
from tools.cuda_case import Case
from tools.cuda_cases import all_cases
from tools.machines import DEVICES, PROCESSORS
from tools.schedule_cases import kernels

F32 = ScalarType.FLOAT32
SEEDS = 1
"""Random descs of each operator."""
DEVICE = DEVICES["sm_90"]
EVERY = 25
"""Of the cases of the GPU one of so many is compared here."""


def kernels_of(program: Program, **abilities: Any) -> tuple[Kernel, ...]:
    fused = fuse(replace(program, results=simplify(program.results)), Abilities(**abilities))
    return (*fused.kernels, *fused.initializers)


def elsewhere(kernel: Kernel, random: Random) -> Kernel:
    """The same kernel over tensors in other buffers, at other offsets, with other numbers."""
    form, binding = form_of(kernel)
    buffers = [random.randrange(6) for _ in binding.buffers]
    # Tensors of one buffer lie apart.
    offsets = [(number << 45) + 64 * random.randrange(1000) for number in range(len(buffers))]

    def moved(access: Access) -> Access:
        if access.buffer is None:
            return access
        return replace(access, buffer=buffers[access.buffer], offset=access.offset + offsets[access.buffer])

    result = replace(
        form,
        loads=tuple(map(moved, form.loads)),
        stores=tuple(map(moved, form.stores)),
        numbers=tuple(random.randrange(-(2**63), 2**63) for _ in binding.numbers),
    )
    assert form_of(result)[0] == form
    return result


def words(launches: list[CpuLaunch]) -> list[object]:
    """All that a job is made of."""
    return [
        (
            *(each.pattern.text(), each.parameters, each.first, each.items, each.grain, each.partial_bytes),
            *(each.reads, each.fixed, each.steady, each.backwards, each.scratch_bytes, each.work),
        )
        for each in launches
    ]


def require_equal_words(kernel: Kernel, random: Random) -> None:
    for each in (kernel, elsewhere(kernel, random), elsewhere(kernel, random)):
        assert words(cpu.schedule(each)) == words(cpu.scheduled(each)[1])


def device_words(launch: CudaLaunch) -> list[object]:
    """All that the GPU is given."""
    names = (field.name for field in fields(launch) if field.name != "pattern")
    return [launch.pattern.text(), *(getattr(launch, name) for name in names)]


def require_equal_launches(kernel: Kernel, random: Random, alignment: int) -> None:
    (machine,) = random.sample(list(DEVICES.values()), 1)
    alignments = [alignment] * (len(kernel.loads) + len(kernel.stores))
    for each in (kernel, elsewhere(kernel, random), elsewhere(kernel, random)):
        _, anew = cuda.scheduled(each, machine, alignments)
        assert device_words(cuda.schedule(each, machine, alignments)) == device_words(anew)


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_typical_kernel_has_the_words_of_a_fresh_schedule_wherever_it_lies(name: str) -> None:
    random = Random(1)
    with assumed(PROCESSORS[name]):
        for _, kernel in kernels(name):
            require_equal_words(kernel, random)


@for_each("name", OPERATORS)
def test_a_random_kernel_has_the_words_of_a_fresh_schedule_wherever_it_lies(name: str) -> None:
    random = Random(name)
    for seed in range(SEEDS):
        desc = any_desc(Choices(seed), names=[name])
        if failures(desc):
            continue
        try:
            program = program_of(desc)
        except Unsupported:
            continue
        with assumed(random.choice(list(PROCESSORS.values()))):
            for kernel in kernels_of(
                program, computes_attention=is_chained, ends_loops=True, scatters_in_order=True
            ):
                require_equal_words(kernel, random)
        for kernel in kernels_of(program, computes_attention=partial(is_chained_on_device, machine=DEVICE)):
            require_equal_launches(kernel, random, random.choice((4, 16)))


@for_each("case", list(all_cases())[::EVERY])
def test_a_kernel_of_the_gpu_has_the_launch_of_a_fresh_schedule_wherever_it_lies(case: Case) -> None:
    for kernel in kernels_of(case.program, computes_attention=partial(is_chained_on_device, machine=DEVICE)):
        require_equal_launches(kernel, Random(1), 16)


def access(buffer: int, offset: int, *strides: int, **facts: Any) -> Access:
    return Access(buffer, F32, offset, strides, **facts)


def kernel_of(loads: list[Access], stores: list[Access], *values: Node, domain: tuple[int, ...]) -> Kernel:
    return Kernel(domain, (), tuple(loads), tuple(stores), values)


def test_accesses_that_may_touch_the_same_bytes_are_of_one_tensor_of_a_form() -> None:
    value = apply(Operation.ADD, source(0, F32), source(1, F32))
    loads = [access(3, 4096, 4), access(3, 4104, 4)]
    form, binding = form_of(kernel_of(loads, [access(3, 1 << 20, 4)], value, domain=(100,)))
    assert [(each.buffer, each.offset) for each in (*form.loads, *form.stores)] == [(0, 0), (0, 8), (1, 0)]
    assert (binding.buffers, binding.offsets) == ((3, 3), (4096, 1 << 20))


def test_tensors_that_a_third_one_spans_are_one() -> None:
    value = apply(Operation.ADD, apply(Operation.ADD, source(0, F32), source(1, F32)), source(2, F32))
    loads = [access(0, 10_000, 4), access(0, 0, 4), access(0, 0, 400)]
    form, _ = form_of(kernel_of(loads, [access(1, 0, 4)], value, domain=(100,)))
    assert [(each.buffer, each.offset) for each in form.loads] == [(0, 0), (0, -10_000), (0, -10_000)]


def test_a_result_of_a_reduction_behind_the_windows_that_it_reads_is_a_tensor_of_its_own() -> None:
    value = reduction(Operation.SUM, source(0, F32, (100, 3)), [1])
    # Windows of 3 in a row of 100, of which the last one reaches one element past the row.
    loads = (access(0, 0, 4, 4),)
    behind, apart = (
        form_of(Kernel((100, 3), (1,), loads, (access(*place, 4, 0),), (value,)))
        for place in ((0, 400), (1, 0))
    )
    assert behind[0] == apart[0]
    assert (behind[1].buffers, behind[1].offsets) == ((0, 0), (0, 400))


ATTRIBUTES: list[Attribute] = [
    0,
    1,
    0.0,
    -0.0,
    1.0,
    None,
    (0, 1),
    (1, 0),
    View((0,), ((1,),)),
    View((0,), ((1,),), (0,)),
]


def test_structures_tell_all_attributes_apart() -> None:
    nodes = [Node(Operation.CONSTANT, F32, attribute=attribute) for attribute in ATTRIBUTES]
    assert len({structure_of((node,)) for node in nodes}) == len(ATTRIBUTES)


def test_structures_tell_a_shared_node_from_two_equal_ones() -> None:
    x = source(0, F32)
    once, again = (apply(Operation.NEGATE, x) for _ in range(2))
    shared, separate = apply(Operation.ADD, once, once), apply(Operation.ADD, once, again)
    assert structure_of((shared,)) != structure_of((separate,))
    assert structure_of((separate,)) == structure_of((apply(Operation.ADD, again, once),))


def test_nan_is_found_again() -> None:
    nodes = [constant(float("nan"), F32) for _ in range(2)]
    assert structure_of((nodes[0],)) == structure_of((nodes[1],))


@pytest.mark.parametrize(
    "change",
    [
        {"domain": (64, 63)},
        {"axes": (1,)},
        {"loads": [access(0, 0, 256, 8)]},
        {"loads": [access(0, 0, 256, 4, fixed=True)]},
        {"loads": [access(0, 0, 256, 4, steps=3)]},
        {"loads": [access(0, 0, 256, 4, advance=64)]},
        {"loads": [Access(None, F32, 0, (256, 4))]},
        {"loads": [Access(0, ScalarType.INT32, 0, (256, 4))]},
        {"stores": [access(0, 0, 256, 4)]},
        {"values": (apply(Operation.NEGATE, apply(Operation.NEGATE, source(0, F32))),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_decides_a_schedule_is_part_of_its_key(change: dict[str, Any]) -> None:
    value = apply(Operation.NEGATE, source(0, F32))
    kernel = kernel_of([access(0, 0, 256, 4)], [access(1, 0, 256, 4)], value, domain=(64, 64))
    changed = replace(kernel, **{name: tuple(each) for name, each in change.items()})
    memo = Memo[str]()
    assert memo.get(form_of(kernel)[0], (), lambda: "first") == "first"
    assert memo.get(form_of(changed)[0], (), lambda: "second") == "second"
    assert memo.get(form_of(kernel)[0], "machine", lambda: "third") == "third"
    assert memo.get(form_of(kernel)[0], (), lambda: "fourth") == "first"


def test_choices_for_one_size_of_images_are_not_those_for_other_kernels_of_all_sizes() -> None:
    whole = cpu.KnownLaunches()
    fixed, memo = cpu.KnownLaunches(whole), cpu.PlanMemo()
    # An initializer has no kernel of traced sizes.
    initializer, kernel = line(5), line(6)
    keys = {
        known.form_of(each, None, memo).usual_key for known, each in ((fixed, initializer), (whole, kernel))
    }
    assert len(keys) == 2
    again = whole.form_of(initializer, None, memo).usual_key
    assert again in keys


def line(length: int) -> Kernel:
    value = apply(Operation.NEGATE, source(0, F32))
    return form_of(kernel_of([access(0, 0, 4)], [access(1, 0, 4)], value, domain=(length,)))[0]


def test_a_memo_forgets_what_was_used_least_recently() -> None:
    memo = Memo[int](most_entries=2)
    for length in (1, 2, 1, 3):
        memo.get(line(length), (), lambda length=length: length)
    assert len(memo) == 2
    assert [memo.get(line(length), (), lambda: 0) for length in (1, 3, 2)] == [1, 3, 0]


def test_a_memo_is_bounded_by_the_size_of_what_it_holds() -> None:
    memo = Memo[int](most_parts=100)
    for length in range(100):
        memo.get(line(length), (), lambda length=length: length)
    assert 0 < len(memo) < 50


def test_equal_layers_of_a_graph_are_scheduled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Kernel] = []
    find = cpu.table_of

    def counted(kernel: Kernel, inner: int | None = None, varying: Varying = None) -> tuple[Table, Any]:
        found.append(kernel)
        return find(kernel, inner, varying)

    monkeypatch.setattr(cpu, "table_of", counted)
    monkeypatch.setattr(cpu, "_launches", cpu.Launches())
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [48, 48])
    for number in range(6):
        weights = graph.input(f"w{number}", dml.FLOAT32, [48, 48])
        x = dml.activation_softmax1(dml.gemm(x, weights), axes=[1])
    graph.compile({"x": x}, "cpu")
    assert len(found) == 2
    graph.compile({"x": x}, "cpu")
    assert len(found) == 2


@has_fork
def test_a_child_schedules_while_another_thread_of_its_parent_does() -> None:
    stop = threading.Event()

    def work() -> None:
        length = 0
        while not stop.is_set():
            length += 1
            cpu.schedule(line(length % 5000 + 1))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(5):
            assert succeeds_in_child(lambda: cpu.schedule(line(77)))
    finally:
        stop.set()
        worker.join()


def test_a_bucket_of_sizes_decides_and_constructs_equal_layers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decided, constructed = list[Kernel](), list[Kernel]()

    def counted(name: str, module: Any, found: list[Any]) -> None:
        function = getattr(module, name)

        def call(*arguments: Any, **named: Any) -> Any:
            found.append(arguments)
            return function(*arguments, **named)

        monkeypatch.setattr(module, name, call)

    counted("decide", cpu, decided)
    counted("construct_traced", cpu, constructed)
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["rows", 48])
    for number in range(6):
        weights = graph.constant(np.full((48, 48), number, np.float32))
        x = dml.activation_softmax1(dml.gemm(x, weights), axes=[1])
    model = graph.compile({"x": x}, "cpu")
    for rows in (5, 6, 9, 13):
        model(np.ones((rows, 48), np.float32))
        buckets = 1 if rows < 8 else 2
        # Plans of two buckets: the product and the softmax are decided once in each. Their choice for the
        # softmax is the same, so its launches are, too.
        assert (len(decided), len(constructed)) == (2 * buckets, 1 + buckets)
