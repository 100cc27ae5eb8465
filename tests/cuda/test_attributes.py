"""Attributes are parameters of CUDA kernels: other values are the same source."""

from __future__ import annotations

import struct

import pytest

import opendml as dml
from opendml.compiler.fuse import fuse
from opendml.compiler.parameters import MOST_NUMBERS
from opendml.compiler.simplify import simplify
from opendml.program.functions import deviation, mean, square_root, variance
from opendml.program.node import convert, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.program import program_of
from opendml.targets.cuda.kernel_source import kernel_source
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.parameters import MEANINGS, ParameterStruct, launch_words, words_of
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.planned_launch import VECTOR_BYTES
from opendml.targets.cuda.schedule import schedule
from tests.cuda.compiled import MACHINES, machine_code

ALPHAS = [0.13 * number + 0.011 for number in range(1, 21)]
PARAMETER_BYTES = 4096
"""What every driver takes."""


def launch_of(program: Program) -> CudaLaunch:
    """The launch of a program that is one kernel."""
    (kernel,) = fuse(Program(program.inputs, program.outputs, simplify(program.results))).kernels
    alignments = (VECTOR_BYTES,) * (len(kernel.loads) + len(kernel.stores))
    return schedule(kernel, MACHINES[90], alignments)


def activation(alpha: float, type: dml.TensorDataType = dml.FLOAT32) -> Program:
    tensor = dml.TensorDesc(type, [64, 1000])
    return program_of(dml.descs.ActivationCelu(tensor, tensor, alpha=alpha))


def normalization(number: float, axes: list[int], sizes: list[int]) -> Program:
    """What is reduced, the statistics and the results have a number each."""
    layout = packed(ScalarType.FLOAT32, sizes)
    x = source(0, layout.type, sizes) * number
    y = deviation(x, mean(x, axes)) * convert(1.0 / square_root(variance(x, axes) + number), layout.type)
    return Program((layout,), (layout,), (y * (number + 2.0),))


@pytest.mark.parametrize("type", [dml.FLOAT32, dml.FLOAT16])
def test_twenty_alphas_are_one_source(type: dml.TensorDataType) -> None:
    launches = [launch_of(activation(alpha, type)) for alpha in ALPHAS]
    assert len({launch.pattern.text() for launch in launches}) == 1
    assert len({kernel_source(launch.pattern) for launch in launches}) == 1
    assert len({ParameterStruct(each.pattern).pack(each.values) for each in launches}) == 20


@pytest.mark.parametrize(
    ("axes", "sizes"),
    [([1], [4096, 32]), ([1], [512, 20000]), ([1], [8, 20000000]), ([0], [512, 4096])],
    ids=["registers", "shared memory", "several blocks", "columns"],
)
def test_normalizations_of_all_kinds_take_numbers(axes: list[int], sizes: list[int]) -> None:
    first, second = (launch_of(normalization(number, axes, sizes)) for number in (0.3, 0.7))
    assert (first.pattern.mode, first.pattern.text()) == (CudaMode.REDUCE, second.pattern.text())
    assert first.pattern.numbers == 3
    assert machine_code(first, 90).startswith(b"\x7fELF")


def test_numbers_lie_in_the_parameters_as_bits() -> None:
    tensor = dml.TensorDesc(dml.FLOAT32, [64, 1000])
    launch = launch_of(program_of(dml.descs.ActivationElu(tensor, tensor, alpha=0.3)))
    words = ParameterStruct(launch.pattern).words
    content = ParameterStruct(launch.pattern).pack(launch.values)
    at = words.index("number0") * 8
    assert struct.unpack("<f", content[at : at + 4]) == struct.unpack("<f", struct.pack("<f", 0.3))


def test_as_many_numbers_as_a_kernel_has_fit_a_launch() -> None:
    layout = packed(ScalarType.FLOAT32, (64, 1000))
    x = source(0, layout.type, layout.sizes)
    for number in range(MOST_NUMBERS + 1):
        x = x + (number + 1.5)
    launch = launch_of(Program((layout,), (layout,), (x,)))
    assert launch.pattern.numbers == MOST_NUMBERS
    assert len(ParameterStruct(launch.pattern).pack(launch.values)) < PARAMETER_BYTES
    assert machine_code(launch, 90).startswith(b"\x7fELF")


@pytest.mark.parametrize("mode", CudaMode)
def test_every_word_of_a_mode_has_one_meaning_and_a_value(mode: CudaMode) -> None:
    words = words_of(mode)
    names = [*words.plain, *words.divisors]
    assert len(set(names)) == len(names)
    assert set(names) <= MEANINGS.keys()
    given = dict.fromkeys(set(names) - {"counters", "scratch"}, 1)
    assert launch_words(mode, **given) == given
    missing = next(iter(given))
    with pytest.raises(TypeError, match=f"lacks the words .*{missing}"):
        launch_words(mode, **{name: 1 for name in given if name != missing})
    with pytest.raises(TypeError, match=r"has no words .*other"):
        launch_words(mode, **given, other=1)
