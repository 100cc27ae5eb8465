"""Which contractions of FLOAT16 the copy engine of compute capability 9.0 loads, and what it is told."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.fuse import fuse
from opendml.errors import Unsupported
from opendml.frontends.common.attention import in_rows
from opendml.program.carriers import carried
from opendml.program.node import Node, contraction, convert, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, view
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda import encoded_maps, job, kernel_source, planning, tensor_map
from opendml.targets.cuda.cubins import Cubin
from opendml.targets.cuda.kernel_source import file_text, printed
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.planning import plan
from opendml.targets.cuda.schedule import schedule
from opendml.targets.cuda.schedule_contraction import Shape
from opendml.targets.cuda.schedule_warpgroups import WarpgroupShape, warpgroup_tiles
from opendml.targets.cuda.tensor_map import MAP_ALIGNMENT, MAP_BYTES
from opendml.targets.cuda.warpgroup_tile import WARPGROUP_TILES, WarpgroupTile
from tests.cuda.compiled import CASES, MACHINES, aligned, fused
from tests.cuda.fake_driver import Result
from tests.nodes import convolution, matrix_product, operands_of, program
from tools.operator_case import Form, graph_program

FLOAT16, FLOAT32 = ScalarType.FLOAT16, ScalarType.FLOAT32
MACHINE = MACHINES[90]
REGISTERS, SHARED_BYTES = 65536, 228 * 1024


def half_product(sizes: tuple[int, int, int], *turned: bool, batch: int = 1) -> Node:
    return convert(matrix_product(FLOAT16, sizes, *turned, batch=batch), FLOAT16)


def with_more(sizes: tuple[int, int, int], type: ScalarType, shape: tuple[int, ...]) -> Node:
    """Return a product of FLOAT16, the second operand turned, and a tensor that is added to it."""
    more = source(2, type, shape)
    more = convert(more, FLOAT32) if type is FLOAT16 else more
    return convert(matrix_product(FLOAT16, sizes, False, True) + more, FLOAT16)


def scheduled(product: Program, alignments: Sequence[int] = (), capability: int = 90) -> CudaLaunch:
    (kernel,) = fuse(product).kernels
    return schedule(kernel, MACHINES[capability], alignments or aligned(kernel))


def launch_in(tile: WarpgroupTile, result: Node, splits: int = 1) -> CudaLaunch:
    (kernel,) = fuse(program(result)).kernels
    shape = Shape(kernel, aligned(kernel))
    return WarpgroupShape(shape, tile.exchanged).launch(tile, splits, MACHINE)


def test_costly_results_of_few_tiles_are_not_left_to_one_warpgroup() -> None:
    """Tiles of 128 x 128 without turns take 9.8 us, of 128 x 64 in turn 11.3 (H100)."""
    sizes = ([1, 1, 512, 768], [1, 1, 768, 3072], [1, 1, 512, 3072])
    a, b, c = (TensorDesc(TensorDataType.FLOAT16, each) for each in sizes)
    row = TensorDesc(TensorDataType.FLOAT16, sizes[2], [3072, 3072, 0, 1])
    gemm = descs.Gemm(a, b, row, c, fused_activation=descs.ActivationGelu())
    machine = replace(MACHINE, memory_rate=13.5)
    (kernel,) = plan(program_of(gemm), machine).kernels.kernels
    assert dict(schedule(kernel, machine, aligned(kernel)).pattern.constants)["TURNS"] == 0


@pytest.mark.parametrize(
    ("sizes", "turned", "wanted"),
    [
        ((1000, 1000, 1000), (False, False), CudaMode.WGMMA),
        ((1001, 1000, 1000), (False, False), CudaMode.WGMMA),
        ((1000, 1001, 1000), (False, False), CudaMode.MMA),
        ((1000, 1001, 1000), (False, True), CudaMode.WGMMA),
        ((1000, 1000, 1004), (False, True), CudaMode.MMA),
        ((1000, 1000, 1001), (True, False), CudaMode.WGMMA),
        ((1001, 1000, 1000), (True, False), CudaMode.MMA),
        ((8, 4096, 4096), (False, True), CudaMode.WGMMA),
        ((8, 4096, 4096), (True, True), CudaMode.MMA),
    ],
    ids=str,
)
def test_strides_that_are_multiples_of_16_bytes_are_loaded_by_the_copy_engine(
    sizes: tuple[int, int, int], turned: tuple[bool, bool], wanted: CudaMode
) -> None:
    assert scheduled(program(half_product(sizes, *turned))).pattern.mode is wanted


@pytest.mark.parametrize(
    ("k", "capability", "modes"),
    [
        (1000, 90, [CudaMode.WGMMA_BFLOAT16]),
        (1000, 80, [CudaMode.MMA]),
        (1004, 90, [CudaMode.POINTWISE, CudaMode.POINTWISE, CudaMode.WGMMA_BFLOAT16]),
    ],
)
def test_products_of_bfloat16_read_its_bits_where_the_copy_engine_can(
    k: int, capability: int, modes: list[CudaMode]
) -> None:
    """Other operands may be copied or widened first. Results are rounded by one instruction."""
    graph = dml.Graph()
    a, b = (graph.input(name, "bfloat16", (1000, k)) for name in "ab")
    made = graph.compile({"y": dml.gemm(a, b, trans_b="TRANSPOSE").rounded()}, "reference")
    found = plan(carried(made._program), MACHINES[capability]).kernels.kernels
    launches = [schedule(each, MACHINES[capability], aligned(each)) for each in found]
    assert [each.pattern.mode for each in launches] == modes
    text = printed(launches[-1].pattern)
    assert text.count("to_bfloat16(") == 1


@pytest.mark.parametrize(
    ("size", "wanted"), [(64, CudaMode.WGMMA), (128, CudaMode.WGMMA), (96, CudaMode.MMA)]
)
def test_a_tile_lies_within_the_inner_of_two_loops_along_k(size: int, wanted: CudaMode) -> None:
    """Along k are heads, and in each the elements of a head."""

    def product(heads: Any, table: Any) -> Any:
        return dml.gemm(in_rows(heads).reinterpret((1, 1, 128, 12 * size)), table, trans_b="TRANSPOSE")

    launch = scheduled(
        graph_program(product, ("FLOAT16", (1, 12, 128, size)), ("FLOAT16", (1, 1, 768, 12 * size)))
    )
    assert launch.pattern.mode is wanted
    if wanted is CudaMode.WGMMA:
        assert [each.sizes for each in launch.maps] == [(size, 128, 12), (size, 768, 12)]


@pytest.mark.parametrize(
    ("alignments", "capability", "wanted"),
    [
        ((16, 16, 2), 90, CudaMode.WGMMA),
        ((8, 16, 16), 90, CudaMode.MMA),
        ((16, 2, 16), 90, CudaMode.MMA),
        ((16, 16, 16), 80, CudaMode.MMA),
        ((16, 16, 16), 100, CudaMode.MMA),
    ],
)
def test_addresses_and_devices_decide_who_loads(
    alignments: Sequence[int], capability: int, wanted: CudaMode
) -> None:
    product = program(half_product((1024, 1024, 1024)))
    assert scheduled(product, alignments, capability).pattern.mode is wanted


def test_operands_that_are_gathered_or_guarded_stay_with_threads() -> None:
    chosen = gathered(
        source(0, FLOAT16, (600, 512)),
        (1, 512, 1, 512),
        {0: source(2, ScalarType.INT32, (1, 512, 1, 1))},
        steps=((0,) * 4, (0, 0, 0, 1)),
    )
    columns = view(source(1, FLOAT16, (512, 512)), (1, 1, 512, 512), (0, 0), ((0, 0, 1, 0), (0, 0, 0, 1)))
    result = contraction(convert(chosen, FLOAT32), convert(columns, FLOAT32), (3,))
    assert scheduled(program(convert(result, FLOAT16))).pattern.mode is CudaMode.MMA
    windows = convolution(FLOAT16, (8, 64, 28, 28), (64, 3, 3), before=1, after=1)
    assert scheduled(program(convert(windows, FLOAT16))).pattern.mode is CudaMode.MMA


def test_a_map_describes_the_operand_in_memory() -> None:
    """Of products of 5 x [300, 200] by [200, 400]: rows along k are boxes of 64 by the tile's rows, others of
    64 by 64; a dimension over matrices has boxes of one."""
    tile = next(each for each in WARPGROUP_TILES if (each.rows, each.columns) == (128, 192))
    a, b = launch_in(tile, half_product((300, 400, 200), batch=5)).maps
    assert (a.access, a.sizes, a.strides, a.box) == (0, (200, 300, 5), (400, 120000), (64, 128, 1))
    assert (b.access, b.sizes, b.strides, b.box) == (1, (400, 200, 5), (800, 160000), (64, 64, 1))


def test_the_row_of_a_vector_has_a_map_with_a_stride_that_is_not_used() -> None:
    tile = next(each for each in WARPGROUP_TILES if (each.rows, each.columns) == (64, 64))
    vector, matrix = launch_in(tile, half_product((1, 256, 512))).maps
    assert (vector.sizes, vector.strides, vector.box) == ((512, 1), (16,), (64, 8))
    assert (matrix.sizes, matrix.box) == ((256, 512), (64, 64))


def test_boxes_reach_no_further_than_few_rows() -> None:
    a, b = launch_in(WARPGROUP_TILES[0], half_product((13, 512, 512), False, True)).maps
    assert (a.box, b.box) == ((64, 16), (64, WARPGROUP_TILES[0].columns))


@pytest.mark.parametrize("columns", [32, 160])
def test_tiles_of_parts_of_boxes_take_columns_along_k_alone(columns: int) -> None:
    narrow = next(tile for tile in WARPGROUP_TILES if tile.columns == columns)
    for turned in (False, True):
        (kernel,) = fuse(program(half_product((64, 512, 512), False, turned))).kernels
        found = [tile for tile, _, _ in warpgroup_tiles(Shape(kernel, [16] * 3), MACHINE)]
        assert (narrow in found) is turned


@pytest.mark.parametrize(
    ("result", "wanted"),
    [
        (half_product((512, 512, 512)), 8),
        (half_product((512, 516, 512), False, True), 4),
        (half_product((512, 518, 512), False, True), 2),
        (half_product((512, 515, 512), False, True), 1),
        (matrix_product(FLOAT16, (512, 512, 512)), 0),
        (with_more((512, 512, 512), FLOAT32, (1, 1, 512, 1)), 8),
        (with_more((512, 515, 512), FLOAT32, (1, 1, 515, 1)), 0),
        (with_more((512, 515, 512), FLOAT32, (1, 512, 1, 1)), 1),
        (with_more((512, 512, 512), FLOAT32, (1, 512, 512, 1)), 0),
        (with_more((512, 516, 512), FLOAT16, (1, 512, 516, 1)), 4),
    ],
)
def test_results_of_halves_go_through_shared_memory_in_the_widest_units(result: Node, wanted: int) -> None:
    constants = dict(launch_in(WARPGROUP_TILES[0], result).pattern.constants)
    assert constants["STAGED_UNIT"] == wanted
    assert (constants["STAGED_BYTES"] > 0) is (wanted > 0)


def test_residuals_of_halves_come_through_shared_memory() -> None:
    residual = convert(source(2, FLOAT16, (1, 512, 512, 1)), FLOAT32)
    result = convert(matrix_product(FLOAT16, (512, 512, 512)) + residual, FLOAT16)
    pattern = launch_in(WARPGROUP_TILES[0], result).pattern
    assert dict(pattern.constants)["STAGED_BYTES"]
    assert "constexpr int RESIDUALS = 1, RESULTS = 1;" in printed(pattern)


def test_blocks_of_a_cluster_load_parts_of_the_columns() -> None:
    tile = next(each for each in WARPGROUP_TILES if each.cluster == 2)
    a, b = launch_in(tile, half_product((512, 512, 512), False, True)).maps
    assert (a.box, b.box) == ((64, tile.rows), (64, tile.columns // 2))
    tile = next(each for each in WARPGROUP_TILES if each.across == 4)
    a, b = launch_in(tile, half_product((512, 512, 512), False, True)).maps
    assert (a.box, b.box) == ((64, tile.rows // 4), (64, tile.columns))


@pytest.mark.parametrize(
    ("result", "wanted"),
    [
        (half_product((512, 512, 512), False, True), True),
        (half_product((512, 516, 512), False, True), True),
        (matrix_product(FLOAT16, (512, 512, 512), False, True), False),
        (with_more((512, 512, 512), FLOAT32, (1, 1, 512, 1)), True),
        (with_more((512, 512, 512), FLOAT32, (1, 512, 1, 1)), False),
        (with_more((512, 512, 512), FLOAT16, (1, 512, 512, 1)), True),
    ],
)
def test_exchanged_tiles_store_halves_that_are_contiguous_along_rows(result: Node, wanted: bool) -> None:
    """Other operands of the results lie along rows, or have an element for each result."""
    (kernel,) = fuse(program(result)).kernels
    found = [tile for tile, _, _ in warpgroup_tiles(Shape(kernel, aligned(kernel)), MACHINE)]
    assert any(tile.exchanged for tile in found) is wanted


def test_exchanged_tiles_have_any_multiple_of_16_columns() -> None:
    """11 tiles of 144 hold 1,576 rows of results."""
    tile = next(each for each in WARPGROUP_TILES if each.exchanged and each.columns == 144)
    (kernel,) = fuse(program(half_product((1576, 3072, 768), False, True))).kernels
    shape = Shape(kernel, aligned(kernel))
    launch = WarpgroupShape(shape, exchanged=True).launch(tile, 1, MACHINE)
    assert (launch.values["m"], launch.values["n"], launch.grid) == (3072, 1576, 132)
    assert [map.access for map in launch.maps] == [1, 0]


def test_slices_meet_in_global_memory_if_their_clusters_do_not_run_at_once() -> None:
    """32 tiles of 128 x 96, by 4 slices: an H100 runs 29 clusters of 4 blocks."""
    (kernel,) = fuse(program(half_product((512, 768, 3072), False, True))).kernels
    ways = list(warpgroup_tiles(Shape(kernel, aligned(kernel)), MACHINE))
    tile = WarpgroupTile(128, 96, 2, 1)
    assert [way.joined for way, splits, _ in ways if (way, splits) in ((tile, 2), (tile, 4))] == [True]
    assert (replace(tile, joined=False), 4) in [(way, splits) for way, splits, _ in ways]


def test_a_block_of_a_cluster_ends_when_no_peer_can_arrive_any_more() -> None:
    """A block whose peers arrive at its barriers after its end makes the device fail, in one of thousands of
    launches. Neither the emulator nor a few launches show that. So the thread that loads must wait for the
    last arrivals at all places of the ring, after its last tile."""
    text = file_text("sm90/contraction")
    begin = text.index("DEVICE void produce(")
    after_loads = text[begin : text.index("\n}\n", begin)].rpartition("loader.load(")[2]
    block = after_loads.partition("if constexpr (BLOCKS_OF_CLUSTER > 1) {")[2]
    assert "for (int i = 0; i < STAGES; i++, ring.next())" in block
    assert "wait_for_phase(empty + ring.slot * BARRIER_BYTES, ring.parity ^ 1);" in block


def test_only_products_share_tiles_in_clusters() -> None:
    """Other kernels would need to wait for their peers, too."""
    folder = Path(kernel_source.__file__).parent / "kernels"
    found = {path.stem for path in folder.rglob("*.cuh") if "__cluster_dims__" in path.read_text("utf-8")}
    assert found == {"contraction"}
    assert "__cluster_dims__" in file_text("sm90/contraction")


def test_results_by_columns_exchange_the_operands() -> None:
    result = Layout(FLOAT16, (1, 256, 512, 1), (0, 2, 512, 2))
    inputs = packed(FLOAT16, (1, 256, 128)), packed(FLOAT16, (1, 128, 512))
    launch = scheduled(Program(inputs, (result,), (half_product((256, 512, 128)),)))
    assert [map.access for map in launch.maps] == [1, 0]
    assert (launch.values["m"], launch.values["n"]) == (512, 256)


@pytest.mark.parametrize("tile", WARPGROUP_TILES, ids=str)
def test_tiles_fit_a_multiprocessor(tile: WarpgroupTile) -> None:
    """Warpgroups that take registers wait for ever if those that give some have too few."""
    launch = launch_in(tile, half_product((512, 512, 512), False, True))
    producer, consumer = tile.registers()
    entry = REGISTERS // tile.blocks // tile.threads // 8 * 8
    assert 128 * (producer + tile.consumers * consumer) <= entry * tile.threads
    assert tile.blocks * (launch.shared_bytes + 1024) <= SHARED_BYTES
    assert dict(launch.pattern.constants)["STAGES"] >= 2
    parts = 1 if tile.turns else tile.consumers
    assert tile.rows % (64 * parts) == tile.rows % (8 * tile.across) == 0
    assert tile.columns % (16 if tile.exchanged else 32) == tile.columns % (8 * tile.cluster) == 0


@pytest.mark.parametrize("splits", [1, 2, 3, 7, 12])
def test_slices_of_a_tile_are_all_of_k_and_none_is_empty(splits: int) -> None:
    launch = launch_in(WARPGROUP_TILES[-1], half_product((64, 64, 1000), False, True), splits)
    slices = dict(launch.pattern.constants)["SLICES"] * launch.values["splits"]
    depth = launch.values["split_depth"]
    assert (slices - 1) * depth < 1000 <= slices * depth


def test_blocks_of_a_cluster_share_tiles_along_k_without_global_memory() -> None:
    product = half_product((512, 768, 3072), False, True)
    for tile in WARPGROUP_TILES:
        for slices in (2, 3, 4, 8):
            launch = launch_in(tile, product, slices)
            joins = dict(launch.pattern.constants)["SLICES"] == slices
            assert joins == tile.joins(slices, MACHINE)
            assert (launch.scratch_bytes == launch.counters_bytes == 0) == joins
            assert tile.blocks * (launch.shared_bytes + 1024) <= SHARED_BYTES
            if joins:
                tiles = -(-512 // tile.rows) * -(-768 // tile.columns)
                assert (launch.grid, launch.values["items"]) == (tiles * slices, tiles)
    assert [slices for slices in (2, 8, 9) if WARPGROUP_TILES[-1].joins(slices, MACHINE)] == [2, 8]
    (kernel,) = fuse(program(half_product((128, 768, 3072), False, True))).kernels
    assert dict(schedule(kernel, MACHINE, aligned(kernel)).pattern.constants)["SLICES"] > 1


def bytes_less(*zeros: Node, turned: bool = True) -> Node:
    """Return a product of bytes less zero points, 512 x 512 x 512."""
    type = ScalarType.INT32
    rows, columns = operands_of((ScalarType.INT8, ScalarType.UINT8), (512, 512, 512), False, turned)
    rows, columns = convert(rows, type), convert(columns, type)
    for zero in zeros[:1]:
        rows = rows - convert(zero, type)
    for zero in zeros[1:]:
        columns = columns - convert(zero, type)
    return contraction(rows, columns, (3,))


def test_bytes_that_are_contiguous_along_k_are_multiplied_by_warpgroups() -> None:
    zeros = source(2, ScalarType.INT8, (1, 512, 1, 1)), source(3, ScalarType.UINT8, (1, 1, 1, 1))
    for count, shifted in enumerate(("false false", "true false", "true true")):
        launch = scheduled(program(bytes_less(*zeros[:count])))
        assert launch.pattern.mode is CudaMode.WGMMA_BYTES
        found = re.findall(r"SHIFTED = (\w+);", printed(launch.pattern))
        assert found == shifted.split()
    assert scheduled(program(bytes_less(turned=False))).pattern.mode is CudaMode.IMMA
    assert scheduled(program(bytes_less()), capability=80).pattern.mode is CudaMode.IMMA


@pytest.mark.parametrize(("constants", "initializers", "copies"), [((1,), 1, 0), ((), 0, 1)])
def test_bytes_are_copied_so_that_sums_run_along_memory(
    constants: Sequence[int], initializers: int, copies: int
) -> None:
    """Constants are copied once, before the first call."""
    form = Form("MATRIX_MULTIPLY_INTEGER", "", {"a": (1, 1, 4096, 4096), "b": (1, 1, 4096, 4096)})
    given = replace(form.case("INT8").program, constants=frozenset(constants))
    found = plan(given, MACHINE).kernels
    assert (len(found.initializers), len(found.kernels)) == (initializers, 1 + copies)
    launch = schedule(found.kernels[-1], MACHINE, aligned(found.kernels[-1]))
    assert launch.pattern.mode is CudaMode.WGMMA_BYTES


def test_a_grid_has_no_more_blocks_than_run_at_once() -> None:
    for tile in WARPGROUP_TILES:
        launch = launch_in(tile, half_product((8192, 8192, 256), False, True))
        assert launch.grid % tile.blocks_of_cluster == 0
        assert launch.grid <= MACHINE.multiprocessors * tile.blocks
        items = math.ceil(8192 / tile.rows / tile.cluster) * math.ceil(8192 / tile.columns / tile.across)
        assert launch.values["items"] == items


def test_sizes_and_strides_are_no_part_of_the_code() -> None:
    texts = {
        launch_in(WARPGROUP_TILES[0], half_product(sizes)).pattern.text()
        for sizes in ((520, 640, 480), (1040, 1280, 960))
    }
    assert len(texts) == 1


def test_maps_lie_behind_the_other_parameters_where_the_copy_engine_finds_them() -> None:
    launch = launch_in(WARPGROUP_TILES[0], half_product((512, 512, 512)))
    parameters = ParameterStruct(launch.pattern)
    content = parameters.pack(launch.values)
    offsets = [parameters.layout.map_offset(number) for number in range(2)]
    assert [offset % MAP_ALIGNMENT for offset in offsets] == [0, 0]
    assert len(content) == offsets[1] + MAP_BYTES == offsets[0] + 2 * MAP_BYTES
    assert content[offsets[0] :] == bytes(2 * MAP_BYTES)


def test_products_of_the_gemm_operator_take_warpgroups() -> None:
    case = next(case for case in CASES if case.name == "contraction FLOAT16 GEMM 65x67x200")
    (kernel,) = fused(case).kernels
    shape = Shape(kernel, aligned(kernel))
    assert WarpgroupShape(shape).is_loadable


class MapDriver:
    """The driver's functions for tensor maps: an encoded one is the words that it was made of."""

    CUresult = SimpleNamespace()
    CUtensorMapDataType = SimpleNamespace(CU_TENSOR_MAP_DATA_TYPE_FLOAT16="float16")
    CUtensorMapInterleave = SimpleNamespace(CU_TENSOR_MAP_INTERLEAVE_NONE="none")
    CUtensorMapSwizzle = SimpleNamespace(CU_TENSOR_MAP_SWIZZLE_128B="128")
    CUtensorMapL2promotion = SimpleNamespace(CU_TENSOR_MAP_L2_PROMOTION_L2_256B="256")
    CUtensorMapFloatOOBfill = SimpleNamespace(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE="zeros")
    cuuint32_t = cuuint64_t = int

    def __init__(self) -> None:
        self.encoded: list[tuple[object, ...]] = []
        self.moves = 0
        self._content = ctypes.create_string_buffer(MAP_BYTES)

    def cuTensorMapEncodeTiled(self, *words: Any) -> tuple[Result, Any]:  # noqa: N802 - the driver's name
        self.encoded.append(words)
        self._content[:8] = words[2].to_bytes(8, "little")
        return Result(0), SimpleNamespace(getPtr=lambda: ctypes.addressof(self._content))


def placed_job(monkeypatch: pytest.MonkeyPatch, fake: MapDriver) -> job.CudaJob:
    """Return a job of a product, whose operands have tensor maps."""
    monkeypatch.setattr(tensor_map, "driver_module", lambda: fake)
    monkeypatch.setattr(encoded_maps, "_checked_maps", set())
    monkeypatch.setattr(planning, "cubins_of", lambda patterns, _: [Cubin("", b"")] * len(patterns))
    launch = launch_in(WARPGROUP_TILES[0], half_product((512, 256, 128)))
    planned = planning._planned([(launch, (16, 16, 16))], MACHINE)
    form = job.JobForm(planned, [[[(0, 0), (1, 0), (2, 0)]]], 3, MACHINE)
    owner: Any = SimpleNamespace(machine=MACHINE)
    return job.CudaJob(form, owner)


def test_maps_are_encoded_once_and_then_follow_their_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = MapDriver()
    made = placed_job(monkeypatch, fake)
    for address in (4096, 8192, 8192):
        assert made.place(np.array([address, 2 * address, 3 * address, 0])) == []
        assert made._words[made.form.maps.words].tolist() == [address, 2 * address]
    a, _, b = fake.encoded  # The second one checks where the address is.
    assert a[:7] == ("float16", 2, 4096, [128, 512], [256], [64, WARPGROUP_TILES[0].rows], [1, 1])
    assert b[2] == 8192


def test_a_driver_that_encodes_addresses_in_another_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(MapDriver):
        def cuTensorMapEncodeTiled(self, *words: Any) -> tuple[Result, Any]:  # noqa: N802
            found = super().cuTensorMapEncodeTiled(*words)
            self._content[8:16] = bytes(self._content[:8])
            return found

    made = placed_job(monkeypatch, Other())
    with pytest.raises(Unsupported, match="addresses of tensor maps"):
        made.place(np.array([4096, 4096, 4096, 0]))
