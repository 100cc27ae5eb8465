"""Benchmarks: models, goals and contractions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import cuda_contraction_cases, peak
from benchmarks.cases import CHEAP, TRANSCENDENTAL, Case, Goal, all_cases
from benchmarks.contender import Mode
from benchmarks.cuda_contraction_cases import Case as Case_contractions
from benchmarks.cuda_contraction_cases import cases
from benchmarks.families import is_named, verdict
from benchmarks.goals import shortfalls
from benchmarks.models import prepare
from benchmarks.models.__main__ import can_run, chosen_cases, main
from benchmarks.models.cases import CASES
from benchmarks.models.rounds import Outcome, Row, Settings, cold_and_warm, measure
from benchmarks.models.table import Report, as_json, markdown
from benchmarks.models.work import Rates, Work, count, difference
from benchmarks.models.worker import Job
from benchmarks.peak import Peak
from benchmarks.timing import Outcome as Outcome_goals
from benchmarks.timing import Result
from opendml import descs
from opendml.program.scalar_type import ScalarType
from opendml.runtime.program import program_of
from opendml.spec.enums import ConvolutionDirection
from opendml.targets.cpu.contraction.arithmetic import has_bytes, total_type
from opendml.targets.cpu.machine import machine
from opendml.targets.reference.backend import ReferenceExecutable
from tests.for_each import for_each
from tools.contraction_cases import (
    attention,
    contraction_forms,
    convolution,
    gemm,
    integer_product,
    network_convolutions,
)
from tools.operator_case import Form

SQUEEZENET = CASES["light-squeezenet"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--case", "resnet,alphago"], "--case alphago: no such model; there are mobilenet-v2, resnet-50, "),
        (
            ["--engines", "opendml,tvm"],
            "--engines tvm: unknown; there are opendml, opendml-torch, onnxruntime, ",
        ),
        (["--engines", "openvino", "--device", "cuda"], "--engines openvino: unknown; there are opendml, "),
        (["--types", "float64"], "--types float64: unknown; there are float32, float16, int8, int8-dynamic"),
    ],
)
def test_an_unknown_name_is_one_error_with_those_that_are_known(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, arguments, terminal_width=1000)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_models_are_chosen_by_a_part_of_their_names() -> None:
    assert [case.name for case in chosen_cases("resnet,magika", False)] == [
        "resnet-50",
        "magika",
        "light-resnet50",
    ]
    assert len(chosen_cases(None, False)) == 25
    assert {case.name for case in chosen_cases(None, True)} < set(CASES)


def test_pytorch_runs_its_own_networks_as_floats_alone() -> None:
    assert can_run("torch", CASES["resnet-50"], "float16")
    assert not can_run("torch", CASES["resnet-50"], "int8")
    assert not can_run("inductor", SQUEEZENET, "float32")
    assert can_run("openvino", SQUEEZENET, "int8")


def settings(folder: Path, rounds: int = 3) -> Settings:
    """Settings with a folder in which a model has work."""
    made = folder / SQUEEZENET.name / "float32"
    made.mkdir(parents=True)
    (made / "work.json").write_text('{"operations": 4000, "moved": 100}')
    return Settings(folder, "cpu", 2, rounds, 0.1, 60)


class Engines:
    """Processes that do not run: each engine has a time, or a problem."""

    def __init__(self, found: Mapping[str, float | str], difference: float = 0.0) -> None:
        self.found, self.difference, self.jobs = found, difference, list[Job]()
        self.caches = list[str]()

    def __call__(self, job: Job, variables: Mapping[str, str]) -> dict[str, Any]:
        self.jobs.append(job)
        self.caches.append(variables.get("OPENDML_CACHE_DIRECTORY", ""))
        if job.engine == "rates":
            return {"copy_seconds": 1e-3, "operations": 1e6}
        value = self.found[job.engine]
        if isinstance(value, str):
            return {"problem": value}
        times = [value, value * 2, value * 3]
        result = {
            "times": times,
            "processor_times": times,
            "first": 9.0 - len(self.jobs),
            "first_processor": 0.5,
            "memory": 2**20,
        }
        if job.is_checked:
            result |= {"difference": self.difference if job.engine == "opendml" else 0.0, "kernels": "7"}
        return result


def test_engines_take_turns_and_start_with_an_empty_cache_of_their_own(tmp_path: Path) -> None:
    engines = Engines({"opendml": 2.0, "onnxruntime": 3.0})
    row = measure(SQUEEZENET, "float32", ["opendml", "onnxruntime"], settings(tmp_path), engines)
    assert [job.engine for job in engines.jobs] == ["rates"] + ["opendml", "onnxruntime"] * 3
    assert [job.is_checked for job in engines.jobs[1:]] == [True, True, False, False, False, False]
    ours, theirs = engines.caches[1::2], engines.caches[2::2]
    assert len(set(ours)) == len(set(theirs)) == 1
    assert ours[0] != theirs[0]
    assert row.outcomes[0].median == 4.0
    assert cold_and_warm(row.outcomes[0].firsts) == [7.0, 4.0]
    assert row.ratio == row.processor_ratio == 1.5


def test_an_engine_that_fails_is_a_row_of_its_own_and_runs_no_more(tmp_path: Path) -> None:
    engines = Engines({"opendml": "Unsupported: no such node", "onnxruntime": 3.0})
    row = measure(SQUEEZENET, "float32", ["opendml", "onnxruntime"], settings(tmp_path), engines)
    assert [job.engine for job in engines.jobs].count("opendml") == 1
    assert row.outcomes[0].problem == "Unsupported: no such node"
    assert len(row.outcomes[1].times) == 3
    assert row.ratio is None
    assert "| Unsupported: no such node |" in markdown(Report({}, "cpu", 2, 3, rows=[row]))


def test_a_wrong_result_is_told_and_no_best_time(tmp_path: Path) -> None:
    engines = Engines({"opendml": 1.0, "onnxruntime": 3.0}, difference=float("nan"))
    row = measure(SQUEEZENET, "float32", ["opendml", "onnxruntime"], settings(tmp_path), engines)
    assert row.ours is None
    assert row.ratio is None
    assert "wrong result: differs by nan; at most 0.001 is right" in markdown(
        Report({}, "cpu", 2, 3, rows=[row])
    )


def test_a_floor_is_the_longer_of_the_copy_and_the_operations() -> None:
    rates = Rates(copy_seconds=2e-3, operations=1e9)
    assert rates.floor(Work(operations=1_000_000, moved=1)) == pytest.approx(2.0)
    assert rates.floor(Work(operations=5_000_000, moved=1)) == pytest.approx(5.0)


def test_operations_and_weights_of_a_model_are_counted(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    example (float[2, n] x, int64[3] rows) => (float[2, 5] y, float[3, 100] z)
    { y = MatMul (x, w)
      z = Gather (table, rows) }
    """
    model = onnx.parser.parse_model(text)
    weights = {"w": np.ones((4, 5), np.float32), "table": np.ones((9, 100), np.float32)}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    onnx.save(model, tmp_path / "model.onnx")
    inputs = {"x": np.ones((2, 4), np.float32), "rows": np.array([1, 2, 3])}
    assert count(tmp_path / "model.onnx", inputs, 310) == (2 * 2 * 5 * 4, 20, 310 + 8 + 3)


def test_outputs_differ_by_their_distance_and_by_their_sizes() -> None:
    one = np.array([3.0, 4.0], np.float32)
    assert difference([one], [one]) == 0
    assert difference([one * np.float32(1.1)], [one]) == pytest.approx(0.1, rel=1e-5)
    assert difference([one[:1]], [one]) == float("inf")
    assert difference([one * np.nan], [one]) == float("inf")
    assert difference([np.zeros(1)], [np.zeros(1)]) == 0
    assert difference([np.full(4, 2e-6)], [np.full(4, 1e-6)]) == pytest.approx(1e-3)


def test_the_table_has_a_line_for_each_model_and_for_each_engine() -> None:
    def outcome(
        engine: str, times: list[float], processor: float, firsts: list[float], memories: list[int]
    ) -> Outcome:
        halves, bytes = [each / 2 for each in firsts], [each << 20 for each in memories]
        return Outcome(engine, times, [processor] * 3, firsts, halves, bytes, 1e-5)

    ours = outcome("opendml", [2.0, 4.0, 3.0], 5.0, [9.0, 1.0, 1.2], [9, 3, 3])
    ours.kernels = "12"
    peer = outcome("openvino", [6.0] * 3, 20.0, [2.0] * 3, [6] * 3)
    wrong = outcome("torch", [1.0] * 3, 1.0, [3.0] * 3, [1] * 3)
    wrong.difference, wrong.problem = float("inf"), "wrong"
    row = Row("resnet-50", "float32", Work(4000, 100), Rates(1e-3, 1e6), [ours, peer, wrong])
    report = Report(
        {"opendml": "1.2"}, "cpu", 2, 3, rows=[row], skipped={"inductor": "torch is not installed"}
    )
    lines = markdown(report).splitlines()
    figures = "3 | 4 | 6 (openvino) | 2.00 | 4.00 | 9 / 1.1 | 2 / 2 | 9 / 3 | 6 / 6"
    assert f"| resnet-50 | float32 | 12 | {figures} |  |" in lines
    assert (
        "| resnet-50 | float32 | opendml | 12 | 3 | 67% | 5 | 9 / 1.1 | 4.5 / 0.55 | 9 / 3 | 1e-05 |  |"
        in lines
    )
    assert (
        "| resnet-50 | float32 | torch |  | 1 | 0% | 1 | 3 / 3 | 1.5 / 1.5 | 1 / 1 | inf | wrong |" in lines
    )
    assert "- inductor: torch is not installed" in lines
    found = json.loads(json.dumps(as_json(report), allow_nan=False))
    assert found["rows"][0]["ratio"] == 2.0
    assert found["rows"][0]["engines"][0]["times"] == [2.0, 4.0, 3.0]


@pytest.fixture
def made(tmp_path: Path) -> dict[str, Any]:
    """What a run of one small model in opendml alone writes."""
    pytest.importorskip("onnx", reason="onnx is not installed")
    command = [
        sys.executable,
        "-m",
        "benchmarks.models",
        "--case",
        "light-squeezenet",
        "--engines",
        "opendml",
    ]
    command += ["--threads", "1", "--rounds", "1", "--seconds", "0", "--models", str(tmp_path / "models")]
    command += ["--output", str(tmp_path / "table.md")]
    root = Path(__file__).parents[2]
    subprocess.run(command, check=True, cwd=root, timeout=300, capture_output=True)
    assert (tmp_path / "table.md").read_text().startswith("# Whole models, ")
    found: dict[str, Any] = json.loads((tmp_path / "table.json").read_text())
    return found


def test_a_model_runs_in_opendml_alone(made: dict[str, Any]) -> None:
    (row,) = made["rows"]
    (engine,) = row["engines"]
    assert (row["model"], engine["engine"], engine["problem"]) == ("light-squeezenet", "opendml", None)
    assert len(engine["times"]) == len(engine["firsts"]) == 1
    assert 26 <= int(engine["kernels"]) <= 60
    assert engine["memories"][0] > 2**20


def test_a_model_made_without_onnx_runtime_is_remade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "find_spec", lambda name: None)
    assert prepare.is_ready(tmp_path)
    assert not prepare.is_ready(tmp_path / "absent")
    monkeypatch.setattr(prepare, "find_spec", lambda name: name)
    assert not prepare.is_ready(tmp_path)
    (tmp_path / "work.json").touch()
    assert prepare.is_ready(tmp_path)


def result(**milliseconds: float) -> Result:
    """Return the result of one case; names are those of peers and modes, such as `torch_bound`."""
    case = Case("case", "activation", (4,), Goal(0.85, over_bound=1.1))
    outcomes = [
        Outcome_goals(name.split("_")[0], Mode[name.split("_", 1)[1].upper()], times=[time])
        for name, time in milliseconds.items()
    ]
    return Result(case, Outcome_goals("copy", Mode.BOUND, times=[4.5]), outcomes)


def test_pytorch_is_compared_where_it_writes_into_an_existing_output() -> None:
    found = shortfalls(result(opendml_bound=5.0, torch_bound=5.0, torch_new=50.0, torch_in_place=50.0))
    assert found == ["1.00 of 1.10 times torch bound"]
    assert shortfalls(result(opendml_bound=5.0, torch_bound=5.6, torch_new=1.0)) == []


def test_functions_have_a_goal_against_pytorch_and_cheap_activations_against_the_copy() -> None:
    goals = {case.activations[0].name: case.goal for case in all_cases() if case.group == "activation"}
    assert {goals[each.name].over_bound for each in CHEAP} == {None}
    float32 = [case for case in all_cases() if case.name.endswith("float32") and len(case.activations) == 1]
    names = {activation.name for activation in TRANSCENDENTAL}
    for case in (each for each in float32 if each.group == "activation"):
        assert (case.goal.over_bound == 1.1) == (case.activations[0].name in names)


def test_families_are_ahead_of_pytorch_by_a_tenth() -> None:
    row = {"goal": 0.85, "of_floor": 0.9, "over_torch": 1.05, "milliseconds": {"opendml": 5.0, "numpy": 4.0}}
    assert verdict(row) == "below 1.1 of torch; slower than numpy"
    assert verdict({**row, "over_torch": None, "milliseconds": {"opendml": 5.0}}) == ""


def test_cases_are_chosen_by_whole_words_or_by_texts() -> None:
    assert is_named("tanh float32", [], ["tanh", "exp"])
    assert not is_named("atanh float32", [], ["tanh", "exp"])
    assert is_named("atanh float32", ["tanh", "float32"], [])


RELU, GELU = descs.ActivationRelu(), descs.ActivationGelu()
BACKWARD = {
    "strides": (2, 2),
    "dilations": (1, 1),
    "start_padding": (1, 1),
    "end_padding": (1, 1),
    "output_padding": (0, 0),
    "direction": ConvolutionDirection.BACKWARD,
}
SIGNAL = {
    "strides": (1,),
    "dilations": (2,),
    "start_padding": (2,),
    "end_padding": (2,),
    "output_padding": (0,),
}
BACKWARD_FORM = Form("CONVOLUTION", "backward", {"input": (2, 6, 5, 5), "filter": (6, 4, 4, 4)}, BACKWARD)
SMALL = (
    gemm(5, 7, 6),
    gemm(5, 7, 6, True, True, 3),
    gemm(5, 7, 6, False, True, alpha=0.5, beta=2.0, c="row"),
    gemm(5, 7, 6, True, False, c="matrix", fused_activation=RELU),
    gemm(5, 7, 6, c="row", fused_activation=GELU),
    convolution((2, 6, 9, 8), 8, 3, 2, bias=True, fused_activation=RELU),
    convolution((2, 6, 9, 8), 6, 3, groups=6),
    convolution((2, 6, 9, 8), 8, 3, 2, bias=True, is_channels_last=True),
    convolution((2, 6, 9, 8), 4, 3, groups=2, dilations=(2, 2), start_padding=(2, 2), end_padding=(2, 2)),
    BACKWARD_FORM,
    Form("CONVOLUTION", "of signals", {"input": (2, 6, 30), "filter": (4, 6, 3)}, SIGNAL),
    attention(2, 4, 4, 6, 8),
    attention(2, 4, 2, 6, 8),
    *(attention(2, 4, own, 6, 8, more) for own in (4, 2) for more in ("bias", "mask", "past")),
    integer_product(6),
    integer_product(6, transposed=True),
)
"""Small calls of each kind that PyTorch has words for."""


@pytest.fixture
def torch() -> Any:
    """Return PyTorch, or skip the test where it is not installed."""
    return pytest.importorskip("torch")


@for_each("form", SMALL)
def test_pytorch_computes_what_the_operator_computes(form: Form, torch: Any) -> None:
    from benchmarks.cuda_contraction_peers import torch_call
    from benchmarks.cuda_contractions import Judge, drawn

    case = form.case(form.types_of_first[0])
    program, peer = program_of(case.desc), torch_call(case.desc)
    assert peer is not None
    inputs = [drawn(layout, "cpu") for layout in program.inputs]
    outputs = [drawn(layout, "cpu") for layout in program.outputs]
    instance = ReferenceExecutable(program).instantiate()
    for number, tensor in enumerate((*inputs, *outputs)):
        instance.bind(number, tensor.data_ptr())
    instance.dispatch()
    judge = Judge(peer, inputs)
    assert judge.error(outputs[0]) < 1e-6
    assert judge.error(peer(*inputs)) < 1e-6


def test_all_forms_are_timed_in_the_types_that_gpus_multiply() -> None:
    found = {(case.call.form.operator, case.call.form.name, case.type) for case in cases()}
    for form in (*contraction_forms(), *network_convolutions()):
        for type in {*form.types_of_first} & {*cuda_contraction_cases.TYPES}:
            assert (form.operator, form.name, type) in found
    names = [case.name for case in cases()]
    assert len(names) == len({*names})


@for_each(
    ("form", "products"),
    [
        (gemm(5, 7, 6, True, True, 3), 3 * 5 * 7 * 6),
        (convolution((2, 6, 9, 8), 8, 3), 2 * 8 * 9 * 8 * 6 * 9),
        (convolution((2, 6, 9, 8), 6, 3, groups=6), 2 * 6 * 9 * 8 * 9),
        (BACKWARD_FORM, 2 * 6 * 5 * 5 * 4 * 16),
        (attention(2, 4, 4, 6, 8), 2 * 2 * 4 * 6 * 6 * 8),
        (attention(2, 4, 4, 6, 8, "past"), 2 * 2 * 4 * 1 * 7 * 8),
        (integer_product(6), 6**3),
    ],
)
def test_operations_are_two_for_each_product(form: Form, products: int) -> None:
    assert Case_contractions(form.case(form.types_of_first[0])).operations == 2 * products


def test_cases_are_listed_with_kernels_and_units_without_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert cuda_contraction_cases.main(["--device", "sm_80", "GEMM", "1024x1024x1024"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "FLOAT32 GEMM 1024x1024x1024: contraction | - | FMA",
        "FLOAT16 GEMM 1024x1024x1024: contraction | - | mma",
    ]


def test_a_line_says_times_errors_kernels_and_units(torch: Any) -> None:
    from benchmarks.cuda_contractions import line

    row = {
        "name": "FLOAT16 GEMM 2x2x2",
        "floor": 1e-6,
        "seconds": {"opendml": 4e-6, "torch": 2e-6},
        "errors": {"opendml": 1e-4, "torch": 2e-4},
        "kernels": "contraction | - | wgmma",
        "chosen": "wgmma 64x64",
    }
    text = line(row)
    assert "opendml      4.0 us (0.25), torch      2.0 us (0.50); errors 1.0e-04 2.0e-04" in text
    assert text.endswith("; contraction | - | wgmma; wgmma 64x64")
    del row["seconds"]["torch"]
    assert "torch" not in line(row)


def test_every_random_input_is_as_large_as_its_layout(torch: Any) -> None:
    from benchmarks.cuda_contractions import drawn

    for case in cases():
        for layout in case.program.inputs:
            if layout.element_count < 10_000:
                found = drawn(layout, "cpu")
                assert tuple(found.shape) == layout.sizes
                assert tuple(np.multiply(found.stride(), layout.type.bytes)) == layout.strides


@pytest.mark.parametrize("type", [ScalarType.FLOAT32, ScalarType.INT8])
def test_the_peak_makes_the_multiply_adds_that_it_counts(
    type: ScalarType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one second by a clock of the test, with ones for all numbers, so each product adds 1 to its sum."""
    if type is ScalarType.INT8 and not has_bytes(machine()):
        pytest.skip("this processor adds no products of bytes")
    monkeypatch.setattr(peak, "perf_counter", iter((0.0, 1.0)).__next__)
    measured, total, lanes = Peak(1, type), total_type(type).numpy, machine().lanes
    rows = np.frombuffer(measured._rooms[0], np.uint8)[: measured._sums * 64].reshape(-1, 64)
    rows[0].view(type.numpy)[:] = 1
    operations = measured.operations()
    sums = rows[:, : 4 * lanes].copy().view(total) - np.arange(len(rows), dtype=total)[:, None]
    assert (sums == sums[0, 0]).all()
    assert operations == 2 * sums.sum(dtype=np.int64)
