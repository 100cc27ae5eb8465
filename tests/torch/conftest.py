"""Each test compiles anew, and meets the same random numbers."""

from __future__ import annotations

import warnings

import pytest


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing that is compiled stays."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    with warnings.catch_warnings():
        # PyTorch 2.11 imports its compiler here, which calls functions that it deprecates itself.
        warnings.simplefilter("ignore")
        torch._dynamo.reset()
    torch.manual_seed(0)
