"""The facts that LLVM tells of this computer, kept in the cache so that a process need not load LLVM."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec

from opendml.across_forks import compiling, importing
from opendml.context import while_waiting
from opendml.digests import digest_of
from opendml.late_dataclass import dataclass
from opendml.logs import log
from opendml.targets.cpu import llvm_library, object_code
from opendml.targets.cpu.linker import is_possible
from opendml.targets.object_cache import read_object, write_object

_KIND = "host"
_PROCESSOR = ("vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "flags")
"""The lines of /proc/cpuinfo that determine what LLVM tells. Others change, as the frequency does."""
_LLVM = ("__init__.py", "_version.py", os.path.join("binding", "libllvmlite.so"))
"""The files of llvmlite that change with its version."""
_LONGEST = 20.0
"""Seconds after which a process that tells of this computer is given up. It takes 0.07."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The processor and the system of this computer, as LLVM names them.

    Args:
        name: the name of the processor.
        features: its features, each with "+" or "-" before it, with commas between.
        triple: the target triple of this process.
        versions: those of llvmlite and LLVM.
    """

    name: str
    features: str
    triple: str
    versions: str


@cache
def host_facts() -> HostFacts:
    """Return what LLVM tells of this computer, from the cache if it is there."""
    key = _key()
    found = None if key is None else _read(key)
    if found is None:
        found = _told_by_llvm()
        if key is not None:
            write_object(key, json.dumps(asdict(found)).encode(), _KIND, warns=False)
    return found


def _told_by_llvm() -> HostFacts:
    """Return what LLVM tells, in another process if possible, so that this one does not load LLVM."""
    with compiling:
        found = _told_elsewhere() if is_possible() and llvm_library.can_start_processes() else None
        if found is not None:
            return found
        llvm_library.load()
        return HostFacts(**object_code.host_facts())


def _told_elsewhere() -> HostFacts | None:
    """Return what LLVM tells another process. None: it does not answer, as if its Python is a wrapper."""
    with importing:
        import subprocess
    try:
        command = llvm_library.process_command(object_code.TELL)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                while_waiting.get()()
                told = process.communicate(timeout=_LONGEST)[0]
            finally:
                process.kill()
        return HostFacts(**json.loads(told))
    except (OSError, subprocess.SubprocessError, TypeError, ValueError) as error:
        log.debug("no process tells the facts of the host: %s", error)
        return None


def _read(key: str) -> HostFacts | None:
    content = read_object(key, _KIND)
    try:
        return None if content is None else HostFacts(**json.loads(content))
    except (TypeError, ValueError) as error:
        log.debug("the facts of the host %s cannot be read: %s", key, error)
        return None


def _key() -> str | None:
    """Return the key of the facts: this processor, system and llvmlite. None: the process needs LLVM anyway,
    or the system does not tell."""
    package = find_spec("llvmlite")
    if not is_possible() or package is None or package.origin is None:
        return None
    folder = os.path.dirname(package.origin)
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            first = list(itertools.takewhile(str.strip, file))
        with open("/proc/version", encoding="utf-8") as file:
            system = file.read()
        files = [(status.st_size, status.st_mtime_ns) for status in (os.stat(f"{folder}/{n}") for n in _LLVM)]
    except (OSError, ValueError) as error:
        log.debug("the facts of the host are not kept: %s", error)
        return None
    processor = [line for line in first if line.split(":")[0].strip() in _PROCESSOR]
    text = f"{processor} {system} {folder} {files}"
    return digest_of(text.encode()).hexdigest()
