"""Schedules of a softmax between products on the CUDA target, for typical shapes."""

from __future__ import annotations

import pytest

from opendml.program.node import convert
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.pattern import Mode
from tests.cuda.compiled import CHAINED, MACHINES, launches
from tests.nodes import attended, program, tensors
from tools.cuda_case import Case

FLOAT32, FLOAT16 = ScalarType.FLOAT32, ScalarType.FLOAT16


def launches_of(
    type: ScalarType, *, heads: int = 12, queries: int = 512, size: int = 64, capability: int = 90
) -> list[Launch]:
    result = convert(attended(*tensors(type, (heads, queries, 512, size, size))), type)
    return list(launches(Case("", program(result)), MACHINES[capability]))


@pytest.mark.parametrize(
    ("capability", "type", "mode"),
    [
        *((capability, FLOAT32, Mode.FMA_CHAIN) for capability in MACHINES),
        *((capability, FLOAT16, Mode.MMA_CHAIN) for capability in (80, 100)),
        (90, FLOAT16, Mode.WGMMA_CHAIN),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [16, 64, 128])
def test_attention_is_one_kernel_without_temporaries(
    capability: int, type: ScalarType, mode: Mode, size: int
) -> None:
    (launch,) = launches_of(type, size=size, capability=capability)
    assert launch.pattern.mode is mode
    assert launch.shared_bytes <= MACHINES[capability].shared_bytes - 1024
    # Tiles that the copy engine loads go to blocks that count them.
    assert (launch.scratch_bytes, launch.counters_bytes) == (0, 4 * (mode is Mode.WGMMA_CHAIN))


@pytest.mark.parametrize(
    "changed", [{"queries": 15}, {"size": 129, "capability": 80}, {"size": 257}], ids=str
)
def test_few_queries_and_wide_heads_are_computed_one_product_after_the_other(changed: dict[str, int]) -> None:
    modes = {launch.pattern.mode for launch in launches_of(FLOAT16, **changed)}
    assert len(modes) > 1
    assert not modes & set(CHAINED)


@pytest.mark.parametrize("type", [FLOAT32, FLOAT16], ids=str)
def test_how_many_keys_are_taken_in_at_a_time_depends_on_no_number_of_queries(type: ScalarType) -> None:
    shapes = [(1, 16), (1, 1000), (96, 4096)]
    found = [launches_of(type, heads=heads, queries=queries)[0] for heads, queries in shapes]
    assert len({dict(launch.pattern.constants)["KEYS"] for launch in found}) == 1
    assert len({launch.grid for launch in found}) == len(found)
