"""Machine code for 64-bit ARM: linked with a small program, and run by QEMU."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

import opendml as dml
from opendml import descs
from opendml.compiler.memory import aligned
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of, tensors_of
from opendml.spec.operator_desc import OperatorDesc
from opendml.targets.cpu import planning
from opendml.targets.cpu.engine import effort_for, kernel_assembly
from opendml.targets.cpu.executable import CpuParts
from opendml.targets.cpu.machine import CpuMachine, assumed
from opendml.targets.cpu.machine_code import MachineCode, compile_object
from opendml.targets.cpu.native import (
    HEADER,
    LAUNCH,
    PATIENCE,
    POOL_WORDS,
    SCRATCH,
    TABLE,
    THREADS,
    runtime_assembly,
)
from opendml.targets.cpu.pattern import CpuPattern
from tests.running import elements, memory_for, run
from tests.targets.test_cpu_attributes import Processor, target_machine

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
MISSING = [name for name in (COMPILER, EMULATOR) if shutil.which(name) is None]
pytestmark = [
    pytest.mark.devices,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]

PROCESSOR = Processor("aarch64-unknown-linux-gnu", "generic", 16, "+neon")
TOGETHER = 3
MACHINE = CpuMachine(
    PROCESSOR.name, PROCESSOR.features, PROCESSOR.triple, 16, 1 << 20, 16 << 20, threads=TOGETHER
)
SYMBOL = re.compile(r'@"(kernel|scratch_bytes)"')
SCRATCH_BYTES = re.compile(r'@"scratch_bytes" = constant i64 (\d+)')

# Arguments: the file of the job's words, and one file for each buffer, which is read and written.
MAIN = """
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
{declarations}
extern int begin(int64_t *, void **, int64_t *), go_on(int64_t *, void **, int64_t *);
extern void work(int64_t *, int64_t);
static void *const kernels[] = {{{kernels}}};
static int64_t pool[{pool}] __attribute__((aligned(64)));
static void *worker(void *index) {{ work(pool, (int64_t)index); return 0; }}
static void *contents(const char *path, long *bytes) {{
  FILE *file = fopen(path, "rb");
  fseek(file, 0, SEEK_END);
  *bytes = ftell(file);
  rewind(file);
  void *memory = aligned_alloc(64, (*bytes + 127) / 64 * 64);
  if (fread(memory, 1, *bytes, file) != (size_t)*bytes) exit(2);
  fclose(file);
  return memory;
}}
int main(int count, char **paths) {{
  long bytes[64];
  void *buffers[64];
  int64_t *job = contents(paths[1], bytes);
  for (int n = 2; n < count; n++) buffers[n - 2] = contents(paths[n], bytes + n - 2);
  for (int64_t n = 0; n < job[0]; n++) {{
    int64_t *launch = job + {header} + {launch} * n;
    launch[0] = (int64_t)kernels[launch[0]];
    launch[1] += (int64_t)job;
  }}
  job[{table}] = (int64_t)buffers;
  for (int64_t n = 1; n < job[{threads}]; n++) {{
    pthread_t thread;
    if (pthread_create(&thread, 0, worker, (void *)n)) exit(3);
  }}
  for (int result = begin(job, buffers, pool); result; result = go_on(job, buffers, pool));
  for (int n = 2; n < count; n++) {{
    FILE *file = fopen(paths[n], "wb");
    fwrite(buffers[n - 2], 1, bytes[n - 2], file);
    fclose(file);
  }}
  return 0;
}}
"""


class Collector:
    """Stands for the compiler of a plan: kernels become object files, and their addresses numbers."""

    def __init__(self) -> None:
        self.objects: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def add(self, patterns: Iterable[CpuPattern]) -> None:
        """Nothing begins before the code is asked for."""

    def codes(self, patterns: Sequence[CpuPattern]) -> list[MachineCode]:
        return [self._code(pattern) for pattern in patterns]

    def _code(self, pattern: CpuPattern) -> MachineCode:
        number = len(self.objects)
        assembly = kernel_assembly(pattern)
        (scratch,) = SCRATCH_BYTES.findall(assembly)
        assembly = SYMBOL.sub(rf'@"\g<1>_{number}"', assembly)
        self.objects.append(compile_object(assembly, effort_for(pattern), target_machine(PROCESSOR)))
        return MachineCode(number, int(scratch), "")


def plan_for_arm(desc: OperatorDesc, monkeypatch: pytest.MonkeyPatch) -> tuple[CpuParts, list[bytes]]:
    collector = Collector()
    monkeypatch.setattr(planning, "KernelCompiler", lambda: collector)
    with assumed(MACHINE):
        return planning.compile_plan(program_of(desc), TOGETHER), collector.objects


def linked(objects: Sequence[bytes], folder: Path) -> Path:
    """A program for ARM with the kernels and the native runtime."""
    runtime = compile_object(runtime_assembly(PROCESSOR.triple), target=target_machine(PROCESSOR))
    files = [folder / "runtime.o", *[folder / f"kernel{number}.o" for number in range(len(objects))]]
    for file, code in zip(files, (runtime, *objects), strict=True):
        file.write_bytes(code)
    names = [f"kernel_{number}" for number in range(len(objects))]
    declared = "".join(f"extern void {name}(void);" for name in names)
    numbers = {"header": HEADER, "launch": LAUNCH, "table": TABLE, "threads": THREADS, "pool": POOL_WORDS}
    main = folder / "main.c"
    main.write_text(MAIN.format(declarations=declared, kernels=", ".join(names), **numbers), "utf-8")
    program = folder / "program"
    command = [COMPILER, "-static", "-O1", "-pthread", "-o", program, main, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def on_arm(
    desc: OperatorDesc, inputs: Sequence[Array], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Array:
    """The only output of the operator, computed by three emulated threads."""
    parts, objects = plan_for_arm(desc, monkeypatch)
    program = linked(objects, folder)
    words = parts.job.words.copy()
    words[PATIENCE] = 0  # Nobody waits for signals.
    words[THREADS] = TOGETHER
    (tensor,) = tensors_of(desc, "OUTPUT_TENSOR")
    assert tensor is not None
    scratch = aligned(int(words[SCRATCH + 2]))
    buffers: dict[int, Array] = dict(enumerate([*inputs, memory_for(tensor)]))
    buffers[parts.arena] = np.zeros(parts.job.arena_bytes + TOGETHER * scratch, np.uint8)
    job = folder / "job"
    job.write_bytes(words.tobytes())
    paths = [folder / f"buffer{number}" for number in range(parts.buffers)]
    for number, path in enumerate(paths):
        path.write_bytes(buffers[number].tobytes() if number in buffers else b"")
    done = subprocess.run([EMULATOR, program, job, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = np.frombuffer(paths[len(inputs)].read_bytes(), buffers[len(inputs)].dtype)
    return elements(result, tensor)


def tensor(*sizes: int, type: dml.TensorDataType = dml.FLOAT32) -> dml.TensorDesc:
    return dml.TensorDesc(type, sizes)


HALF = dml.FLOAT16
CASES: dict[str, OperatorDesc] = {
    "one launch of vectors and a rest": descs.ActivationCelu(tensor(3, 501), tensor(3, 501), alpha=0.7),
    "float16": descs.ActivationSigmoid(tensor(1001, type=HALF), tensor(1001, type=HALF)),
    "many claims": descs.ElementWiseAdd(tensor(700, 300), tensor(700, 300), tensor(700, 300)),
    "sums of rows": descs.Reduce(tensor(67, 131), tensor(67, 1), function=dml.ReduceFunction.SUM, axes=[1]),
    "sums of columns": descs.Reduce(
        tensor(67, 131), tensor(1, 131), function=dml.ReduceFunction.SUM, axes=[0]
    ),
    "partial sums": descs.Reduce(tensor(1, 200_003), tensor(1, 1), function=dml.ReduceFunction.L2, axes=[1]),
    "softmax": descs.ActivationSoftmax(tensor(5, 301), tensor(5, 301)),
    "product": descs.Gemm(
        tensor(1, 1, 37, 53),
        tensor(1, 1, 53, 41),
        None,
        tensor(1, 1, 37, 41),
        trans_a=dml.MatrixTransform.NONE,
        trans_b=dml.MatrixTransform.NONE,
        alpha=1.0,
        beta=0.0,
    ),
}


def tolerance(desc: OperatorDesc) -> dict[str, Any]:
    is_half = any(each is not None and each.data_type is HALF for each in tensors_of(desc, "INPUT_TENSOR"))
    return {"rtol": 2e-3, "atol": 2e-4} if is_half else {"rtol": 2e-5, "atol": 2e-5}


@pytest.mark.parametrize("name", CASES)
def test_object_code_for_arm_computes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desc, random = CASES[name], np.random.default_rng(29)
    given = [each for each in tensors_of(desc, "INPUT_TENSOR") if each is not None]
    inputs = [random.standard_normal(memory_for(each).shape).astype(memory_for(each).dtype) for each in given]
    count = len(tensors_of(desc, "INPUT_TENSOR"))
    expected = run(desc, [*inputs, *[None] * (count - len(inputs))], "reference")
    found = on_arm(desc, inputs, tmp_path, monkeypatch)
    np.testing.assert_allclose(found, expected, **tolerance(desc))
