"""LSTM and GRU in `torch.compile`: whole networks without gradients; those that train are PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

from opendml.frontends.torch.report import explained  # noqa: E402

# PyTorch's own compiler uses what it says is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (nn.LSTM, {}),
        (nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True, "dropout": 0.5}),
        (nn.GRU, {"bidirectional": True}),
        (nn.GRU, {"num_layers": 2, "batch_first": True, "bias": False}),
    ],
)
def test_networks_are_compiled_as_a_whole(kind: Any, options: dict[str, Any]) -> None:
    net = kind(5, 7, **options).eval()
    run = torch.compile(net, backend="opendml", fullgraph=True)
    count = 2 if options.get("bidirectional") else 1
    states = [torch.randn(count * options.get("num_layers", 1), 3, 7) for _ in range(2)]
    given: Any = tuple(states) if kind is nn.LSTM else states[0]
    x = torch.randn(3, 4, 5) if options.get("batch_first") else torch.randn(4, 3, 5)
    with torch.no_grad(), explained() as explanation:
        for arguments in ((x,), (x, given), (x[0],)):
            expected, result = net(*arguments), run(*arguments)
            torch.testing.assert_close(result, expected)
            assert result[0].stride() == expected[0].stride()
    assert not any(report.left for report in explanation.graphs)
    assert all(report.operator_count < 30 for report in explanation.graphs)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_networks_serve_sizes_that_change(kind: Any) -> None:
    net = kind(5, 7, batch_first=True)
    run = torch.compile(net, backend="opendml", dynamic=True)
    with torch.no_grad(), explained() as explanation:
        for batch, steps in ((2, 3), (4, 3), (4, 6), (7, 6)):
            x = torch.randn(batch, steps, 5)
            torch.testing.assert_close(run(x), net(x))
    assert len(explanation.graphs) <= 3


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_networks_that_train_run_in_pytorch(kind: Any) -> None:
    class Tagger(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.net, self.head = kind(5, 7), nn.Linear(7, 2)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.head(self.net(x * 2)[0]))

    tagger, x = Tagger(), torch.randn(4, 3, 5)
    run = torch.compile(tagger, backend="opendml")
    parameters = list(tagger.parameters())
    expected = torch.autograd.grad(tagger(x).sum(), parameters)
    with torch.no_grad(), explained() as explanation:
        torch.testing.assert_close(run(x), tagger(x))
    assert [report.kind for report in explanation.graphs] == ["inference"]
    torch.testing.assert_close(torch.autograd.grad(run(x).sum(), parameters), expected)


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")  # of PyTorch, with oneDNN
def test_projections_and_other_backends_are_as_before() -> None:
    net, x = nn.LSTM(5, 7, proj_size=3), torch.randn(4, 3, 5)
    with torch.no_grad(), explained():
        torch.testing.assert_close(torch.compile(net, backend="opendml")(x), net(x))
        torch._dynamo.reset()
        with pytest.raises(torch._dynamo.exc.Unsupported, match="LSTM"):
            torch.compile(net, backend="eager", fullgraph=True)(x)
