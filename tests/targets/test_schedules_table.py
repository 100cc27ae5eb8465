"""Kernels and schedules of typical operators are those of the tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import opendml as dml
from opendml import TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.compiler.simplify import simplify
from opendml.operators.registry import implemented
from opendml.runtime.program import program_of
from opendml.spec.enums import ConvolutionDirection, ConvolutionMode, FeatureLevel
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.targets.common.candidates import (
    Candidate,
    Estimate,
    Refusal,
    Table,
    cheapest,
)
from opendml.targets.cpu import machine as cpu_machine
from opendml.targets.cpu import schedule_elements, schedule_groups, schedule_placing, schedule_scans
from opendml.targets.cpu.contraction import schedule
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.planning import plan
from opendml.targets.cuda import schedule_elements as cuda_elements
from opendml.targets.cuda import schedule_placing as cuda_placing
from opendml.targets.cuda import schedule_reductions as cuda_reductions
from opendml.targets.cuda import schedule_scans as cuda_scans
from opendml.targets.cuda.machine import CudaMachine, memory_rate
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.schedule import schedule as schedule_convolution
from tools import kernel_table
from tools.kernel_rules import RULES, exceptions
from tools.kernel_table import COMMAND, MODEL, TARGETS, Row, differences, expected, operators, parsed, rows
from tools.machines import DEVICES, PROCESSORS
from tools.schedules import TABLE, considered, main, taken

DEVELOPMENT = Path(__file__).parents[2] / "docs" / "design" / "development.md"
MACHINES = (*PROCESSORS, *DEVICES)
CPU_TABLES: tuple[Table[Any, Any], ...] = (
    schedule_elements.ELEMENTS,
    schedule_groups.ROWS,
    schedule_groups.COLUMNS,
    schedule_scans.SCANNED_ROWS,
    schedule_scans.SCANNED_COLUMNS,
    schedule_placing.SCATTER,
    schedule_placing.POSITIONS,
    schedule_placing.TOP,
)
CUDA_TABLES: tuple[Table[Any, Any], ...] = (
    cuda_elements.ELEMENTS,
    cuda_reductions.REDUCE,
    cuda_scans.LINES,
    cuda_scans.LINES_SIDE_BY_SIDE,
    cuda_placing.SCATTER,
    cuda_placing.POSITIONS,
    cuda_placing.TOP,
)


@pytest.mark.parametrize("name", MACHINES)
def test_typical_kernels_are_scheduled_as_the_table_says(name: str) -> None:
    assert taken(name) == json.loads(TABLE.read_text("utf-8"))[name]


@pytest.mark.parametrize(("machines", "tables"), [(PROCESSORS, CPU_TABLES), (DEVICES, CUDA_TABLES)])
def test_every_candidate_is_taken_by_a_kernel(
    machines: Iterable[str], tables: Iterable[Table[Any, Any]]
) -> None:
    texts = json.loads(TABLE.read_text("utf-8"))
    taken_names = " ".join(text for name in machines for text in texts[name].values())
    names = {candidate.name for table in tables for candidate in table}
    assert {name for name in names if name not in taken_names} == set()


def test_the_cheapest_candidate_is_taken_and_of_equal_ones_the_first() -> None:
    def costing(name: str, cycles: float | None) -> Candidate[str, str, str]:
        answer = Refusal("never") if cycles is None else Estimate(name, {"work": cycles, "start": 1.0})
        return Candidate(name, lambda query: answer, lambda query, parameters: f"{query} by {parameters}")

    table = (costing("refused", None), costing("a", 3.0), costing("b", 2.0), costing("c", 2.0))
    assert cheapest(table, "kernel") == "kernel by b"
    assert [each.cycles for each in considered(table, "kernel")] == [float("inf"), 4.0, 3.0, 3.0]
    with pytest.raises(LookupError, match="no way to run kernel"):
        cheapest(table[:1], "kernel")


@pytest.mark.parametrize(
    ("attributes", "rate"),
    [
        ((3_201_000, 6144, 132, 1_980_000), 20.0),
        ((2_619_000, 5120, 132, 1_980_000), 13.5),
        ((1_593_000, 5120, 108, 1_410_000), 14.0),
        ((0, 5120, 108, 1_410_000), 20.0),
    ],
    ids=["H200", "H100", "A100", "unknown clock"],
)
def test_the_rate_of_memory_follows_from_the_attributes_of_a_device(
    attributes: tuple[int, int, int, int], rate: float
) -> None:
    assert memory_rate(*attributes) == rate
    device = CudaMachine(80, attributes[2], 164 * 1024, memory_rate=rate)
    assert device.operations_per_byte == 128 / rate


def test_another_machine_is_assumed_only_within() -> None:
    here = machine()
    with assumed(PROCESSORS["avx2"]):
        assert machine() is PROCESSORS["avx2"]
    assert machine() is here


def test_the_tool_shows_costs_and_reasons_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--machine", "sm_90"]) == 0
    shown = capsys.readouterr().out
    (example,) = re.findall(
        r"^```text\n(sm_90: .*?)^```", DEVELOPMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert example in shown
    assert re.search(r"  refused  a thread for each group  \(groups do not lie side by side\)", shown)


TABLE_KERNEL = expected()


@pytest.mark.parametrize("name", operators())
def test_kernels_bytes_and_units_are_as_the_table_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> None:
        raise AssertionError("the table depends on the processor that is here")

    monkeypatch.setattr(cpu_machine, "detected", asked)
    monkeypatch.setattr(schedule, "available_threads", asked)
    before = {row: text for row, text in TABLE_KERNEL.items() if row.operator == name}
    changed = list(differences(before, rows(name)))
    assert not changed, "\n".join(["", *changed, f"If that is as it should be: {COMMAND}"])


def test_the_table_has_every_operator_in_each_type_of_its_first_tensor() -> None:
    found = {(row.operator, row.type) for row in TABLE_KERNEL}
    for name in implemented():
        first = operator(name).tensors[0].name
        tables = operator(name).support_at(max(FeatureLevel), "SUM" if name == "REDUCE" else None)
        assert tables is not None
        for type in tables.tensors[first].types if first in tables.tensors else ():
            # A query is absent where queries, keys and values are one tensor, which has the same types.
            assert (name, type) in found, f"{name} {type}"
    assert {name for name, _ in found} == {*implemented(), MODEL}


def test_every_row_has_all_targets() -> None:
    cases = {row[:3] for row in TABLE_KERNEL}
    assert {*TABLE_KERNEL} == {Row(*case, target) for case in cases for target in TARGETS}


@pytest.mark.parametrize("rule", RULES)
def test_what_breaks_a_rule_has_a_reason_and_reasons_are_needed(rule: str) -> None:
    listed = [name for names in exceptions()[rule].values() for name in names]
    broken = RULES[rule](TABLE_KERNEL)
    assert len(listed) == len({*listed})
    assert broken - {*listed} == set(), "these need a reason, or to be mended"
    assert {*listed} - broken == set(), f"these need no exception any more: {COMMAND}"


def test_a_rendered_table_is_read_as_it_was() -> None:
    lines = kernel_table.TABLE.read_text("utf-8").splitlines()
    again = list(kernel_table.rendered(TABLE_KERNEL))
    assert [line for line in lines if not line.startswith("#")] == again
    assert parsed(again) == TABLE_KERNEL


def test_a_difference_shows_what_was_and_what_is() -> None:
    row = Row("GEMM", "2x2x2", "FLOAT16", "sm_90")
    (text,) = differences({row: "contraction | - | wgmma"}, {row: "contraction | - | FMA"})
    assert re.sub(r"\s+", " ", text) == (
        "GEMM | 2x2x2 | FLOAT16 | sm_90 before: contraction | - | wgmma after: contraction | - | FMA"
    )
    (gone,) = differences({row: "contraction | - | wgmma"}, {})
    assert "after:  no such row" in gone


def test_the_tool_shows_the_blocks_that_words_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert kernel_table.main(["GEMM", "128x768x768"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "GEMM: 128x768x768"
    assert "  FLOAT16 | sm_90 | contraction | - | wgmma" in shown


DEVICES_CONVOLUTION = {"sm_80": CudaMachine(80, 108, 164 * 1024), "sm_90": CudaMachine(90, 132, 228 * 1024)}
FORWARD, BACKWARD = ConvolutionDirection.FORWARD, ConvolutionDirection.BACKWARD


class Form(NamedTuple):
    """A convolution of 128 channels per group to as many, with one number for all spatial dimensions."""

    image: tuple[int, ...] = (20, 24)
    extent: int = 3
    stride: int = 1
    dilation: int = 1
    padding: int = 1
    groups: int = 1
    direction: ConvolutionDirection = FORWARD
    mode: ConvolutionMode = ConvolutionMode.CROSS_CORRELATION
    has_bias: bool = True
    is_activated: bool = True
    channels_last: bool = False


FORMS = {
    "3x3": Form(),
    "1x1": Form(extent=1, padding=0),
    "1x1 with stride": Form(extent=1, padding=0, stride=2),
    "7x7 with stride": Form(extent=7, padding=3, stride=2),
    "dilated": Form(dilation=2, padding=2),
    "without padding": Form(padding=0),
    "odd image": Form(image=(7, 7)),
    "groups": Form(groups=2),
    "sums alone": Form(has_bias=False, is_activated=False),
    "reversed filter": Form(mode=ConvolutionMode.CONVOLUTION),
    "one dimension": Form(image=(200,)),
    "three dimensions": Form(image=(5, 9, 12)),
    "channels last": Form(channels_last=True),
    "channels last, groups": Form(channels_last=True, groups=2),
    "backward": Form(direction=BACKWARD),
    "backward, groups": Form(direction=BACKWARD, groups=2),
    "backward 1x1": Form(direction=BACKWARD, extent=1, padding=0),
    "backward, three dimensions": Form(direction=BACKWARD, image=(5, 9, 12)),
    "backward, channels last": Form(direction=BACKWARD, channels_last=True),
}


def _strides(sizes: Sequence[int], channels_last: bool) -> list[int] | None:
    if not channels_last:
        return None
    strides, step = [0] * len(sizes), 1
    for dimension in (1, *reversed(range(2, len(sizes))), 0):
        strides[dimension] = step
        step *= sizes[dimension]
    return strides


def _desc(form: Form, type: TensorDataType) -> OperatorDesc:
    rank, span = len(form.image), (form.extent - 1) * form.dilation + 1
    if form.direction is FORWARD:
        sizes = [(size + 2 * form.padding - span) // form.stride + 1 for size in form.image]
    else:
        sizes = [(size - 1) * form.stride + span - 2 * form.padding for size in form.image]
    channels = 128 * form.groups
    images = [8, channels, *form.image], [8, channels, *sizes]
    x, y = (TensorDesc(type, each, _strides(each, form.channels_last)) for each in images)
    return descs.Convolution(
        x,
        TensorDesc(type, [channels, 128, *[form.extent] * rank]),
        TensorDesc(type, [1, channels, *[1] * rank]) if form.has_bias else None,
        y,
        mode=form.mode,
        direction=form.direction,
        strides=[form.stride] * rank,
        dilations=[form.dilation] * rank,
        start_padding=[form.padding] * rank,
        end_padding=[form.padding] * rank,
        output_padding=[0] * rank,
        group_count=form.groups,
        fused_activation=descs.ActivationRelu() if form.is_activated else None,
    )


def _integers(operator: str, type: TensorDataType, extent: int) -> OperatorDesc:
    padding = extent // 2
    x, filter = TensorDesc(type, [8, 128, 20, 24]), TensorDesc(type, [128, 128, extent, extent])
    zero, scale = (TensorDesc(each, [1, 1, 1, 1]) for each in (type, dml.FLOAT32))
    windows = {
        "strides": [1, 1],
        "dilations": [1, 1],
        "start_padding": [padding] * 2,
        "end_padding": [padding] * 2,
        "group_count": 1,
    }
    if operator == "CONVOLUTION_INTEGER":
        y = TensorDesc(dml.INT32, [8, 128, 20, 24])
        return descs.ConvolutionInteger(x, zero, filter, zero, y, **windows)
    bias = TensorDesc(dml.INT32, [1, 128, 1, 1])
    given = x, scale, zero, filter, scale, zero, bias, scale, zero, x
    return descs.QuantizedLinearConvolution(*given, **windows)


def _kernels(desc: OperatorDesc) -> tuple[Kernel, ...]:
    program = program_of(desc)
    return fuse(replace(program, results=simplify(program.results))).kernels


def _mode(kernel: Kernel, device: str) -> CudaMode:
    alignments = [16] * (len(kernel.loads) + len(kernel.stores))
    return schedule_convolution(kernel, DEVICES_CONVOLUTION[device], alignments).pattern.mode


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_float16_convolution_is_one_kernel_on_tensor_cores(form: Form) -> None:
    (kernel,) = _kernels(_desc(form, dml.FLOAT16))
    assert {_mode(kernel, device) for device in DEVICES_CONVOLUTION} <= {CudaMode.MMA, CudaMode.WGMMA}


@pytest.mark.parametrize("type", [dml.FLOAT16, dml.FLOAT32])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_convolution_is_one_kernel_on_the_cpu(form: Form, type: TensorDataType) -> None:
    assert len(plan(program_of(_desc(form, type))).kernels.kernels) == 1


@pytest.mark.parametrize("operator", ["CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION"])
@pytest.mark.parametrize("type", [dml.INT8, dml.UINT8])
@pytest.mark.parametrize("extent", [1, 3])
def test_a_convolution_of_bytes_is_one_kernel(operator: str, type: TensorDataType, extent: int) -> None:
    (kernel,) = _kernels(_integers(operator, type, extent))
    assert {_mode(kernel, device) for device in DEVICES_CONVOLUTION} == {CudaMode.IMMA}
