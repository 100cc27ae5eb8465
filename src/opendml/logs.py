"""The logger "opendml" of `logging`: what opendml does at DEBUG, and what makes it slower than it need be at
WARNING. Without a handler of the program's only warnings are printed."""

from __future__ import annotations

import logging

log = logging.getLogger("opendml")
