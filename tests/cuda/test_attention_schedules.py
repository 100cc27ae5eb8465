"""Schedules of attention on the CUDA target: one kernel per chain of products, and on compute capability 9.0
its tiles, tensor maps, and the public operators from which it comes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import opendml as dml
from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.simplify import simplify
from opendml.program.atoms import Dimension
from opendml.program.functions import select
from opendml.program.node import Node, Operation, apply, bitcast, convert, index
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import MultiheadAttentionMaskType as MaskType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc
from opendml.targets.cuda.kernel_source import kernel_source
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.planning import fused
from opendml.targets.cuda.schedule import schedule
from opendml.targets.cuda.schedule_attention import ATTENTION_TILES, AttentionTile
from opendml.targets.cuda.schedule_chain import is_chained
from opendml.targets.cuda.tensor_map import MAP_BYTES
from tests.cuda.compiled import CHAINED, MACHINES, aligned
from tests.nodes import attended, causal, program, tensors
from tests.plans import attention, traced_program
from tools.cuda_tiles import in_chain_tile
from tools.operator_case import graph_program

FLOAT16, FLOAT32 = ScalarType.FLOAT16, ScalarType.FLOAT32
MACHINE = MACHINES[90]
REGISTERS, SHARED_BYTES = 65536, 228 * 1024


def launches(
    given: Program, tile: AttentionTile | None = None, alignment: int = 16, capability: int = 90
) -> list[CudaLaunch]:
    takes = partial(is_chained, machine=MACHINES[capability])
    found = fuse(replace(given, results=simplify(given.results)), Abilities(computes_attention=takes)).kernels
    scheduler = schedule if tile is None else partial(in_chain_tile, tile)
    return [scheduler(kernel, MACHINES[capability], aligned(kernel, alignment)) for kernel in found]


def launch_of(
    sizes: tuple[int, int, int, int, int] = (12, 512, 512, 64, 64), tile: AttentionTile | None = None
) -> CudaLaunch:
    """Return the launch for so many heads, queries, keys, and elements of keys and of values."""
    (launch,) = launches(program(convert(attended(*tensors(FLOAT16, sizes)), FLOAT16)), tile)
    return launch


def operator(
    *,
    queries: int = 256,
    keys: int = 256,
    heads: int = 4,
    shared: int = 4,
    size: int = 64,
    stacked: str = "",
    mask: Sequence[int] = (),
    bias: Sequence[int] = (),
) -> OperatorDesc:
    """Return MULTIHEAD_ATTENTION1 of two batches in FLOAT16."""
    query, key = (
        TensorDesc("FLOAT16", (2, queries, heads * size)),
        TensorDesc("FLOAT16", (2, keys, shared * size)),
    )
    packed = TensorDesc("FLOAT16", (2, queries, heads, len(stacked), size)) if stacked else None
    return descs.MultiheadAttention1(
        None if "q" in stacked else query,
        None if "k" in stacked else key,
        None if "v" in stacked else key,
        packed if stacked == "qk" else None,
        packed if stacked == "kv" else None,
        packed if stacked == "qkv" else None,
        None,
        TensorDesc("INT32", mask) if mask else None,
        TensorDesc("FLOAT16", bias) if bias else None,
        output_tensor=query,
        scale=size**-0.5,
        query_head_count=heads,
        key_value_head_count=shared,
        mask_type=MaskType.BOOLEAN if mask else MaskType.NONE,
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"shared": 2},
        {"stacked": "qk"},
        {"stacked": "kv"},
        {"stacked": "qkv"},
        {"mask": (2, 1, 256, 256)},
        {"mask": (2, 1, 1, 256)},
        {"bias": (2, 4, 256, 256)},
        {"bias": (1, 1, 256, 256)},
        {"queries": 100, "keys": 77},
        {"size": 8},
        {"size": 80},
        {"size": 128},
        {"size": 256},
    ],
    ids=str,
)
def test_the_operator_takes_warpgroups(given: dict[str, int]) -> None:
    (launch,) = launches(program_of(operator(**given)))  # type: ignore[arg-type]
    assert launch.pattern.mode is CudaMode.WGMMA_CHAIN


@pytest.mark.parametrize(
    ("given", "terms"),
    [
        ({"mask": (2, 1, 1, 256)}, 1),
        ({"mask": (2, 1, 256, 256)}, 0),
        ({"bias": (2, 4, 1, 256)}, 1),
        ({"bias": (2, 4, 256, 256)}, 0),
        ({}, 0),
    ],
    ids=str,
)
def test_what_depends_on_keys_alone_is_computed_once_for_each_key(given: dict[str, int], terms: int) -> None:
    (launch,) = launches(program_of(operator(**given)))  # type: ignore[arg-type]
    assert dict(launch.pattern.constants)["TERMS"] == terms


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"mask": (2, 1, 256, 256)}, True),
        ({"mask": (1, 1, 256, 256)}, True),
        ({"mask": (2, 4, 256, 256)}, False),
        ({"mask": (2, 1, 256, 200), "keys": 200}, False),
        ({"mask": (2, 1, 256, 256), "bias": (1, 4, 256, 256)}, False),
        ({"mask": (2, 1, 1, 256)}, False),
    ],
    ids=str,
)
def test_truth_values_that_matrices_share_are_stored_and_read_as_bits(
    given: dict[str, Any], stored: bool
) -> None:
    kernels = fused(program_of(operator(**given)), MACHINE).kernels
    launch = schedule(kernels[-1], MACHINE, aligned(kernels[-1]))
    assert dict(launch.pattern.constants)["MASKED"] == stored
    assert len(kernels) == 1 + stored
    if stored:
        (storing,) = kernels[:-1]
        assert math.prod(storing.domain) == math.prod(given["mask"])
        assert storing.stores[0].type is ScalarType.BOOLEAN


def test_few_keys_take_several_blocks_of_a_multiprocessor() -> None:
    launch = launch_of((600, 49, 49, 32, 32))
    assert (dict(launch.pattern.constants)["BLOCKS"], launch.grid) == (3, 3 * MACHINE.multiprocessors)
    assert dict(launch_of((600, 49, 65, 32, 32)).pattern.constants)["BLOCKS"] == 1


@pytest.mark.parametrize(("keys", "blocks"), [(1024, 2), (4096, 1)])
def test_queries_that_see_few_keys_take_two_blocks_of_a_multiprocessor(keys: int, blocks: int) -> None:
    """At 4,096 keys the products, which three warpgroups of a block share, take most of the time."""
    given = attended(*tensors(FLOAT16, (96, keys, keys, 64, 64)), scores=_hiding_later_keys)
    (launch,) = launches(program(convert(given, FLOAT16)))
    assert dict(launch.pattern.constants)["BLOCKS"] == blocks


def _hiding_later_keys(scores: Node) -> Node:
    return causal(scores, -math.inf)


def test_a_mask_that_is_gathered_is_read_in_the_kernel() -> None:
    """Under a condition, as masks of transformers' models: an index may lie outside."""

    def attend(q: Any, k: Any, v: Any, mask: Any, indices: Any) -> Any:
        mask = dml.gather(mask, indices, axis=3, index_dimensions=1)
        more = {"mask_type": "BOOLEAN", "mask_filter_value": -1e4}
        return dml.multihead_attention(q, k, v, mask=mask, scale=0.125, head_count=4, **more)

    tensors = [("FLOAT16", (2, 256, 256))] * 3
    given = graph_program(attend, *tensors, ("INT32", (2, 1, 1, 300)), ("INT64", (1, 1, 1, 256)))
    attention = launches(given)[-1]
    assert attention.pattern.mode is CudaMode.WGMMA_CHAIN
    assert any(load.guarded for load in attention.pattern.loads)


@pytest.mark.parametrize(("alignment", "capability"), [(8, 90), (16, 80), (16, 100)])
def test_addresses_and_devices_decide_who_loads(alignment: int, capability: int) -> None:
    given = program_of(operator())
    (launch,) = launches(given, alignment=alignment, capability=capability)
    assert launch.pattern.mode is CudaMode.MMA_CHAIN


def test_wide_heads_at_other_addresses_have_registers_enough() -> None:
    (launch,) = launches(program_of(operator(size=256)), alignment=2)
    constants = dict(launch.pattern.constants)
    assert launch.pattern.mode is CudaMode.MMA_CHAIN
    assert (constants["ROWS"], constants["THREADS"], constants["BLOCKS"]) == (128, 256, 1)


def test_rows_that_are_no_multiples_of_16_bytes_stay_with_threads() -> None:
    (launch,) = launches(program(convert(attended(*tensors(FLOAT16, (2, 64, 64, 60, 64))), FLOAT16)))
    assert launch.pattern.mode is CudaMode.MMA_CHAIN


def test_maps_describe_queries_keys_and_values() -> None:
    """The case has 3 heads of 300 queries and 500 keys of 72 elements: boxes have 64 elements by the rows of
    a tile."""
    tile = next(
        each for each in ATTENTION_TILES if (each.rows, each.keys) == (128, 128) and each.width == 128
    )
    q, k, v = launch_of((3, 300, 500, 72, 80), tile).maps
    assert (q.access, q.sizes, q.strides, q.box) == (0, (72, 300, 3), (144, 43200), (64, 128, 1))
    assert (k.access, k.sizes, k.strides, k.box) == (1, (72, 500, 3), (144, 72000), (64, 128, 1))
    assert (v.access, v.sizes, v.strides, v.box) == (2, (80, 500, 3), (160, 80000), (64, 128, 1))


def test_a_box_reaches_no_further_than_few_queries() -> None:
    q, _, _ = launch_of((3, 20, 500, 64, 64)).maps
    assert q.box == (64, 24, 1)


def test_a_box_of_few_queries_has_all_heads_that_share_keys() -> None:
    """The case has 5 queries in each of 4 heads, which lie in another order than rows of a matrix."""
    launch, _ = launches(program_of(operator(queries=5, keys=2000, heads=8, shared=2)))
    q = launch.maps[0]
    assert (q.sizes, q.strides, q.box) == ((64, 5, 4, 2, 2), (1024, 128, 512, 5120), (64, 5, 4, 1, 1))
    assert (launch.values["queries"], launch.values["matrices"]) == (20, 4)


def test_maps_lie_behind_the_other_parameters() -> None:
    launch = launch_of()
    parameters = ParameterStruct(launch.pattern)
    content = parameters.pack(launch.values)
    assert (
        len(content)
        == parameters.layout.map_offset(2) + MAP_BYTES
        == parameters.layout.map_offset(0) + 3 * MAP_BYTES
    )


@pytest.mark.parametrize("tile", ATTENTION_TILES, ids=str)
def test_tiles_fit_a_multiprocessor(tile: AttentionTile) -> None:
    """Warpgroups that take registers wait for ever if those that give some have too few."""
    launch = launch_of((2, 512, 512, tile.width, tile.width), tile)
    assert launch.pattern.mode is CudaMode.WGMMA_CHAIN
    constants = dict(launch.pattern.constants)
    entry = REGISTERS // tile.blocks // tile.threads // 8 * 8
    taken = constants["PRODUCER_REGISTERS"] + tile.rows // 64 * constants["CONSUMER_REGISTERS"]
    assert 128 * taken <= entry * tile.threads
    assert tile.blocks * (launch.shared_bytes + 1024) <= SHARED_BYTES
    assert constants["STAGES"] >= 2
    assert tile.rows % 64 == tile.keys % 16 == 0


def test_weights_are_rounded_where_results_are() -> None:
    """Results that are FLOAT32 need weights of 22 bits."""
    (whole,) = launches(program(attended(*tensors(FLOAT16, (2, 128, 128, 64, 64)))))
    assert dict(whole.pattern.constants)["PARTS"] == 2
    assert dict(launch_of().pattern.constants)["PARTS"] == 1


def test_a_grid_has_no_more_blocks_than_run_at_once() -> None:
    for queries in (64, 512, 8192):
        launch = launch_of((12, queries, 512, 64, 64))
        items = launch.values["items"]
        assert launch.grid == min(items, MACHINE.multiprocessors)
        assert items == 12 * math.ceil(queries / dict(launch.pattern.constants)["ROWS"])


@pytest.mark.parametrize(
    ("given", "slices"),
    [
        ({"keys": 65536, "heads": 32, "shared": 8, "size": 128}, 8),
        ({"keys": 1024, "heads": 12, "shared": 12}, 4),
        ({"keys": 100, "heads": 12, "shared": 12}, 1),
        ({"keys": 32768, "heads": 256, "shared": 256}, 1),
        ({"keys": 4096, "queries": 5, "heads": 8, "shared": 8}, 8),
    ],
    ids=str,
)
def test_blocks_share_the_keys_of_few_queries(given: dict[str, int], slices: int) -> None:
    """Blocks fill the multiprocessors. Each slice of keys of a matrix has a page of sums."""
    size = given.get("size", 64)
    tile = next(each for each in ATTENTION_TILES if (each.rows, each.width, each.blocks) == (64, size, 1))
    (launch,) = launches(program_of(operator(**({"queries": 1} | given))), tile)  # type: ignore[arg-type]
    constants, items = dict(launch.pattern.constants), 2 * given["shared"] * slices
    assert (launch.pattern.mode, constants["ROWS"]) == (CudaMode.WGMMA_CHAIN, 64)
    assert constants["SPLIT"] == (slices > 1)
    assert launch.values["items"] == items
    assert launch.values["slice_tiles"] * constants["KEYS"] * slices >= given["keys"]
    sums = launch.values["queries"] * (constants["WIDTH"] + 2)
    assert launch.scratch_bytes == (slices > 1) * 4 * items * sums


@pytest.mark.parametrize("capability", [80, 90, 100])
@pytest.mark.parametrize("type", ["FLOAT16", "FLOAT32", "UINT16"])
@pytest.mark.parametrize(
    ("queries", "keys", "rows", "slices"), [(1, 4096, 1, True), (3, 4096, 4, True), (15, 16, 15, False)]
)
def test_few_queries_are_one_kernel_that_reads_keys_in_their_own_type(
    queries: int, keys: int, rows: int, slices: bool, type: str, capability: int
) -> None:
    """UINT16 has the bits of BFLOAT16."""
    q, k, v = (
        bfloat16(source) if type == "UINT16" else source
        for source in tensors(ScalarType[type], (8, queries, keys, 64, 64))
    )
    (launch,) = launches(program(attended(q, k, v)), capability=capability)
    if launch.pattern.mode is CudaMode.WGMMA_CHAIN:
        assert (type, capability) == ("FLOAT16", 90)
        return
    constants = dict(launch.pattern.constants)
    assert launch.pattern.mode is CudaMode.FEW_ROWS_CHAIN
    assert (constants["ROWS"], bool(constants["SPLIT"])) == (rows, slices)
    assert [load.type.name for load in launch.pattern.loads] == [type] * 3
    assert launch.shared_bytes < SHARED_BYTES


def bfloat16(bits: Node) -> Node:
    """Return the FLOAT32 numbers whose upper halves are given."""
    whole = apply(Operation.SHIFT_LEFT, convert(bits, ScalarType.UINT32), 16)
    return bitcast(whole, FLOAT32)


def test_lengths_of_a_bucket_share_the_code_of_few_queries() -> None:
    texts = [
        launches(program(attended(*tensors(FLOAT32, (8, 1, keys, 64, 64)))))[0].pattern.text()
        for keys in (2100, 2500, 3000)
    ]
    assert len(set(texts)) == 1


def test_causal_tiles_come_in_bands_whose_keys_fit_the_cache() -> None:
    """In a band long tiles come first; it has a tile for each multiprocessor at least."""
    for queries, keys, heads in ((4096, 4096, 5), (1024, 1024, 23), (128, 4096, 64), (32768, 32768, 1)):
        given = attended(*tensors(FLOAT16, (64, queries, keys, 128, 128)), scores=_hiding_later_keys)
        (launch,) = launches(program(convert(given, FLOAT16)))
        assert launch.values["band"] == heads
        assert launch.values["run_items"] == heads * launch.values["tiles_down"]


def test_sizes_and_strides_are_no_part_of_the_code() -> None:
    tile = ATTENTION_TILES[0]
    texts = {
        launch_of(sizes, tile).pattern.text() for sizes in ((3, 500, 300, 64, 64), (12, 77, 900, 64, 64))
    }
    assert len(texts) == 1


def _scored(scores: Node, hidden: Node) -> Node:
    return select(hidden, -math.inf, scores * 0.5)


@pytest.mark.parametrize("queries", [200, 300])
def test_places_that_hide_keys_are_known_before_keys_are_read(queries: int) -> None:
    def masked(scores: Node) -> Node:
        return causal(scores, -math.inf)

    given = attended(*tensors(FLOAT16, (2, queries, 300, 64, 64)), scores=masked)
    (launch,) = launches(program(convert(given, FLOAT16)))
    constants = dict(launch.pattern.constants)
    assert (launch.pattern.mode, constants["HIDES"]) == (CudaMode.WGMMA_CHAIN, 1)
    assert "SCALED = true" in kernel_source(launch.pattern)


@pytest.mark.parametrize("steps", [(0, 1, -1), (0, -1, -1), (0, 1, 1)], ids=str)
def test_places_that_hide_earlier_keys_are_part_of_the_score(steps: tuple[int, int, int]) -> None:
    """Keys of later queries that come first, say: tiles that are not read are the last ones alone."""

    def masked(scores: Node) -> Node:
        return _scored(scores, index(ScalarType.INT64, (1, *scores.sizes[1:]), 0, steps) > 5)

    (launch,) = launches(
        program(convert(attended(*tensors(FLOAT16, (2, 200, 300, 64, 64)), scores=masked), FLOAT16))
    )
    assert (launch.pattern.mode, dict(launch.pattern.constants)["HIDES"]) == (CudaMode.WGMMA_CHAIN, 0)


def launches_of(
    type: ScalarType, *, heads: int = 12, queries: int = 512, size: int = 64, capability: int = 90
) -> list[CudaLaunch]:
    result = convert(attended(*tensors(type, (heads, queries, 512, size, size))), type)
    return launches(program(result), capability=capability)


@pytest.mark.parametrize(
    ("capability", "type", "mode"),
    [
        *((capability, FLOAT32, CudaMode.FMA_CHAIN) for capability in MACHINES),
        *((capability, FLOAT16, CudaMode.MMA_CHAIN) for capability in (80, 100)),
        (90, FLOAT16, CudaMode.WGMMA_CHAIN),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [16, 64, 128])
def test_attention_is_one_kernel_without_temporaries(
    capability: int, type: ScalarType, mode: CudaMode, size: int
) -> None:
    (launch,) = launches_of(type, size=size, capability=capability)
    assert launch.pattern.mode is mode
    assert launch.shared_bytes <= MACHINES[capability].shared_bytes - 1024
    # Tiles that the copy engine loads go to blocks that count them.
    assert (launch.scratch_bytes, launch.counters_bytes) == (0, 4 * (mode is CudaMode.WGMMA_CHAIN))


@pytest.mark.parametrize(
    "changed",
    [{"queries": 15, "size": 264}, {"size": 129, "capability": 80}, {"size": 257}],
    ids=str,
)
def test_wide_heads_are_computed_one_product_after_the_other(changed: dict[str, int]) -> None:
    modes = {launch.pattern.mode for launch in launches_of(FLOAT16, **changed)}
    assert len(modes) > 1
    assert not modes & set(CHAINED)


@pytest.mark.parametrize(("type", "size"), [(FLOAT32, 64), (FLOAT16, 64), (FLOAT16, 128)], ids=str)
def test_keys_at_a_time_depend_on_no_number_of_queries(type: ScalarType, size: int) -> None:
    shapes = [(1, 16), (1, 1000), (96, 4096)]
    found = [launches_of(type, heads=heads, queries=queries, size=size)[0] for heads, queries in shapes]
    assert len({dict(launch.pattern.constants)["KEYS"] for launch in found}) == 1
    assert len({launch.grid for launch in found}) == len(found)


@pytest.mark.parametrize("length", [5, 200])
def test_attention_of_open_sizes_is_one_kernel_whether_few_or_many_queries_came_first(length: int) -> None:
    hints = {"batch": 2, "length": length, "keys": 40}
    traced, trace = traced_program(attention, "FLOAT16", hints)
    x, y = traced.inputs
    _, heads, keys, size = y.sizes
    # Columns of values do not lie side by side, so attention of few rows does not read them.
    columns = replace(y, strides=(2 * heads * keys * size, 2 * keys * size, 2, 2 * keys))
    with trace.within({name: Dimension(hints[name], 2, 1000) for name in trace.dimensions}):
        kernels = fused(replace(traced, inputs=(x, columns), constants=frozenset()), MACHINE).kernels
    assert len(kernels) == 1
