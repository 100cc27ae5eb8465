"""`options={"freezing": True}`: parameters are read ahead, and again after they changed."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

from opendml.runtime.graphs.model import Model  # noqa: E402
from tests.torch.training import compiled  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

FREEZING = {"freezing": True}


class Prepared:
    """How often models read their parameters."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        prepare = Model._prepare

        def counted(model: Model, held: Any = (), identities: Any = None) -> Any:
            self.count += bool(held)
            return prepare(model, held, identities)

        monkeypatch.setattr(Model, "_prepare", counted)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Prepared:
    """Counts from now on."""
    return Prepared(monkeypatch)


def network() -> Any:
    """Two products with a normalization between them, as for inference."""
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)).eval()


def test_parameters_are_read_once_as_long_as_nothing_writes_them(prepared: Prepared) -> None:
    net, x = network(), torch.randn(4, 6)
    function = compiled(net, options=FREEZING)
    with torch.no_grad():
        for rows in (x, x * 2, x + 1):
            torch.testing.assert_close(function(rows), net(rows))
    assert prepared.count == 1


def add(net: Any) -> None:
    net[0].weight.add_(1)


def load(net: Any) -> None:
    net.load_state_dict(network().state_dict())


def take_other_memory(net: Any) -> None:
    net[3].weight.data = torch.randn(3, 8)


def replace(net: Any) -> None:
    net[3].weight = nn.Parameter(torch.randn(3, 8))


def write_a_buffer(net: Any) -> None:
    net[1].running_mean.fill_(2)


def take_other_strides(net: Any) -> None:
    net[0].weight.data = torch.randn(6, 8).mT


@pytest.mark.parametrize(
    "change", [add, load, take_other_memory, take_other_strides, replace, write_a_buffer]
)
def test_parameters_that_changed_are_read_again(change: Any, prepared: Prepared) -> None:
    net, x = network(), torch.randn(4, 6)
    function = compiled(net, options=FREEZING)
    with torch.no_grad():
        function(x)
        change(net)
        torch.testing.assert_close(function(x), net(x))
        function(x)
    assert prepared.count == 2


def test_steps_of_an_optimizer_between_runs_are_seen() -> None:
    net, x = network(), torch.randn(4, 6)
    function = compiled(net, options=FREEZING)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(2):
        with torch.no_grad():
            torch.testing.assert_close(function(x), net(x))
        net(x).square().sum().backward()
        optimizer.step()
    with torch.no_grad():
        torch.testing.assert_close(function(x), net(x))


def test_writes_that_pytorch_does_not_count_can_be_stated() -> None:
    net, x = network(), torch.randn(4, 6)
    function = compiled(net, options=FREEZING)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, fused=True)
    with torch.no_grad():
        function(x)
    net(x).square().sum().backward()
    optimizer.step()
    torch.autograd.graph.increment_version(list(net.parameters()))
    with torch.no_grad():
        torch.testing.assert_close(function(x), net(x))


def test_modules_that_share_code_keep_their_own_parameters(prepared: Prepared) -> None:
    nets, x = [network(), network()], torch.randn(4, 6)
    function = compiled(lambda net, x: net(x), options=FREEZING)
    with torch.no_grad():
        for net in (*nets, *nets):
            torch.testing.assert_close(function(net, x), net(x))
    assert prepared.count == 2


def test_graphs_with_gradients_read_parameters_at_every_run(prepared: Prepared) -> None:
    net, x = network(), torch.randn(4, 6)
    torch.testing.assert_close(compiled(net, options=FREEZING)(x), net(x))
    assert prepared.count == 0


def test_parameters_without_counted_writes_are_read_at_every_run(prepared: Prepared) -> None:
    with torch.inference_mode():
        net, x = network(), torch.randn(4, 6)
        function = compiled(net, options=FREEZING)
        for _ in range(2):
            torch.testing.assert_close(function(x), net(x))
            net[0].weight.add_(1)
    assert prepared.count in (0, 2)


def test_buffers_that_the_graph_writes_stay_inputs(prepared: Prepared) -> None:
    net, other = network().train(), network().train()
    other.load_state_dict(net.state_dict())
    function = compiled(net, options=FREEZING)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(4, 6)
            torch.testing.assert_close(function(x), other(x))
    torch.testing.assert_close(net.state_dict(), other.state_dict())
    assert prepared.count == 1


def test_symbolic_sizes_hold_the_parameters_too(prepared: Prepared) -> None:
    net = network()
    function = compiled(net, options=FREEZING, dynamic=True)
    with torch.no_grad():
        for rows in (2, 5, 2):
            x = torch.randn(rows, 6)
            torch.testing.assert_close(function(x), net(x))
    assert prepared.count == 2
