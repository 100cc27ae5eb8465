"""The process in which the tests of a file try cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz.attempts import Worker


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """One for all of them: it takes as long to start as many cases."""
    worker = Worker(str(tmp_path_factory.mktemp("cache")))
    yield worker
    worker.close()
