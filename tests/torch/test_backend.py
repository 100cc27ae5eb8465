"""`torch.compile` with opendml: sizes that change, mutation and aliases, training, and what is reported."""

from __future__ import annotations

import logging
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

import opendml as dml  # noqa: E402
from opendml.frontends.torch.report import report  # noqa: E402
from opendml.runtime.graphs.model_cache import ModelCache  # noqa: E402
from tests.torch.training import compiled, require_equal_training  # noqa: E402

# PyTorch's own compiler uses what it says is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def test_the_backend_is_found_by_its_name() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    module, _, name = project["project"]["entry-points"]["torch_dynamo_backends"]["opendml"].partition(":")
    assert getattr(import_module(module), name) is dml.torch.backend


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_every_mode_of_pytorch_compiles(mode: str) -> None:
    function = compiled(lambda x: x * 2, mode=mode, fullgraph=True)
    assert function(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"mode": "fast"}, "mode='fast'; known are default, reduce-overhead"),
        (
            {"options": {"frozen": True}},
            "option 'frozen' is unknown; known are freezing, check_indices, most_kept_bytes",
        ),
        ({"options": {"freezing": 1}}, "option 'freezing' is 1; needs True or False"),
        ({"options": {"most_kept_bytes": -1}}, "option 'most_kept_bytes': -1; a number of bytes"),
    ],
)
def test_unknown_modes_and_options_are_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=problem):
        dml.torch.backend(torch.fx.symbolic_trace(lambda x: x), [torch.ones(1)], **given)


def test_sizes_share_parameters_that_are_read_ahead_and_arenas(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, made = nn.Linear(64, 512), list[ModelCache]()
    init = ModelCache.__init__

    def noted(self: ModelCache, *arguments: Any) -> None:
        init(self, *arguments)
        made.append(self)

    monkeypatch.setattr(ModelCache, "__init__", noted)
    function = compiled(
        lambda x: torch.softmax(layer(x).cumsum(0), 0), dynamic=True, options={"freezing": True}
    )
    with torch.no_grad():
        for rows in (20, 30, 40, 50):
            x = torch.randn(rows, 64)
            expected = torch.softmax(layer(x).cumsum(0), 0)
            torch.testing.assert_close(function(x), expected)
        shared = made[-1].shared
        assert shared.constants.bytes < 3 * layer.weight.nbytes
        assert shared.arenas.free_bytes == shared.arenas.most > 0
        layer.weight.mul_(2)
        torch.testing.assert_close(function(x), torch.softmax(layer(x).cumsum(0), 0))


def test_threads_share_what_is_compiled_for_their_sizes() -> None:
    function = compiled(lambda x: (x * 2).cumsum(0), dynamic=True)
    function(torch.ones(2, 4))
    given = [torch.randn(rows, 4) for rows in (2, 3, 4, 5) * 8]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(function, given))
    torch.testing.assert_close(found, [(x * 2).cumsum(0) for x in given])


def test_symbolic_sizes_train() -> None:
    layer = nn.Linear(4, 3)
    function = compiled(layer, dynamic=True)
    for rows in (2, 5):
        x = torch.randn(rows, 4)
        expected = torch.autograd.grad(layer(x).square().sum(), layer.weight)
        found = torch.autograd.grad(function(x).square().sum(), layer.weight)
        torch.testing.assert_close(found, expected)


def test_inputs_that_are_written_have_the_new_values() -> None:
    def function(x: Any, y: Any) -> Any:
        x.mul_(2)
        y[0].add_(x)
        return x + 1

    given, expected = ([torch.randn(3), torch.randn(2, 3)] for _ in range(2))
    expected = [each.clone() for each in given]
    result, wanted = compiled(function)(*given), function(*expected)
    torch.testing.assert_close([result, *given], [wanted, *expected])


def test_results_that_are_inputs_or_share_memory_are_so_as_in_pytorch() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        return x, x.t(), y, y.view(-1), y.t()

    x = torch.randn(2, 3)
    same, seen, y, flat, transposed = compiled(function)(x)
    assert same is x
    assert seen.data_ptr() == x.data_ptr()
    assert flat.data_ptr() == y.data_ptr() == transposed.data_ptr()
    torch.testing.assert_close([seen, flat, transposed], [x.t(), (x + 1).view(-1), (x + 1).t()])


def test_other_strides_than_before_give_the_same_values() -> None:
    function = compiled(lambda x: (x * 2).sum(0))
    x = torch.randn(4, 4)
    torch.testing.assert_close(function(x), (x * 2).sum(0))
    torch.testing.assert_close(function(x.t()), (x.t() * 2).sum(0))
    torch.testing.assert_close(function(x[:, :1].expand(4, 4)), (x[:, :1].expand(4, 4) * 2).sum(0))


def test_a_warning_names_the_line_the_reason_and_the_cost(caplog: pytest.LogCaptureFixture) -> None:
    def function(x: Any) -> Any:
        first = torch.fft.fft(x + 1).real
        return first + torch.fft.fft(x).real

    with caplog.at_level(logging.INFO, "opendml.torch"), pytest.warns(dml.torch.FallbackWarning) as told:
        compiled(function)(torch.randn(3))
    (warning,) = [each for each in told if each.category is dml.torch.FallbackWarning]
    line = function.__code__.co_firstlineno + 1
    assert (warning.filename, warning.lineno) == (__file__, line)
    first, *others = str(warning.message).splitlines()
    assert first.startswith(
        "PyTorch runs 4 of 8 operators (50%) of the inference graph; the others are 2 models"
    )
    places = f"test_backend.py:{line}, test_backend.py:{line + 1}"
    reason = "opendml has no mapping to DirectML's operators"
    assert f"  aten._fft_r2c.default (2 times) at {places}: {reason}" in others
    assert f"aten._fft_r2c.default (2 times) at {places}: {reason}" in caplog.text


def test_warnings_of_backward_graphs_name_the_line_of_the_forward_graph() -> None:
    def function(x: Any) -> Any:
        return (x * 2).renorm(2, 0, 1.0).logcumsumexp(0)

    x = torch.rand(3, 4, requires_grad=True)
    with pytest.warns(dml.torch.FallbackWarning) as told:
        compiled(function)(x).sum().backward()
    found = [each for each in told if each.category is dml.torch.FallbackWarning]
    line = function.__code__.co_firstlineno + 1
    assert {(each.filename, each.lineno) for each in found} == {(__file__, line)}
    assert "of the backward graph" in str(found[-1].message)


def test_an_operator_that_is_refused_once_has_that_reason(recwarn: pytest.WarningsRecorder) -> None:
    module = torch.fx.symbolic_trace(lambda x: torch.relu(torch.relu(x)))
    first, last = [node for node in module.graph.nodes if node.op == "call_function"]
    report("inference", module, [], {first: "a tensor is of type complex64"})()
    (warning,) = recwarn
    assert str(warning.message).endswith("(2 times): a tensor is of type complex64")
    report("inference", module, [], {last: "a tensor is of type complex64"})()
    assert str(recwarn[-1].message) == str(warning.message)
    count = len(recwarn)
    report("inference", module, [], {})()
    assert len(recwarn) == count


def test_ordinary_training_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    table, layer = nn.Embedding(9, 8), nn.Linear(8, 4)

    def function(tokens: Any) -> Any:
        x = nn.functional.dropout(layer(table(tokens)), 0.3)
        noise = torch.empty(5, 4).bernoulli_(0.5) + torch.rand(5, 4) + torch.randn_like(x[0])
        rows = torch.tensor([1, 1, 0])
        y = x.clone()
        y[rows] = 2.0
        y[:, rows] += noise[rows]
        y.index_put_((rows,), noise, accumulate=True)
        return y[rows] * noise

    tokens = torch.randint(0, 9, (3, 5))
    with torch.random.fork_rng():
        expected = function(tokens)
        wanted = torch.autograd.grad(expected.sum(), [table.weight, layer.weight])
    result = compiled(function)(tokens)
    torch.testing.assert_close(torch.autograd.grad(result.sum(), [table.weight, layer.weight]), wanted)
    torch.testing.assert_close(result, expected)
    assert not [each for each in recwarn if each.category is dml.torch.FallbackWarning]
    text = str(dml.torch.explain(function, tokens))
    assert "PyTorch owns the state of random numbers" in text
    assert "PyTorch has the faster kernel" in text


def test_explain_tells_of_both_directions() -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    text = str(dml.torch.explain(net, torch.randn(2, 4)))
    assert text.splitlines()[0].startswith("forward: ")
    assert "backward: " in text
    assert "left" not in text
    assert net[0].weight.grad is None


class Network(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """Convolutions, both normalizations of batches, pooling, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 3),
        )

    def forward(self, x: Any) -> Any:
        return self.body(x)


def test_a_network_of_convolutions_trains_as_in_pytorch() -> None:
    x, labels = torch.randn(6, 1, 8, 8), torch.randint(0, 3, (6,))
    require_equal_training(Network(), lambda model: nn.functional.cross_entropy(model(x), labels))
