"""Work that is done later: in order, before the process ends, and never twice."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from opendml import later as module
from opendml.later import finish, later
from opendml.targets.compiled_files import recorded
from opendml.targets.object_cache import cache_directory, read_object, write_later, write_object
from tests.processes import has_fork, succeeds_in_child

KEY = "0" * 64


def test_jobs_are_done_in_order_by_another_thread() -> None:
    done, has_run = list[int](), threading.Event()
    threads = list[threading.Thread]()
    later(lambda: threads.append(threading.current_thread()))
    later(has_run.set)
    assert has_run.wait(60)
    assert threads != [threading.current_thread()]
    for number in range(50):
        later(partial(done.append, number))
    finish()
    assert done == list(range(50))


def test_a_job_that_fails_is_logged_and_the_next_is_done(caplog: pytest.LogCaptureFixture) -> None:
    done = list[int]()
    later(lambda: done.append(1 // 0))
    later(lambda: done.append(2))
    finish()
    assert done == [2]
    assert "ZeroDivisionError" in caplog.text


def test_without_a_thread_jobs_are_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    finish()
    if (writer := module._thread) is not None:  # It would still take a job.
        writer.join(60)

    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    done = list[int]()
    later(lambda: done.append(1))
    assert done == [1]


def test_a_process_ends_after_its_jobs(tmp_path: Path) -> None:
    path = tmp_path / "done"
    text = (
        "import pathlib, time; from opendml.later import later\n"
        "for each in 'ab':\n"
        f"  later(lambda path={str(path)!r} + each: time.sleep(0.1) or pathlib.Path(path).touch())"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["donea", "doneb"]


@has_fork
def test_the_child_of_a_fork_leaves_jobs_to_its_parent() -> None:
    begun, goes_on, done = threading.Event(), threading.Event(), list[int]()
    later(begun.set)
    later(lambda: goes_on.wait(60))
    later(lambda: done.append(1))
    assert begun.wait(60)

    def child() -> bool:
        later(lambda: done.append(2))
        finish()
        return done == [2]

    assert succeeds_in_child(child)
    goes_on.set()
    finish()
    assert done == [1]


def test_a_job_writes_to_the_folder_that_was_set_when_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    with monkeypatch.context() as block:
        block.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path / "one"))
        later(lambda: goes_on.wait(60))
        write_later(lambda: write_object(KEY, str(cache_directory()).encode()))
        block.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path / "two"))
        goes_on.set()
        finish()
        assert read_object(KEY) is None
        block.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path / "one"))
        assert read_object(KEY) == str(tmp_path / "one").encode()


def test_a_recorder_has_what_a_job_writes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path))
    with recorded() as found:
        write_later(lambda: write_object(KEY, b"code"))
        assert found.objects == {f"{KEY}.o": b"code"}
    assert not module._jobs
