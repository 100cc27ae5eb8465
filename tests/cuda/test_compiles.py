"""Kernels of the CUDA target, without a device: those of all cases compile for all generations, and launches
keep within the hardware's limits."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, islice

import numpy as np
import pytest

from opendml.targets.cuda.kernel_source import kernel_source, own_source
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.planned_launch import magic
from opendml.targets.cuda.schedule_chain import CHAIN_TILES
from opendml.targets.cuda.schedule_contraction import TILES
from opendml.targets.cuda.warpgroup_tile import PARTS_TILES, WARPGROUP_TILES
from tests.cuda.compiled import (
    CASES,
    MACHINES,
    OPTIMIZED,
    all_launches,
    compile_all,
    compiled,
    functions,
    kernels,
    kernels_by_source,
    launches,
    together,
    with_new_lines,
)
from tests.targets.test_cpu_recurrences import random_program
from tools.cuda_case import Case

SHARED_BYTES = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}
"""What a block may ask for at most, in dynamic shared memory."""
MOST_PARAMETER_BYTES = 4096
SHARED_STEP = 8
KEPT = ("REGISTER_UNITS", "SHARED_UNITS", "REREADS")
"""The constants that say where a reduction keeps its elements."""


@pytest.mark.parametrize("mode", CudaMode)
@pytest.mark.parametrize("capability", MACHINES)
def test_kernels_of_every_case_compile(capability: int, mode: CudaMode, pytestconfig: pytest.Config) -> None:
    """Sources ask for the generation in one place only. Of those that a generation shares with the optimized
    one, every SHARED_STEP-th is compiled for both. Kernels with no line of their own are compiled with
    `--all-kernels` only."""
    own, shared = dict[str, CudaLaunch](), dict[str, CudaLaunch]()
    for source, launch in kernels_by_source(capability).items():
        if launch.pattern.mode is mode:
            is_shared = capability != OPTIMIZED and source in kernels_by_source(OPTIMIZED)
            (shared if is_shared else own)[source] = launch
    found = own | dict(islice(shared.items(), 0, None, SHARED_STEP))
    if pytestconfig.getoption("all_kernels"):
        compile_all(found.values(), capability)
    else:
        compile_all(with_new_lines(found), capability)


@pytest.mark.parametrize("capability", MACHINES)
def test_programs_over_repeated_values_compile(capability: int) -> None:
    cases = [Case(str(seed), random_program(np.random.default_rng(seed))) for seed in range(12)]
    compile_all([launch for case in cases for launch in launches(case, MACHINES[capability])], capability)


def test_kernels_that_are_compiled_together_have_the_code_that_they_have_alone() -> None:
    modes = (CudaMode.POINTWISE, CudaMode.REDUCE, CudaMode.SCATTER, CudaMode.MMA)
    patterns = [
        min((each.pattern for each in kernels(90)[mode]), key=lambda each: len(own_source(each)))
        for mode in modes
    ]
    found = functions(compiled(together([own_source(each) for each in patterns]), 90))
    for number, pattern in enumerate(patterns):
        assert {"kernel": found[f"kernel{number}"]} == functions(compiled(kernel_source(pattern), 90))


def test_a_kernel_that_does_not_compile_is_named() -> None:
    first, wrong = kernels(90)[CudaMode.POINTWISE][:2]
    wrong = replace(wrong, pattern=replace(wrong.pattern, constants=(*wrong.pattern.constants, ("class", 1))))
    with pytest.raises(AssertionError, match=re.escape(wrong.pattern.text())):
        compile_all([first, wrong], 90)


@pytest.mark.parametrize("capability", MACHINES)
def test_launches_keep_within_limits(capability: int) -> None:
    machine = MACHINES[capability]
    for launch in chain.from_iterable(all_launches(capability).values()):
        constants = dict(launch.pattern.constants)
        assert 32 <= launch.block <= 1024
        # Blocks with whole rows of groups side by side have as many threads as these.
        has_whole_rows = launch.block % constants.get("SPAN", launch.block + 1) == 0
        assert launch.block % 32 == 0 or has_whole_rows
        assert launch.block == constants["THREADS"]
        assert 1 <= launch.grid < 2**31
        assert launch.shared_bytes <= SHARED_BYTES[capability]
        assert constants.get("BLOCKS", 1) * launch.block <= 2048
        if launch.cooperative:
            assert launch.grid <= constants["BLOCKS"] * machine.multiprocessors
            assert launch.grid % launch.values["team"] == 0


def test_every_schedule_is_covered() -> None:
    assert all(kernels(90).values())


@pytest.mark.parametrize("capability", MACHINES)
def test_every_tile_is_covered(capability: int) -> None:
    patterns = [launch.pattern for launch in chain.from_iterable(kernels(capability).values())]
    found = [(pattern.mode, dict(pattern.constants)) for pattern in patterns]

    def having(*names: str) -> set[tuple[object, ...]]:
        return {(mode, *map(constants.get, names)) for mode, constants in found}

    tiles = having("ROWS", "COLUMNS_OF_TILE", "DEPTH", "THREADS")
    assert {(each.mode, each.rows, each.columns, each.depth, each.threads) for each in TILES} <= tiles
    of_warpgroups = having("ROWS", "COLUMNS_OF_TILE", "CONSUMERS", "BLOCKS", "CLUSTER", "TURNS")
    assert capability != 90 or of_warpgroups >= {
        (each.mode, each.rows, each.columns, each.consumers, each.blocks, each.cluster, each.turns)
        for each in (*WARPGROUP_TILES, *PARTS_TILES)
    }
    chained = having("ROWS", "KEYS", "STAGES", "THREADS")
    assert {(each.mode, each.rows, each.keys, each.stages, each.threads) for each in CHAIN_TILES} <= chained


def test_every_way_to_reduce_is_covered() -> None:
    launches = chain.from_iterable(all_launches(90).values())
    reductions = [each.pattern for each in launches if each.pattern.mode is CudaMode.REDUCE]
    assert {pattern.columns for pattern in reductions if dict(pattern.constants)["TEAM"]} == {False, True}
    assert any(pattern.flat and not pattern.columns for pattern in reductions)
    kept = {tuple(bool(dict(each.constants)[name]) for name in KEPT) for each in reductions}
    assert kept >= {(True, False, False), (False, True, False), (False, False, True)}


def test_parameters_fit_a_launch() -> None:
    from opendml.targets.cuda.parameters import ParameterStruct

    for launch in chain.from_iterable(all_launches(90).values()):
        assert len(ParameterStruct(launch.pattern).pack(launch.values)) <= MOST_PARAMETER_BYTES


def test_magic_divides_all_indices() -> None:
    for count in (1, 2, 3, 7, 49, 56, 64, 1000, 12345, 2**20 + 1, 2**30, 2**31 - 1):
        word = magic(count)
        multiplier, shift = word & 0xFFFFFFFF, word >> 32
        for index in (0, 1, count - 1, count, count + 1, 7 * count - 1, 2**31 - 1):
            if index < 2**31:
                assert index * multiplier >> shift == index // count


def test_what_guards_several_loads_is_computed_once() -> None:
    case = next(case for case in CASES if case.name == "ROI_ALIGN MAX [2, 3] 2")
    source = max((kernel_source(launch.pattern) for launch in launches(case, MACHINES[90])), key=len)
    loading = source[source.index("void load_result_inputs(") : source.index("void store_outputs(")]
    computed = re.findall(r"const [\w ]+ (v\d+) = ", loading)
    assert len(computed) == len(set(computed)) > 100
