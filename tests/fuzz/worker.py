"""A process that tries cases one after the other, as a line each asks for: `python -m tests.fuzz.worker`.

It says what it is about to try before it tries it, so that who waits for the result knows what ended it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from tests.fuzz.choices import Choices
from tests.fuzz.fuzzers import evaluated, made


def main() -> None:
    """Answers until the input ends; what others print goes to the standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        for answer in _answers(json.loads(line)):
            print(json.dumps(answer), file=answers, flush=True)


def _answers(request: dict[str, Any]) -> Any:
    choices = Choices(request.get("seed", 0), request.get("tape"))
    case, start, size = None, time.process_time(), _memory_reset()
    try:
        case = evaluated(request["case"]) if "case" in request else made(request["fuzzer"], choices)
        yield {"case": repr(case), "tape": choices.tape}
        case.check()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # pytest's own failures are no Exceptions
        yield {
            "failed": _kind(error, case.subject if case else "making"),
            "message": f"{type(error).__name__}: {error}"[:2000],
        }
    else:
        yield {"failed": None, "seconds": time.process_time() - start, "bytes": _most_memory() - size}


def _memory_reset() -> int:
    """The memory of this process in bytes, which from now on is the most that it ever had."""
    Path("/proc/self/clear_refs").write_text("5")
    return _most_memory()


def _most_memory() -> int:
    """The most memory that this process had since then, in bytes."""
    (size,) = re.findall(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(size) * 1024


def _kind(error: BaseException, subject: str) -> str:
    """What failures of one cause mostly have in common: the subject, the error and where it came up."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    message = re.sub(r"[\W\d]+.*", "", str(error).partition(": ")[2])
    return f"{subject} {type(error).__name__} in {Path(frame.filename).name}:{frame.name} {message}".strip()


if __name__ == "__main__":
    main()
