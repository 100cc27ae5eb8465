"""Cases tried in another process, which may crash or hang."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Any

SECONDS = 120
"""How long a case may take, in seconds of the processor."""
WORDS = 3000
"""How many characters are shown of what a process says that ends."""
PATIENCE = 5
"""How many times as long a case may wait: for a processor that others use, or for nothing."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    Attributes:
        case: the expression that makes it; empty where making it did not end.
        tape: the choices that made it.
        failed: what kind of failure, None for success.
        message: what the failure says.
        seconds: of the processor that the case took.
        bytes: by which the process grew at most while it was tried.
    """

    case: str
    tape: list[int]
    failed: str | None
    message: str = ""
    seconds: float = 0.0
    bytes: int = 0


class _EndedError(Exception):
    """A process that answers no more."""


class Worker:
    """A process that tries cases; a new one after one that ended."""

    def __init__(self, cache: str) -> None:
        self._cache = cache
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""
        self._errors: IO[bytes] | None = None

    def attempt(self, seconds: float = SECONDS, **request: Any) -> Outcome:
        """Tries a case.

        Args:
            seconds: of the processor that it may take.
            request: a `fuzzer` with a `seed` or a `tape`, or a `case`.
        """
        process = self._process or self._start()
        assert self._errors is not None
        assert process.stdin is not None
        self._errors.truncate(0)
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        case, tape = "", request.get("tape", [])
        while True:
            try:
                answer = self._answer(process, seconds)
            except _EndedError as error:
                said = self._last_words(process)
                self.close()
                return Outcome(
                    case,
                    tape,
                    f"{case.partition('(')[0]} {error}",
                    f"{error}; {seconds:g} seconds are allowed\n{said}",
                )
            if "case" in answer:
                case, tape = answer["case"], answer["tape"]
                continue
            return Outcome(case, tape, **answer)

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        """What the process said on its standard error, at last where it stands."""
        if process.poll() is None:
            process.send_signal(signal.SIGABRT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS)
        assert self._errors is not None
        self._errors.seek(0)
        return self._errors.read()[:WORDS].decode(errors="replace").rstrip()

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process, self._received = None, b""
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _start(self) -> subprocess.Popen[bytes]:
        self._errors = TemporaryFile("a+b")  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=os.environ
            | {"OPENDML_CACHE_DIRECTORY": self._cache, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._answer(self._process, SECONDS) == "ready"
        return self._process

    def _answer(self, process: subprocess.Popen[bytes], seconds: float) -> Any:
        """The next line.

        Raises:
            _EndedError: none comes; the message says how the process ended.
        """
        assert process.stdout is not None
        end, ahead = time.monotonic() + PATIENCE * seconds, _processor_seconds(process) + seconds
        while b"\n" not in self._received:
            if not select.select([process.stdout], [], [], min(seconds, 1))[0]:
                if time.monotonic() > end or _processor_seconds(process) > ahead:
                    raise _EndedError("did not end")
                continue
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                code = process.wait()
                raise _EndedError(
                    f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
                )
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)


def _processor_seconds(process: subprocess.Popen[bytes]) -> float:
    """How long a process has computed."""
    return time.clock_gettime((~process.pid << 3) | 2)  # Linux's number of the clock of all its threads
