"""Convolutions of the public operators: one kernel each, that reads the narrow tensors, on tensor cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

import opendml as dml
from opendml import TensorDataType, TensorDesc, descs
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.compiler.simplify import simplify
from opendml.runtime.program import program_of
from opendml.spec.enums import ConvolutionDirection, ConvolutionMode
from opendml.spec.operator_desc import OperatorDesc
from opendml.targets.cpu.executable import plan
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.pattern import Mode
from opendml.targets.cuda.schedule import schedule

DEVICES = {"sm_80": Machine(80, 108, 164 * 1024), "sm_90": Machine(90, 132, 228 * 1024)}
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


def _mode(kernel: Kernel, device: str) -> Mode:
    alignments = [16] * (len(kernel.loads) + len(kernel.stores))
    return schedule(kernel, DEVICES[device], alignments).pattern.mode


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_float16_convolution_is_one_kernel_on_tensor_cores(form: Form) -> None:
    (kernel,) = _kernels(_desc(form, dml.FLOAT16))
    assert {_mode(kernel, device) for device in DEVICES} <= {Mode.MMA, Mode.WGMMA}


@pytest.mark.parametrize("type", [dml.FLOAT16, dml.FLOAT32])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_convolution_is_one_kernel_on_the_cpu(form: Form, type: TensorDataType) -> None:
    assert len(plan(program_of(_desc(form, type))).kernels.kernels) == 1


@pytest.mark.parametrize("operator", ["CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION"])
@pytest.mark.parametrize("type", [dml.INT8, dml.UINT8])
@pytest.mark.parametrize("extent", [1, 3])
def test_a_convolution_of_bytes_is_one_kernel_on_tensor_cores(
    operator: str, type: TensorDataType, extent: int
) -> None:
    (kernel,) = _kernels(_integers(operator, type, extent))
    assert {_mode(kernel, device) for device in DEVICES} == {Mode.IMMA}
