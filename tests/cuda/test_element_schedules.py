"""Launches of element-wise kernels on the CUDA target, and the quotients that their functions need."""

from __future__ import annotations

import pytest

from opendml import TensorDesc, descs
from opendml.operators.activation import swish
from opendml.program.carriers import carried
from opendml.program.functions import gaussian_error_linear_unit
from opendml.program.narrow import narrowed
from opendml.program.node import Node, Operation, apply, convert, source
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, padded, permuted
from opendml.runtime.program import program_of
from opendml.spec.enums import InterpolationMode, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.kernel_source import kernel_source, printed
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.position_source import step_of
from tests.cuda.compiled import MACHINES, all_launches, launches
from tests.nodes import program
from tools.cuda_case import Case

UINT8, FLOAT16, FLOAT32 = ScalarType.UINT8, ScalarType.FLOAT16, ScalarType.FLOAT32


def launch_of(result: Node, offset: int = 0) -> CudaLaunch:
    (launch,) = launches(Case("", program(result), offset), MACHINES[90])
    return launch


@pytest.mark.parametrize("type", [UINT8, FLOAT16, FLOAT32, ScalarType.FLOAT64], ids=str)
def test_transposes_move_units_of_16_bytes_on_both_sides(type: ScalarType) -> None:
    pattern = launch_of(permuted(source(0, type, (320, 176)), (1, 0))).pattern
    assert (pattern.mode, pattern.vector * type.bytes) == (CudaMode.TRANSPOSED, 16)


@pytest.mark.parametrize(
    ("sizes", "offset", "wanted"),
    [((320, 176), 4, 4), ((320, 178), 0, 2), ((322, 176), 0, 2), ((321, 176), 0, 1), ((320, 177), 0, 1)],
)
def test_units_of_transposes_are_as_wide_as_both_sides_allow(
    sizes: tuple[int, int], offset: int, wanted: int
) -> None:
    pattern = launch_of(permuted(source(0, FLOAT16, sizes), (1, 0)), offset).pattern
    assert (pattern.mode, pattern.vector) == (CudaMode.TRANSPOSED, wanted)


def test_units_of_transposes_of_several_types_fit_the_widest() -> None:
    x, y = source(0, UINT8, (320, 176)), source(1, FLOAT32, (176, 320))
    pattern = launch_of(convert(permuted(x, (1, 0)), FLOAT32) + y).pattern
    assert (pattern.mode, pattern.vector) == (CudaMode.TRANSPOSED, 4)


def test_transposes_of_what_is_guarded_move_single_elements() -> None:
    x = padded(source(0, FLOAT16, (318, 176)), (1, 0), (1, 0))
    pattern = launch_of(permuted(x, (1, 0))).pattern
    assert (pattern.mode, pattern.vector) == (CudaMode.TRANSPOSED, 1)


def test_columns_are_gathered_from_many_rows_in_panels() -> None:
    def loops(rows: int, columns: int, along: bool) -> list[int]:
        chosen = source(1, ScalarType.INT32, (rows, columns if along else 1))
        x = gathered(source(0, FLOAT32, (60, columns)), (rows, columns), {0: chosen}, steps=((0, 0), (0, 1)))
        values = launch_of(x).values
        return [values[name] for name in sorted(values) if name.startswith("group_count")]

    assert loops(4096, 2048, True) == [4, 4096]
    assert loops(4096, 2050, True) == loops(4096, 2048, False) == [4096]
    assert loops(1024, 2048, True) == [1024]


@pytest.mark.parametrize("type", [FLOAT16, FLOAT32], ids=str)
def test_gelu_divides_by_the_approximate_reciprocal_alone(type: ScalarType) -> None:
    x = convert(source(0, type, (4096,)), FLOAT32)
    (result,) = narrowed([convert(gaussian_error_linear_unit(x), type)])
    values = kernel_source(launch_of(result).pattern).split("void evaluate(")[1].split("void ")[0]
    assert "rough_quotient(" in values
    assert "near_quotient(" not in values


def test_gelu_has_fewer_digits_where_it_is_rounded_to_bfloat16() -> None:
    def code(type: ScalarType) -> str:
        x = convert(source(0, ScalarType.BFLOAT16, (4096,)), FLOAT32)
        result = apply(Operation.ROUND, gaussian_error_linear_unit(x))  # as operators round
        (rounded,) = carried(program(convert(result, type))).results
        return kernel_source(launch_of(rounded).pattern).split("void evaluate(")[1].split("void ")[0]

    assert "exponential(" in code(ScalarType.BFLOAT16)
    assert "exponential(" not in code(FLOAT32)


def test_swish_has_fewer_digits_where_it_is_rounded_to_bfloat16() -> None:
    def code(type: ScalarType) -> str:
        x = convert(source(0, ScalarType.BFLOAT16, (4096,)), FLOAT32)
        result = apply(Operation.ROUND, swish(x, sigmoid_input_scale=1.0))
        (rounded,) = carried(program(convert(result, type))).results
        usual = kernel_source(launch_of(rounded).pattern).split("void evaluate(")[1].split("if (")[0]
        return usual.split("to_bfloat16(")[0]

    assert "exponential(" in code(ScalarType.BFLOAT16)
    assert "narrow_quotient(" in code(ScalarType.BFLOAT16)
    assert "exponential(" not in code(FLOAT32)
    assert "narrow_quotient(" not in code(FLOAT32)


def test_celu_divides_as_ieee_says() -> None:
    """Its alpha may be any number, and its rounding error is what the quotient leaves."""
    tensor = TensorDesc(TensorDataType.FLOAT32, [4096])
    (result,) = program_of(descs.ActivationCelu(tensor, tensor, alpha=3.4e38)).results
    values = kernel_source(launch_of(result).pattern).split("void evaluate(")[1].split("void ")[0]
    assert " quotient(" in values
    assert "_quotient(" not in values


def test_powers_divide_by_the_approximate_reciprocal() -> None:
    """The logarithm makes up for what it is off."""
    tensor = TensorDesc(TensorDataType.FLOAT32, [4096])
    (result,) = program_of(descs.ElementWiseConstantPow(tensor, tensor, exponent=2.3)).results
    values = kernel_source(launch_of(result).pattern).split("void evaluate(")[1].split("void ")[0]
    assert "rough_quotient(" in values
    assert " quotient(" not in values


def image_launch(desc: OperatorDesc) -> CudaLaunch:
    (launch,) = launches(Case("", program_of(desc)), MACHINES[90])
    return launch


def pooling(size: int) -> CudaLaunch:
    counts = [(size - 1) // 2 + 1] * 2
    x, pooled = (TensorDesc(TensorDataType.FLOAT32, [32, 64, *sizes]) for sizes in ((size, size), counts))
    window = {"strides": [2, 2], "window_size": [3, 3], "start_padding": [1, 1], "end_padding": [1, 1]}
    return image_launch(descs.AveragePooling(x, pooled, **window, include_padding=True))


def test_loads_of_a_window_share_an_offset_and_rows_of_it_an_address() -> None:
    pattern = pooling(112).pattern
    read = [n for n, load in enumerate(pattern.loads) if not load.counter]
    assert len(read) == 9
    assert len({pattern.offset(number) for number in read}) == 1
    assert sorted(pattern.loads[number].ahead for number in read) == [0] * 3 + [4] * 3 + [8] * 3
    source = printed(pattern)
    assert sum(f"(char*)p.base{number} " in source for number in read) == 3


def test_lanes_of_small_steps_are_constants_of_the_code() -> None:
    assert "lane * (8)" in printed(pooling(112).pattern)


def test_counts_are_part_of_the_code_only_where_they_are_small() -> None:
    """So kernels for images of many sizes are one."""
    patterns = [pooling(size).pattern for size in (112, 224)]
    assert patterns[0].text() == patterns[1].text()


def test_a_thread_takes_rows_of_which_it_reads_the_same_elements() -> None:
    x, more = (TensorDesc(TensorDataType.FLOAT32, [32, 64, size, size]) for size in (112, 224))
    mode = InterpolationMode.LINEAR
    launch = image_launch(descs.Resample(x, more, interpolation_mode=mode, scales=[1.0, 1.0, 2.0, 2.0]))
    pattern, steps = launch.pattern, launch.values
    assert dict(pattern.constants)["ACROSS"] == 1
    assert steps["row_count0"] == dict(pattern.constants)["UNITS"] == 4
    read = [number for number, load in enumerate(pattern.loads) if not load.counter]
    assert [steps[f"row{number}_0"] for number in read] == [0] * 4
    assert len({pattern.base(number) for number in read}) == 1
    # Each result is in one unit of one thread.
    assert launch.grid * launch.block * 4 * pattern.vector == 32 * 64 * 224 * 224


def test_what_needs_many_registers_is_not_taken_across() -> None:
    sizes = ([16, 576, 3136], [16, 64, 56, 56])
    columns, image = (TensorDesc(TensorDataType.FLOAT32, each) for each in sizes)
    window = {"window_sizes": [3, 3], "strides": [1, 1], "dilations": [1, 1]}
    margins = {"start_padding": [1, 1], "end_padding": [1, 1]}
    pattern = image_launch(descs.Fold(columns, image, **window, **margins)).pattern
    assert (pattern.vector, dict(pattern.constants)["ACROSS"]) == (4, 0)


def test_what_is_at_places_that_elements_say_is_not_taken_across() -> None:
    """A block then reads from few rows, which its cache keeps."""
    sizes = (4096, 4096)
    x, places = source(0, FLOAT32, sizes), source(1, ScalarType.INT64, sizes)
    found = gathered(x, sizes, {1: places}, steps=((1, 0), (0, 0)))
    assert dict(launch_of(found).pattern.constants)["ACROSS"] == 0


def test_every_access_moves_by_its_own_strides() -> None:
    """What moves alike is printed once, by the strides of the first access that moves so."""
    for case, found in all_launches(90).items():
        for pattern, values in ((launch.pattern, launch.values) for launch in found):
            for number, access in enumerate(pattern.accesses):
                first = pattern.offset(number)
                for name, stride in values.items():
                    kind, _, loop = name.partition(f"{number}_")
                    if kind in ("group", "row") and loop.isdigit():
                        assert values[f"{kind}{first}_{loop}"] == stride, case.name
                if access.step in (Step.STRIDED, Step.CONTIGUOUS):
                    step = step_of(pattern, number).strip("()")
                    own = values[f"step{number}"]
                    assert (values[step[2:]] if step[:2] == "p." else int(step)) == own, case.name
