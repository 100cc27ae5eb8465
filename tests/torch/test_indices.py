"""Sums at indices, and indices that are out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
aten, functional = torch.ops.aten, torch.nn.functional

import opendml as dml  # noqa: E402
from tests.torch.compared import compiled, require_equal  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::opendml.frontends.torch.report.FallbackWarning"),
]

I = torch.tensor([1, 0, 1, -1])  # noqa: E741
J = torch.tensor([2, 2, 2, -3])

SUMS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "rows": (lambda x, y, i, j: aten.index_put(x, (i,), y, True), (3, 4), (4, 4)),
    "one value": (lambda x, y, i, j: aten.index_put(x, (i,), y, True), (3, 4), ()),
    "the second dimension": (lambda x, y, i, j: aten.index_put(x, (None, i), y, True), (2, 3, 4), (2, 4, 4)),
    "elements": (lambda x, y, i, j: aten.index_put(x, (i, j), y, True), (3, 4), (4,)),
    "a table of elements": (lambda x, y, i, j: aten.index_put(x, (i[:, None], j), y, True), (3, 4), (4, 4)),
    "apart": (lambda x, y, i, j: aten.index_put(x, (i, None, j), y, True), (3, 2, 4), (4, 2)),
    "lines": (lambda x, y, i, j: aten.index_put(x, (None, i, j), y, True), (2, 3, 4), (2, 1)),
    "added": (lambda x, y, i, j: x.index_add(1, i % 3, y, alpha=2), (2, 3), (2, 4)),
    "embedding": (
        lambda x, y, i, j: aten.embedding_dense_backward(y, i % 3, x.shape[0], 0, True),
        (3, 4),
        (4, 4),
    ),
}


@pytest.mark.parametrize(
    ("name", "type"),
    [(each, torch.float32) for each in SUMS] + [(each, torch.int64) for each in SUMS if each != "embedding"],
)
def test_sums_at_indices(name: str, type: Any) -> None:
    function, sizes, updates = SUMS[name]
    x, y = ((torch.randn(each) * 9).to(type) for each in (sizes, updates))
    run, report = compiled(function, x, y, I, J)
    torch.testing.assert_close(run(x, y, I, J), function(x, y, I, J))
    assert "aten.index_put.default" not in report.left, "several times slower on several threads"


def test_sums_where_a_mask_is_true_are_left_to_pytorch() -> None:
    x = torch.randn(3, 4)
    require_equal(lambda x, i: torch.index_put(x, (i[:3] > 0,), x[:2], accumulate=True), x, I, left=1)


READ: dict[str, Callable[[Any, Any], Any]] = {
    "embedding": lambda table, indices: functional.embedding(indices, table),
    "index": lambda table, indices: table[indices],
    "index_select": lambda table, indices: table.index_select(0, indices),
    "two indices": lambda table, indices: table[indices, indices],
}


@pytest.mark.parametrize("name", READ)
def test_the_element_that_is_read_gets_the_gradient(name: str) -> None:
    table = torch.randn(3, 3, requires_grad=True)
    read = READ[name]
    found = torch.compile(read, backend="opendml")(table, torch.tensor([0, 7, -5]))
    wanted = read(table, torch.tensor([0, 2, 0]))
    torch.testing.assert_close(found, wanted)
    weights = torch.randn(wanted.shape)
    gradients = (torch.autograd.grad((each * weights).sum(), table) for each in (found, wanted))
    torch.testing.assert_close(*gradients)


CHECKED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "embedding": (READ["embedding"], r"\[0, 2\]"),
    "index": (READ["index"], r"\[-3, 2\]"),
    "index_select": (READ["index_select"], r"\[0, 2\]"),
    "gather": (lambda table, indices: table.gather(0, indices[:, None]), r"\[0, 2\]"),
    "index (take)": (lambda table, indices: table.reshape(9)[:3].take(indices), r"\[-3, 2\]"),
    "scatter": (lambda table, indices: table.scatter(0, indices[:, None], 1.0), r"\[0, 2\]"),
    "index_put": (lambda table, indices: table.index_put((indices,), table[0]), r"\[-3, 2\]"),
    "index_add": (lambda table, indices: table.index_add(0, indices, table), r"\[0, 2\]"),
}


@pytest.mark.parametrize("name", CHECKED)
def test_indices_out_of_range_are_refused_where_they_are_to_be_checked(name: str) -> None:
    function, allowed = CHECKED[name]
    table = torch.randn(3, 3)
    run = torch.compile(function, backend="opendml", options={"check_indices": True})
    good = torch.tensor([0, 2, 1])
    torch.testing.assert_close(run(table, good), function(table, good))
    for index in (7, -4):
        problem = rf"aten\.{name.split()[0]}: index {index} is out of range; must be within {allowed}"
        with pytest.raises(dml.InvalidArgument, match=problem):
            run(table, torch.tensor([0, index, 1]))


def test_checks_are_no_operators_that_pytorch_runs(recwarn: pytest.WarningsRecorder) -> None:
    run = torch.compile(READ["index"], backend="opendml", options={"check_indices": True})
    run(torch.randn(3, 3), torch.tensor([0, -1]))
    assert not [each for each in recwarn if "PyTorch runs" in str(each.message)]


def test_the_gradient_of_chosen_columns_exists_for_no_rows() -> None:
    compiled = torch.compile(lambda x: x[:, [0, -1]] * 2, backend="opendml", dynamic=True)
    x = torch.zeros(0, 4, requires_grad=True)
    compiled(x).sum().backward()
    assert x.grad is not None
    assert x.grad.shape == x.shape
