"""Children of forks in tests."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable

import pytest

has_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def succeeds_in_child(work: Callable[[], object], seconds: int = 60) -> bool:
    """Return whether a function returns something true in the child of a fork.

    The child ends in any case: after an error, and after some seconds. Both show where it was.
    """
    with warnings.catch_warnings():
        # Python warns of forks in processes with several threads, which these tests are about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            faulthandler.register(signal.SIGALRM, file=sys.__stderr__, chain=True)
            signal.alarm(seconds)
            status = 0 if work() else 1
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0
