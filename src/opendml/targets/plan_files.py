"""Plans of programs in the cache folder, as JSON. What cannot be read is made anew."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar

from opendml.across_forks import importing
from opendml.json_files.compact import compact_json
from opendml.later import finish
from opendml.logs import log
from opendml.targets.executable import TracedProgram
from opendml.targets.object_cache import plans_are_kept, read_object, write_later, write_object

T = TypeVar("T")
_KIND = "plan"
DAMAGED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Raised by JSON that is not as this version writes it."""


def known_plan(
    key_of: Callable[[], str],
    from_json: Callable[[dict[str, Any]], T | None],
    to_json: Callable[[T], dict[str, Any] | None],
    make: Callable[[], T],
) -> T:
    """Return the plan of a program: from the cache, or made now and written there.

    Args:
        key_of: returns the key of the plan, which stands for all that it depends on.
        from_json: makes a plan of JSON; None: some of its machine code is not in the cache.
        to_json: makes JSON of a plan; None: it has no form in JSON.
        make: makes the plan anew.
    """
    if not plans_are_kept():
        return make()
    finish()
    key = key_of()
    plan = _read_plan(key, from_json)
    if plan is not None:
        return plan
    made = make()

    def write() -> None:
        data = to_json(made)
        if data is not None:
            write_object(key, compact_json(data), _KIND)

    write_later(write)
    return made


def _read_plan(key: str, from_json: Callable[[dict[str, Any]], T | None]) -> T | None:
    """Return the plan of a key; None: it, or some of its machine code, is not in the cache or is damaged."""
    began = time.perf_counter()
    content = read_object(key, _KIND)
    if content is None:
        return None
    try:
        plan = from_json(json.loads(content))
    except DAMAGED as error:
        log.debug("plan %s cannot be read, and is made anew: %s", key, error)
        return None
    if plan is None:
        log.debug("plan %s: some of its machine code is gone; it is made anew", key)
    else:
        log.debug("plan %s: from the cache in %.1f ms", key, (time.perf_counter() - began) * 1e3)
    return plan


def traced_to_json(program: TracedProgram, written: Callable[[Any], Any]) -> dict[str, Any] | None:
    """Return the kernels of a traced program as JSON. None: plans are not kept, or a node has no form in
    JSON."""
    if not plans_are_kept():
        return None
    with importing:  # A process that finds its plans needs no compiler.
        from opendml.compiler.stored_kernels import program_to_json
    try:
        return program_to_json(program.program, program.kernels, written)
    except TypeError as error:
        log.debug("the kernels of a graph are not kept: %s", error)
        return None
