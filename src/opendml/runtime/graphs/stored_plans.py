"""Plans of programs with traced sizes in the cache folder, found by digests of the programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from opendml.digests import digest_of
from opendml.json_files.compact import compact_json
from opendml.late_dataclass import dataclass
from opendml.later import finish
from opendml.logs import log
from opendml.program.buckets import Bucket
from opendml.program.digest import program_digest
from opendml.program.program import Program
from opendml.program.sizes import Trace
from opendml.program.stored_sizes import ReadSizes, WrittenSizes
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


@dataclass(frozen=True)
class StoredPlan:
    """A plan that another process has made, with sizes of a trace of this one.

    Args:
        executable: its executable.
        guards: those of the whole way from the graph to its launches.
        hints: the sizes for which its launches were chosen.
        refused: other hints that were tried before, with guards that must all hold for their plans.
    """

    executable: TracedExecutable
    guards: list[Any]
    hints: dict[str, int]
    refused: Sequence[tuple[Mapping[str, int], Sequence[Any]]]


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

    def read(
        self,
        bucket: Bucket,
        is_wanted: Callable[[Mapping[str, int], Sequence[Any]], bool],
        refuse: Callable[[Mapping[str, int], Sequence[Any]], object],
    ) -> Iterator[StoredPlan]:
        """Yield the plans of a bucket whose machine code is in the cache.

        Args:
            bucket: the bucket.
            is_wanted: whether a plan of some hints and guards is wanted.
            refuse: is given hints that were tried without success, with guards that must hold for them.
        """
        for key in numbered_keys(self._key_of(bucket)):
            content = read_object(key, "plan")
            if content is None:
                return
            try:
                data = json.loads(content)
                with self._trace._lock:
                    read = ReadSizes(data["sizes"], self._trace)
                guards, hints = read.guards(data["guards"]), dict(data["hints"])
                refused = [(dict(tried), read.guards(each)) for tried, each in data["refused"]]
                for each in refused:
                    refuse(*each)
                if not is_wanted(hints, guards):
                    continue
                executable = self._backend.from_stored(data["plan"], read)
                if executable is not None:
                    yield StoredPlan(executable, guards, hints, refused)
            except DAMAGED as error:
                log.debug("plan %s cannot be read: %s", key, error)

    def write(self, bucket: Bucket, plan: StoredPlan) -> None:
        """Write a plan of a bucket later. If there are `MOST_PLANS`, it replaces the last one."""
        key, read = self._key_of(bucket), partial(read_object, kind="plan")
        write_later(lambda: self._write(free_key(key, read), plan))

    def record(self, bucket: Bucket, plans: Iterable[StoredPlan]) -> None:
        """Write all plans of a bucket, with their machine code, for the recorder of this context."""
        for key, plan in zip(numbered_keys(self._key_of(bucket)), plans, strict=False):
            self._write(key, plan)

    def _write(self, key: str, plan: StoredPlan) -> None:
        written = WrittenSizes()
        stored = self._backend.stored(plan.executable, written)
        if stored is None:
            return
        data = {
            "plan": stored,
            "guards": written.guards(plan.guards),
            "hints": plan.hints,
            "refused": [[hints, written.guards(guards)] for hints, guards in plan.refused],
        }
        write_object(key, compact_json({**data, "sizes": written.table()}), "plan")

    def _key_of(self, bucket: Bucket) -> str:
        return f"{self._key} {bucket}"
