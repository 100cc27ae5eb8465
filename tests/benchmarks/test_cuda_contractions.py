"""The benchmark of contractions on GPUs: its cases are calls of public operators, PyTorch computes the same
as they do, and its lines say what ran. Nothing is timed here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import cuda_contraction_cases
from benchmarks.cuda_contraction_cases import Case, cases
from opendml import descs
from opendml.runtime.program import program_of
from opendml.spec.enums import ConvolutionDirection
from opendml.targets.reference.executable import ReferenceExecutable
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
    assert Case(form.case(form.types_of_first[0])).operations == 2 * products


def test_cases_are_listed_with_kernels_and_units_where_no_device_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
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
