"""How many threads share a dispatch: what the process is allowed, or OPENDML_THREADS, and what the work is
worth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import opendml as dml
from opendml import Device, InvalidArgument
from opendml.targets.cpu.pool import Pool
from opendml.targets.cpu.threads import available_threads, quota


def groups(root: Path, lines: str, **files: str) -> Path:
    """A system whose process is in these groups; files have "__" for "/"."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(lines)
    for name, text in files.items():
        path = (
            root
            / "sys/fs/cgroup"
            / name.replace("__", "/")
            .replace("cpu_max", "cpu.max")
            .replace("cfs_quota", "cpu.cfs_quota_us")
            .replace("cfs_period", "cpu.cfs_period_us")
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_system_without_groups_has_no_quota(tmp_path: Path) -> None:
    assert quota(tmp_path) is None


def test_the_narrowest_group_around_the_process_counts(tmp_path: Path) -> None:
    root = groups(
        tmp_path,
        "0::/pod/box\n",
        pod__box__cpu_max="max 100000\n",
        pod__cpu_max="250000 100000\n",
        cpu_max="800000 100000\n",
    )
    assert quota(root) == 2.5


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    assert quota(groups(tmp_path, "0::/system/box\n", cpu_max="150000 50000\n")) == 3


def test_groups_of_version_1_count(tmp_path: Path) -> None:
    root = groups(
        tmp_path,
        "4:memory:/box\n3:cpu,cpuacct:/box\n",
        **{"cpu,cpuacct__box__cfs_quota": "400000\n", "cpu,cpuacct__box__cfs_period": "100000\n"},
        **{"cpu,cpuacct__cfs_quota": "-1\n", "cpu,cpuacct__cfs_period": "100000\n"},
    )
    assert quota(root) == 4


def test_no_quota_is_any_number(tmp_path: Path) -> None:
    assert quota(groups(tmp_path, "0::/\n", cpu_max="max 100000\n")) is None


@pytest.mark.parametrize(("share", "threads"), [(0.3, 1), (1.9, 1), (2.0, 2), (100.0, 3), (None, 3)])
def test_a_quota_limits_the_threads(
    share: float | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENDML_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr("opendml.targets.cpu.threads._own_quota", lambda: share)
    assert available_threads() == threads


def test_the_environment_decides_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENDML_THREADS", "7")
    assert available_threads() == 7


@pytest.mark.parametrize("text", ["1025", "1" * 5000, "0", "-1", "two", "1.5", " 2", "²"])
def test_a_bad_number_of_threads_is_an_error_that_says_so(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENDML_THREADS", text)
    with pytest.raises(InvalidArgument, match=r"OPENDML_THREADS: .*; a whole number from 1 to 1024 is"):
        Device("cpu")


def test_work_that_one_thread_takes_at_once_asks_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    start = Pool.start

    def started(pool: Pool, workers: int = 0) -> None:
        asked.append(workers)
        start(pool, workers)

    monkeypatch.setattr(Pool, "start", started)
    device = Device("cpu", threads=2)
    table, rows = np.zeros((1, 1, 1000, 300), np.float32), np.zeros((1, 1, 1, 10), np.uint32)
    dml.gather(table, rows, axis=2, index_dimensions=1, device=device)
    assert set(asked) <= {0}
    dml.activation_relu(table, device=device)
    assert 1 in asked
