"""`torch.compile` with opendml over tensors of a GPU, on PyTorch's current stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

import opendml as dml  # noqa: E402
from opendml.frontends.torch.report import explained  # noqa: E402
from tests.torch.training import compiled, require_equal_training  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def on_gpu() -> Iterator[None]:
    """New tensors are on the GPU; float32 has all its bits."""
    try:
        dml.Device("cuda")
    except dml.Unsupported as error:
        pytest.skip(str(error))
    if not torch.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    with torch.device("cuda"):
        yield


def network() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3)
    )


def test_a_network_trains_as_in_pytorch() -> None:
    x, labels = torch.randn(6, 1, 8, 8), torch.randint(0, 3, (6,))
    require_equal_training(network(), lambda model: nn.functional.cross_entropy(model(x), labels))


@pytest.mark.parametrize("freezing", [False, True])
def test_work_is_in_the_order_of_the_current_stream(freezing: bool) -> None:
    net = network().eval()
    function = compiled(net, options={"freezing": freezing})
    x = torch.randn(6, 1, 8, 8)
    with torch.no_grad():
        for _ in range(3):
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.cuda._sleep(20_000_000)
                given = x * 2
                net[0].weight.mul_(1.5)
                torch.testing.assert_close(function(given), net(given), rtol=1e-4, atol=1e-4)
            torch.cuda.synchronize()


def test_results_may_be_freed_while_the_gpu_works() -> None:
    function = compiled(lambda x: (x + 1).cumsum(0))
    x = torch.ones(1000, 100)
    for number in range(50):
        x.fill_(number)
        last = function(x)
    assert last[-1, 0].item() == 50 * 1000


def test_numbers_on_the_cpu_stay_beside_tensors_of_the_gpu() -> None:
    scale = torch.tensor(2.0, device="cpu")
    function = compiled(lambda x: (x + 1).relu() * scale)
    with explained():
        assert function(torch.ones(3)).tolist() == [4, 4, 4]


def test_images_with_their_channels_last_keep_them_there() -> None:
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    result = compiled(lambda x: x.relu() + 1)(x)
    assert result.stride() == x.stride()
    torch.testing.assert_close(result, x.relu() + 1)


def test_float16_is_computed_as_in_pytorch() -> None:
    net = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 8))
    x = torch.randn(16, 64)
    with torch.autocast("cuda", torch.float16):
        torch.testing.assert_close(compiled(net)(x), net(x), rtol=1e-2, atol=1e-2)
