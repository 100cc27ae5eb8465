"""How element-wise kernels are launched on the CUDA target, and which quotients their functions need."""

from __future__ import annotations

import pytest

from opendml import TensorDesc, descs
from opendml.program.functions import gaussian_error_linear_unit
from opendml.program.narrow import narrowed
from opendml.program.node import Node, convert, source
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, padded, permuted
from opendml.runtime.program import program_of
from opendml.spec.enums import TensorDataType
from opendml.targets.cuda.kernel_source import kernel_source
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.pattern import Mode
from tests.cuda.compiled import MACHINES, launches
from tools.cuda_case import Case
from tools.cuda_view_cases import program

UINT8, FLOAT16, FLOAT32 = ScalarType.UINT8, ScalarType.FLOAT16, ScalarType.FLOAT32


def launch_of(result: Node, offset: int = 0) -> Launch:
    (launch,) = launches(Case("", program(result), offset), MACHINES[90])
    return launch


@pytest.mark.parametrize("type", [UINT8, FLOAT16, FLOAT32, ScalarType.FLOAT64], ids=str)
def test_transposes_move_units_of_16_bytes_on_both_sides(type: ScalarType) -> None:
    pattern = launch_of(permuted(source(0, type, (320, 176)), (1, 0))).pattern
    assert (pattern.mode, pattern.vector * type.bytes) == (Mode.TRANSPOSED, 16)


@pytest.mark.parametrize(
    ("sizes", "offset", "wanted"),
    [((320, 176), 4, 4), ((320, 178), 0, 2), ((322, 176), 0, 2), ((321, 176), 0, 1), ((320, 177), 0, 1)],
)
def test_units_of_transposes_are_as_wide_as_both_sides_allow(
    sizes: tuple[int, int], offset: int, wanted: int
) -> None:
    pattern = launch_of(permuted(source(0, FLOAT16, sizes), (1, 0)), offset).pattern
    assert (pattern.mode, pattern.vector) == (Mode.TRANSPOSED, wanted)


def test_units_of_transposes_of_several_types_fit_the_widest() -> None:
    x, y = source(0, UINT8, (320, 176)), source(1, FLOAT32, (176, 320))
    pattern = launch_of(convert(permuted(x, (1, 0)), FLOAT32) + y).pattern
    assert (pattern.mode, pattern.vector) == (Mode.TRANSPOSED, 4)


def test_transposes_of_what_is_guarded_move_single_elements() -> None:
    x = padded(source(0, FLOAT16, (318, 176)), (1, 0), (1, 0))
    pattern = launch_of(permuted(x, (1, 0))).pattern
    assert (pattern.mode, pattern.vector) == (Mode.TRANSPOSED, 1)


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


def test_celu_divides_as_ieee_says() -> None:
    """Its alpha may be any number, and its rounding error is what the quotient leaves."""
    tensor = TensorDesc(TensorDataType.FLOAT32, [4096])
    (result,) = program_of(descs.ActivationCelu(tensor, tensor, alpha=3.4e38)).results
    values = kernel_source(launch_of(result).pattern).split("void evaluate(")[1].split("void ")[0]
    assert " quotient(" in values
    assert "_quotient(" not in values
