"""Linux control groups of this process, which limit its processor time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def group_folders(root: Path, controller: str) -> tuple[list[Path], list[Path]]:
    """Return the folders of this process's groups, of version 2 and of version 1, innermost first.

    Args:
        root: the folder that holds proc and sys.
        controller: the controller of version 1, such as "cpu".
    """
    new: list[Path] = []
    old: list[Path] = []
    groups = root / "sys/fs/cgroup"
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            new += _up(groups, path)
        elif controller in controllers.split(","):
            for mount in (groups / controllers, groups / controller):
                old += _up(mount, path)
    return new, old


def text_of(path: Path) -> str:
    """Return the content of a file without white space around it; "" if it cannot be read."""
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""


def _up(mount: Path, path: str) -> Iterator[Path]:
    """Yield a group's folder and those of its parents.

    The path in a container may be that of the host, so the mount itself is always the last folder.
    """
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for count in range(len(parts), -1, -1):
        yield mount.joinpath(*parts[:count])
