"""The CPU target walks a normalization in one of several modes: each is reached, and all agree."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.program.program import Layout, Program
from opendml.runtime.program import compile_program, program_of
from opendml.spec.descs import ActivationRelu, MeanVarianceNormalization1
from opendml.spec.enums import TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cpu.pattern import Mode
from opendml.targets.cpu.schedule import schedule
from opendml.targets.reference.evaluate import evaluate

CASES = {
    "many small groups": ([40, 8, 5, 9], [2, 3], {Mode.ROWS}),
    "one group of one row": ([1, 1, 1, 50], [3], {Mode.ROWS}),
    "few large groups": ([1, 3, 200, 301], [2, 3], {Mode.ROWS_PARTIAL, Mode.ROWS_MAP}),
    "one large group": ([2, 3, 100, 101], [0, 1, 2, 3], {Mode.ROWS_PARTIAL, Mode.ROWS_MAP}),
    "groups side by side": ([4, 21, 33, 67], [1], {Mode.COLUMNS}),
    "pairs side by side": ([2, 3, 40, 41], [0], {Mode.COLUMNS}),
    "long groups side by side": ([5000, 1, 1, 70], [0], {Mode.COLUMNS_PARTIAL, Mode.COLUMNS_MAP}),
}


def program(sizes: list[int], axes: list[int], data_type: TensorDataType) -> Program:
    tensor = TensorDesc(data_type, sizes)
    scale = TensorDesc(data_type, [1, sizes[1], 1, 1])
    desc = MeanVarianceNormalization1(
        tensor, scale, scale, tensor, axes=axes, fused_activation=ActivationRelu()
    )
    return program_of(desc)


def modes(wanted: Program) -> set[Mode]:
    kernels = fuse(Program(wanted.inputs, wanted.outputs, simplify(wanted.results))).kernels
    return {launch.pattern.mode for kernel in kernels for launch in schedule(kernel)}


def run(wanted: Program, inputs: list[np.ndarray], output: np.ndarray, threads: int) -> None:
    instance = compile_program(wanted, "cpu", threads).instantiate()
    for index, array in enumerate([*inputs, output]):
        instance.bind(index, array.ctypes.data)
    instance.dispatch()


def arrays(layouts: tuple[Layout, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(5)
    return [random.normal(1.5, 2.0, layout.sizes).astype(layout.type.numpy) for layout in layouts]


@pytest.mark.parametrize("data_type", [TensorDataType.FLOAT32, TensorDataType.FLOAT16])
@pytest.mark.parametrize("case", CASES)
def test_every_mode_agrees_with_the_reference(case: str, data_type: TensorDataType) -> None:
    sizes, axes, expected_modes = CASES[case]
    wanted = program(sizes, axes, data_type)
    assert modes(wanted) == expected_modes
    inputs = arrays(wanted.inputs)
    output = np.full(sizes, -7, wanted.outputs[0].type.numpy)
    run(wanted, inputs, output, threads=2)
    (exact,) = evaluate(wanted.results, inputs)
    tolerance = 4e-6 if data_type is TensorDataType.FLOAT32 else 1.6e-2
    np.testing.assert_allclose(output.astype(np.float64), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_every_mode_gives_the_same_bits_for_any_number_of_threads(case: str) -> None:
    sizes, axes, _ = CASES[case]
    wanted = program(sizes, axes, TensorDataType.FLOAT32)
    inputs = arrays(wanted.inputs)
    results = []
    for threads in (1, 2, 3, 8):
        output = np.empty(sizes, np.float32)
        run(wanted, inputs, output, threads)
        results.append(output.tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize("case", CASES)
def test_no_mode_writes_beyond_its_output(case: str) -> None:
    sizes, axes, _ = CASES[case]
    wanted = program(sizes, axes, TensorDataType.FLOAT32)
    guarded = np.full(prod(sizes) + 64, 123.5, np.float32)
    run(wanted, arrays(wanted.inputs), guarded[32:-32], threads=2)
    assert (guarded[:32] == 123.5).all()
    assert (guarded[-32:] == 123.5).all()
