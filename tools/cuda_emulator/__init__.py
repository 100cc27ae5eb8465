"""Runs kernels of the CUDA target on the processor, thread by thread, where no GPU is: their results are
those of a GPU but for the last bits of approximations. A C++ compiler builds them, with `device.h` for what
CUDA knows and `instructions.h` for `kernels/instructions.cuh`.

What it does not show: speed, and what depends on the order in which a GPU's memory shows writes to other
threads.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import math
import re
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from opendml.targets.cuda import driver, encoded_maps, executable, job, planning, stored_plan
from opendml.targets.cuda.attention_source import products_of_attention
from opendml.targets.cuda.cubins import Cubin
from opendml.targets.cuda.expression import TYPES
from opendml.targets.cuda.kernel_source import file_text, kernel_source
from opendml.targets.cuda.launcher import LaunchConfig, LaunchSize
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import PARTS_MODES, WARPGROUP_MODES, CudaMode, CudaPattern
from opendml.targets.cuda.planned_launch import PlannedLaunch
from opendml.targets.cuda.tensor_map import MAP_BYTES, TensorMap, WindowMap
from opendml.targets.cuda.warpgroup_source import BytesPrinter, PartsPrinter, WarpgroupPrinter
from opendml.targets.memory import HostMemory

MACHINE = CudaMachine(90, 8, 228 * 1024)
"""The emulated device. It has few multiprocessors, since all blocks of a cooperative launch run at once."""
COMPILER = shutil.which("g++") or shutil.which("clang++")
_FLAGS = (
    "-std=c++17",
    "-O1",
    # Fortified jumps refuse to go to another stack.
    "-U_FORTIFY_SOURCE",
    "-w",
    "-Wno-psabi",
    "-fpermissive",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-shared",
    "-fPIC",
)
_HERE = Path(__file__).parent


@contextmanager
def emulated() -> Iterator[None]:
    """Within it programs for `cuda` run on the processor."""
    device = _Device()
    with (
        mock.patch.object(driver, "device", device.device),
        mock.patch.object(executable, "device", device.device),
        mock.patch.object(planning, "device", device.device),
        mock.patch.object(stored_plan, "device", device.device),
        mock.patch.object(planning, "cubins_of", device.libraries_of),
        mock.patch.object(stored_plan, "cubins_of_keys", device.libraries_of_keys),
        mock.patch.object(job, "launcher", _launcher),
        mock.patch.object(encoded_maps, "encoded", _encoded),
        mock.patch.object(executable, "scratch", _scratch),
    ):
        yield


@cache
def _libraries() -> Path:
    """Return a folder for the libraries of this process, with `device.h`.

    g++ reads it precompiled: a kernel takes 0.4 to 0.8 s instead of 0.8 to 1.3. Others read its text.
    """
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    header = Path(folder.name) / "device.h"
    shutil.copyfile(_HERE / header.name, header)
    _compile(header, header.with_suffix(".h.gch"), "-x", "c++-header")
    return header.parent


def _compile(source: Path, result: Path, *flags: str) -> None:
    assert COMPILER is not None, "there is no C++ compiler"
    subprocess.run([COMPILER, *_FLAGS, *flags, "-o", str(result), str(source)], check=True)


class _Device:
    """A device as executables see it. Its code is the path of a library."""

    machine, stream, index, is_current = MACHINE, 0, 0, True
    name, driver_version = "emulated", 0

    def device(self, index: int = 0) -> _Device:
        """This one, which is all."""
        return self

    def libraries_of(self, patterns: Sequence[CudaPattern], architecture: str) -> list[Cubin]:
        """The names and the paths of the compiled kernels, with the blocks of a cluster."""
        return list(map(self._library_of, patterns))

    def libraries_of_keys(self, keys: Sequence[str]) -> list[Cubin] | None:
        """The kernels of names. None: some are not compiled."""
        found = [Cubin(key, str(_libraries() / f"{key}.so").encode()) for key in keys]
        return found if all(Path(each.code.decode()).exists() for each in found) else None

    def _library_of(self, pattern: CudaPattern) -> Cubin:
        source, constants = _source(pattern), dict(pattern.constants)
        cluster = math.prod(constants.get(name, 1) for name in ("CLUSTER", "CLUSTER_ACROSS", "SLICES"))
        key = f"{hashlib.sha256(source.encode()).hexdigest()}-{cluster}"
        library = _libraries() / f"{key}.so"
        if not library.exists():
            written = library.with_suffix(".cpp")
            written.write_text(source, "utf-8")
            _compile(written, library)
        return Cubin(key, str(library).encode())

    def function(self, code: bytes, shared_bytes: int) -> _Function:
        """The kernel of a library."""
        return _Function(Path(code.decode()))

    @contextmanager
    def current(self) -> Iterator[None]:
        """All of it is."""
        yield

    def allocate(self, size: int, *, cleared: bool = True) -> _Memory:
        """Bytes, which are zero or nothing useful."""
        return _Memory(size, cleared)

    def free_retired(self, stream: int) -> None:
        """Free nothing, since all memory lives as long as its owner."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copies bytes."""
        ctypes.memmove(target, source, size)

    def copy_in_order(self, target: int, source: int, size: int, stream: int) -> None:
        """Copies bytes."""
        ctypes.memmove(target, source, size)

    def synchronize(self, stream: int) -> None:
        """Everything is done."""

    def synchronize_all(self) -> None:
        """Everything is done."""


@contextmanager
def _scratch(owner: _Device, size: int, stream: int) -> Iterator[int]:
    """The address of memory for a dispatch, which has ended when it is given back."""
    memory = owner.allocate(size, cleared=False)
    yield memory.address
    del memory


def _encoded(map: TensorMap, address: int) -> bytes:
    """Return a tensor map as `sm90.h` reads it."""
    strides, sizes, box = (
        [*each, *(0 for _ in range(count - len(each)))]
        for each, count in ((map.strides, 4), (map.sizes, 5), (map.box, 5))
    )
    content = struct.pack("<5Q12I", address, *strides, *sizes, *box, len(map.sizes), map.type.bytes)
    if isinstance(map, WindowMap):
        begin = map.lower
        end = [upper + size - 1 for upper, size in zip(map.upper, map.sizes[1:3], strict=True)]
        content += struct.pack("<6i", *begin, *end, *map.steps)
    return content.ljust(MAP_BYTES, b"\0")


class _Memory(HostMemory):
    """Memory of the device."""

    def __init__(self, size: int, cleared: bool) -> None:
        super().__init__(size)
        self.size = size
        self.bytes.fill(0 if cleared else 0xAB)


class _Function:
    """A kernel, in as many copies of its library as blocks run at once: what their threads share lies in its
    variables."""

    def __init__(self, library: Path) -> None:
        self._library, self._copies = library, list[Any]()

    def copies(self, count: int) -> list[Any]:
        """Return copies of the library, as many as are asked for."""
        while len(self._copies) < count:
            with tempfile.NamedTemporaryFile(dir=self._library.parent, suffix=".so") as copy:
                shutil.copyfile(self._library, copy.name)
                self._copies.append(ctypes.CDLL(copy.name).launch)
        return self._copies[:count]


def _launcher(
    function: _Function,
    launch: PlannedLaunch,
    size: LaunchSize,
    address: int,
    stream: int,
    early: bool,
    described: LaunchConfig,
) -> Callable[[], None]:
    parameters, (_, kernels, block, shared_bytes) = ctypes.c_void_p(address), size
    described._config = SimpleNamespace(gridDimX=size[0])
    cluster = int(launch.cubin.key.rpartition("-")[2])

    def blocks(run: Any, begin: int, end: int) -> threading.Thread:
        arguments = (
            parameters,
            described._config.gridDimX,
            kernels,
            begin,
            end,
            block,
            shared_bytes,
            cluster,
        )
        return threading.Thread(target=run, args=arguments)

    def run() -> None:
        grid = described._config.gridDimX
        if launch.cooperative:
            copies = enumerate(function.copies(grid))
            threads = [blocks(copy, number, number + 1) for number, copy in copies]
        else:
            threads = [blocks(function.copies(1)[0], 0, grid)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    described.served, described.made = (shared_bytes, stream), (function, None, address, run)
    return run


def _source(pattern: CudaPattern) -> str:
    """Return the C++ of a kernel for the processor."""
    instructions, text = file_text("instructions"), kernel_source(pattern)
    assert text.startswith(instructions)
    text = text.removeprefix(instructions).replace('extern "C" __global__', "__global__")
    memory = r"uint4* const \1 = (uint4*)emulator::shared_memory;"
    text = re.sub(r"extern __shared__ uint4 (\w+)\[\];", memory, text)
    if pattern.mode in (*WARPGROUP_MODES, CudaMode.WGMMA_CHAIN):
        text = _with_products(pattern, text)
    return "\n".join(['#include "device.h"', _text("instructions.h"), text, _text("launch.h")])


def _with_products(pattern: CudaPattern, text: str) -> str:
    """Return the text with the functions of `sm90.h` in place of warpgroups' instructions."""
    constants = dict(pattern.constants)
    if pattern.mode in PARTS_MODES:
        instructions = {PartsPrinter(pattern).products(): "_of_tf32"}
    elif pattern.mode in (CudaMode.WGMMA_BYTES, CudaMode.WGMMA_BYTE_WINDOWS):
        types = ", ".join(TYPES[pattern.loads[constants[f"{name}_LOAD"]].type] for name in "AB")
        instructions = {BytesPrinter(pattern).products(): f"_of_bytes<{types}>"}
    elif pattern.mode in WARPGROUP_MODES:
        turned = [not constants[f"{name}_ALONG_K"] for name in "AB"]
        type = TYPES[pattern.loads[constants["A_LOAD"]].type]
        instructions = {WarpgroupPrinter(pattern).products(): _kinds(turned, type)}
    else:
        is_bfloat16 = bool(constants["BFLOAT16"])
        type = "unsigned short" if is_bfloat16 else "half"
        scores, results = products_of_attention(constants["KEYS"], constants["WIDTH"], is_bfloat16)
        instructions = {scores: _kinds([False, False], type), results: _kinds([True], type)}
    replaced = [(file_text("sm90/instructions"), _text("sm90.h"))]
    for instruction, kinds in instructions.items():
        signature = instruction.partition("{")[0]
        product = f"{signature} {{ emulator::multiply_warpgroup{kinds}(sums, a, b, adds); }}"
        replaced.append((instruction, product))
    for before, after in replaced:
        assert before in text
        text = text.replace(before, after)
    return text


def _kinds(turned: Sequence[bool], type: str) -> str:
    return f"<{', '.join([type, *(str(each).lower() for each in turned)])}>"


def _text(name: str) -> str:
    return (_HERE / name).read_text("utf-8")
