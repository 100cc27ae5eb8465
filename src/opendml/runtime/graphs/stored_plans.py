"""Plans of programs with traced sizes in the cache folder, found by digests of the programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from opendml.digests import digest_of
from opendml.json_files.compact import compact_json
from opendml.later import finish
from opendml.logs import log
from opendml.program.buckets import Bucket
from opendml.program.digest import program_digest
from opendml.program.program import Program
from opendml.program.size_values import Guard
from opendml.program.stored_sizes import ReadSizes, guards_from_json
from opendml.program.trace import Trace
from opendml.runtime.graphs.plan_maker import StoredPlan
from opendml.runtime.graphs.refusals import Hints, Refusals, Refused, keep_refusal, refusals_key
from opendml.targets.backend import DeviceBackend
from opendml.targets.executable import TracedExecutable
from opendml.targets.object_cache import (
    free_key,
    numbered_keys,
    plans_are_kept,
    read_object,
    write_later,
    write_object,
)
from opendml.targets.plan_files import DAMAGED


class FoundPlan(NamedTuple):
    """A plan that another process has made, with sizes of a trace of this one.

    Attributes:
        hints, guards, refused: those of the plan.
        executable: its executable as JSON.
        read: makes sizes of the JSON.
    """

    hints: dict[str, int]
    guards: Sequence[Guard]
    refused: Refused
    executable: dict[str, Any]
    read: ReadSizes


class StoredPlans:
    """The plans of a program in the cache folder.

    Args:
        backend: the device.
        threads: threads that share a dispatch, at most.
        program: the program.
        trace: the trace of its sizes.
    """

    def __init__(self, backend: DeviceBackend, threads: int | None, program: Program, trace: Trace) -> None:
        finish()
        self._backend, self._trace = backend, trace
        ranges = [(name, each.least, each.greatest) for name, each in trace.dimensions.items()]
        text = f"{backend.circumstances()} {threads}\n{ranges}\n{program_digest(program)}"
        self._key = digest_of(text.encode()).hexdigest()

    @classmethod
    def of(
        cls, backend: DeviceBackend, threads: int | None, program: Program, trace: Trace
    ) -> StoredPlans | None:
        """Return the plans of a program. None: the device or the settings keep none."""
        return cls(backend, threads, program, trace) if backend.keeps_plans and plans_are_kept() else None

    def read(self, bucket: Bucket) -> Iterator[FoundPlan]:
        """Yield the plans of a bucket, some of whose machine code may not be in the cache."""
        for key in numbered_keys(self._key_of(bucket)):
            content = read_object(key, "plan")
            if content is None:
                return
            try:
                data = json.loads(content)
                with self._trace._lock:
                    read = ReadSizes(data["sizes"], self._trace)
                guards, refused = read.guards(data["guards"]), guards_from_json(data["refused"])
                yield FoundPlan(dict(data["hints"]), guards, refused, data["plan"], read)
            except DAMAGED as error:
                log.debug("plan %s cannot be read: %s", key, error)

    def executable(self, found: FoundPlan) -> TracedExecutable | None:
        """Return the executable of a plan. None: it is damaged, or some of its machine code is not cached."""
        try:
            return self._backend.from_stored(found.executable, found.read)
        except DAMAGED as error:
            log.debug("a plan for %s cannot be read: %s", found.hints, error)
            return None

    def read_refusals(self, bucket: Bucket, refusals: Refusals) -> None:
        """Add the refused hints of a bucket that are in the cache."""
        refusals.read(refusals_key(self._key_of(bucket)))

    def keep_refusal(self, bucket: Bucket, hints: Hints, guards: Sequence[Guard]) -> None:
        """Add refused hints of a bucket to the cache, later."""
        keep_refusal(refusals_key(self._key_of(bucket)), hints, guards)

    def write(self, bucket: Bucket, plan: StoredPlan) -> None:
        """Write a plan of a bucket later. If there are `MOST_PLANS`, it replaces the last one."""
        key = self._key_of(bucket)
        write_later(lambda: self._write(free_key(key), plan))

    def record(self, bucket: Bucket, plans: Iterable[StoredPlan]) -> None:
        """Write all plans of a bucket, with their machine code, for the recorder of this context."""
        for key, plan in zip(numbered_keys(self._key_of(bucket)), plans, strict=False):
            self._write(key, plan)

    def _write(self, key: str, plan: StoredPlan) -> None:
        data = plan.to_json(self._backend)
        if data is not None:
            write_object(key, compact_json(data), "plan")

    def _key_of(self, bucket: Bucket) -> str:
        return f"{self._key} {bucket}"
