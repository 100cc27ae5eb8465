"""The memory that the control groups of a process allow it."""

from __future__ import annotations

from pathlib import Path

import pytest

from opendml.targets.control_groups import allowed_memory
from opendml.targets.memory import physical_memory


def system(root: Path, lines: str, **limits: str) -> Path:
    """A system whose process is in these groups; names have "__" for "/"."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(lines)
    for name, limit in limits.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/").replace("_max", ".max")
        path = path.with_name(path.name.replace("limit", "memory.limit_in_bytes"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(limit)
    return root


def test_without_groups_all_memory_is_allowed(tmp_path: Path) -> None:
    assert allowed_memory(tmp_path) == physical_memory()


def test_the_narrowest_group_counts(tmp_path: Path) -> None:
    limits = {"pod__box__memory_max": "max\n", "pod__memory_max": "70000\n", "memory_max": "90000\n"}
    assert allowed_memory(system(tmp_path, "0::/pod/box\n", **limits)) == 70000


def test_groups_of_version_1_count(tmp_path: Path) -> None:
    limits = {"memory__box__limit": "60000\n", "memory__limit": f"{2**63 - 4096}\n"}
    root = system(tmp_path, "4:memory:/box\n3:cpu,cpuacct:/box\n", **limits)
    assert allowed_memory(root) == 60000


@pytest.mark.parametrize("limit", ["max\n", "", f"{2**62}\n"])
def test_limits_beyond_the_machine_are_none(limit: str, tmp_path: Path) -> None:
    assert allowed_memory(system(tmp_path, "0::/\n", memory_max=limit)) == physical_memory()
