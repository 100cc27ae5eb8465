"""The logger "opendml": compilations and the like at DEBUG, and avoidable slowness at WARNING."""

from __future__ import annotations

import logging

log = logging.getLogger("opendml")
