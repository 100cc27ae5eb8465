"""Kernels of products that are divided: one stores an operand, the other reads it."""

from __future__ import annotations

from collections.abc import Sequence

import opendml as dml
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Access, Kernel, KernelProgram
from opendml.compiler.stored_operands import divided
from opendml.program.functions import maximum
from opendml.program.node import Node, Operation, contraction, ordered, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.program import program_of

FLOAT32 = ScalarType.FLOAT32


def computed_operand(kernel: Kernel) -> Sequence[Node]:
    """Choose an operand of a product that is more than a load."""
    products = [node for node in ordered(kernel.values) if node.operation is Operation.CONTRACTION]
    computed = [
        operand
        for product in products
        for operand in product.operands
        if operand.operation is not Operation.SOURCE
    ]
    return computed[:1]


def product(m: int, n: int, k: int) -> Node:
    """Return relu(x) times the transpose of w."""
    x, w = source(0, FLOAT32, (m, 1, k)), source(1, FLOAT32, (1, n, k))
    return contraction(maximum(x, 0.0), w, (2,))


def fused(m: int, n: int, k: int) -> KernelProgram:
    layouts = (packed(FLOAT32, (m, 1, k)), packed(FLOAT32, (1, n, k)))
    program = Program(layouts, (packed(FLOAT32, (m, n, 1)),), (product(m, n, k),))
    return fuse(program, chooses=computed_operand)


def test_a_chosen_operand_is_stored_before_the_product_reads_it() -> None:
    program = fused(6, 5, 64)
    stores, reads = program.kernels
    assert (stores.domain, stores.axes) == ((6, 64), ())
    assert (stores.stores[0].buffer, stores.stores[0].strides) == (reads.loads[1].buffer, (4 * 64, 4))
    assert reads.loads[1].strides == (4 * 64, 0, 4)
    assert (reads.domain, reads.axes) == ((6, 5, 64), (2,))
    assert program.arena_bytes == 4 * 6 * 64


def test_rows_of_a_stored_operand_begin_at_whole_units() -> None:
    """Padding is left out where it would make rows much longer."""
    assert fused(6, 5, 61).kernels[0].stores[0].strides == (4 * 64, 4)
    assert fused(6, 5, 5).kernels[0].stores[0].strides == (4 * 5, 4)


def test_a_stored_operand_lies_as_the_largest_tensor_that_it_is_made_of() -> None:
    value = product(8, 5, 64)
    columns, w = Access(0, FLOAT32, 0, (4, 0, 4 * 8)), Access(1, FLOAT32, 0, (0, 4 * 64, 4))
    store = Access(2, FLOAT32, 0, (4 * 5, 4, 0))
    part = divided(Kernel((8, 5, 64), (2,), (columns, w), (store,), (value,)), value.operands[:1], [9])
    assert part.stores[0].stores == (Access(9, FLOAT32, 0, (4, 0, 4 * 8)),)
    assert part.bytes == (4 * 8 * 64,)


def test_steps_of_a_recurrence_follow_what_is_stored_before_them() -> None:
    steps, batch, size, hidden = 3, 2, 8, 4
    tensors = {
        "x": (1, steps, batch, size),
        "w": (1, 1, 3 * hidden, size),
        "r": (1, 1, 3 * hidden, hidden),
        "y": (steps, 1, batch, hidden),
    }
    x, w, r, y = (dml.TensorDesc(dml.FLOAT32, sizes) for sizes in tensors.values())
    gru = dml.descs.Gru(
        x,
        w,
        r,
        None,
        None,
        None,
        y,
        None,
        activation_descs=[dml.descs.ActivationSigmoid(), dml.descs.ActivationTanh()],
        direction="FORWARD",
        linear_before_reset=True,
    )
    program = program_of(gru)
    plain = fuse(program)

    def stores_inputs(kernel: Kernel) -> Sequence[Node]:
        """Choose the loaded operand of the products before the steps."""
        products = [node for node in ordered(kernel.values) if node.operation is Operation.CONTRACTION]
        for each in products[0].operands if products else ():
            numbers = [node.attribute for node in ordered([each]) if node.operation is Operation.SOURCE]
            if any(kernel.loads[int(number)].buffer == 0 for number in numbers):  # type: ignore[arg-type]
                return (each,)
        return ()

    stored = fuse(program, chooses=stores_inputs)
    assert len(stored.kernels) == len(plain.kernels) + 1
    assert [each.first for each in stored.repeats] == [each.first + 1 for each in plain.repeats]
    first = stored.repeats[0].first
    assert stored.kernels[first].domain == plain.kernels[first - 1].domain
