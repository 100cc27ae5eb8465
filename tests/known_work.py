"""Count what a process does for models that another one has run, and make a graph with recurrences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.frontends.onnx import model_file
from opendml.later import finish
from opendml.targets import object_cache
from opendml.targets.cpu import machine_code

NOTHING = {"parsed": 0, "fused": 0, "scheduled": 0}


class Work:
    """A cache of its own, and counts of what a process does beside running machine code.

    Args:
        folder: the cache lies in it.
        monkeypatch: sets the cache, and the functions that are counted.
        planning: the module of a target that fuses and schedules.
        schedules: the name of its function that schedules.
    """

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, planning: ModuleType, schedules: str
    ) -> None:
        self.folder, self.counts, self._patch = folder / "cache", dict(NOTHING), monkeypatch
        monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(self.folder))
        monkeypatch.setenv(object_cache.PLANS_VARIABLE, "1")
        for module, function, name in (
            (model_file, "_parsed", "parsed"),
            (planning, "fuse", "fused"),
            (planning, schedules, "scheduled"),
        ):
            monkeypatch.setattr(module, function, self._counted(getattr(module, function), name))

    def _counted(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.counts[name] += 1
            return function(*arguments, **named)

        return counted

    def of(self, run: Callable[[], Any]) -> tuple[Any, dict[str, int]]:
        """Return the result of `run` as if in a new process, and what it took, once all plans are written."""
        self._patch.setattr(machine_code, "_codes", {})
        self.counts |= NOTHING
        found = run()
        finish()
        return found, dict(self.counts)

    @property
    def plans(self) -> list[Path]:
        """The files of plans."""
        finish()
        return sorted(self.folder.glob("*.plan"))


def recurrent(device: str | None = None) -> bytes:
    """Return the states of a recurrence of several steps on a device."""
    random = np.random.default_rng(28)
    x = random.standard_normal((1, 5, 2, 8), np.float32)
    w, r = (random.standard_normal((1, 1, 16, 8), np.float32) for _ in range(2))
    graph = dml.Graph()
    states = dml.gru(
        graph.input("x", dml.FLOAT32, x.shape),
        *(graph.constant(np.concatenate([each, each[:, :, :8]], 2)) for each in (w, r)),
        activation_descs=[dml.descs.ActivationSigmoid(), dml.descs.ActivationTanh()],
        direction="FORWARD",
        linear_before_reset=False,
        output_sequence=True,
    )
    assert states.output_sequence is not None
    return bytes(graph.compile({"y": states.output_sequence}, device)(x)["y"].tobytes())
