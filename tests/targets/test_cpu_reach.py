"""A launch serves other sizes of its kernel only where their own choice adds up the same products in the same
order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.kernel import Kernel, operations_of
from opendml.program.node import Operation
from opendml.targets.cpu.contraction.tiles import TileChoice
from opendml.targets.cpu.contraction.tiling import Storage
from opendml.targets.cpu.machine import CpuMachine, assumed
from opendml.targets.cpu.planning import _fused
from opendml.targets.cpu.schedule import _Decided, _decided, table_of

AVX2 = CpuMachine("znver3", "+avx2,+fma", "x86_64-unknown-linux-gnu", 32, 512 * 1024, 32 * 1024**2, 2)
AVX512 = replace(AVX2, features="+avx512f", vector_bytes=64, l2_bytes=2 * 1024**2)
AMX = replace(AVX512, features="+avx512f,+avx512vnni,+amx-bf16,+amx-int8")
SIZES = (2, 3, 4, 5, 7, 8, 13, 16, 17, 24, 33, 56, 64, 65, 80, 128, 200)

KernelAt = Callable[[tuple[int, int]], Kernel]


def product_kernel(y: dml.GraphTensor, graph: dml.Graph) -> Kernel:
    program = graph.compile({"y": y}, "reference")._program
    (kernel,) = (
        each for each in _fused(program).kernels if Operation.CONTRACTION in operations_of(each.values)
    )
    return kernel


def layer(random: Random) -> tuple[str, KernelAt]:
    """Return a random convolution or product with constant weights, and its kernel at two sizes."""
    channels, filters = random.choice([3, 8, 32, 64, 257, 1024]), random.choice([4, 9, 17, 32, 130, 1024])
    if random.random() < 0.3:
        weights: Any = np.ones((channels, filters), np.float32)

        def of_product(sizes: tuple[int, int]) -> Kernel:
            graph = dml.Graph()
            x = graph.input("x", dml.FLOAT32, [sizes[0] * sizes[1], channels])
            return product_kernel(x @ graph.constant(weights), graph)

        return f"product {channels} {filters}", of_product
    window, stride, dilation = random.choice([1, 3, 5]), random.choice([1, 2]), random.choice([1, 1, 2])
    reach = dilation * (window - 1)
    padding = random.choice([0, reach // 2, reach // 2, reach])
    weights = np.ones((filters, channels, window, window), np.float32)
    given = {"strides": [stride] * 2, "dilations": [dilation] * 2}
    given |= {"start_padding": [padding] * 2, "end_padding": [padding] * 2}

    def of_convolution(sizes: tuple[int, int]) -> Kernel:
        graph = dml.Graph()
        image = [max(1, (each - 1) * stride + 1 + reach - 2 * padding) for each in sizes]
        x = graph.input("x", dml.FLOAT32, [2, channels, *image])
        return product_kernel(dml.convolution(x, graph.constant(weights), **given), graph)

    return f"{channels} {filters} {window} {given}", of_convolution


def order_of_sums(decided: _Decided) -> Any:
    """Return what the order of a choice's sums depends on."""
    tiles = decided.decision.path[0][1]
    if not isinstance(tiles, TileChoice):
        return decided.decision.path
    depth = tiles.b in (Storage.IN_PLACE, Storage.STREAMED) or tiles.instructions
    return tiles.instructions.are_amx, decided.windows, depth


def structure_of(kernel: Kernel) -> Any:
    """Return what traced kernels of all sizes have in common."""
    return len(kernel.domain), [each.fixed for each in kernel.loads]


@pytest.mark.parametrize("machine", [AVX2, AVX512, AMX], ids=["avx2", "avx512", "amx"])
def test_launches_reach_sizes_alone_whose_own_choices_add_in_the_same_order(machine: CpuMachine) -> None:
    reached = 0
    for seed in range(80):
        random = Random(seed)
        name, kernel_at = layer(random)
        usual = kernel_at((11, 6)).domain
        with assumed(machine):
            found = []
            for sizes in [(random.choice(SIZES), random.choice(SIZES)) for _ in range(5)]:
                kernel = kernel_at(sizes)
                pairs = zip(kernel.domain, usual, strict=True)
                varying = tuple([number for number, (size, other) in enumerate(pairs) if size != other])
                table, query = table_of(kernel, varying=varying, still_varying=varying)
                found.append((kernel, _decided(kernel, table, query)))
            for (kernel, decided), (other, own) in permutations(found, 2):
                is_alike = structure_of(kernel) == structure_of(other)
                if is_alike and decided.reach and decided.reach.covers(other, other.domain):
                    reached += 1
                    where = name, kernel.domain, other.domain
                    assert order_of_sums(decided) == order_of_sums(own), where
    assert reached > 100
