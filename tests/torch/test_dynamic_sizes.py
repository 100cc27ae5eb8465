"""Symbolic sizes of PyTorch's graphs: one trace for many sizes, and exact graphs where there can be none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn
F = nn.functional

import opendml as dml  # noqa: E402
from opendml.frontends.torch.report import GraphReport, explained  # noqa: E402
from opendml.frontends.torch.sizes import Sized  # noqa: E402
from opendml.runtime.graphs import compiled_work  # noqa: E402
from opendml.runtime.graphs.initialization import initialize  # noqa: E402
from tests.torch.training import compiled  # noqa: E402

# PyTorch's own compiler uses what it says is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@contextmanager
def graphs_of_changing_sizes() -> Iterator[list[GraphReport]]:
    """Collect the reports of graphs that PyTorch has traced with symbols."""
    found: list[GraphReport] = []
    newly = Sized._known_of

    def noted(self: Any, key: Any, given: Any) -> Any:
        with explained() as explanation:
            known = newly(self, key, given)
        found.extend(explanation.graphs)
        return known

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sized, "_known_of", noted)
        yield found


def require_one_trace(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], dynamic: bool | None = True, most: int = 1
) -> None:
    """Checks that calls give PyTorch's results, and that few traces serve them, with nothing left to PyTorch
    and nothing plain that PyTorch leaves open."""
    run = compiled(function, dynamic=dynamic)
    with graphs_of_changing_sizes() as graphs:
        for given in calls:
            expected, found = function(*given), run(*given)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert 1 <= len(graphs) <= most
    assert not any(graph.left or graph.untraced for graph in graphs)


def positions(x: Any) -> Any:
    """Add a row of a table, a number of the length, and two views of a part to each row."""
    length = x.shape[1]
    table = torch.arange(512 * 6).view(512, 6) / 512
    y = x + table[:length] + torch.arange(length, 2 * length)[:, None]
    return y[:, 1:-1].flip(1) * length, torch.cat([y[:, ::2], y[:, -2:]], 1).mean(1), length * 2


def cached_attention(query: Any, keys: Any, values: Any, new: Any) -> Any:
    """Append rows to keys and values, and attend to them."""
    keys, values = torch.cat([keys, new], 2), torch.cat([values, new * 2], 2)
    return F.scaled_dot_product_attention(query, keys, values), keys, values


def cache_calls() -> list[tuple[Any, ...]]:
    calls = []
    for length in (5, 6, 7, 8, 15, 16, 17, 40, 300):
        past = torch.randn(2, 2, 3, length, 8)
        calls.append((torch.randn(2, 3, 1, 8), past[0], past[1], torch.randn(2, 3, 1, 8)))
    return calls


WIDE = nn.Sequential(nn.Linear(6, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 3)).requires_grad_(False)
PICTURES = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1, stride=2),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 8, 3, padding=1, groups=8),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
).eval()


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (WIDE, [(torch.randn(rows, 6),) for rows in (5, 9, 3, 17, 64, 5, 200)]),
        (
            PICTURES.requires_grad_(False),
            [
                (torch.randn(batch, 3, *extents),)
                for batch, *extents in ((2, 17, 30), (3, 40, 25), (7, 9, 64), (2, 30, 17), (5, 33, 33))
            ],
        ),
        (cached_attention, cache_calls()),
        (positions, [(torch.randn(2, length, 6),) for length in (20, 31, 40, 25, 60, 90)]),
    ],
    ids=["layers", "pictures", "cache", "positions"],
)
def test_one_trace_serves_all_sizes(function: Any, calls: Any, dynamic: bool | None) -> None:
    # Before 2.13, PyTorch guards whether the sizes of pictures that it pools are even.
    most = 3 if function is PICTURES and torch.__version__ < "2.13" else 1
    require_one_trace(function, calls, dynamic, most)


ROWS = (9, 12, 40, 8, 100)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.arange(x.shape[0]) + x.shape[0],
        lambda x: torch.arange(x.shape[0], x.shape[0] + 7) * 2,
        lambda x: x + torch.arange(0, x.shape[0], dtype=torch.float32)[:, None],
        lambda x: x.var(0) / x.shape[0],
        lambda x: (x * 2)[: x.shape[0] // 2].roll(1, 0),
        lambda x: torch.cat(x.split([2, x.shape[0] - 2])[::-1]) * 2,
        lambda x: x + torch.full((6,), x.shape[0]),
        lambda x: F.pad(x, (-1, 2, 128 - x.shape[0], 0)),
        lambda x: (
            (x @ x.T).masked_fill(torch.ones(x.shape[0], x.shape[0]).triu(1) > 0, -torch.inf).softmax(-1)
        ),
        lambda x: (x * 2)[torch.arange(x.shape[0] - 1, -1, -1), torch.zeros(1, dtype=torch.int64)],
        lambda x: (x * 2).slice_scatter(x[:2], 0, -4, -1, 2).select_scatter(x[0], 0, -1),
        lambda x: F.max_pool2d(x.expand(2, -1, 6).reshape(2, -1, 6, 1), (2, 1), return_indices=True),
        lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
        lambda x: (x.T, x.view(-1, 2).T, x.shape[0] * 2, (x + 1)[1:].T, x.shape[0]),
    ],
)
def test_operators_with_sizes_as_arguments_are_traced(function: Any) -> None:
    require_one_trace(function, [(torch.randn(rows, 6),) for rows in ROWS])


def test_numbers_that_a_graph_needs_are_plain_and_others_are_traced() -> None:
    def function(x: Any) -> Any:
        return (x * 2).gather(0, torch.zeros(x.shape[0], 6, dtype=torch.int64))

    run = compiled(function, dynamic=True)
    with graphs_of_changing_sizes() as graphs:
        for rows in ROWS:
            x = torch.randn(rows, 6)
            torch.testing.assert_close(run(x), function(x))
    assert len(graphs) == 1
    assert "is taken to be 6 at " in str(graphs[0])


def test_sizes_without_a_trace_are_compiled_for_themselves_as_bytes_allow() -> None:
    def function(x: Any) -> Any:
        return F.adaptive_avg_pool2d(x * 2, (3, 1))

    sizes = (5, 7, 8, 10, 5, 7, 8, 10, 10)
    for most, count in ((None, 4), (0, 8)):
        torch._dynamo.reset()
        run = compiled(function, dynamic=True, options={"most_kept_bytes": most})
        with graphs_of_changing_sizes() as graphs:
            for height in sizes:
                x = torch.randn(1, 2, height, 4)
                torch.testing.assert_close(run(x), function(x))
        assert len(graphs) == count
        assert all("not for all sizes" in str(graph) for graph in graphs)


def test_sizes_of_0_and_1_have_graphs_of_their_own() -> None:
    def function(x: Any) -> Any:
        return torch.cat([x, x * 2]).sum(1) + x.shape[0]

    for first in (0, 1, 7):
        torch._dynamo.reset()
        run = compiled(function, dynamic=True)
        with graphs_of_changing_sizes() as graphs:
            for rows in (first, 7, 1, 0, 9, 12):
                x = torch.randn(rows, 4)
                torch.testing.assert_close(run(x), function(x))
        assert not any(graph.untraced for graph in graphs)


def test_sizes_that_were_equal_may_differ_later() -> None:
    def function(x: Any, y: Any) -> Any:
        return x[:, None] * y[None] + x.shape[0] - 2 * y.shape[0]

    require_one_trace(
        function,
        [(torch.randn(a), torch.randn(b)) for a, b in ((3, 4), (9, 9), (9, 5), (5, 9), (8, 8), (40, 5))],
        dynamic=None,
        most=2,  # The first one takes sizes to be equal that are so in its first run.
    )
    torch._dynamo.reset()
    run = compiled(function)
    with graphs_of_changing_sizes() as graphs:
        for a, b in ((3, 4), (5, 7), (9, 9), (9, 5), (5, 9)):
            x, y = torch.randn(a), torch.randn(b)
            torch.testing.assert_close(run(x, y), function(x, y))
    assert len(graphs) == 1


def test_threads_run_different_sizes_of_one_trace_at_the_same_time() -> None:
    def function(x: Any) -> Any:
        return (WIDE(x) * x.shape[0]).cumsum(0)

    run = compiled(function, dynamic=True)
    run(torch.randn(3, 6))
    given = [torch.randn(rows, 6) for rows in (*range(4, 20), 3, 64, 65)] * 2
    with graphs_of_changing_sizes() as graphs, ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, given))
    torch.testing.assert_close(found, [function(x) for x in given], rtol=1e-4, atol=1e-4)
    assert not graphs


@pytest.mark.parametrize("dynamic", [True, None])
def test_a_training_step_of_any_batch_is_traced_once(dynamic: bool | None) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 4))
    run = compiled(model, dynamic=dynamic)
    with graphs_of_changing_sizes() as graphs:
        for batch in (3, 5, 9, 6, 40, 5):
            x, labels = torch.randn(batch, 6), torch.randint(0, 4, (batch,))
            found, expected = (
                torch.autograd.grad(F.cross_entropy(each(x), labels), list(model.parameters()))
                for each in (run, model)
            )
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    assert [graph.kind for graph in graphs] == ["forward", "backward"]
    assert not any(graph.untraced or graph.left for graph in graphs)


def test_numbers_among_the_arguments_are_traced() -> None:
    def function(x: Any, count: int) -> Any:
        return (x * 2)[:count] + count, torch.arange(count, 2 * count)

    run = compiled(function, dynamic=True)
    with graphs_of_changing_sizes() as graphs:
        for count in (3, 5, 7, 1, 0, 9, 25, 6, 8):
            x = torch.randn(20, 4)
            torch.testing.assert_close(run(x, count), function(x, count))
    assert 1 <= len(graphs) <= 5


def test_traced_graphs_leave_operators_to_pytorch_and_check_indices() -> None:
    weight = torch.randn(6, 4, requires_grad=True)

    def function(x: Any, indices: Any) -> Any:
        taken = torch.fft.fft(x * 2).real[indices] @ weight
        return taken * x.shape[0], torch.zeros(x.shape[0], 4).index_add(0, indices % x.shape[0], taken)

    run = compiled(function, dynamic=True, options={"check_indices": True})
    with graphs_of_changing_sizes() as graphs:
        for rows in (7, 9, 20, 8):
            x, indices = torch.randn(rows, 6), torch.randint(-rows, rows, (rows + 3,))
            results = [each(x, indices) for each in (run, function)]
            torch.testing.assert_close(*results, rtol=1e-3, atol=1e-3)
            gradients = [torch.autograd.grad(a.sum() + b.square().sum(), weight) for a, b in results]
            torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-2)
        with pytest.raises((dml.InvalidArgument, IndexError)):
            run(torch.randn(10, 6), torch.full((13,), 10))
    assert [graph.kind for graph in graphs] == ["forward", "backward"]
    assert graphs[0].left.keys() >= {"aten._fft_r2c.default", "aten.index_add.default"}


def test_gpt_2_generates_text_with_one_graph_for_all_lengths_of_its_cache() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=32, vocab_size=50, n_positions=80, bos_token_id=1, eos_token_id=2
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.randint(3, 50, (1, 7))

    def text() -> Any:
        with torch.no_grad():
            return model.generate(
                tokens, max_new_tokens=40, min_new_tokens=40, do_sample=False, pad_token_id=0
            )

    expected = text()
    model.forward = compiled(model.forward)
    with graphs_of_changing_sizes() as graphs:
        assert torch.equal(text(), expected)
        assert torch.equal(text(), expected)
    assert [(graph.part_count, graph.left.total(), graph.untraced) for graph in graphs] == [(1, 0, "")]


def test_inputs_are_written_and_views_returned_for_all_sizes() -> None:
    def function(x: Any, y: Any) -> Any:
        x.mul_(2)
        y[1:].add_(x[0])
        z = x + 1
        return x, x.t(), z, z.view(-1), z[1:].t(), y[:, 1]

    run = compiled(function, dynamic=True)
    for rows in (3, 5, 12, 5):
        given = torch.randn(rows, 4), torch.randn(rows + 1, 4)
        expected = [each.clone() for each in given]
        results, wanted = run(*given), function(*expected)
        torch.testing.assert_close([*results, *given], [*wanted, *expected])
        assert [each.stride() for each in results] == [each.stride() for each in wanted]
        assert results[0] is given[0]
        assert results[3].data_ptr() == results[2].data_ptr()


def test_other_strides_of_changing_sizes_give_the_same_values() -> None:
    function = compiled(lambda x: (x * 2).sum(0), dynamic=True)
    for rows in (4, 7, 9):
        x = torch.randn(rows, rows + 1)
        for each in (x, x.t(), x[:, :1].expand(rows, rows + 1), x[:, ::2], x[1:]):
            torch.testing.assert_close(function(each), (each * 2).sum(0), rtol=1e-4, atol=1e-5)


def test_frozen_parameters_are_prepared_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, filled = nn.Linear(64, 512), list[int]()

    def noted(executable: Any, backend: Any, constants: Any, addresses: Any, wanted: Any) -> None:
        filled.extend(place for place in range(len(addresses)) if place in wanted)
        initialize(executable, backend, constants, addresses, wanted)

    monkeypatch.setattr(compiled_work, "initialize", noted)
    run = compiled(lambda x: torch.softmax(layer(x), 0), dynamic=True, options={"freezing": True})
    with torch.no_grad():
        counts = []
        for rows in (20, 21, 23, 30, 20):
            x = torch.randn(rows, 64)
            torch.testing.assert_close(run(x), torch.softmax(layer(x), 0))
            counts.append(len(filled))
        assert counts[0] > 0
        assert set(counts) == {counts[0]}
        layer.weight.mul_(2)
        torch.testing.assert_close(run(x), torch.softmax(layer(x), 0))
        assert len(filled) > counts[0]
