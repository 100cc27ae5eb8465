"""Which way contractions and guarded loads take on the CUDA target, for typical shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.program.functions import maximum
from opendml.program.node import Node, contraction, convert, index, source
from opendml.program.program import Layout
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, padded, reshaped, view
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.job import _signed
from opendml.targets.cuda.kernel_source import kernel_source
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.pattern import CudaMode, CudaPattern
from opendml.targets.cuda.planning import plan
from opendml.targets.cuda.schedule import _reductions_of_product, schedule
from opendml.targets.cuda.schedule_contraction import TILES, CudaProductQuery, Shape, Tile, estimates
from tests.cuda.compiled import CASES, MACHINES, aligned
from tests.nodes import convolution, matrix_product, operands_of, program
from tools.contraction_cases import convolution as convolution_form
from tools.operator_case import Form

FLOAT32, FLOAT16, INT32 = ScalarType.FLOAT32, ScalarType.FLOAT16, ScalarType.INT32


def kernel_of(result: Node) -> Kernel:
    return fuse(program(result)).kernels[0]


def launch_of(result: Node, alignment: int = 16, capability: int = 90) -> CudaLaunch:
    kernel = kernel_of(result)
    return schedule(kernel, MACHINES[capability], aligned(kernel, alignment))


def way(pattern: CudaPattern) -> str:
    """The mode, the tile, and whether several blocks share it."""
    constants = dict(pattern.constants)
    if "DEPTH" not in constants:
        return pattern.mode.value
    split = " split" if constants["SPLIT"] or constants.get("SLICES", 1) > 1 else ""
    return f"{pattern.mode.value} {constants['ROWS']}x{constants['COLUMNS_OF_TILE']}{split}"


@pytest.mark.parametrize(
    ("type", "sizes", "wanted"),
    [
        (FLOAT32, (4096, 4096, 4096), "wgmma_parts 128x128"),
        (FLOAT32, (1024, 1024, 1024), "wgmma_parts 128x64"),
        (FLOAT32, (128, 768, 3072), "wgmma_parts 64x128 split"),
        (FLOAT32, (50176, 64, 147), "fma 64x64"),
        (FLOAT32, (1, 4096, 4096), "reduction"),
        (FLOAT16, (1, 4096, 4096), "wgmma 64x64"),
        (FLOAT16, (1, 4100, 4100), "mma 16x128 split"),
        (FLOAT32, (1, 16, 16), "reduction"),
        (FLOAT32, (4096, 1, 4096), "reduction"),
        (FLOAT32, (16, 16, 16), "reduction"),
        (FLOAT16, (4096, 4096, 4096), "wgmma 128x256"),
        (FLOAT16, (3072, 3072, 3072), "wgmma 256x144"),
        (FLOAT16, (128, 768, 768), "wgmma 64x64"),
        (FLOAT16, (4100, 4100, 4100), "mma 128x128"),
        (FLOAT16, (8, 4096, 4096), "wgmma 64x64"),
        (ScalarType.INT32, (2048, 2048, 2048), "fma 128x128"),
        (ScalarType.INT64, (2048, 2048, 2048), "reduction"),
    ],
    ids=str,
)
def test_matrix_products_take_the_cheapest_way(
    type: ScalarType, sizes: tuple[int, int, int], wanted: str
) -> None:
    assert way(launch_of(convert(matrix_product(type, sizes), type)).pattern) == wanted


@pytest.mark.parametrize("type", [FLOAT32, FLOAT16])
def test_a_transposed_matrix_times_a_vector_is_computed_in_tiles(type: ScalarType) -> None:
    """There are no loops over columns, along which results could lie."""
    shape = Shape(kernel_of(convert(matrix_product(type, (512, 1, 512), True), type)), [16] * 3)
    for tile in filter(shape.takes, TILES):
        constants = dict(shape.launch(tile, 1).pattern.constants)
        assert (constants["LOOPS_M"], constants["LOOPS_N"]) == (1, 0)
        assert constants["STORED_ALONG_ROWS"] == 0


@pytest.mark.parametrize("rows", [3, 17])
def test_sums_of_few_rows_with_the_same_elements_are_neighbours(rows: int) -> None:
    """Then a matrix is read from memory once. More rows do not fit a block beside each other."""
    left, right = source(0, FLOAT32, (rows, 1, 64)), source(1, FLOAT32, (1, 40, 64))
    kernel = kernel_of(contraction(left, right, (2,)))
    (_, query) = _reductions_of_product(CudaProductQuery(kernel, MACHINES[90], [16] * 3), None)
    strides = [loop.strides[1] for loop in query.nest.groups]
    assert strides == ([256, 0] if rows == 3 else [0, 256])


def test_a_matrix_times_a_vector_of_counted_numbers_is_reduced() -> None:
    numbers = convert(index(INT32, (1, 1, 1, 4096), 0, (0, 0, 0, 1)), FLOAT32)
    rows = source(0, FLOAT32, (1, 4096, 4096))
    matrix = view(rows, (1, 1, 4096, 4096), (0, 0, 0), ((1, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 0)))
    assert way(launch_of(contraction(numbers, matrix, (3,))).pattern) == "reduction"


def test_a_matrix_times_counted_numbers_is_reduced() -> None:
    rows = source(0, FLOAT32, (512, 1, 512))
    numbers = convert(index(INT32, (1, 512, 512), 0, (0, 1, 512)), FLOAT32)
    assert way(launch_of(contraction(rows, numbers, (2,))).pattern) == "reduction"


def test_depthwise_convolutions_of_small_windows_are_element_wise() -> None:
    result = convolution(FLOAT32, (8, 64, 56, 56), (64, 3, 3), groups=64, before=1, after=1)
    assert way(launch_of(result).pattern) == "pointwise"


@pytest.mark.parametrize("capability", MACHINES)
@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        (convolution_form((8, 64, 56, 56), 64, 3, groups=64), "pointwise"),
        (convolution_form((8, 64, 56, 56), 64, 3, 2, groups=64, is_channels_last=True), "depthwise"),
        (convolution_form((8, 64, 56, 56), 64, 7, groups=64, is_channels_last=True), "depthwise"),
        (convolution_form((8, 63, 56, 56), 63, 3, groups=63, is_channels_last=True), "pointwise"),
    ],
)
def test_depthwise_convolutions_with_channels_last_have_a_kernel_of_their_own(
    form: Form, wanted: str, capability: int
) -> None:
    planned = plan(form.case("FLOAT16").program, MACHINES[capability])
    assert planned.launches == ((wanted,),)


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        (convolution_form((32, 3, 224, 224), 32, 3, 2, is_channels_last=True), "short_sums"),
        (convolution_form((32, 16, 112, 112), 96, 1, is_channels_last=True), "short_sums"),
        (convolution_form((32, 64, 56, 56), 64, 1, is_channels_last=True), "wgmma"),
        (convolution_form((1, 24, 56, 56), 144, 1), "wgmma"),
    ],
)
def test_convolutions_of_few_channels_have_a_kernel_of_their_own(form: Form, wanted: str) -> None:
    (launch,) = plan(form.case("FLOAT16").program, MACHINES[90]).launches[-1]
    assert launch == wanted


def test_several_contractions_in_a_kernel_are_reduced() -> None:
    kernel, other = (kernel_of(matrix_product(FLOAT32, (1024, 1024, 1024))) for _ in range(2))
    both = replace(kernel, stores=kernel.stores * 2, values=(*kernel.values, *other.values))
    assert way(schedule(both, MACHINES[90], [16] * 4).pattern) == "reduction"


@pytest.mark.parametrize(
    ("alignment", "a_turned", "b_turned", "wanted"),
    [
        (16, False, False, ((1, 8), (0, 8))),
        (16, True, True, ((0, 8), (1, 8))),
        (4, False, False, ((1, 2), (0, 2))),
        (2, False, False, ((1, 1), (0, 1))),
    ],
)
def test_operands_are_copied_in_the_widest_units_along_what_is_contiguous(
    alignment: int, a_turned: bool, b_turned: bool, wanted: Sequence[tuple[int, int]]
) -> None:
    result = convert(matrix_product(FLOAT16, (512, 512, 512), a_turned, b_turned), FLOAT16)
    constants = dict(launch_of(result, alignment, 80).pattern.constants)
    assert [(constants[f"{name}_ALONG_K"], constants[f"{name}_UNIT"]) for name in "AB"] == list(wanted)


@pytest.mark.parametrize(
    ("type", "image", "channels_last", "wanted"),
    [
        (FLOAT16, (32, 32), False, (8, 0, "CONTIGUOUS")),
        (FLOAT16, (28, 28), False, (4, 0, "CONTIGUOUS")),
        (FLOAT32, (28, 28), False, (4, 0, "CONTIGUOUS")),
        (FLOAT16, (14, 14), False, (8, 1, "STRIDED")),
        (FLOAT16, (7, 7), False, (8, 1, "STRIDED")),
        (FLOAT16, (7, 7), True, (8, 0, "CONTIGUOUS")),
        (FLOAT32, (8, 8), True, (8, 1, "STRIDED")),
    ],
    ids=str,
)
def test_results_are_stored_in_units_along_memory_or_across_it(
    type: ScalarType, image: tuple[int, int], channels_last: bool, wanted: tuple[int, int, str]
) -> None:
    """Rows of 14 pixels are no whole units, so units lie along the channels."""
    result = convolution(type, (16, 64, *image), (64, 3, 3), before=1, after=1)
    biased = maximum(result + convert(source(2, type, (1, 1, 64, 1, 1, 1, 1, 1)), FLOAT32), 0.0)
    made = program(reshaped(convert(biased, type), (16, 64, *image)))
    if channels_last:
        size, pixels = type.bytes, image[0] * image[1]
        strides = (size * 64 * pixels, size, size * 64 * image[1], size * 64)
        made = replace(made, outputs=(Layout(type, (16, 64, *image), strides),))
    kernel = fuse(made).kernels[0]
    pattern = schedule(kernel, MACHINES[80], [16] * (len(kernel.loads) + 1)).pattern
    constants = dict(pattern.constants)
    (store,) = pattern.stores
    assert (constants["UNIT"], constants["UNIT_ACROSS"], store.step.name) == wanted


def test_units_are_copied_in_part_only_where_all_loops_end() -> None:
    """Rows of 50 elements that are 80 apart; those of 52 that are contiguous are whole units."""
    strided = next(case for case in CASES if case.name == "contraction FLOAT16 strided")
    sides = [Shape(fuse(strided.program).kernels[0], [16] * 3).sides]
    sides.append(Shape(kernel_of(matrix_product(FLOAT16, (64, 64, 52))), [16] * 3).sides)
    found = [[(side.unit, side.constants()["PARTIAL"]) for side in pair] for pair in sides]
    assert found == [[(8, 1), (8, 0)], [(4, 0), (8, 0)]]


def test_guarded_operands_are_loaded_one_by_one_and_filters_in_units() -> None:
    result = convolution(FLOAT16, (8, 64, 28, 28), (64, 3, 3), before=1, after=1)
    constants = dict(launch_of(result).pattern.constants)
    assert (constants["A_UNIT"], constants["B_UNIT"], constants["B_COPIED"]) == (8, 1, 0)


def test_sizes_and_strides_are_no_part_of_the_code() -> None:
    texts = set()
    for sizes in ((520, 640, 480), (1040, 1280, 960)):
        kernel = kernel_of(maximum(matrix_product(FLOAT32, sizes), 0.0))
        shape = Shape(kernel, [16] * 3)
        texts.add(shape.launch(TILES[0], 1).pattern.text())
    assert len(texts) == 1


@pytest.mark.parametrize("type", [FLOAT32, FLOAT16, ScalarType.INT32], ids=str)
def test_what_says_where_operands_lie_calls_what_moves_along_loops(type: ScalarType) -> None:
    text = kernel_source(launch_of(convert(matrix_product(type, (512, 512, 512)), type), 16, 80).pattern)
    forwarded = re.findall(r"static Offsets (\w+)\(.*return ([\w:]+)\(p, to, at\)", text)
    assert forwarded == [("at_row", "::at_m"), ("at_k", "::at_k"), ("at_row", "::at_n"), ("at_k", "::at_k")]


def byte_product(*, zeros: Sequence[Node] = (), turned: bool = False, type: ScalarType = INT32) -> Node:
    rows, columns = operands_of((ScalarType.INT8, ScalarType.UINT8), (512, 512, 512), False, turned)
    differences = [convert(each, type) for each in (rows, columns)]
    for number, zero in enumerate(zeros):
        differences[number] = differences[number] - convert(zero, type)
    return contraction(differences[0], differences[1], (3,))


@pytest.mark.parametrize("turned", [False, True])
def test_integers_of_8_bits_are_multiplied_on_tensor_cores_as_they_are(turned: bool) -> None:
    zeros = source(2, ScalarType.INT8, (1, 512, 1, 1)), source(3, ScalarType.UINT8, (1, 1, 1, 1))
    for result in (byte_product(turned=turned), byte_product(zeros=zeros, turned=turned)):
        # The copy engine takes the operands that are contiguous along k.
        if turned:
            assert launch_of(result).pattern.mode is CudaMode.WGMMA_BYTES
        pattern = launch_of(result, capability=80).pattern
        constants = dict(pattern.constants)
        assert pattern.mode is CudaMode.IMMA
        assert (constants["A_COPIED"], constants["A_UNIT"]) == (1, 16)
        assert (constants["B_COPIED"], constants["B_UNIT"]) == ((1, 16) if turned else (0, 4))


@pytest.mark.parametrize(("columns", "alignment", "wanted"), [(512, 4, 4), (510, 16, 1), (512, 2, 1)])
def test_bytes_are_turned_in_words_where_they_lie_in_whole_ones(
    columns: int, alignment: int, wanted: int
) -> None:
    sides = operands_of((ScalarType.INT8,) * 2, (512, columns, 512), False, False)
    result = contraction(*(convert(each, INT32) for each in sides), (3,))
    assert dict(launch_of(result, alignment).pattern.constants)["B_UNIT"] == wanted


def test_integers_of_8_bits_are_widened_where_what_is_subtracted_differs_along_a_sum() -> None:
    zeros = (source(2, ScalarType.INT8, (1, 1, 1, 512)),)
    assert launch_of(byte_product(zeros=zeros)).pattern.mode is CudaMode.FMA
    assert launch_of(byte_product(type=ScalarType.INT64)).pattern.mode is CudaMode.REDUCE


def test_blocks_that_share_a_tile_have_all_of_k() -> None:
    shape = Shape(kernel_of(matrix_product(FLOAT32, (64, 64, 1000))), [16] * 3)
    for splits in (1, 2, 3, 7, 32):
        values = shape.launch(TILES[1], splits).values
        assert (
            (values["splits"] - 1) * values["split_depth"] < 1000 <= values["splits"] * values["split_depth"]
        )


def test_tiles_that_few_threads_compute_are_not_shared_by_blocks() -> None:
    """Shared by blocks, products of 1024 cubed took up to half as much time again."""
    shape = Shape(kernel_of(matrix_product(FLOAT16, (1024, 1024, 1024))), [16] * 3)
    choices = [each.choice for each in estimates(shape, MACHINES[80])]
    found = {each.splits for each in choices if isinstance(each.tile, Tile) and each.tile.copied}
    assert found == {1}


def test_only_loads_whose_guard_changes_within_units_are_read_one_by_one() -> None:
    x = source(0, FLOAT32, (64, 96))
    rows = launch_of(padded(x, (1, 0), (1, 0))).pattern
    columns = launch_of(padded(x, (0, 4), (0, 4))).pattern
    for pattern, wanted in ((rows, Step.CONTIGUOUS), (columns, Step.STRIDED)):
        (load,) = (each for each in pattern.loads if each.guarded)
        assert (pattern.vector, load.step) == (4, wanted)


def test_gathered_rows_are_read_in_units() -> None:
    table, chosen = source(0, FLOAT32, (64, 96)), source(1, ScalarType.INT32, (32, 1))
    pattern = launch_of(gathered(table, (32, 96), {0: chosen}, steps=((0, 0), (0, 1)))).pattern
    (load,) = (each for each in pattern.loads if each.guarded)
    assert (pattern.vector, load.step) == (4, Step.CONTIGUOUS)


def test_offsets_of_counters_wrap_to_words() -> None:
    assert [_signed(offset) for offset in (-5, 2**63 + 3, 2**64 - 1)] == [-5, 3 - 2**63, -1]
