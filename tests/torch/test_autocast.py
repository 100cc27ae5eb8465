"""`torch.autocast` on the CPU: the types of PyTorch, in inference and in training."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

from opendml.frontends.torch.report import explained  # noqa: E402

# PyTorch's own compiler uses what it says is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
HALF = pytest.mark.parametrize("type", [torch.bfloat16, torch.float16])


def network() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 16),
        nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 5), nn.LogSoftmax(-1),
    )  # fmt: skip


@HALF
def test_inference_has_the_types_and_the_error_of_pytorch(type: Any) -> None:
    net, x = network().eval(), torch.randn(4, 3, 4, 4)
    run = torch.compile(net, backend="opendml")
    with torch.no_grad(), explained() as explanation, torch.autocast("cpu", dtype=type):
        result, expected = run(x), net(x)
        product, wanted = torch.compile(lambda a, b: (a @ b, a + b), backend="opendml"), torch.randn(4, 4)
        found = product(wanted, wanted)
    assert result.dtype is expected.dtype
    assert [each.dtype for each in found] == [type, torch.float32]
    with torch.no_grad():
        exact = net.double()(x.double())
    assert (result - exact).abs().max() <= 2 * (expected - exact).abs().max() + torch.finfo(type).eps
    assert not any(report.left for report in explanation.graphs)


@HALF
def test_training_has_the_types_and_the_error_of_pytorch(type: Any) -> None:
    net, x, labels = network(), torch.randn(4, 3, 4, 4), torch.tensor([0, 1, 2, 3])
    parameters = list(net.parameters())

    def loss(x: Any) -> Any:
        with torch.autocast("cpu", dtype=type):
            return nn.functional.nll_loss(net(x), labels)

    run = torch.compile(loss, backend="opendml")
    with explained() as explanation:
        found = torch.autograd.grad(run(x), parameters)
    expected = torch.autograd.grad(loss(x), parameters)
    exact = torch.autograd.grad(nn.functional.nll_loss(net(x), labels), parameters)
    for a, b, c in zip(found, expected, exact, strict=True):
        assert a.dtype is b.dtype
        assert (a - c).abs().max() <= 2 * (b - c).abs().max() + 4 * torch.finfo(
            type
        ).eps * c.abs().max() + 1e-6
    assert {report.kind for report in explanation.graphs} == {"forward", "backward"}


def test_a_scaler_of_gradients_takes_steps() -> None:
    net, x = nn.Linear(3, 2), torch.randn(4, 3)
    run = torch.compile(net, backend="opendml")
    optimizer, scaler = torch.optim.SGD(net.parameters(), 0.1), torch.amp.GradScaler("cpu")
    before = net.weight.detach().clone()
    with explained(), torch.autocast("cpu", dtype=torch.float16):
        result = run(x).float().square().mean()
    scaler.scale(result).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(net.weight, before)
