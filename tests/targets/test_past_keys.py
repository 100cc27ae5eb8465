"""Attention to keys and values of the past: they are joined with new ones once, in their own type, and read
there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from opendml.compiler.kernel import KernelProgram, operations_of
from opendml.program.node import Operation
from opendml.program.program import Program
from opendml.spec.enums import MultiheadAttentionMaskType as MaskType
from tools.machines import DEVICES, PROCESSORS, planned
from tools.operator_case import Form

TARGETS = (*DEVICES, *PROCESSORS)
PRESENTS = ("output_present_key_tensor", "output_present_value_tensor")
BATCH, HEADS, PAST, SIZE = 2, 12, 512, 64


def attention(queries: int, *, presents: bool = True, lengths: bool = False) -> Program:
    """Return attention of new queries to keys of the past and as many new ones. `presents`: those are
    outputs, too; `lengths`: each batch says how many past keys it has."""
    new, past = (BATCH, queries, HEADS * SIZE), (BATCH, HEADS, PAST, SIZE)
    tensors: dict[str, tuple[int, ...]] = dict.fromkeys(("query", "key", "value"), new)
    tensors |= dict.fromkeys(("past_key", "past_value"), past)
    if lengths:
        tensors["past_sequence_lengths"] = (BATCH,)
    counts = {"query_head_count": HEADS, "key_value_head_count": HEADS}
    attributes: Mapping[str, object] = {"scale": SIZE**-0.5, "mask_type": MaskType.NONE, **counts}
    wanted = frozenset(PRESENTS if presents else ())
    return Form("MULTIHEAD_ATTENTION1", "", tensors, attributes, wanted=wanted).case("FLOAT16").program


def kernels(program: Program, target: str) -> KernelProgram:
    return planned(program, target).kernels


@pytest.mark.parametrize("lengths", [False, True], ids=["all", "lengths"])
@pytest.mark.parametrize("queries", [1, 64])
@pytest.mark.parametrize("target", TARGETS)
def test_attention_reads_the_present_that_the_caller_gets(target: str, queries: int, lengths: bool) -> None:
    program = attention(queries, lengths=lengths)
    found = kernels(program, target)
    presents = {len(program.inputs) + 1, len(program.inputs) + 2}
    products = [each for each in found.kernels if Operation.CONTRACTION in operations_of(each.values)]
    read = {load.buffer for kernel in products for load in kernel.loads}
    assert presents <= read
    keys = PAST if lengths else PAST + queries
    assert found.arena_bytes <= 2 * 4 * BATCH * HEADS * queries * keys + 4096


@pytest.mark.parametrize("target", TARGETS)
def test_what_no_caller_gets_is_joined_in_the_type_of_the_past(target: str) -> None:
    found = kernels(attention(64, presents=False), target)
    copies = [each for each in found.kernels if Operation.CONTRACTION not in operations_of(each.values)]
    assert {store.type.name for kernel in copies for store in kernel.stores} == {"FLOAT16"}
    assert found.arena_bytes == 2 * 2 * BATCH * HEADS * (PAST + 64) * SIZE


@pytest.mark.parametrize(
    ("target", "mode"),
    [
        ("sm_80", "mma_chain"),
        ("sm_90", "wgmma_chain"),
        ("avx512", "contraction_chain"),
        ("amx", "contraction_chain_matrices"),
        ("avx2", "contraction_chain"),
    ],
)
def test_queries_that_share_a_past_are_one_kernel(target: str, mode: str) -> None:
    modes = [mode for kernel in planned(attention(64), target).launches for mode in kernel]
    assert modes == ["pointwise"] * 4 + [mode]
