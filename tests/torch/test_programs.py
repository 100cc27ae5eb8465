"""What programs do around `torch.compile`: autocast, memory formats, exported programs, breaks, processes."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

from opendml.frontends.torch.report import explained  # noqa: E402
from tests.torch.training import compiled  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::opendml.frontends.torch.report.FallbackWarning"),
]


def products() -> Any:
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))


def require_equal_gradients(net: Any, function: Any, x: Any, **bounds: float) -> None:
    """Checks that a compiled module has the module's results, in their types and strides, and gradients."""
    found, expected = function(x), net(x)
    assert found.stride() == expected.stride()
    torch.testing.assert_close(found, expected, **bounds)
    parameters = list(net.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(found.float().square().sum(), parameters),
        torch.autograd.grad(expected.float().square().sum(), parameters),
        **bounds,
    )


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_autocast_has_its_types(name: str) -> None:
    net, x = products(), torch.randn(4, 6)
    with torch.autocast("cpu", getattr(torch, name)):
        require_equal_gradients(net, compiled(net), x, rtol=0.02, atol=0.02)


def test_autocast_within_a_function_has_its_types() -> None:
    net, x = products(), torch.randn(4, 6)

    def function(x: Any) -> Any:
        with torch.autocast("cpu", torch.float16):
            y = net(x)
        return y.float() + x.sum()

    torch.testing.assert_close(compiled(function, fullgraph=True)(x), function(x), rtol=0.01, atol=0.01)


def test_images_with_their_channels_last_keep_them_there() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    require_equal_gradients(net, compiled(net), x, rtol=1e-4, atol=1e-4)


def test_exported_programs_are_compiled() -> None:
    net, x = products(), torch.randn(4, 6)
    program = torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    function = compiled(program.module(), fullgraph=True)
    for rows in (4, 2):
        torch.testing.assert_close(function(x[:rows]), net(x[:rows]))


def test_a_module_may_become_several_graphs() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        torch._dynamo.graph_break()
        return y.relu() if y.sum() > 0 else y.exp()

    run = compiled(function)
    with explained() as explanation:
        for x in (torch.ones(3), -torch.ones(3)):
            torch.testing.assert_close(run(x), function(x))
    assert len(explanation.graphs) >= 3


def test_functions_that_are_compiled_too_often_run_in_pytorch() -> None:
    run = compiled(lambda x, text: x * len(text) + 1)
    with torch._dynamo.config.patch(recompile_limit=2), explained() as explanation:
        for count in range(5):
            assert run(torch.ones(1), "a" * count).item() == count + 1
    assert len(explanation.graphs) == 2


def test_graphs_with_sizes_that_depend_on_values_are_left_to_pytorch() -> None:
    def function(x: Any) -> Any:
        return x[x > 0].exp().sum() * x.abs().max().int().item()

    x = torch.tensor([1.0, -2.0, 3.0])
    captured = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    with torch._dynamo.config.patch(captured), explained() as explanation:
        torch.testing.assert_close(compiled(function, fullgraph=True)(x), function(x))
    (graph,) = explanation.graphs
    assert graph.part_count == 0
    assert set(graph.reasons.values()) == {"its graph has sizes that depend on values"}


def test_dropout_draws_what_pytorch_draws() -> None:
    net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3), nn.Dropout(0.1))
    function, x = compiled(net), torch.randn(4, 6)
    with explained() as explanation:
        torch.manual_seed(1)
        found = [function(x) for _ in range(2)]
    torch.manual_seed(1)
    torch.testing.assert_close(found, [net(x) for _ in range(2)])
    (graph,) = explanation.graphs
    assert graph.part_count == 1
    assert graph.left.keys() <= {"aten.empty.memory_format", "aten.bernoulli.p"}
    net.eval()
    torch.testing.assert_close(function(x), net(x))


LYING: dict[str, Any] = {
    "transposed": lambda x: x.t(),
    "computed from what is transposed": lambda x: x.t() + 1,
    "every other column": lambda x: x.t()[:, ::2],
    "repeated": lambda x: x[:1].expand(4, 6),
    "channels last": lambda x: x.reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("case", LYING)
def test_dropout_draws_in_the_order_in_which_elements_lie(case: str, share: float) -> None:
    def function(x: Any) -> Any:
        return nn.functional.dropout(LYING[case](x), share)

    x, results = torch.randn(4, 6), []
    for each in (compiled(function), function):
        torch.manual_seed(1)
        results.append((each(x), torch.rand(1)))
    torch.testing.assert_close(*results)


def call_in_child(x: Any) -> Any:
    return _known(x)


_known: Any = None


def test_the_child_of_a_fork_runs_what_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system has no fork")
    function = compiled(lambda x: (x * 2).cumsum(0), dynamic=True)
    monkeypatch.setitem(globals(), "_known", function)
    function(torch.ones(2, 4))
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        found = [pool.submit(call_in_child, torch.ones(rows, 4)).result(60) for rows in (2, 3)]
    assert [each[:, 0].tolist() for each in found] == [[2, 4], [2, 4, 6]]
