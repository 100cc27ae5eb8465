"""Trainings with opendml and without it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

import opendml as dml
from opendml.frontends.torch.report import explained


def compiled(function: Any, **options: Any) -> Any:
    """What `torch.compile` makes of a function or a module."""
    return torch.compile(function, backend=dml.torch.backend, **options)


def losses(model: Any, loss_of: Callable[[Any], Any], steps: int = 10) -> list[float]:
    """The loss of each step of a training."""
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    found = []
    for _ in range(steps):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def require_equal_training(model: Any, loss_of: Callable[[Any], Any]) -> None:
    """Checks that ten steps have the losses that they have in PyTorch."""
    other = copy.deepcopy(model)
    with explained():
        found = losses(compiled(model), loss_of)
    expected = losses(other, loss_of)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert found[-1] < found[0]
    for name, tensor in other.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], tensor, rtol=1e-3, atol=1e-4)
