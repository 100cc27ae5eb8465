"""What opendml does, for whoever asks: the logger "opendml" of `logging`, at DEBUG. Without a handler of the
program's it says nothing."""

from __future__ import annotations

import logging

log = logging.getLogger("opendml")
