"""Each test compiles anew, and meets the same random numbers."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing that is compiled stays."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torch._dynamo.reset()
    torch.manual_seed(0)
