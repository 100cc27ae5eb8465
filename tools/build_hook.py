"""The build hook: writes the stubs that belong to wheels, source distributions and editable installs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubHook(BuildHookInterface):  # type: ignore[type-arg]
    """A hook that runs `python -m tools.generate` before a build collects its files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the stubs into the source tree."""
        subprocess.run([sys.executable, "-m", "tools.generate"], cwd=self.root, check=True)
