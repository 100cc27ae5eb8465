"""From LLVM assembly to object files and linked code, in this process or as the program of a worker process.

llvmlite lets one thread of a process call LLVM at a time. So other cores are used by processes
(`compile_workers`), which run this file. It imports nothing else of the package. Functions import llvmlite,
because `llvm_library` decides whether this process loads it.
"""

from __future__ import annotations

import itertools
import json
import signal
import struct
import sys
from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import llvmlite.binding as llvm

COMPILE, TELL = "compile", "tell"
"""The tasks of the program: compile jobs, and tell what LLVM knows of this computer."""
JOB = struct.Struct("<qq")
"""The head of a job: the number of its effort, and the bytes of assembly that follow."""
ANSWER = struct.Struct("<qq")
"""The head of an answer: 0 for an object, 1 for a message, and the bytes that follow."""


class Effort(Enum):
    """The optimizations that LLVM runs before it emits machine code. Kernels are vectorized before."""

    CLEAN = "clean"
    """Promote memory to registers, and simplify: enough for single loops."""
    HOIST = "hoist"
    """CLEAN, and hoist loop invariants."""
    ALL = "all"
    """All optimizations for code of several functions, without vectorization."""


EFFORTS = tuple(Effort)


@cache
def target_machine(triple: str, name: str, features: str) -> llvm.TargetMachine:
    """Return LLVM's description of a processor of this computer's architecture."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=name, features=features, opt=3, reloc="pic", codemodel="default")


def compiled_object(assembly: str, effort: Effort, target: llvm.TargetMachine) -> bytes:
    """Return optimized machine code as an object file."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(assembly)
    module.verify()
    builder = llvm.create_pass_builder(target, _options(2 if effort is Effort.ALL else 1))
    if effort is Effort.ALL:
        builder.getModulePassManager().run(module, builder)
    elif effort is Effort.HOIST:
        passes = builder.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
    else:
        cleaning = llvm.create_new_module_pass_manager()
        cleaning.add_sroa_pass()
        cleaning.add_simplify_cfg_pass()
        cleaning.add_instruction_combine_pass()
        cleaning.run(module, builder)
    return bytes(target.emit_object(module))


@cache
def _options(level: int) -> llvm.PipelineTuningOptions:
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = (
        options.loop_interleaving
    ) = False
    return options


_libraries: list[llvm.ResourceTracker] = []
_numbers = itertools.count()


def linked_by_llvm(
    objects: Sequence[bytes], symbols: Sequence[str], target: llvm.TargetMachine
) -> dict[str, int]:
    """Link object files into this process, for its life, and return the addresses of their symbols.

    Raises:
        RuntimeError: they cannot be linked. Nothing is left of them.
    """
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder()
    for each in objects:
        builder.add_object_img(each)
    builder.add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    library = builder.link(_jit(target), f"opendml{next(_numbers)}")
    _libraries.append(library)
    return {symbol: int(library[symbol]) for symbol in symbols}


@cache
def _jit(target: llvm.TargetMachine) -> llvm.LLJIT:
    import llvmlite.binding as llvm

    # It gives an object one piece of memory. RuntimeDyld, LLVM's default, takes one for each section, and
    # ends the process where these lie more than 2 GiB apart.
    return llvm.create_lljit_compiler(target, use_jit_link=True)


def host_facts() -> dict[str, str]:
    """Return the name and the features of this processor, the target triple, and the versions of LLVM."""
    import llvmlite
    import llvmlite.binding as llvm

    return {
        "name": llvm.get_host_cpu_name(),
        "features": llvm.get_host_cpu_features().flatten(),
        "triple": llvm.get_process_triple(),
        "versions": f"llvmlite {llvmlite.__version__} {llvm.llvm_version_info}",
    }


def serve(given: BinaryIO, answers: BinaryIO) -> None:
    """Compile jobs until their stream ends.

    Args:
        given: the processor (triple, name and features, each with a line feed), then jobs.
        answers: an object or a message for each job.
    """
    target = target_machine(*(given.readline().decode().rstrip("\n") for _ in range(3)))
    while len(head := given.read(JOB.size)) == JOB.size:
        effort, size = JOB.unpack(head)
        try:
            status, content = 0, compiled_object(given.read(size).decode(), EFFORTS[effort], target)
        except RuntimeError as error:
            status, content = 1, str(error).encode()
        answers.write(ANSWER.pack(status, len(content)) + content)
        answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the caller ends its workers.
    if sys.argv[1] == TELL:
        print(json.dumps(host_facts()))
    else:
        serve(sys.stdin.buffer, sys.stdout.buffer)
